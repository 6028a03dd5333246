#include "graph/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "graph/order.h"
#include "graph/order_by_place.h"
#include "graph/text.h"
#include "graph/times_of_tasks.h"
#include "tests/graph/random_graph.h"

namespace daydream {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kGood[] = R"(
lane cpu0 thread
lane gpu0.7 stream
t0 cpu0 call 5us gap 1us "cudaLaunchKernel"
t1 gpu0.7 kernel 40us gap -1us "sgemm" after t0 launch +2us
t2 cpu0 wait "cudaDeviceSynchronize" until t1 hostwait -3us
)";

std::string ErrorAfter(const std::function<void(Graph&)>& damage) {
  Graph g = ParseGraph(kGood).value();
  EXPECT_TRUE(Validate(g).ok()) << Validate(g);
  damage(g);
  return std::string(Message(Validate(g)));
}

TEST(Validate, NamesTheFirstViolation) {
  const TaskId call(0), kernel(1), wait(2);
  struct Case {
    std::function<void(Graph&)> damage;
    std::string error;
  };
  const Case cases[] = {
      {[&](Graph& g) { g.mutable_task(call).duration = Duration::Ns(-1); }, "duration -1 ns < 0"},
      {[&](Graph& g) { g.mutable_task(call).gap = Duration::Ns(-1); }, "gap -1 ns < 0"},
      {[&](Graph& g) { g.mutable_task(wait).duration = Duration::Ns(5); }, "a wait with"},
      {[&](Graph& g) { g.mutable_task(call).earliest = Instant::AtNs(-5); }, "earliest -5 ns"},
      {[&](Graph& g) { g.mutable_task(call).layer = LayerId(3); }, "no layer 3"},
      {[&](Graph& g) { g.mutable_task(call).scope = ScopeId(3); }, "no scope 3"},
      {[&](Graph& g) { g.mutable_task(call).step = 3; }, "no step 3"},
      {[&](Graph& g) { g.mutable_task(call).lane = LaneId(9); }, "no lane 9"},
      {[&](Graph& g) { g.mutable_task(call).lane = LaneId(1); }, "listed on lane 0"},
      {[&](Graph& g) { g.mutable_task(call).lane_next = TaskId(77); }, "neighbour out of range"},
      {[&](Graph& g) { g.mutable_task(call).lane_next = call; }, "lane list broken"},
      {[&](Graph& g) { g.mutable_task(call).lane_next = {}; }, "wrong last task"},
      {[&](Graph& g) { g.mutable_lane(LaneId(0)).first = {}; }, "wrong last task"},
      {[&](Graph& g) { g.mutable_lane(LaneId(0)).first = g.mutable_lane(LaneId(0)).last = {}; },
       "2 of 3 tasks are not in the list"},
      {[&](Graph& g) { g.AddEdge({.from = call, .to = TaskId(9)}); },
       "edge 2: joins tasks 0 and 9"},
      {[&](Graph& g) { g.AddEdge({.from = TaskId::None(), .to = call}); }, "edge 2"},
      {[&](Graph& g) { g.mutable_task(call).duration = Duration::Max(); }, "more than 36 years"},
      {[&](Graph& g) {
         g.AddEdge(
             {.from = call, .to = wait, .lag = Duration::Ns(std::numeric_limits<int64_t>::min())});
       },
       "more than 36 years"},
      {[&](Graph& g) { g.AddEdge({.from = wait, .to = kernel}); }, "work waits for itself"},
      {[&](Graph& g) { g.AddEdge({.from = call, .to = call}); }, "work waits for itself"},
  };
  for (const Case& c : cases) EXPECT_THAT(ErrorAfter(c.damage), HasSubstr(c.error));
}

TEST(Validate, NamesTheTasksOfACycle) {
  EXPECT_THAT(
      ErrorAfter([](Graph& g) { g.AddEdge({.from = TaskId(2), .to = TaskId(0)}); }),
      testing::AllOf(HasSubstr("'cudaLaunchKernel'"), HasSubstr("'cudaDeviceSynchronize'")));
}

TEST(Validate, LanesThatMayReorderHaveNoOrderToContradict) {
  Graph g = ParseGraph("lane a channel priority\nx a data\ny a data\nz a data after y").value();
  g.AddEdge({.from = TaskId(2), .to = TaskId(0)});
  EXPECT_TRUE(Validate(g).ok()) << Validate(g);
  g.mutable_lane(LaneId(0)).order = LaneOrder::kFixed;
  EXPECT_FALSE(Validate(g).ok());
}

// Times are all that can have become wrong.
TEST(Validate, OfARetimedCopySaysWhatValidatingAllOfItSays) {
  size_t refused = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = RandomGraph(seed, {.tasks = 20});
    ASSERT_TRUE(ValidateButCycles(graph).ok()) << ValidateButCycles(graph);
    Graph copy = graph;
    copy.NameStructure(1);
    std::mt19937_64 random(seed);
    for (int edit = 0; edit < 3; ++edit) {
      const TaskId t(random() % graph.size());
      const auto time = Duration::Ns(static_cast<int64_t>(random() % 100) - 5);
      const bool far = random() % 20 == 0;
      if (random() % 2 == 0) copy.SetGap(t, time);
      if (random() % 2 == 0) copy.SetDuration(t, far ? Duration::Ns(int64_t{1} << 60) : time);
    }
    const absl::Status whole = ValidateButCycles(copy);
    EXPECT_EQ(ValidateRetimed(copy, BoundReplay(graph)), whole);
    refused += whole.ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 20u);
  EXPECT_LT(refused, 280u);
}

// What is gathered in passing tells no graph to be well that is not.
TEST(TimesOfTasks, ThatAreWellAreWellToValidate) {
  size_t well = 0, refused = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = RandomGraph(seed, {.tasks = 20});
    std::mt19937_64 random(seed);
    for (int edit = 0; edit < 3; ++edit) {
      Task& task = graph.mutable_task(TaskId(random() % graph.size()));
      const auto time = static_cast<int64_t>(random() % 100) - 5;
      const bool far = random() % 20 == 0;
      if (random() % 2 == 0) task.gap = Duration::Ns(time);
      if (random() % 2 == 0) task.earliest = Instant::AtNs(time);
      if (random() % 2 == 0) task.duration = Duration::Ns(far ? int64_t{1} << 60 : time);
    }
    TimesOfTasks times;
    for (const Task& task : graph.tasks()) times.Add(task);
    const bool whole = ValidateButCycles(graph).ok();
    const bool gathered = times.well() && times.AreFarFromLimit(graph);
    EXPECT_EQ(gathered, whole);
    well += gathered ? 1 : 0;
    refused += whole ? 0 : 1;
  }
  EXPECT_GT(well, 20u);
  EXPECT_GT(refused, 20u);
}

TEST(EvaluationOrder, OfAColumnOfNeighboursIsThatOfTheTasks) {
  size_t cycles = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = RandomGraph(seed, {.tasks = 40});
    std::mt19937_64 random(seed);
    for (uint64_t edges = random() % 3; edges > 0; --edges) {
      graph.AddEdge(
          {.from = TaskId(random() % graph.size()), .to = TaskId(random() % graph.size())});
    }
    std::vector<TaskId> next;
    for (const Task& task : graph.tasks()) next.push_back(task.lane_next);
    const auto of_tasks = EvaluationOrder(graph), of_column = EvaluationOrder(graph, next);
    ASSERT_EQ(of_column.status(), of_tasks.status());
    if (of_tasks.ok()) {
      EXPECT_EQ(*of_column, *of_tasks);
    } else {
      ++cycles;
    }
  }
  EXPECT_GT(cycles, 20u);
  EXPECT_LT(cycles, 280u);
}

TEST(EvaluationOrder, FollowsALaneAsFarAsItCan) {
  const Graph g = ParseGraph(R"(
lane a thread
lane b stream
a0 a call
a1 a call
b0 b kernel after a0
a2 a wait until b1
b1 b kernel after a1
a3 a call
)")
                      .value();
  EXPECT_THAT(EvaluationOrder(g).value(),
              ElementsAre(TaskId(0), TaskId(1), TaskId(2), TaskId(4), TaskId(3), TaskId(5)));
}

bool IsOrderOf(const std::vector<TaskId>& order, const Graph& g) {
  std::vector<size_t> place(g.size(), g.size());
  for (size_t i = 0; i < order.size(); ++i) place[order[i].index()] = i;
  bool all = order.size() == g.size();
  for (size_t i = 0; i < g.size(); ++i) {
    const Task& t = g.tasks()[i];
    const bool behind = t.lane_prev.valid() && g.lane(t.lane).order == LaneOrder::kFixed;
    all &= place[i] < g.size() && (!behind || place[t.lane_prev.index()] < place[i]);
  }
  for (const Edge& e : g.edges()) all &= place[e.from.index()] < place[e.to.index()];
  return all;
}

// What an edited copy inherits is taken where it still is one, and nothing is missed elsewhere.
TEST(EvaluationOrder, OfAnEditedCopyIsOneWhateverItInherits) {
  size_t cycles = 0, inherited = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    Graph copy = RandomGraph(seed, {.tasks = 30, .priority_lanes = seed % 3 == 0 ? 1u : 0u});
    const std::vector<TaskId> before = EvaluationOrder(copy).value();
    copy.TellLikelyOrder(before);
    std::mt19937_64 random(seed);
    const auto any = [&] { return TaskId(random() % copy.size()); };
    for (size_t edit = 0; edit < seed % 6; ++edit) {
      const TaskId t = any(), other = any();
      const LaneId lane = copy.task(t).lane;
      switch (random() % 6) {
        case 0:
          copy.InsertAfter(t, {.kind = copy.task(t).kind, .removed = true});
          break;
        case 1:
          copy.InsertBefore(t, {.kind = copy.task(t).kind});
          break;
        case 2:
          copy.Append({.lane = lane});
          break;
        case 3:
          copy.AddEdge({.from = other, .to = t});
          break;
        case 4:
          if (!copy.edges().empty()) copy.mutable_edges().pop_back();
          break;
        default:
          if (other != t) copy.MoveToLane(t, copy.task(other).lane, other);
      }
    }
    Graph alone = copy;
    alone.TellLikelyOrder({});
    const auto order = EvaluationOrder(copy), found = EvaluationOrder(alone);
    ASSERT_EQ(order.ok(), found.ok());
    cycles += order.ok() ? 0 : 1;
    if (!order.ok()) continue;
    EXPECT_TRUE(IsOrderOf(*order, copy));
    EXPECT_TRUE(IsOrderOf(*found, copy));
    inherited += *order == before;
  }
  EXPECT_GT(cycles, 20u);
  EXPECT_GT(inherited, 80u);
}

// Step by step: of what waits for nothing, the one of the earliest step and start, no task being
// earlier than what it waited for.
std::vector<TaskId> SlowOrderInTime(const Graph& g) {
  using Place = std::pair<uint16_t, Instant>;
  std::vector<Place> place;
  for (const Task& t : g.tasks()) place.emplace_back(t.step, t.recorded_start);
  std::vector<bool> came(g.size(), false);
  std::vector<TaskId> order;
  for (TaskId next; order.empty() || next.valid();) {
    next = {};
    for (size_t i = 0; i < g.size(); ++i) {
      const Task& t = g.tasks()[i];
      Place own{t.step, t.recorded_start};
      bool waits = came[i];
      const auto wait_for = [&](TaskId from) {
        waits |= !came[from.index()];
        own = std::max(own, place[from.index()]);
      };
      const bool behind = t.lane_prev.valid() && g.lane(t.lane).order == LaneOrder::kFixed;
      if (behind) wait_for(t.lane_prev);
      for (const Edge& e : g.edges()) {
        if (e.to.index() == i) wait_for(e.from);
      }
      if (waits) continue;
      place[i] = own;
      if (!next.valid() || own < place[next.index()]) next = TaskId(i);
    }
    if (!next.valid()) break;
    came[next.index()] = true;
    order.push_back(next);
  }
  return order;
}

TEST(OrderInTime, TakesTheEarliestOfWhatWaitsForNothing) {
  size_t left_out = 0, by_place = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Graph g = RandomGraph(seed, {.tasks = 30, .priority_lanes = seed % 3 == 0 ? 1u : 0u});
    std::mt19937_64 random(seed);
    const uint64_t latest = seed % 5 == 0 ? 1000 : seed % 5 == 1 ? 3 : 20;
    for (size_t i = 0; i < g.size(); ++i) {
      g.mutable_task(TaskId(i)).recorded_start =
          Instant::AtNs(static_cast<int64_t>(random() % latest));
      g.mutable_task(TaskId(i)).step = static_cast<uint16_t>(random() % 2);
    }
    if (seed % 4 == 0) g.AddEdge({.from = TaskId(random() % g.size()), .to = TaskId(3)});
    const std::vector<TaskId> order = SlowOrderInTime(g);
    EXPECT_EQ(OrderInTime(g), order);
    left_out += order.size() < g.size();
    const auto is_wanted = [](const Task& t) { return !t.removed && t.lane.index() > 0; };
    std::vector<TaskId> wanted = order;
    std::erase_if(wanted, [&](TaskId t) { return !is_wanted(g.task(t)); });
    EXPECT_EQ(OrderInTime(g, is_wanted), wanted);
    const auto quickly = OrderByPlace(g, is_wanted);
    by_place += quickly.has_value();
    EXPECT_EQ(quickly.value_or(wanted), wanted);
  }
  EXPECT_GT(left_out, 10u);
  EXPECT_GT(by_place, 150u);
}

TEST(FindCycle, IsEmptyWithoutOne) {
  EXPECT_THAT(FindCycle(ParseGraph(kGood).value()), testing::IsEmpty());
}

}  // namespace
}  // namespace daydream
