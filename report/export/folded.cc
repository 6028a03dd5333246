#include "report/export/folded.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "graph/scopes.h"
#include "report/host_table.h"
#include "report/lane_rows.h"
#include "report/summary.h"
#include "report/text/format.h"
#include "report/windows.h"

namespace daydream {
namespace {

// What decides the frames of a task: most tasks of a step share theirs with those of the others.
struct StackPlace {
  LaneId lane;
  ScopeId scope;
  LayerId layer;
  NameId call;  // the call or the GPU work; none for work of the scope itself
  Phase phase = Phase::kNone;
  bool waits = false;
  auto Key() const { return std::tie(lane, scope, layer, call, phase, waits); }
  bool operator<(const StackPlace& other) const { return Key() < other.Key(); }
};

std::string Frame(std::string_view name) {
  std::string frame = Printable(name);
  std::replace(frame.begin(), frame.end(), ';', ':');
  return frame.empty() ? "(no name)" : frame;
}

class Stacks {
 public:
  Stacks(const Graph& graph, const Timeline& timeline) : graph_(graph), timeline_(timeline) {}

  std::string Run() {
    const std::vector<size_t> counted = CountedSteps(graph_);
    std::vector<bool> counts(std::max<size_t>(graph_.steps().size(), 1), counted.empty());
    for (size_t s : counted) counts[s] = true;
    for (size_t i = 0; i < graph_.size(); ++i) {
      const Task& task = graph_.tasks()[i];
      if (task.removed || task.step >= counts.size() || !counts[task.step]) continue;
      if (IsHost(task.kind)) AddHost(TaskId(i), task);
      if (IsGpu(task.kind)) {
        times_[{task.lane, task.scope, task.layer, task.name, task.phase}] +=
            timeline_.end[i] - timeline_.start[i];
      }
    }
    // Scopes of different steps are different places with the same frames.
    std::map<std::string, Duration> lines;
    for (const auto& [place, time] : times_) lines[Line(place)] += time;
    std::string out;
    const auto steps = static_cast<double>(std::max<size_t>(counted.size(), 1));
    for (const auto& [line, time] : lines) {
      const Duration mean = Duration::FromDouble(static_cast<double>(time.ns) / steps);
      if (mean.ns > 0) out += fmt::format("{} {}\n", line, mean.ns);
    }
    return out;
  }

 private:
  void AddHost(TaskId id, const Task& task) {
    const NameId call = task.kind == TaskKind::kHost ? NameId() : task.name;
    StackPlace place = {task.lane, task.scope, {}, call};
    times_[place] += task.duration;
    const Duration elapsed = timeline_.end[id.index()] - timeline_.start[id.index()];
    place.waits = true;
    if (elapsed > task.duration) times_[place] += elapsed - task.duration;
    // The time after it belongs to the innermost range that is no operator, as in HostTable().
    ScopeId around;
    for (ScopeId s : ScopesAround(graph_, task.scope)) {
      if (ScopeAt(graph_, s).kind == EventKind::kOp) continue;
      around = s;
      break;
    }
    times_[{task.lane, around, {}, NameId()}] += task.gap;
  }

  std::string Line(const StackPlace& place) const {
    const bool gpu = graph_.lane(place.lane).lane.kind != LaneKind::kThread;
    std::string line =
        fmt::format("{};{}", gpu ? "GPU" : "CPU", Frame(LaneTitle(graph_, place.lane)));
    std::vector<std::string> inside;  // innermost first
    if (gpu) {
      for (ScopeId s : ScopesAround(graph_, place.scope)) {
        const HostName op = NameOfScope(graph_, s);
        if (op.kind == HostKind::kOp) inside.push_back(op.name);
      }
      for (LayerId l : LayersAround(graph_, place.layer)) {
        inside.emplace_back(graph_.Name(graph_.layers()[l.index()].name));
      }
      inside.emplace_back(Name(place.phase));
    } else {
      for (ScopeId s : ScopesAround(graph_, place.scope)) {
        inside.push_back(NameOfScope(graph_, s).name);
      }
    }
    std::reverse(inside.begin(), inside.end());
    if (place.call.valid()) inside.emplace_back(graph_.Name(place.call));
    if (inside.empty()) inside.emplace_back("(outside of everything recorded)");
    if (place.waits) inside.emplace_back("(waits)");
    for (const std::string& name : inside) line += ";" + Frame(name);
    return line;
  }

  const Graph& graph_;
  const Timeline& timeline_;
  std::map<StackPlace, Duration> times_;
};

}  // namespace

std::string FoldedStacks(const Graph& graph, const Timeline& timeline) {
  return Stacks(graph, timeline).Run();
}

}  // namespace daydream
