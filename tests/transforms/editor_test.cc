#include "transforms/core/editor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/queue.h"
#include "graph/validate.h"
#include "simulator/simulate.h"

namespace daydream {
namespace {

using ::testing::ElementsAre;

// Three launches of 5 us with gaps of 1 us, and their kernels of 10 us one after the other.
struct ThreeKernels {
  ThreeKernels() {
    host = graph.AddLane({.lane = {.kind = LaneKind::kThread}});
    stream = graph.AddLane({.lane = {.kind = LaneKind::kStream}});
    for (int i = 0; i < 3; ++i) {
      calls.push_back(graph.Append({.duration = Duration::Us(5),
                                    .gap = Duration::Us(1),
                                    .name = graph.AddName("cudaLaunchKernel"),
                                    .lane = host,
                                    .kind = TaskKind::kCall}));
      kernels.push_back(graph.Append({.duration = Duration::Us(10),
                                      .name = graph.AddName("k"),
                                      .lane = stream,
                                      .kind = TaskKind::kKernel}));
      graph.AddEdge(
          {.from = calls[i], .to = kernels[i], .lag = Duration::Us(2), .rule = Rule::kLaunch});
    }
  }
  int64_t Makespan() const {
    EXPECT_TRUE(Validate(graph).ok());
    auto timeline = Simulate(graph);
    EXPECT_TRUE(timeline.ok());
    return timeline.ok() ? timeline->makespan.ns / 1000 : -1;
  }

  Graph graph;
  LaneId host, stream;
  std::vector<TaskId> calls, kernels;
};

TEST(Editor, ScaleRoundsHalfToEven) {
  ThreeKernels g;
  g.graph.mutable_task(g.kernels[0]).duration = Duration::Ns(5);
  Editor edit(g.graph);
  edit.Scale(std::span(g.kernels).first(1), 0.5);
  EXPECT_EQ(g.graph.task(g.kernels[0]).duration.ns, 2);
  EXPECT_EQ(edit.changes().scaled, 1u);
}

TEST(Editor, OneEditAStepTellsWhichStepsWereEdited) {
  ThreeKernels g;
  for (TaskId t : {g.kernels[1], g.kernels[2]}) g.graph.mutable_task(t).step = 3;
  Editor edit(g.graph, nullptr, EditNotes::kOneAStep);
  edit.BeginCause("all of them");
  edit.Scale(g.kernels, 0.5);
  edit.Scale(g.kernels, 0.5);
  std::vector<TaskId> edited;
  for (const Editor::Edit& e : edit.edits()) edited.push_back(e.task);
  EXPECT_THAT(edited, ElementsAre(g.kernels[0], g.kernels[1], g.kernels[0], g.kernels[1]));
  EXPECT_EQ(edit.changes().scaled, 6U);
}

TEST(Editor, RemovingAKernelRemovesItsLaunch) {
  ThreeKernels g;
  EXPECT_EQ(g.Makespan(), 37);
  Editor edit(g.graph);
  EXPECT_EQ(edit.RemoveWithLaunches(std::span(g.kernels).first(1)), 1u);
  edit.Finish();
  EXPECT_TRUE(g.graph.task(g.calls[0]).removed);
  EXPECT_EQ(g.Makespan(), 27);
}

TEST(Editor, ACallThatLaunchesMoreStays) {
  ThreeKernels g;
  g.graph.mutable_edges()[1].from = g.calls[0];
  Editor edit(g.graph);
  EXPECT_EQ(edit.RemoveWithLaunches(std::span(g.kernels).first(1)), 0u);
  EXPECT_FALSE(g.graph.task(g.calls[0]).removed);
  EXPECT_EQ(edit.RemoveWithLaunches(std::span(g.kernels).subspan(1, 1)), 1u);
}

TEST(Editor, ARemovedKernelPassesOrderOn) {
  ThreeKernels g;
  TaskId wait = g.graph.Append({.lane = g.host, .kind = TaskKind::kWait});
  g.graph.AddEdge(
      {.from = g.kernels[2], .to = wait, .rule = Rule::kHostWait, .to_anchor = Anchor::kEnd});
  Editor edit(g.graph);
  edit.RemoveWithLaunches(std::span(g.kernels).subspan(2));
  edit.Finish();
  auto timeline = Simulate(g.graph);
  ASSERT_TRUE(timeline.ok());
  EXPECT_EQ(timeline->end[wait.index()].ns, 27000);  // the second kernel's end
}

TEST(Editor, RemovedCopiesWaitForNothing) {
  ThreeKernels g;
  // The second call waits for its own copy: the waiting part follows it.
  TaskId wait = g.graph.InsertAfter(
      g.calls[1],
      {.name = g.graph.AddName("cudaLaunchKernel"), .lane = g.host, .kind = TaskKind::kWait});
  g.graph.AddEdge(
      {.from = g.kernels[1], .to = wait, .rule = Rule::kHostWait, .to_anchor = Anchor::kEnd});
  EXPECT_EQ(g.Makespan(), 27 + 5 + 2 + 10);
  Editor edit(g.graph);
  edit.RemoveWithLaunches(std::span(g.kernels).subspan(1, 1));
  edit.Finish();
  EXPECT_EQ(g.Makespan(), 27);
}

TEST(Editor, FusingKeepsTheFirstOfItsTasks) {
  ThreeKernels g;
  Editor edit(g.graph);
  TaskId fused = edit.Fuse(g.kernels, "fused", Duration::Us(12));
  edit.Finish();
  EXPECT_EQ(fused, g.kernels[0]);
  EXPECT_EQ(g.graph.TaskName(fused), "fused");
  EXPECT_EQ(edit.changes().fused, 3u);
  EXPECT_EQ(edit.changes().removed, 0u);
  EXPECT_EQ(g.Makespan(), 5 + 2 + 12);
}

TEST(Editor, WhatTheHostDoesBehindARemovedCallStays) {
  for (const bool but_gap : {false, true}) {
    ThreeKernels g;
    g.graph.mutable_task(g.calls[0]).gap = Duration::Us(3);
    g.graph.mutable_task(g.calls[1]).gap = Duration::Us(20);
    Editor edit(g.graph);
    edit.Merge(std::span(g.kernels).subspan(1, 1));
    const auto call = std::span(g.calls).subspan(1, 1);
    but_gap ? edit.RemoveButGap(call) : edit.Remove(call);
    edit.Finish();
    EXPECT_EQ(g.graph.task(g.calls[0]).gap.ns, but_gap ? 23000 : 3000);
    EXPECT_EQ(g.Makespan(), but_gap ? 5 + 23 + 5 + 2 + 10 : 5 + 2 + 10 + 10);
  }
}

TEST(Editor, GapsOfManyComeBehindWhatIsLeftBeforeAll) {
  ThreeKernels g;
  Editor edit(g.graph);
  edit.Merge(std::span(g.kernels).subspan(1));
  edit.RemoveButGap(std::span(g.calls).subspan(1));
  edit.Finish();
  EXPECT_EQ(g.graph.task(g.calls[0]).gap, Duration::Us(3));
}

TEST(Editor, AGapBehindWhatWaitsForAnotherLaneStaysThere) {
  ThreeKernels g;
  const LaneId other = g.graph.AddLane({.lane = {.kind = LaneKind::kThread}});
  const TaskId gives = g.graph.Append({.duration = Duration::Us(50), .lane = other});
  g.graph.AddEdge({.from = gives, .to = g.calls[1], .rule = Rule::kHandOff});
  Editor edit(g.graph);
  edit.Merge(std::span(g.kernels).subspan(1));
  edit.RemoveButGap(std::span(g.calls).subspan(1));
  edit.Finish();
  EXPECT_EQ(g.graph.task(g.calls[0]).gap, Duration::Us(1));
  // It is still there, takes no time, and has the gap of the next one, too.
  EXPECT_FALSE(g.graph.task(g.calls[1]).removed);
  EXPECT_TRUE(g.graph.task(g.calls[2]).removed);
  EXPECT_EQ(g.graph.task(g.calls[1]).duration, Duration{});
  EXPECT_EQ(g.graph.task(g.calls[1]).gap, Duration::Us(2));
  // So has the first of a lane.
  edit.RemoveButGap(std::span(g.calls).first(1));
  EXPECT_EQ(g.graph.task(g.calls[0]).gap, Duration::Us(1));
  EXPECT_FALSE(g.graph.task(g.calls[0]).removed);
}

TEST(Editor, CausesAddUpToTheChange) {
  ThreeKernels g;
  Editor edit(g.graph);
  CauseId faster = edit.BeginCause("faster");
  edit.Scale(g.kernels, 0.5);
  edit.BeginCause("cheaper");
  edit.SetDuration(g.calls[0], Duration::Us(1));
  EXPECT_EQ(edit.BeginCause("faster"), faster);
  ASSERT_EQ(edit.causes().size(), 2u);
  EXPECT_EQ(edit.causes()[0].gpu, Duration::Us(-15));
  EXPECT_EQ(edit.causes()[1].host, Duration::Us(-4));
  EXPECT_EQ(edit.CauseOf(g.kernels[1]), faster);
  EXPECT_EQ(edit.CauseOf(g.calls[1]), Editor::kNoCause);
}

TEST(Editor, FindsLaunchesOfWhatItInserted) {
  ThreeKernels g;
  Editor edit(g.graph);
  EXPECT_THAT(edit.LaunchedBy(g.calls[1]), ElementsAre(g.kernels[1]));
  TaskId call = edit.InsertAfter(g.calls[1], {.kind = TaskKind::kCall});
  TaskId kernel = edit.InsertAfter(g.kernels[1], {.kind = TaskKind::kKernel});
  edit.AddEdge(call, kernel, {}, Rule::kLaunch);
  EXPECT_EQ(edit.LaunchOf(kernel), call);
  EXPECT_EQ(edit.LaunchOf(g.kernels[2]), g.calls[2]);
  EXPECT_THAT(edit.LaunchedBy(call), ElementsAre(kernel));
  EXPECT_FALSE(edit.LaunchOf(g.calls[0]).valid());
}

TEST(Editor, QueueEdgesFollowTheNewPositions) {
  ThreeKernels g;
  g.graph.mutable_lane(g.stream).queue_depth = 2;  // a launch waits for the one before to start
  RebuildQueueEdges(g.graph, std::vector<bool>(g.graph.lanes().size(), true));
  int64_t before = g.Makespan();
  Editor edit(g.graph);
  edit.RemoveWithLaunches(std::span(g.kernels).subspan(1, 1));
  edit.Finish();
  EXPECT_LT(g.Makespan(), before);
  size_t queue = 0;
  for (const Edge& e : g.graph.edges()) {
    if (e.rule != Rule::kQueue) continue;
    ++queue;
    EXPECT_EQ(e.from, g.kernels[0]);
    EXPECT_EQ(e.to, g.calls[2]);
  }
  EXPECT_EQ(queue, 1u);
}

TEST(Editor, SelectSkipsRemovedTasks) {
  ThreeKernels g;
  Editor edit(g.graph);
  edit.Remove(std::span(g.kernels).first(1));
  auto kernels = edit.Select(
      [](const Graph& graph, TaskId t) { return graph.task(t).kind == TaskKind::kKernel; });
  EXPECT_THAT(kernels, ElementsAre(g.kernels[1], g.kernels[2]));
}

TEST(Editor, MovesTasksBetweenLanes) {
  ThreeKernels g;
  Editor edit(g.graph);
  LaneId side = edit.NewLane("copies", LaneKind::kStream);
  edit.Move(g.kernels[1], side, TaskId::None());
  edit.Finish();
  EXPECT_EQ(edit.changes().moved, 1u);
  EXPECT_EQ(g.Makespan(), 29);  // third call at 17, launch 2, kernel 10
}

}  // namespace
}  // namespace daydream
