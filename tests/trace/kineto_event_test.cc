// One event, picked out of its text.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "trace/kineto/event.h"

namespace daydream {
namespace {

KinetoEvent Parsed(std::string_view text, KinetoEvent event = {}) {
  const std::string padded = std::string(text) + std::string(kJsonPadding, '\0');
  const char* p = padded.data();
  EXPECT_EQ(ParseKinetoEvent(&p, p + text.size(), &event), ParseResult::kOk) << text;
  return event;
}

KinetoEvent WithArgument(const std::string& key) {
  return Parsed("{\"ph\": \"X\", \"args\": {\"" + key + "\": 7}}");
}

struct NumberOf {
  const char* key;
  int64_t KinetoArgs::*member;
};

constexpr NumberOf kNumbers[] = {
    {"Seq", &KinetoArgs::collective_sequence},
    {"bytes", &KinetoArgs::bytes},
    {"stream", &KinetoArgs::stream},
    {"Src Rank", &KinetoArgs::from_rank},
    {"Device Id", &KinetoArgs::device_id},
    {"Group size", &KinetoArgs::group_size},
    {"correlation", &KinetoArgs::correlation},
    {"Fwd thread id", &KinetoArgs::forward_thread},
    {"Total Reserved", &KinetoArgs::total_reserved},
    {"Sequence number", &KinetoArgs::sequence},
    {"registers per thread", &KinetoArgs::registers},
    {"wait_on_cuda_event_id", &KinetoArgs::wait_on_event},
    {"wait_on_cuda_event_record_corr_id", &KinetoArgs::wait_on_record},
};

TEST(KinetoEvent, EachByteOfAKeyCounts) {
  for (const auto& [name, member] : kNumbers) {
    const std::string key(name);
    EXPECT_EQ(WithArgument(key).args.*member, 7) << key;
    for (size_t i = 0; i < key.size(); ++i) {
      std::string other = key;
      other[i] = '#';
      EXPECT_EQ(WithArgument(other).args.*member, KinetoArgs::kAbsent) << other;
    }
  }
}

TEST(KinetoEvent, NothingIsLeftOfTheEventBefore) {
  const KinetoEvent before =
      Parsed(R"({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 1, "tid": "a", "id": 3,
                 "ts": 5, "dur": 2, "args": {"stream": 7, "grid": [1, 2, 3], "Input Dims": [[4]],
                 "queue": "q", "dtype": "Float", "blocks per SM": 0.5, "graph node id": 9}})");
  ASSERT_EQ(before.args.stream, 7);
  const KinetoEvent after = Parsed(R"({"ph": "X"})", before);
  EXPECT_EQ(after.phase, 'X');
  EXPECT_FALSE(after.category.present() || after.name.present());
  EXPECT_FALSE(after.process.present || after.thread.present || after.flow.present);
  EXPECT_EQ(after.start_state, NumberState::kMissing);
  EXPECT_EQ(after.duration_state, NumberState::kMissing);
  EXPECT_EQ(after.args.stream, KinetoArgs::kAbsent);
  EXPECT_EQ(after.args.grid, (std::array<uint32_t, 3>{}));
  EXPECT_TRUE(after.args.shapes.empty());
  EXPECT_FALSE(after.args.queue.present || after.args.dtype.present());
  EXPECT_EQ(after.args.blocks_state, NumberState::kMissing);
  EXPECT_EQ(after.args.graph_node, 0u);
}

}  // namespace
}  // namespace daydream
