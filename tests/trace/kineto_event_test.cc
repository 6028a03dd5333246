// One event, picked out of its text.
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "trace/kineto/event.h"

namespace daydream {
namespace {

KinetoEvent Parsed(std::string_view text, KinetoEvent event = {}) {
  const std::string padded = std::string(text) + std::string(kJsonPadding, '\0');
  const char* p = padded.data();
  JsonKeys keys;
  EXPECT_EQ(ParseKinetoEvent(&p, p + text.size(), &event, &keys), ParseResult::kOk) << text;
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

// Flows and instants are not read but skipped up to their brace, whatever their strings hold.
TEST(KinetoEvent, SkippedEventsEndAtTheirOwnBrace) {
  const std::string_view kinds[] = {
      R"({"ph": "s", "id": 1, "pid": 1, "tid": 1, "ts": 1, "cat": "ac2g", "name": "ac2g"})",
      R"({"ph": "f", "id": 1, "pid": 1, "tid": 1, "ts": 1, "cat": "fwdbwd", "name": "fwdbwd"})",
      R"({"ph": "t", "id": 1, "pid": "a}", "ts": 1, "cat": "ac2g", "name": "x"})",
      R"({"ph": "t", "id": 1, "pid": 1, "ts": 1, "cat": "async_npu", "name": "ac2"})",
      R"({"ph": "f", "id": 1, "pid": 1, "ts": 1, "cat": "HostToDevice", "bp": "e"})",
      R"({"ph": "f", "id": 1, "pid": 1, "ts": 1, "cat": "async_cpu_to_gpu", "name": "async_gpu"})",
      R"({"ph": "s", "id": 1, "args": {"a": [1, "]"]}, "cat": "ac2g"})",
      R"({"ph": "i", "s": "t", "name": "x[memory]", "ts": 3, "args": {"Bytes": 4}})",
      R"({"ph": "i", "s": "g", "name": "Iteration Start", "ts": 3})",
  };
  std::mt19937 random(5);
  const auto below = [&](size_t n) { return random() % n; };
  size_t skipped = 0;
  for (int i = 0; i < 60'000; ++i) {
    std::string text(kinds[below(std::size(kinds))]);
    constexpr std::string_view kBytes = "\"{}[]:|\\,fwDn_";
    const size_t changes = below(3);
    for (size_t change = 0; change < changes; ++change) {
      text.insert(12 + below(text.size() - 12), 1, kBytes[below(kBytes.size())]);
    }
    text += below(9) == 0 ? "x" : below(2) == 0 ? " , " : "]";
    const std::string padded = text + std::string(kJsonPadding, '\0');
    const char* end = padded.data() + text.size();
    KinetoEvent event;
    JsonKeys keys;
    const char* p = padded.data();
    const ParseResult result = ParseKinetoEvent(&p, end, &event, &keys);
    const char* behind = JsonSkipper().Skip(padded.data(), end);
    if (behind == nullptr || (*SkipBlanks(behind) != ',' && *SkipBlanks(behind) != ']')) continue;
    const std::string_view body(padded.data(), static_cast<size_t>(behind - padded.data()));
    const auto has = [&](std::string_view part) { return body.find(part) != body.npos; };
    const bool joins = !has("ac2g") && (has("async_npu") || has("HostToDevice"));
    if (event.phase == 'i' && has(kMemoryMark)) {
      EXPECT_TRUE(event.name.present() || changes > 0) << text;
    } else if (has("fwdbwd") || !joins) {
      ++skipped;
      ASSERT_EQ(result, ParseResult::kOk) << text;
      ASSERT_EQ(p, behind) << text;
      ASSERT_EQ(event.category.text, has("fwdbwd") ? "fwdbwd" : "") << text;
    } else {
      EXPECT_TRUE(event.category.present() || changes > 0) << text;
    }
  }
  EXPECT_GT(skipped, 10'000u);
}

// All that was read, and where it ended.
std::string Told(ParseResult result, const char* behind, const KinetoEvent& e) {
  std::string out =
      fmt::format("{} {} {} {}|{}|{} {}|{} {}|{} {} {} {} {} {}", static_cast<int>(result),
                  static_cast<const void*>(behind), e.phase, e.category.text, e.name.text,
                  e.name.plain, e.process.number, e.process.text.text, e.thread.number,
                  e.thread.text.text, static_cast<int>(e.start_state), e.start_ns,
                  static_cast<int>(e.duration_state), e.duration_ns, e.broken_arguments);
  for (const auto& [name, member] : kNumbers) out += fmt::format(" {}", e.args.*member);
  out += fmt::format("|{}|{}|{} {} {} {}", e.args.shapes, e.args.dtype.text, e.args.grid[2],
                     e.args.graph_node, e.args.device, e.flow.number);
  return out;
}

// Keys that were learned from whatever came before change nothing in what is read.
TEST(KinetoEvent, LearnedKeysReadWhatIsThere) {
  const std::string_view kinds[] = {
      R"({"ph": "X", "cat": "kernel", "name": "gemm<float>", "pid": 0, "tid": 7,
    "ts": 1712195495519689.047, "dur": 12.5,
    "args": {
      "External id": 12, "queued": 0, "device": 0, "stream": 7, "correlation": 4711,
      "registers per thread": 32, "grid": [1, 2, 3], "graph node id": 99, "Seq": 4,
      "wait_on_cuda_event_record_corr_id": 5
    }
  })",
      R"({"ph":"X","cat":"cpu_op","name":"aten::mm","pid":12,"tid":"a","ts":1,"dur":2,"args":{)"
      R"("External id":3,"Sequence number":17,"Fwd thread id":0,"Input Dims":[[2,3],[]],"x":"}"}})",
      R"({"name": "x\"y", "ts": "4.25", "cat": "cpu_op", "args": {}, "id": 5, "ph": "X",})",
      R"({ , "args" : {"dtype" : "Float", "bytes": 7 , "Group size":8,"Input dims":{"a":[1]}} })",
  };
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return random() % n; };
  JsonKeys learned;
  for (int i = 0; i < 60'000; ++i) {
    std::string text(kinds[below(std::size(kinds))]);
    constexpr std::string_view kBytes = "\"{}[]:, \n\\0a";
    for (size_t change = below(4); change > 0 && i > 100; --change) {
      const size_t at = below(text.size());
      if (below(3) == 0) text.erase(at, 1 + below(3));
      if (below(3) == 0) text.insert(at, 1, kBytes[below(kBytes.size())]);
      if (below(3) == 0) text[std::min(at, text.size() - 1)] = kBytes[below(kBytes.size())];
    }
    if (text[0] != '{') continue;
    const size_t size = below(20) == 0 ? below(text.size() + 1) : text.size();
    const std::string padded = text.substr(0, size) + std::string(kJsonPadding, '\0');
    JsonKeys none;
    KinetoEvent fast, slow;
    const char *p = padded.data(), *q = p;
    const ParseResult one = ParseKinetoEvent(&p, padded.data() + size, &fast, &learned);
    const ParseResult other = ParseKinetoEvent(&q, padded.data() + size, &slow, &none);
    ASSERT_EQ(Told(one, p, fast), Told(other, q, slow)) << "event " << i << ": " << text;
  }
}

}  // namespace
}  // namespace daydream
