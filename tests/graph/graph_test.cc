#include "graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "graph/facts.h"
#include "graph/validate.h"

namespace daydream {
namespace {

using testing::ElementsAre;

std::vector<uint32_t> Order(const Graph& g, LaneId lane) {
  std::vector<uint32_t> ids;
  for (TaskId t = g.lane(lane).first; t.valid(); t = g.task(t).lane_next) ids.push_back(t.value);
  std::vector<uint32_t> backwards;
  for (TaskId t = g.lane(lane).last; t.valid(); t = g.task(t).lane_prev) {
    backwards.insert(backwards.begin(), t.value);
  }
  EXPECT_EQ(ids, backwards);
  return ids;
}

TEST(Graph, TasksRunInTheOrderInWhichTheyAreAppended) {
  Graph g;
  const LaneId lane = g.AddLane({});
  for (int i = 0; i < 3; ++i) g.Append({.lane = lane});
  EXPECT_THAT(Order(g, lane), ElementsAre(0, 1, 2));
}

TEST(Graph, TasksCanBePutBetweenOthers) {
  Graph g;
  const LaneId lane = g.AddLane({});
  const TaskId a = g.Append({.lane = lane});
  const TaskId b = g.Append({.lane = lane});
  g.InsertAfter(a, {});
  g.InsertBefore(a, {});
  g.InsertAfter(b, {});
  EXPECT_THAT(Order(g, lane), ElementsAre(3, 0, 2, 1, 4));
  EXPECT_TRUE(Validate(g).ok()) << Validate(g);
}

TEST(Graph, MovedTasksLeaveNoHole) {
  Graph g;
  const LaneId here = g.AddLane({}), there = g.AddLane({});
  std::vector<TaskId> t;
  for (int i = 0; i < 4; ++i) t.push_back(g.Append({.lane = here}));
  g.MoveToLane(t[1], there, TaskId::None());
  g.MoveToLane(t[0], there, t[1]);
  g.MoveToLane(t[3], there, TaskId::None());
  EXPECT_THAT(Order(g, here), ElementsAre(2));
  EXPECT_THAT(Order(g, there), ElementsAre(3, 1, 0));
  g.MoveToLane(t[0], there, t[3]);
  EXPECT_THAT(Order(g, there), ElementsAre(3, 0, 1));
  EXPECT_TRUE(Validate(g).ok()) << Validate(g);
}

TEST(Graph, CopiesDoNotShareWhatIsAdded) {
  auto tables = std::make_shared<GraphTables>();
  tables->names = std::make_shared<StringPool>();
  const NameId known = tables->names->Intern("sgemm");
  tables->kernels.push_back({.grid = {8, 1, 1}});
  Graph g(tables);
  const LaneId lane = g.AddLane({});
  const TaskId t = g.Append({.name = known, .lane = lane, .detail = 0, .kind = TaskKind::kKernel});
  Graph copy = g;
  EXPECT_EQ(copy.AddName("sgemm"), known);
  const NameId added = copy.AddName("fused_sgemm");
  EXPECT_EQ(copy.AddName("fused_sgemm"), added);
  copy.mutable_task(t).name = added;
  copy.mutable_task(t).detail = copy.AddKernelDetail({.grid = {4, 1, 1}});
  EXPECT_EQ(copy.TaskName(t), "fused_sgemm");
  EXPECT_EQ(copy.Kernel(t)->grid[0], 4u);
  EXPECT_EQ(g.TaskName(t), "sgemm");
  EXPECT_EQ(g.Kernel(t)->grid[0], 8u);
  tables->names->Intern("later");  // tables may grow while a graph is being built
  EXPECT_EQ(copy.TaskName(t), "fused_sgemm");
}

TEST(Graph, DetailsBelongToTheirKind) {
  Graph g;
  const LaneId lane = g.AddLane({});
  const TaskId copy = g.Append({.lane = lane, .kind = TaskKind::kMemcpy});
  EXPECT_EQ(g.Copy(copy), nullptr);
  g.mutable_task(copy).detail = g.AddCopyDetail({.bytes = 12});
  EXPECT_EQ(g.Copy(copy)->bytes, 12u);
  EXPECT_EQ(g.Kernel(copy), nullptr);
  EXPECT_EQ(g.Collective(copy), nullptr);
  EXPECT_EQ(g.ScopeOf(copy), nullptr);
  EXPECT_EQ(g.OpOf(ScopeId::None()), nullptr);
  EXPECT_EQ(g.Name(NameId::None()), "");
}

TEST(Graph, TransferIsTheWholeDurationUnlessSet) {
  Graph g;
  const LaneId lane = g.AddLane({});
  for (int i = 0; i < 4; ++i) g.Append({.duration = Duration::Us(9), .lane = lane});
  g.SetTransfer(TaskId(2), Duration::Us(2));
  g.SetTransfer(TaskId(0), Duration::Us(1));
  g.SetTransfer(TaskId(2), Duration::Us(3));
  EXPECT_EQ(g.Transfer(TaskId(0)), Duration::Us(1));
  EXPECT_EQ(g.Transfer(TaskId(1)), Duration::Us(9));
  EXPECT_EQ(g.Transfer(TaskId(2)), Duration::Us(3));
  EXPECT_EQ(g.Transfer(TaskId(3)), Duration::Us(9));
}

TEST(Graph, WithoutItsTasksKeepsWhatTheyReferTo) {
  Graph g;
  const LaneId lane = g.AddLane({.lane = {.kind = LaneKind::kStream}, .queue_depth = 7});
  const LayerId layer = g.AddLayer({.name = g.AddName("conv1")});
  const uint32_t detail = g.AddKernelDetail({.grid = {3, 2, 1}});
  g.AddStep({.label = "step"});
  const TaskId first = g.Append({.lane = lane});
  g.AddEdge({.from = first, .to = g.Append({.lane = lane})});
  Graph empty = g.WithoutTasks();
  EXPECT_EQ(empty.size(), 0u);
  EXPECT_TRUE(empty.edges().empty() && empty.steps().empty());
  EXPECT_FALSE(empty.lane(lane).first.valid() || empty.lane(lane).last.valid());
  EXPECT_EQ(empty.lane(lane).queue_depth, 7u);
  EXPECT_EQ(empty.Name(empty.layers()[layer.index()].name), "conv1");
  const TaskId t = empty.Append({.lane = lane, .detail = detail, .kind = TaskKind::kKernel});
  ASSERT_NE(empty.Kernel(t), nullptr);
  EXPECT_EQ(empty.Kernel(t)->grid[0], 3u);
  EXPECT_EQ(g.size(), 2u);
}

// What changes the graph makes its facts another's; a name does not.
TEST(Graph, CopiesShareFactsUntilTheyAreEdited) {
  Graph g;
  const LaneId lane = g.AddLane({});
  const TaskId t = g.Append({.lane = lane});
  g.AddEdge({.from = t, .to = g.Append({.lane = lane})});
  g.ShareFacts(std::make_shared<GraphFacts>());
  int asked = 0;
  const auto ask = [&](const Graph& graph, uint64_t number = 0) {
    return *FactOf<size_t>(
        graph, [&] { return ++asked, graph.size(); }, number);
  };
  Graph copy = g;
  copy.AddName("only a name");
  EXPECT_EQ(ask(g), 2u);
  EXPECT_EQ(ask(copy), 2u);
  EXPECT_EQ(asked, 1);
  ask(copy, 1);
  EXPECT_EQ(asked, 2);
  const std::vector<std::function<void(Graph&)>> edits = {
      [&](Graph& e) { e.Append({.lane = lane}); },
      [&](Graph& e) { e.InsertAfter(t, {}); },
      [&](Graph& e) { e.InsertBefore(t, {}); },
      [&](Graph& e) { e.MoveToLane(TaskId(1), lane, TaskId::None()); },
      [&](Graph& e) { e.AddEdge({.from = t, .to = TaskId(1)}); },
      [&](Graph& e) { e.AddLane({}); },
      [&](Graph& e) { e.AddLayer({}); },
      [&](Graph& e) { e.AddStep({}); },
      [&](Graph& e) { e.SetTransfer(t, Duration::Us(1)); },
      [&](Graph& e) { e.mutable_task(t).removed = true; },
      [&](Graph& e) { e.mutable_lane(lane).queue_depth = 2; },
      [&](Graph& e) { e.mutable_edges().clear(); },
      [&](Graph& e) { e.mutable_model_changes().units = 1; },
      [&](Graph& e) { e = e.WithoutTasks(); }};
  for (size_t i = 0; i < edits.size(); ++i) {
    Graph edited = g;
    edits[i](edited);
    const int before = asked;
    ask(edited);
    EXPECT_EQ(asked, before + 1) << "edit " << i;
  }
  EXPECT_EQ(ask(g), 2u);
  EXPECT_EQ(asked, 2 + static_cast<int>(edits.size()));
}

}  // namespace
}  // namespace daydream
