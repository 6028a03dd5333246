// The loader's lock comes before those of the recorder (recorder.h): constructors of libraries run
// under it and make marks.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tracer/process/child.h"

namespace daydream::tracer {
namespace {

TEST(RecorderLocks, LoaderStorm) {
  // Without the order one run in ten hung, and Wait() ends what does.
  const int runs = kSanitized ? 15 : 60;
  constexpr int kLibraries = 60;
  Session copies;
  for (int i = 0; i < kLibraries; ++i) {
    std::filesystem::copy_file(DAYDREAM_MARKS_WHEN_LOADED,
                               copies.scratch("lib" + std::to_string(i) + ".so"));
  }
  for (int run = 0; run < runs; ++run) {
    Session session;
    const Left left = session.Run({"load_storm=" + copies.scratch("lib"), "init", "launch=100",
                                   "end_storm", "sync", "exit=5"});
    ASSERT_TRUE(left.exited) << "run " << run;
    ASSERT_EQ(left.code, 5) << left.err;
    EXPECT_EQ(CountRows(left.files.at(0))[pb::KIND_KERNEL], 100u);
  }
}

}  // namespace
}  // namespace daydream::tracer
