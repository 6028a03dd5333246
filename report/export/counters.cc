#include "report/export/counters.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "report/windows.h"

namespace daydream {
namespace {

using Points = std::vector<std::pair<Instant, int64_t>>;

// What is added to a value, at which instants.
Points Running(std::vector<std::pair<Instant, int64_t>> changes) {
  std::ranges::sort(changes);
  Points points;
  int64_t value = 0;
  for (size_t i = 0; i < changes.size();) {
    const Instant at = changes[i].first;
    const int64_t before = value;
    for (; i < changes.size() && changes[i].first == at; ++i) value += changes[i].second;
    if (value != before) points.emplace_back(at, value);
  }
  return points;
}

Points BusyPoints(const std::vector<Interval>& disjoint) {
  Points changes;
  for (const Interval& i : disjoint) {
    changes.emplace_back(i.begin, 1);
    changes.emplace_back(i.end, -1);
  }
  return Running(std::move(changes));
}

// Inside the first and not inside the second, of which the first holds all.
Points ExposedPoints(const std::vector<Interval>& all, const std::vector<Interval>& part) {
  Points changes;
  for (const auto& [intervals, sign] : {std::pair(&all, 1), std::pair(&part, -1)}) {
    for (const Interval& i : *intervals) {
      changes.emplace_back(i.begin, sign);
      changes.emplace_back(i.end, -sign);
    }
  }
  return Running(std::move(changes));
}

struct OfDevice {
  std::vector<Interval> all, compute;
  Points queued, memory;  // changes of the queue; values of the memory
};

bool IsWork(const Task& task) { return !task.removed && IsGpu(task.kind); }

class Collector {
 public:
  explicit Collector(const Side& side) : graph_(*side.graph), timeline_(*side.timeline) {
    AddWork();
    AddQueues();
    if (!side.edited) AddMemory();
  }

  std::map<int32_t, OfDevice> Take() { return std::move(devices_); }

 private:
  OfDevice& DeviceOf(const Task& task) { return devices_[graph_.lane(task.lane).lane.device]; }

  void AddWork() {
    for (size_t i = 0; i < graph_.size(); ++i) {
      const Task& task = graph_.tasks()[i];
      const Interval busy{timeline_.start[i], timeline_.end[i]};
      if (!IsWork(task) || busy.end <= busy.begin) continue;
      OfDevice& device = DeviceOf(task);
      device.all.push_back(busy);
      if (task.kind != TaskKind::kCollective) device.compute.push_back(busy);
    }
  }

  void AddQueues() {
    for (const Edge& e : graph_.edges()) {
      const Task& work = graph_.task(e.to);
      if (e.rule != Rule::kLaunch || !IsWork(work)) continue;
      const auto& from = e.from_anchor == Anchor::kEnd ? timeline_.end : timeline_.start;
      const Instant launched = from[e.from.index()], begun = timeline_.start[e.to.index()];
      if (begun <= launched) continue;  // it began before its call was back
      DeviceOf(work).queued.emplace_back(launched, 1);
      DeviceOf(work).queued.emplace_back(begun, -1);
    }
  }

  // An allocation is as far behind the begin of the host work before it as in the recording.
  void AddMemory() {
    const Trace* trace = graph_.tables().trace.get();
    if (trace == nullptr || trace->allocations.empty()) return;
    std::vector<std::pair<Instant, TaskId>> host;
    for (size_t i = 0; i < graph_.size(); ++i) {
      const Task& task = graph_.tasks()[i];
      if (task.removed || !IsHost(task.kind) || task.copy != 0) continue;
      host.emplace_back(task.recorded_start, TaskId(i));
    }
    std::ranges::sort(host);
    for (const Allocation& a : trace->allocations) {
      const auto device = devices_.find(a.device);
      if (a.allocated < 0 || device == devices_.end()) continue;
      auto after = std::ranges::upper_bound(host, a.at, {}, [](const auto& h) { return h.first; });
      if (after == host.begin()) continue;
      const auto [recorded, task] = *std::prev(after);
      const Instant start = timeline_.start[task.index()], end = timeline_.end[task.index()];
      const Instant at = std::min(start + (a.at - recorded), end);
      device->second.memory.emplace_back(at, a.allocated);
    }
  }

  const Graph& graph_;
  const Timeline& timeline_;
  std::map<int32_t, OfDevice> devices_;
};

// Of values at one instant the last, and none that is the same as before.
Points DistinctPoints(Points values) {
  std::ranges::stable_sort(values, {}, [](const auto& v) { return v.first; });
  Points points;
  for (const auto& value : values) {
    if (!points.empty() && points.back().first == value.first) points.pop_back();
    if (points.empty() || points.back().second != value.second) points.push_back(value);
  }
  return points;
}

}  // namespace

std::vector<Counter> CountersOf(const Side& side) {
  std::vector<Counter> counters;
  for (auto& [number, device] : Collector(side).Take()) {
    const std::string gpu = number < 0 ? "GPU" : fmt::format("GPU {}", number);
    const std::vector<Interval> all = Union(std::move(device.all));
    const std::vector<Interval> compute = Union(std::move(device.compute));
    const auto add = [&](std::string_view name, std::string_view description, Counter::Unit unit,
                         Points points) {
      if (points.empty()) return;
      counters.push_back(
          {fmt::format("{} {}", gpu, name), std::string(description), unit, std::move(points)});
    };
    add("busy", "1 while at least one stream works", Counter::Unit::kCount, BusyPoints(all));
    add("exposed communication", "1 while only communication works", Counter::Unit::kCount,
        ExposedPoints(all, compute));
    add("launch queue", "GPU work that is launched and has not begun", Counter::Unit::kCount,
        Running(std::move(device.queued)));
    add("memory", "of tensors, by recorded allocations at the time of their host work",
        Counter::Unit::kBytes, DistinctPoints(std::move(device.memory)));
  }
  return counters;
}

}  // namespace daydream
