#include "report/html/memory_block.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "graph/step_windows.h"
#include "report/text/json_writer.h"
#include "report/windows.h"
#include "transforms/analysis/memory_profile.h"
#include "transforms/analysis/saved_tensors.h"

namespace daydream {
namespace {

// Stretches of a window. The chart has at most 734 pixels for them (report/html/plots.js), so that
// one is a pixel and a half.
constexpr int64_t kStretches = 500;

struct MemoryLevel {
  Instant at;
  double bytes = 0;
};

// Bytes that come and go, on a timeline.
class KeptOverTime {
 public:
  KeptOverTime(const Graph& graph, const Timeline& timeline) : timeline_(timeline) {
    const std::vector<ForwardOp> ops = ForwardOps(graph);
    const Passes passes = PassesOf(graph, ops);
    for (const ForwardOp& op : ops) {
      if (op.kept > 0) {
        const Pass& pass = passes.at({op.step, op.pass});
        Add(Start(op.first), op.backward.valid() ? End(op.backward) : Mirrored(op, pass), op.kept);
      }
      if (op.change != nullptr && op.backward.valid()) AddReturns(op);
    }
    for (const auto& [id, unit] : units_) Add(unit.begin, unit.end, unit.bytes);
  }
  bool empty() const { return changes_.empty(); }

  // `always` and what is there besides, from the beginning of `window` on.
  std::vector<MemoryLevel> In(const Window& window, double always) const {
    std::vector<MemoryLevel> levels = {{window.begin, always}};
    double now = always;
    for (const auto& [at, bytes] : changes_) {
      if (at >= window.end) break;
      now += bytes;
      if (at <= window.begin) {
        levels.front().bytes = now;
      } else {
        levels.push_back({at, now});
      }
    }
    return levels;
  }

 private:
  // What is made again for backward, together.
  struct Unit {
    double bytes = 0;
    Instant begin, end;
  };

  // When a pass runs forward, and when the backward work that comes after it does.
  struct Pass {
    Interval forward, backward;
    bool met = false;  // any backward work
  };
  using Passes = std::map<std::pair<uint16_t, uint16_t>, Pass>;  // by step and pass

  Passes PassesOf(const Graph& graph, const std::vector<ForwardOp>& ops) const {
    Passes passes;
    for (const ForwardOp& op : ops) {
      const auto [it, is_new] = passes.try_emplace({op.step, op.pass});
      Interval& forward = it->second.forward;
      forward.begin = is_new ? Start(op.first) : std::min(forward.begin, Start(op.first));
      forward.end = is_new ? End(op.last) : std::max(forward.end, End(op.last));
    }
    for (size_t i = 0; i < graph.size(); ++i) {
      const Task& t = graph.tasks()[i];
      if (t.removed || !IsGpu(t.kind) || t.phase != Phase::kBackward) continue;
      Pass* latest = nullptr;
      for (auto it = passes.lower_bound({t.step, 0}); it != passes.end(); ++it) {
        if (it->first.first != t.step || it->second.forward.begin > Start(TaskId(i))) break;
        latest = &it->second;
      }
      if (latest == nullptr) continue;
      Interval& back = latest->backward;
      back.begin = latest->met ? std::min(back.begin, Start(TaskId(i))) : Start(TaskId(i));
      back.end = latest->met ? std::max(back.end, End(TaskId(i))) : End(TaskId(i));
      latest->met = true;
    }
    return passes;
  }

  // When backward needs it no more, where nothing tells which backward work belongs to an op: what
  // ran forward last runs backward first, so that the pass is taken for its mirror image.
  Instant Mirrored(const ForwardOp& op, const Pass& pass) const {
    if (!pass.met || pass.forward.end <= pass.forward.begin) return pass.forward.end;
    const double share = static_cast<double>((pass.forward.end - Start(op.first)).ns) /
                         static_cast<double>((pass.forward.end - pass.forward.begin).ns);
    return pass.backward.begin + (pass.backward.end - pass.backward.begin).Scaled(share);
  }

  Instant Start(TaskId task) const { return timeline_.start[task.index()]; }
  Instant End(TaskId task) const { return timeline_.end[task.index()]; }

  void Add(Instant begin, Instant end, double bytes) {
    if (end <= begin || bytes <= 0) return;
    changes_[begin] += bytes;
    changes_[end] -= bytes;
  }

  void AddReturns(const ForwardOp& op) {
    for (const OpChange::Return& r : op.change->returns) {
      auto [it, is_new] = units_.try_emplace(std::tuple(r.unit, op.copy, op.step, op.pass));
      Unit& unit = it->second;
      const Instant end = End(op.backward);
      Instant begin = Start(op.backward);
      if (r.from.valid() && op.copy == 0) begin = std::min(begin, Start(r.from));
      unit.begin = is_new ? begin : std::min(unit.begin, begin);
      unit.end = is_new ? end : std::max(unit.end, end);
      unit.bytes += r.share * op.needed;
    }
  }

  const Timeline& timeline_;
  std::map<Instant, double> changes_;
  std::map<std::tuple<uint32_t, uint16_t, uint16_t, uint16_t>, Unit> units_;
};

// Of each of kStretches stretches of the window the first level, the highest and the last: the next
// one begins with what this one ends with.
void WritePoints(const std::vector<MemoryLevel>& levels, const Window& window, JsonWriter& json) {
  const int64_t wide = std::max<int64_t>(1, (window.length().ns + kStretches - 1) / kStretches);
  auto write = [&](const MemoryLevel& level) {
    json.BeginInlineArray().Int((level.at - window.begin).ns);
    json.Int(std::llround(level.bytes)).EndArray();
  };
  json.Key("points").BeginInlineArray();
  for (size_t i = 0; i < levels.size();) {
    const int64_t stretch = (levels[i].at - window.begin).ns / wide;
    const size_t first = i;
    size_t most = i;
    for (; i < levels.size() && (levels[i].at - window.begin).ns / wide == stretch; ++i) {
      if (levels[i].bytes > levels[most].bytes) most = i;
    }
    const size_t last = i - 1;
    write(levels[first]);
    if (most != first) write(levels[most]);
    if (last != most && last != first) write(levels[last]);
  }
  json.EndArray();
}

std::optional<Window> WindowOf(const Side& side, std::optional<size_t> step) {
  for (const Window& w : CountedWindows(*side.graph, *side.timeline)) {
    if (!step.has_value() || w.step == *step) return w;
  }
  return std::nullopt;
}

// What tensors occupied, on the device where most came and went. Without totals in the recording it
// counts from its lowest point, as ProfileMemory() does.
struct RecordedMemory {
  std::vector<MemoryLevel> levels;
  bool total = true;
  double low = 0, high = 0;
};

RecordedMemory RecordedLevels(const Trace& trace) {
  std::map<int32_t, RecordedMemory> devices;
  for (const Allocation& a : trace.allocations) {
    RecordedMemory& r = devices[a.device];
    const double before = r.levels.empty() ? 0 : r.levels.back().bytes;
    const bool known = a.allocated >= 0;
    r.total &= known;
    const double now =
        known ? static_cast<double>(a.allocated) : before + static_cast<double>(a.bytes);
    r.low =
        r.levels.empty() ? std::min(now, now - static_cast<double>(a.bytes)) : std::min(r.low, now);
    r.high = r.levels.empty() ? now : std::max(r.high, now);
    r.levels.push_back({a.at, now});
  }
  RecordedMemory most;
  for (auto& [device, r] : devices) {
    if (r.high - r.low > most.high - most.low) most = std::move(r);
  }
  for (MemoryLevel& level : most.levels) level.bytes -= most.total ? 0 : most.low;
  return most;
}

std::vector<MemoryLevel> LevelsIn(const RecordedMemory& recorded, const Window& window) {
  std::vector<MemoryLevel> levels;
  for (const MemoryLevel& level : recorded.levels) {
    if (level.at >= window.end) break;
    if (level.at <= window.begin) {
      levels.assign(1, {window.begin, level.bytes});
    } else {
      levels.push_back(level);
    }
  }
  return levels;
}

// The window of `step` as it was recorded: the replay has no stalls, the recording has.
Window RecordedWindow(const Graph& graph, size_t step) {
  std::vector<Instant> start, end;
  for (const Task& t : graph.tasks()) {
    start.push_back(t.recorded_start);
    end.push_back(t.recorded_start + t.duration);
  }
  const std::vector<StepWindow> windows = StepWindows(graph, start, end);
  if (step >= windows.size()) return {};  // there is no step
  return {step, windows[step].begin, windows[step].end};
}

void WriteRecorded(const Side& before, size_t step, JsonWriter& json) {
  const Trace* trace = before.graph->tables().trace.get();
  const Window window = RecordedWindow(*before.graph, step);
  const RecordedMemory recorded = trace != nullptr ? RecordedLevels(*trace) : RecordedMemory{};
  const std::vector<MemoryLevel> levels = LevelsIn(recorded, window);
  json.Key("recorded");
  if (levels.size() < 2) {
    json.Null();
    return;
  }
  json.BeginObject().Key("window_ns").Int(window.length().ns).Key("total").Bool(recorded.total);
  WritePoints(levels, window, json);
  json.EndObject();
}

void WriteSideOfMemory(const Side& side, const Window& window, const MemoryProfile& profile,
                       double always, JsonWriter& json) {
  const KeptOverTime kept(*side.graph, *side.timeline);
  json.BeginObject().Key("name").String(side.name).Key("window_ns").Int(window.length().ns);
  json.Key("always_bytes").Int(std::llround(always));
  std::vector<MemoryLevel> levels;
  if (profile.trains && !kept.empty()) levels = kept.In(window, always);
  WritePoints(levels, window, json);
  json.EndObject();
}

}  // namespace

std::string MemoryJson(std::span<const Side> sides, std::span<const MemoryChange> changes) {
  const std::optional<Window> first =
      sides.empty() ? std::nullopt : WindowOf(sides[0], std::nullopt);
  if (!first.has_value()) return "null\n";
  const MemoryProfile profile = ProfileMemory(*sides[0].graph);
  double always = profile.parameters + profile.gradients + profile.optimizer_state;
  JsonWriter json;
  json.BeginObject().Key("step").UInt(first->step).Key("sides").BeginArray();
  for (const Side& side : sides) {
    const std::optional<Window> window = WindowOf(side, first->step);
    if (window.has_value()) WriteSideOfMemory(side, *window, profile, always, json);
    if (&side != &sides[0]) continue;
    for (const MemoryChange& change : changes) {
      if (!change.kept && !change.unknown) always += static_cast<double>(change.bytes);
    }
  }
  json.EndArray();
  WriteRecorded(sides[0], first->step, json);
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace daydream
