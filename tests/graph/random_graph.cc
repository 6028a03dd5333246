#include "tests/graph/random_graph.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace daydream {
namespace {

// A hidden order of all tasks, which lanes and edges follow, keeps the graph free of cycles.
class Generator {
 public:
  Generator(const std::function<uint64_t()>& random, const RandomGraphOptions& options)
      : random_(random), options_(options) {}

  Graph Make() {
    for (size_t l = 0; l < options_.lanes; ++l) AddLane(l);
    for (size_t i = 0; i < 3; ++i) {
      graph_.AddStep({.label = fmt::format("step {}", i), .host_led = options_.tasks % 2 == 0});
    }
    lane_of_.resize(options_.tasks);
    for (size_t& lane : lane_of_) lane = Below(options_.lanes);
    id_of_.resize(options_.tasks);
    const uint64_t numbering = Below(3);
    if (numbering == 0) {
      for (size_t place = 0; place < options_.tasks; ++place) Append(place);
    } else {
      for (size_t l = options_.lanes; l-- > 0;) {
        for (size_t place = 0; place < options_.tasks; ++place) {
          if (lane_of_[place] == l) Append(place);
        }
      }
    }
    if (numbering == 2) MixIds();
    AddEdges();
    for (size_t s = 0; s < 3 && OneIn(2); ++s) {
      graph_.mutable_step(s).begin = {TaskId(Below(options_.tasks)), TaskId(Below(options_.tasks))};
    }
    return std::move(graph_);
  }

 private:
  uint64_t Below(uint64_t n) { return n == 0 ? 0 : random_() % n; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  Duration Time() { return Duration::Ns(static_cast<int64_t>(Below(options_.longest + 1))); }
  Duration Signed() {
    const Duration d = Time();
    return options_.negative_lags && OneIn(4) ? -d : d;
  }

  void AddLane(size_t l) {
    const bool stream = l % 2 == 1;
    GraphLane lane;
    lane.lane.kind = stream ? LaneKind::kStream : LaneKind::kThread;
    lane.lane.name = graph_.AddName(stream ? fmt::format("gpu0.{}", l) : fmt::format("cpu{}", l));
    if (stream) lane.lane.device = 0, lane.lane.number = static_cast<int64_t>(l);
    if (l + options_.priority_lanes >= options_.lanes) lane.order = LaneOrder::kPriority;
    graph_.AddLane(lane);
  }

  void Append(size_t place) { id_of_[place] = graph_.Append(MakeTask(place)); }

  Task MakeTask(size_t place) {
    const bool gpu = lane_of_[place] % 2 == 1;
    Task t{.duration = Time(),
           .gap = OneIn(2) ? Time() : Duration{},
           .name = graph_.AddName(fmt::format("work {}", Below(7))),
           .lane = LaneId(lane_of_[place])};
    t.kind = gpu ? TaskKind::kKernel : TaskKind::kCall;
    if (gpu && OneIn(4)) t.gap = Signed();
    if (!gpu && OneIn(5)) t.kind = TaskKind::kWait, t.duration = {};
    if (OneIn(10)) t.earliest = Instant::AtNs(static_cast<int64_t>(Below(500)));
    t.priority = static_cast<int32_t>(Below(3));
    t.step = static_cast<uint16_t>(place * 3 / options_.tasks);
    t.overlaps = options_.overlaps && OneIn(8);
    t.removed = options_.removed && OneIn(8);
    return t;
  }

  // Renumbers by building a second graph in which tasks are created in random order.
  void MixIds() {
    std::vector<size_t> places(options_.tasks);
    for (size_t i = 0; i < places.size(); ++i) places[i] = i;
    for (size_t i = places.size(); i > 1; --i) std::swap(places[i - 1], places[Below(i)]);
    Graph mixed;
    for (const GraphLane& lane : graph_.lanes()) {
      GraphLane copy = lane;
      copy.lane.name = mixed.AddName(graph_.Name(lane.lane.name));
      mixed.AddLane(copy);
    }
    for (const GraphStep& step : graph_.steps()) mixed.AddStep(step);
    std::vector<TaskId> new_id(options_.tasks);
    for (size_t place : places) {
      Task t = graph_.task(id_of_[place]);
      t.name = mixed.AddName(graph_.Name(t.name));
      new_id[place] = mixed.Append(t);
    }
    std::vector<TaskId> last(options_.lanes);
    for (size_t place = 0; place < options_.tasks; ++place) {
      TaskId& before = last[lane_of_[place]];
      mixed.MoveToLane(new_id[place], LaneId(lane_of_[place]), before);
      before = new_id[place];
    }
    id_of_ = std::move(new_id);
    graph_ = std::move(mixed);
  }

  void AddEdges() {
    constexpr Rule kUsed[] = {Rule::kLaunch, Rule::kEventWait, Rule::kHostWait, Rule::kTransform};
    const auto count =
        static_cast<size_t>(options_.edges_per_task * static_cast<double>(options_.tasks));
    for (size_t i = 0; i < count && options_.tasks > 1; ++i) {
      const size_t to = 1 + Below(options_.tasks - 1);
      const size_t from = Below(to);
      Edge e{.from = id_of_[from], .to = id_of_[to], .lag = Signed(), .rule = kUsed[Below(4)]};
      if (OneIn(4)) e.from_anchor = Anchor::kStart;
      if (OneIn(3)) e.to_anchor = Anchor::kEnd;
      if (OneIn(50)) e.lag = e.lag * (int64_t{1} << 34);  // more than 32 bits
      graph_.AddEdge(e);
    }
  }

  const std::function<uint64_t()>& random_;
  const RandomGraphOptions& options_;
  Graph graph_;
  std::vector<size_t> lane_of_;  // by place in the hidden order
  std::vector<TaskId> id_of_;
};

}  // namespace

Graph RandomGraph(const std::function<uint64_t()>& random, const RandomGraphOptions& options) {
  return Generator(random, options).Make();
}

Graph RandomGraph(uint64_t seed, const RandomGraphOptions& options) {
  std::mt19937_64 engine(seed);
  return RandomGraph([&] { return engine(); }, options);
}

}  // namespace daydream
