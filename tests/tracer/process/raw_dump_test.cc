// What DAYDREAM_DUMP_RAW=1 writes, replayed through the recorder, gives the same rows again. This
// is how recordings of a real GPU become tests.
#include "tracer/raw_dump.h"

#include <dlfcn.h>

#include <gtest/gtest.h>

#include "tests/tracer/process/child.h"

namespace daydream::tracer {
namespace {

// The walker of the CUPTI that filled the buffers.
CuptiDecoding FakeCupti() {
  CuptiDecoding cupti;
  void* library = dlopen(DAYDREAM_FAKE_CUDA "/libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return cupti;
  cupti.next_record =
      reinterpret_cast<decltype(cupti.next_record)>(dlsym(library, "cuptiActivityGetNextRecord"));
  cupti.callback_name =
      reinterpret_cast<decltype(cupti.callback_name)>(dlsym(library, "cuptiGetCallbackName"));
  return cupti;
}

TEST(RawDump, IsReplayedIntoTheSameRows) {
  Session session("capture=none");
  session.environment["DAYDREAM_DUMP_RAW"] = "1";
  Left left = session.Run({"init", "launch=300", "copies=20", "pipeline=5", "graph=7", "sync"});
  ASSERT_EQ(left.code, 0) << left.err;
  ASSERT_EQ(left.files.size(), 1u);
  std::string dump = FileBytes(left.files[0] + ".cuptibuf");
  ASSERT_FALSE(dump.empty());

  Recording again;
  std::string path = session.scratch("again.ddtrace");
  ASSERT_EQ(again.Open(path.c_str(), {.clock_origin_ns = 1}), 0);
  bool first = true;
  EXPECT_TRUE(
      ReplayRaw(dump, FakeCupti(), [&](const CuptiDecoding& cupti, uint8_t* buffer, size_t valid) {
        EXPECT_EQ(cupti.version, 130001u);
        if (std::exchange(first, false)) again.SetCupti(cupti);
        again.AddBuffer(buffer, valid);
      }));
  again.Close(RecordingEnd::kExit, 0);
  Count then = CountRows(left.files[0]), now = CountRows(path);
  for (pb::Kind kind : {pb::KIND_KERNEL, pb::KIND_MEMCPY, pb::KIND_MEMSET, pb::KIND_CALL,
                        pb::KIND_SYNC, pb::KIND_EVENT_RECORD}) {
    EXPECT_EQ(now[kind], then[kind]) << kind;
    EXPECT_GT(now[kind], 0u) << kind;
  }
  EXPECT_NE(FileBytes(path).size(), 0u);

  // Any beginning of it can be replayed as far as it goes.
  for (size_t size : {size_t{0}, size_t{7}, size_t{15}, size_t{40}, dump.size() - 1}) {
    EXPECT_FALSE(ReplayRaw(std::string_view(dump).substr(0, size), FakeCupti(),
                           [](const CuptiDecoding&, uint8_t*, size_t) {}));
  }
}

TEST(RawDump, IsNotWrittenUnlessAskedFor) {
  Session session("capture=none");
  Left left = session.Run({"init", "launch=3", "sync"});
  ASSERT_EQ(left.files.size(), 1u);
  EXPECT_EQ(FileBytes(left.files[0] + ".cuptibuf"), "");
}

}  // namespace
}  // namespace daydream::tracer
