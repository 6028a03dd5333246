// Rules Q1-Q5 on programs that run ahead of the GPU until the launch queue is full. Times are in
// microseconds.
#include "graph/queue.h"

#include <algorithm>
#include <random>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "graph/build.h"
#include "graph/text.h"
#include "graph/validate.h"
#include "simulator/simulate.h"
#include "tests/graph/built_sketch.h"
#include "tests/graph/trace_sketch.h"
#include "tests/real_traces.h"
#include "trace/importer.h"
#include "transforms/core/editor.h"

namespace daydream {
namespace {

constexpr int kPlaces = 1022;
constexpr std::string_view kBacklog = "(launched before the recording)";
constexpr double kCall = 5, kBetween = 1, kRelease = 5.25;
constexpr double kHost = kCall + kBetween;  // of each piece of work when nothing blocks

enum class Work { kKernel, kPinnedCopy, kDeviceCopy, kEightWaits, kEventRecord, kPause, kGraph };

// What a recorder makes of it: what starts after `window`, and what is in `lost`, was not recorded;
// the clock of the GPU is `clock` ahead, and starts of kernels are up to `noise` late.
struct Recorder {
  double window = 1e12;
  std::set<int> lost = {};
  double clock = 0, noise = 0;
  double from = 0;           // calls before are not recorded, nor is what they launched
  int held_up = -1, by = 0;  // the piece whose call does something else, too, once it has room
};

// When the last call returns if the GPU needs `factor` of its time.
double EndOfLastCall(Graph g, double factor) {
  TaskId last;
  for (size_t i = 0; i < g.size(); ++i) {
    Task& task = g.mutable_task(TaskId(i));
    if (IsGpu(task.kind)) task.duration = task.duration.Scaled(factor);
    if (task.kind == TaskKind::kCall) last = TaskId(i);
  }
  auto timeline = Simulate(g);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return static_cast<double>(timeline->end[last.index()].ns) / 1e3;
}

// A program that submits `count` pieces of work, `pattern` again and again, each 50 us long, as a
// GPU with 1022 places lets it.
class Program {
 public:
  Program(int count, std::vector<Work> pattern, const Recorder& recorder = {}) {
    const LaneId cpu = sketch_.Thread(), gpu = sketch_.Stream();
    double host = 0, stream = 0;
    std::mt19937 random(1);
    std::uniform_real_distribution<double> noise(0, recorder.noise);
    std::vector<double> starts;  // of what takes a place
    for (int i = 0; i < count; ++i) {
      const Work work = pattern[static_cast<size_t>(i) % pattern.size()];
      // They begin when the work before is over, give their one place back and take 30 us.
      if (work == Work::kEightWaits) {
        for (int wait = 0; wait < 8; ++wait, host += 1) {
          const auto id = static_cast<uint32_t>(1'000'000 + 8 * i + wait);
          sketch_.Call(cpu, "cudaStreamWaitEvent", host, 1, id);
          sketch_.Sync(gpu, {.kind = SyncKind::kStreamWaitEvent, .stream = 7}, stream, id);
        }
        starts.push_back(stream + 1);
        stream += 30;
        continue;
      }
      if (work == Work::kEventRecord) {  // waits for the room of the next launch, and takes none
        const bool full = starts.size() + 1 >= kPlaces;
        const double room = full ? starts[starts.size() + 1 - kPlaces] + kRelease : 0;
        const double end = std::max(host + kBetween, room);
        const auto id = static_cast<uint32_t>(2'000'000 + i);
        sketch_.Call(cpu, "cudaEventRecord", host, end - host, id);
        sketch_.Call(cpu, "cudaStreamWaitEvent", end, 1, id + 1'000'000);
        sketch_.Sync(gpu,
                     {.kind = SyncKind::kStreamWaitEvent,
                      .stream = 9,
                      .wait_on_stream = 7,
                      .record_correlation = id},
                     stream, id + 1'000'000);
        host = end + 1;
        continue;
      }
      if (work == Work::kPause) {  // five places get free
        host += 250;
        continue;
      }
      if (work == Work::kGraph) {  // of three kernels, in a place each
        const double room =
            starts.size() + 1 >= kPlaces ? starts[starts.size() + 1 - kPlaces] + kRelease : 0;
        const double begin = std::exchange(host, std::max(host + kCall, room));
        const auto id = static_cast<uint32_t>(i + 1);
        const bool seen = begin >= recorder.from;
        if (seen) sketch_.Call(cpu, "cudaGraphLaunch", begin, host - begin, id);
        for (int k = 0; k < 3; ++k, stream += 50) {
          stream = std::max(stream + 1, host + 3);
          starts.push_back(stream);
          if (seen) sketch_.Kernel(gpu, "of a graph", stream, 50, id);
        }
        host += kBetween;
        continue;
      }
      const double begin = host;
      double end = begin + kCall;
      if (work != Work::kPinnedCopy) {
        if (starts.size() + 1 >= kPlaces) {
          end = std::max(end, starts[starts.size() + 1 - kPlaces] + kRelease);
        }
      }
      stream = std::max(stream + 1, end + 3);
      if (i == recorder.held_up) end += recorder.by;
      if (work != Work::kPinnedCopy) starts.push_back(stream);
      const auto id = static_cast<uint32_t>(i + 1);
      const bool seen = begin >= recorder.from;
      if (seen) {
        sketch_.Call(cpu, work == Work::kKernel ? "cudaLaunchKernel" : "cudaMemcpyAsync", begin,
                     end - begin, id);
      }
      if (seen && stream < recorder.window && !recorder.lost.contains(i)) {
        Submit(gpu, work, stream + recorder.clock, noise(random), id);
      }
      stream += 50;
      host = end + kBetween;
    }
    auto built = BuildGraph(sketch_.Build());
    EXPECT_TRUE(built.ok()) << built.status();
    built_ = *std::move(built);
    EXPECT_TRUE(Validate(built_.graph).ok()) << Validate(built_.graph);
  }

  const Graph& graph() const { return built_.graph; }
  const BuildReport& report() const { return built_.report; }
  uint32_t depth() const {
    for (const GraphLane& lane : graph().lanes()) {
      if (lane.lane.kind == LaneKind::kStream) return lane.queue_depth;
    }
    return 0;
  }
  double HostEnd(double factor) const { return EndOfLastCall(graph(), factor); }

 private:
  void Submit(LaneId gpu, Work work, double start, double late, uint32_t id) {
    if (work == Work::kKernel) return sketch_.Kernel(gpu, "k", start + late, 50 - late, id);
    const Memory from = work == Work::kPinnedCopy ? Memory::kPinned : Memory::kDevice;
    sketch_.Copy(gpu, from, Memory::kDevice, 1 << 20, start, 50, id);
  }

  TraceSketch sketch_;
  BuiltGraph built_;
};

std::set<std::tuple<uint32_t, uint32_t, int64_t>> QueueEdges(const Graph& g) {
  std::set<std::tuple<uint32_t, uint32_t, int64_t>> edges;
  for (const Edge& e : g.edges()) {
    if (e.rule != Rule::kQueue) continue;
    EXPECT_EQ(e.from_anchor, Anchor::kStart);
    EXPECT_EQ(e.to_anchor, Anchor::kEnd);
    edges.insert({e.from.value, e.to.value, e.lag.ns});
  }
  return edges;
}

TEST(QueueRule, ABlockedCallReturnsWhenTheOperation1021PlacesEarlierStarts) {
  Program p(2500, {Work::kKernel});
  EXPECT_EQ(p.depth(), kPlaces);
  EXPECT_GT(p.report().queue_blocked, 1000u);
  ExpectReplaysExactly(p.graph());
  EXPECT_NEAR(p.HostEnd(0), 2500 * kHost, 30) << "the pure host time";
  // Twice as slow: the last call waits for the start of kernel 2499 - 1021 = 1478.
  EXPECT_NEAR(p.HostEnd(2), 1478 * 101 + 8 + kRelease + kBetween, 30);
}

// The GPU works through its queue meanwhile, and then has nothing to do.
TEST(QueueRule, WhatABlockedCallDoesOnceThereIsRoomIsItsOwnWork) {
  Program p(2500, {Work::kKernel}, {.held_up = 1500, .by = 200'000});
  EXPECT_GT(p.report().queue_blocked, 300u);
  ExpectReplaysExactly(p.graph());
  EXPECT_NEAR(p.HostEnd(0), 2500 * kHost + 200'000, 30);
  Graph again = p.graph();
  RebuildQueueEdges(again, std::vector<bool>(again.lanes().size(), true));
  EXPECT_NEAR(EndOfLastCall(again, 0), 2500 * kHost + 200'000, 30);
  EXPECT_NEAR(EndOfLastCall(again, 1), p.HostEnd(1), 50) << "what it waited for room";
}

TEST(QueueRule, CopiesBetweenHostAndDeviceTakeNoPlace) {
  Program p(4000, {Work::kKernel, Work::kPinnedCopy, Work::kPinnedCopy});
  EXPECT_EQ(p.depth(), kPlaces);
  EXPECT_GT(p.report().queue_blocked, 150u);
  ExpectReplaysExactly(p.graph());
  EXPECT_NEAR(p.HostEnd(0), 4000 * kHost, 30);
}

// As cuDNN joins eight streams before a convolution. Where they are is told by the calls that
// agree.
TEST(QueueRule, ARunOfEightWaitsTakesOneWhereBlockedCallsSaySo) {
  std::vector<Work> pattern(900, Work::kKernel);
  for (int i = 0; i < 100; ++i) pattern.insert(pattern.end(), {Work::kKernel, Work::kEightWaits});
  Program p(4400, pattern);
  EXPECT_EQ(p.depth(), kPlaces);
  EXPECT_GT(p.report().queue_blocked, 2500u);
  ExpectReplaysExactly(p.graph());
  EXPECT_NEAR(p.HostEnd(0), 4000 * kHost + 400 * 8, 30)
      << "no blocked call is left as long as it was";
}

TEST(QueueRule, ARecordOfAnEventWaitsForRoomToo) {
  std::vector<Work> pattern(50, Work::kKernel);
  pattern.push_back(Work::kEventRecord);
  Program p(2550, pattern);
  EXPECT_EQ(p.depth(), kPlaces);
  ExpectReplaysExactly(p.graph());
  EXPECT_NEAR(p.HostEnd(0), 2500 * kHost + 50 * 2, 30) << "no record is left as long as it was";
}

TEST(QueueRule, EditsFindAnewWhatRecordsOfEventsWaitFor) {
  std::vector<Work> pattern(50, Work::kKernel);
  pattern.push_back(Work::kEventRecord);
  Program p(2550, pattern);
  Graph again = p.graph();
  RebuildQueueEdges(again, std::vector<bool>(again.lanes().size(), true));
  EXPECT_EQ(QueueEdges(again), QueueEdges(p.graph()));
  EXPECT_NEAR(EndOfLastCall(again, 2), p.HostEnd(2), 0.001);
}

// What waited until the operation before a run of waits was over, and after an edit waits until
// that operation starts, does not do so as much later.
TEST(QueueRule, ALagFromAnEndIsNoneFromAStart) {
  std::vector<Work> pattern(1500, Work::kKernel);
  pattern.push_back(Work::kEightWaits);
  Program p(6000, pattern);
  std::set<std::pair<TaskId, TaskId>> from_ends;
  for (const Edge& e : p.graph().edges()) {
    if (e.rule == Rule::kQueue && e.from_anchor == Anchor::kEnd) from_ends.insert({e.from, e.to});
  }
  Graph again = p.graph();
  RebuildQueueEdges(again, std::vector<bool>(again.lanes().size(), true));
  size_t met = 0;
  for (const Edge& e : again.edges()) {
    if (e.rule != Rule::kQueue || !from_ends.contains({e.from, e.to})) continue;
    EXPECT_EQ(e.from_anchor, Anchor::kStart);
    EXPECT_EQ(e.lag, kQueueReleaseLag);
    ++met;
  }
  EXPECT_GT(met, 0u);
}

TEST(QueueRule, CopiesWithinTheDeviceTakeOne) {
  Program p(2500, {Work::kKernel, Work::kDeviceCopy});
  EXPECT_EQ(p.depth(), kPlaces);
  EXPECT_GT(p.report().queue_blocked, 1000u);
  ExpectReplaysExactly(p.graph());
}

// 1500 launches; what starts after 30 ms was not recorded. Call 1021 + n waits for kernel n, and
// 588 of them were recorded.
TEST(QueueRule, LaunchesWhoseOperationTheWindowCutOffTakePlaces) {
  Program p(1500, {Work::kKernel}, {.window = 30000});
  EXPECT_GT(p.report().queue_blocked, 300u);
  ExpectReplaysExactly(p.graph());
  EXPECT_NEAR(p.HostEnd(0), 1500 * kHost, 30);
}

// The recorder begins at the 700th launch, when 82 of their kernels have run, and sees none of the
// others. From the 1,158th launch on all wait: 563 of them for what it did not see.
TEST(QueueRule, LaunchesThatWaitForWhatWasNotRecordedTellWhenItRan) {
  Program p(2000, {Work::kKernel}, {.from = 700 * kHost});
  EXPECT_EQ(p.depth(), kPlaces);
  EXPECT_EQ(p.report().queue_blocked, 2000u - 1158);
  ExpectReplaysExactly(p.graph());
  EXPECT_NEAR(p.HostEnd(0.001), 1300 * kHost, 60) << "no call is left as long as it was";
  // Twice as slow: the last call waits for the start of kernel 1999 - 1021 = 978.
  const double backlog = (1158 - 700) * kHost + 563 * 102;
  EXPECT_NEAR(p.HostEnd(2), backlog + (978 - 700) * 101, 60);
  Graph again = p.graph();
  RebuildQueueEdges(again, std::vector<bool>(again.lanes().size(), true));
  EXPECT_EQ(QueueEdges(again), QueueEdges(p.graph())) << "edits find it anew";
}

// While the host pauses, room is made for launches that return at once, and a graph takes places
// that none of its own calls waits for: they are places of the backlog all the same.
TEST(QueueRule, WhatRanUnseenHasAPlaceForEachLaunchBehindAFullQueue) {
  std::vector<Work> pattern(20, Work::kKernel);
  pattern.insert(pattern.end(), {Work::kPause, Work::kKernel, Work::kGraph});
  Program p(2303, pattern, {.from = 14000});
  EXPECT_EQ(p.depth(), kPlaces);
  ExpectReplaysExactly(p.graph());
  EXPECT_EQ(p.graph().TaskName(p.graph().lane(LaneId(1)).first), kBacklog);
  Graph edited = p.graph();
  const TaskId last = edited.lane(LaneId(1)).last;
  std::set<std::tuple<uint32_t, uint32_t, int64_t>> before = QueueEdges(edited);
  EXPECT_GT(before.size(), 500u);
  Editor edit(edited);
  ASSERT_EQ(edit.RemoveWithLaunches({&last, 1}), 1u);
  edit.Finish();
  std::erase_if(before, [&](const auto& e) { return edited.task(TaskId(std::get<1>(e))).removed; });
  EXPECT_EQ(QueueEdges(edited), before);
}

// A stream whose first operation starts 5 ms after its 40 launches, which took 60 us each because
// their kernels were loaded then; those of the main stream take 5 us. In all there are `behind`
// more.
BuiltGraph SlowLaunchesOfASideStream(bool told_to_wait, int behind) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream(7), side = s.Stream(20);
  double host = 0;
  for (int i = 0; i < 1200; ++i, host += kHost) s.Launch(cpu, gpu, "k", host, kCall, host + 7, 5);
  if (told_to_wait) {
    s.Call(cpu, "cudaStreamWaitEvent", host, 1, 1);
    s.Sync(side, {.kind = SyncKind::kStreamWaitEvent, .stream = 20}, host, 1);
  }
  host += 2;
  double stream = host + 10'000;
  for (int i = 0; i < 40; ++i, host += 61, stream += 10) {
    s.Launch(cpu, side, "side", host, 60, stream, 9);
  }
  for (int i = 0; i < behind; ++i, host += kHost, stream += 10) {
    s.Launch(cpu, side, "side", host, kCall, stream, 9);
  }
  return Build(s);
}

TEST(QueueRule, SlowLaunchesOfAStreamThatWaitsForAnotherTellOfNoBacklog) {
  for (const auto& [told_to_wait, behind] : {std::pair(true, 1021 - 40), std::pair(false, 0)}) {
    const BuiltGraph built = SlowLaunchesOfASideStream(told_to_wait, behind);
    for (size_t i = 0; i < built.graph.size(); ++i) {
      EXPECT_NE(built.graph.TaskName(TaskId(i)), kBacklog) << told_to_wait;
    }
    ExpectReplaysExactly(built.graph);
  }
}

// Copies alternate between kinds: of those that were cut off every other one takes a place.
TEST(QueueRule, CutOffCopiesAreTakenForTheKindThatIsTheirTurn) {
  Program p(3000, {Work::kKernel, Work::kPinnedCopy, Work::kDeviceCopy}, {.window = 80000});
  EXPECT_EQ(p.depth(), kPlaces);
  EXPECT_GT(p.report().queue_blocked, 800u);
  ExpectReplaysExactly(p.graph());
  EXPECT_NEAR(p.HostEnd(0), 3000 * kHost, 30);
}

TEST(QueueRule, TheDepthIsFoundWhereTheClockOfTheGpuIsOff) {
  for (double clock : {-20.0, -10.0, 10.0, 20.0}) {
    Program p(2500, {Work::kKernel}, {.clock = clock});
    EXPECT_EQ(p.depth(), kPlaces) << clock;
    EXPECT_GT(p.report().queue_blocked, 1000u) << clock;
    ExpectReplaysExactly(p.graph());
    EXPECT_NEAR(p.HostEnd(0), 2500 * kHost, 60) << clock;
  }
}

TEST(QueueRule, TheDepthIsFoundWhereTimesAreRough) {
  Program p(2500, {Work::kKernel}, {.noise = 3});
  EXPECT_EQ(p.depth(), kPlaces);
  ExpectReplaysExactly(p.graph());
  EXPECT_NEAR(p.HostEnd(0), 2500 * kHost, 60);
}

// Until the lost kernel has run, one more than were recorded fills the queue.
TEST(QueueRule, FewerRecordedOperationsFillTheQueueWhereSomeWereLost) {
  for (const std::set<int>& lost : {std::set<int>{400}, std::set<int>{400, 1300, 1700}}) {
    Program p(2500, {Work::kKernel}, {.lost = lost});
    EXPECT_GT(p.report().queue_blocked, 1000u);
    ExpectReplaysExactly(p.graph());
    const double until_three_agree = 70 * static_cast<double>(lost.size());
    EXPECT_NEAR(p.HostEnd(0), 2500 * kHost, until_three_agree);
  }
}

TEST(QueueRule, WhatEditsFindAnewIsWhatWasFound) {
  for (double window : {1e12, 80000.0}) {
    Program p(3000, {Work::kKernel, Work::kPinnedCopy, Work::kDeviceCopy}, {.window = window});
    Graph again = p.graph();
    RebuildQueueEdges(again, std::vector<bool>(again.lanes().size(), true));
    EXPECT_GT(QueueEdges(again).size(), 100u);
    EXPECT_EQ(QueueEdges(again), QueueEdges(p.graph())) << window;
  }
}

// A program with three streams: two share a queue and are used in bursts of random length, so that
// no depth of one alone explains why its launches wait; the third has a queue of its own.
struct SharedQueue {
  static constexpr int kCount = 4000;
  LaneId streams[3];
  BuiltGraph built;

  SharedQueue() {
    TraceSketch sketch;
    const LaneId cpu = sketch.Thread();
    for (int64_t i = 0; i < 3; ++i) streams[i] = sketch.Stream(20 + i);
    double host = 0, reached = 0, free[3] = {};
    std::vector<double> starts;  // of what took a place in the shared queue, in order
    std::mt19937 random(1);
    size_t now = 0;
    for (int i = 0, burst = 0; i < kCount; ++i, --burst) {
      if (burst == 0) {
        burst = std::uniform_int_distribution<int>(1, 300)(random);
        now = 1 - now;
      }
      const size_t at = i % 10 == 9 ? 2 : now;
      double end = host + kCall;
      if (at != 2 && starts.size() + 1 >= kPlaces) {
        end = std::max(end, starts[starts.size() + 1 - kPlaces] + kRelease);
      }
      double start = std::max(free[at] + 1, end + 3);
      if (at != 2) {  // what stands behind others in the queue is not seen before
        start = reached = std::max(start, reached);
        starts.push_back(start);
      }
      const auto id = static_cast<uint32_t>(i + 1);
      sketch.Call(cpu, "cudaLaunchKernel", host, end - host, id);
      sketch.Kernel(streams[at], "k", start, 50, id);
      free[at] = start + 50;
      host = end + kBetween;
    }
    auto graph = BuildGraph(sketch.Build());
    EXPECT_TRUE(graph.ok()) << graph.status();
    built = *std::move(graph);
    EXPECT_TRUE(Validate(built.graph).ok()) << Validate(built.graph);
  }

  uint32_t queue(size_t stream) const { return built.graph.lane(streams[stream]).shared_queue; }
};

TEST(QueueRule, StreamsThatFillOneQueueTogetherShareIt) {
  const SharedQueue p;
  EXPECT_EQ(p.queue(0), 1u);
  EXPECT_EQ(p.queue(1), 1u);
  EXPECT_EQ(p.queue(2), 0u) << "its places are not needed to explain what waits";
  EXPECT_EQ(p.built.graph.lane(p.streams[0]).queue_depth, kPlaces);
  EXPECT_GT(p.built.report.queue_blocked, 2000u);
  ExpectReplaysExactly(p.built.graph);
  Graph quick = p.built.graph;
  TaskId last;
  for (size_t i = 0; i < quick.size(); ++i) {
    Task& task = quick.mutable_task(TaskId(i));
    if (IsGpu(task.kind) || task.kind == TaskKind::kDelay) task.duration = task.gap = {};
    if (task.kind == TaskKind::kCall) last = TaskId(i);
  }
  auto timeline = Simulate(quick);
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  EXPECT_NEAR(static_cast<double>(timeline->end[last.index()].ns) / 1e3,
              SharedQueue::kCount * kHost, 100)
      << "the pure host time";
}

TEST(QueueRule, EdgesOfASharedQueueAreMadeAnew) {
  const SharedQueue p;
  Graph again = p.built.graph;
  std::vector<bool> one(again.lanes().size());
  one[p.streams[1].index()] = true;  // the edges of both
  RebuildQueueEdges(again, one);
  EXPECT_GT(QueueEdges(again).size(), 1000u);
  EXPECT_EQ(QueueEdges(again), QueueEdges(p.built.graph));
  const auto read = ParseGraph(FormatGraph(p.built.graph));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->lane(p.streams[1]).shared_queue, 1u);
}

// 1288 calls of this recording were blocked at the same depth, so that its host alone, without a
// GPU in its way, needs a third of the time.
TEST(QueueRule, AV100IsExactly1022Deep) {
  const auto file = RealTraceFolder() / "gpus/resnet50-bs32.v100-sxm2.json.gz";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no ../shared/traces beside the repository";
  auto trace = ImportFile(file.string());
  ASSERT_TRUE(trace.ok()) << trace.status();
  auto built = BuildGraph(*trace);
  ASSERT_TRUE(built.ok()) << built.status();
  Graph g = std::move(built->graph);
  uint32_t depth = 0;
  for (const GraphLane& lane : g.lanes()) depth = std::max(depth, lane.queue_depth);
  EXPECT_EQ(depth, 1022u);
  EXPECT_EQ(built->report.queue_blocked, 1288u);
  for (size_t i = 0; i < g.size(); ++i) {
    Task& task = g.mutable_task(TaskId(i));
    if (IsGpu(task.kind) || task.kind == TaskKind::kDelay) task.duration = task.gap = {};
  }
  auto timeline = Simulate(g);
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  EXPECT_NEAR(timeline->makespan.ms(), 161.7, 0.5);
}

}  // namespace
}  // namespace daydream
