// Rule E4 on traces small enough to check by hand.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/build.h"
#include "tests/graph/trace_sketch.h"

namespace daydream {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "a -> b" for each wait of one stream for another.
std::vector<std::string> Waits(TraceSketch& sketch) {
  auto built = BuildGraph(sketch.Build());
  EXPECT_TRUE(built.ok()) << Message(built.status());
  std::vector<std::string> waits;
  for (const Edge& edge : built->graph.edges()) {
    if (edge.rule != Rule::kEventWait) continue;
    waits.push_back(
        fmt::format("{} -> {}", built->graph.TaskName(edge.from), built->graph.TaskName(edge.to)));
  }
  return waits;
}

// Kernels of 20 us, launched every 10 us, each after the end of the one before.
void LaunchInTurn(TraceSketch& sketch, const std::vector<std::pair<std::string, LaneId>>& work) {
  double call = 0, start = 10;
  for (const auto& [name, stream] : work) {
    sketch.Launch(sketch.Thread(), stream, name, call, 4, start, 20);
    call += 10;
    start += 21;
  }
}

TEST(DefaultStream, BlockingStreamsAndTheDefaultStreamWaitForOneAnother) {
  TraceSketch s;
  const LaneId normal = s.Stream(7, StreamType::kDefault);
  const LaneId side = s.Stream(13, StreamType::kBlocking);
  LaunchInTurn(s, {{"a", normal}, {"b", side}, {"c", side}, {"d", normal}, {"e", side}});
  EXPECT_THAT(Waits(s), ElementsAre("a -> b", "c -> d", "d -> e"));
}

TEST(DefaultStream, NonBlockingAndUnknownStreamsDoNot) {
  TraceSketch s;
  const LaneId normal = s.Stream(7, StreamType::kDefault);
  const LaneId side = s.Stream(13, StreamType::kNonBlocking), other = s.Stream(14);
  LaunchInTurn(s, {{"a", normal}, {"b", side}, {"c", other}, {"d", normal}});
  EXPECT_THAT(Waits(s), IsEmpty());
}

TEST(DefaultStream, TimingRefutesTheRule) {
  TraceSketch s;
  const LaneId normal = s.Stream(7, StreamType::kDefault);
  const LaneId side = s.Stream(13, StreamType::kBlocking);
  s.Launch(s.Thread(), normal, "a", 0, 4, 10, 100);
  s.Launch(s.Thread(), side, "b", 10, 4, 20, 20);  // beside "a"
  EXPECT_THAT(Waits(s), IsEmpty());
}

}  // namespace
}  // namespace daydream
