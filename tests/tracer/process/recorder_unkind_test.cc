// CUPTI as unkind as its documentation allows, where the fake one is kind elsewhere: work in flight
// is lost, buffers are withheld, kernels of graphs are not recorded, kinds cannot be enabled again.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tracer/process/child.h"
#include "trace/importer.h"

namespace daydream::tracer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr auto kPatience = std::chrono::seconds(60);

std::map<std::string, int> KernelsOfLayers(const std::string& path) {
  const auto trace = ImportFile(path);
  EXPECT_TRUE(trace.ok()) << Message(trace.status());
  std::map<std::string, int> kernels;
  for (size_t row = 0; row < (*trace)->rows(); ++row) {
    if ((*trace)->kind[row] != EventKind::kKernel) continue;
    ++kernels[std::string((*trace)->Name((*trace)->kernels[(*trace)->detail[row]].layer))];
  }
  return kernels;
}

TEST(UnkindCupti, WorkThatRunsWhenTheWindowClosesIsRecordedAlthoughDisablingWouldLoseIt) {
  Session session("capture=nvtx:roi", "lose_in_flight=1");
  session.environment["FAKE_CUDA_KERNEL_NS"] = "20000000";
  const Left left = session.Run({"init", "range=roi", "launch=20", "copies=1", "launch=5",
                                 "end_range", "sync", "launch=1", "sync", "exit=0"});
  const WrittenFile file = OnlyFile(left);
  EXPECT_GE(file.OfKind(pb::KIND_KERNEL).size(), 25u);
  EXPECT_EQ(file.loss.invalid_time(), 0u);
  EXPECT_THAT(file.OfKind(pb::KIND_MEMCPY), SizeIs(2));
}

TEST(UnkindCupti, BuffersThatComeWithTheForcedFlushOnlyAreRead) {
  Session session("capture=none;flush_ms=10", "withhold=1");
  session.environment["FAKE_CUDA_KERNEL_NS"] = "1000000";
  const Left left = session.Run({"init", "launch=300", "sleep=100", "exit=0"});
  const WrittenFile file = OnlyFile(left);
  EXPECT_THAT(file.OfKind(pb::KIND_KERNEL), SizeIs(300));
  EXPECT_THAT(file.OfKind(pb::KIND_CALL), SizeIs(300));
  uint64_t timed = 0;
  for (const WrittenRow& kernel : file.OfKind(pb::KIND_KERNEL)) timed += kernel.duration > 0;
  EXPECT_EQ(timed + file.loss.invalid_time(), 300u) << "those that still ran have no end";
  EXPECT_GT(timed, 0u);
}

TEST(UnkindCupti, AProgramIsStoppedAfterTheWindowsWorkHasComeInAlthoughBuffersAreWithheld) {
  Session session("warmup=2;steps=2;labels=0;after=stop;flush_ms=10", "withhold=1");
  // What the window launches takes 0.4 s, far more than a flush period.
  session.environment["FAKE_CUDA_KERNEL_NS"] = "10000000";
  const Left left = session.Run({"init", "step=1", "step=2", "launch=20", "step=3", "launch=20",
                                 "step=4", "launch=2", "pause"});
  EXPECT_EQ(left.code, SIGTERM);
  const WrittenFile file = OnlyFile(left);
  EXPECT_THAT(file.OfKind(pb::KIND_CALL), SizeIs(40));
  EXPECT_GE(file.OfKind(pb::KIND_KERNEL).size(), 40u);
  EXPECT_EQ(file.loss.invalid_time(), 0u);
}

TEST(UnkindCupti, AKillWhileBuffersAreWithheldLosesTheirGpuWorkAndNoCalls) {
  Session session("capture=none;flush_ms=10", "withhold=1");
  session.environment["FAKE_CUDA_KERNEL_NS"] = "1000000000";
  Child child(session, {"init", "launch=300", "print=ready", "pause"});
  ASSERT_TRUE(child.WaitForLine("ready"));
  const auto until = std::chrono::steady_clock::now() + kPatience;
  const auto calls = [&] {
    const std::vector<std::string> files = session.Files();
    return files.empty() ? 0 : CountRows(files[0])[pb::KIND_CALL];
  };
  while (calls() < 300 && std::chrono::steady_clock::now() < until) usleep(1000);
  child.Kill(SIGKILL);
  const Left left = child.Wait();
  ASSERT_THAT(left.files, SizeIs(1));
  EXPECT_EQ(CountRows(left.files[0])[pb::KIND_CALL], 300u);
  EXPECT_EQ(CountRows(left.files[0])[pb::KIND_KERNEL], 0u);
}

TEST(UnkindCupti, KernelsOfAGraphThatWasMadeBeforeTheWindowAreRecorded) {
  for (const char* range : {"capture=nvtx:roi", "capture=cudaProfilerApi"}) {
    Session session(range, "graphs_need_kind=1");
    const Left left =
        session.Run({"init", "capture", "launch=5", "captured", "range=roi", "profiler_start",
                     "replay=3", "profiler_stop", "end_range", "exit=0"});
    EXPECT_THAT(OnlyFile(left).OfKind(pb::KIND_KERNEL), SizeIs(15)) << range;
  }
}

TEST(UnkindCupti, LayersOfAGraphThatWasCapturedBeforeTheWindowAreKnown) {
  Session session("capture=nvtx:roi", "graphs_need_kind=1");
  const Left left =
      session.Run({"init", "begin=early", "launch=1", "end", "capture", "begin=net.a", "launch=3",
                   "end", "begin=net.b", "launch=2", "captured", "end", "begin=late", "end",
                   "range=roi", "replay=2", "end_range", "exit=0"});
  std::vector<std::string> layers;
  int begins = 0;
  for (const WrittenRow& mark : OnlyFile(left).OfKind(pb::KIND_MARK)) {
    const pb::MarkKind kind = mark.signature.mark().kind();
    if (kind == pb::MARK_KIND_LAYER_BEGIN) layers.push_back(mark.name);
    begins += (kind == pb::MARK_KIND_LAYER_BEGIN) - (kind == pb::MARK_KIND_LAYER_END);
  }
  EXPECT_THAT(layers, ElementsAre("net.a", "net.b")) << "none outside of the capture";
  EXPECT_EQ(begins, 0) << "each has an end, also the one that ended after the capture";
  using Entry = std::pair<const std::string, int>;
  EXPECT_THAT(KernelsOfLayers(left.files.at(0)),
              UnorderedElementsAre(Entry{"net.a", 6}, Entry{"net.b", 4}));
}

TEST(UnkindCupti, ACaptureThatFailsToBeginMarksNothing) {
  Session session("capture=nvtx:roi");
  // The second one fails, for the stream is being captured: one end ends both.
  const Left left = session.Run({"init", "capture", "capture", "launch=1", "captured", "begin=late",
                                 "end", "range=roi", "replay=1", "end_range", "exit=0"});
  for (const WrittenRow& mark : OnlyFile(left).OfKind(pb::KIND_MARK)) EXPECT_NE(mark.name, "late");
}

TEST(UnkindCupti, AKindThatIsRefusedWhenTheWindowOpensIsSaidAndTheRestRecorded) {
  Session session("capture=nvtx:roi", "ActivityEnable:10@1=27");
  const Left left =
      session.Run({"init", "launch=1", "range=roi", "launch=20", "sync", "end_range", "exit=6"});
  EXPECT_EQ(left.code, 6);
  EXPECT_THAT(Messages(left), ElementsAre(HasSubstr("refuses to record again")));
  const WrittenFile file = OnlyFile(left);
  EXPECT_THAT(file.OfKind(pb::KIND_KERNEL), IsEmpty());
  EXPECT_THAT(file.OfKind(pb::KIND_CALL), SizeIs(21));
}

TEST(UnkindCupti, AWindowThatFindsNoMemoryAtFirstTriesWithSmallerBuffers) {
  Session session("capture=nvtx:roi", "ActivityEnable:10@1#1=8");
  const Left left = session.Run({"init", "range=roi", "launch=20", "sync", "end_range", "exit=0"});
  EXPECT_THAT(Messages(left), IsEmpty());
  EXPECT_THAT(OnlyFile(left).OfKind(pb::KIND_KERNEL), SizeIs(20));
}

}  // namespace
}  // namespace daydream::tracer
