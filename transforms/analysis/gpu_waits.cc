#include "transforms/analysis/gpu_waits.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "graph/facts.h"
#include "graph/scopes.h"

namespace daydream {
namespace {

// Ops whose result's size, or the branch after them, depends on values: the host cannot go on
// without. From the PyTorch documentation of each: their output "depends on the data".
constexpr std::string_view kSteering[] = {
    "aten::nonzero",       "aten::is_nonzero",   "aten::equal",       "aten::allclose",
    "aten::masked_select", "aten::unique",       "aten::_unique",     "aten::repeat_interleave",
    "aten::bincount",      "aten::argwhere",     "aten::where",       "aten::histogram",
    "aten::combinations",  "aten::tensor_split", "aten::_is_all_true"};

bool Steers(std::string_view op) {
  return std::any_of(std::begin(kSteering), std::end(kSteering),
                     [&](std::string_view name) { return op.starts_with(name); });
}

// What is exchanged with other ranks has sizes that the host reads first: names of c10d's operators
// and of the marks of TorchRec (torchrec/distributed/dist_data.py).
constexpr std::string_view kExchanges[] = {"all2all", "all_to_all", "alltoall", "sparse_data_dist"};

bool SizesExchange(std::string_view scope) {
  return std::any_of(std::begin(kExchanges), std::end(kExchanges),
                     [&](std::string_view name) { return Contains(scope, name); });
}

// Nobody prints more than so much. Up to here a copy is as long as the driver takes to stage it
// (CUDA Runtime API, API synchronization behavior); what is larger has a use.
constexpr uint64_t kLargestValue = 64 << 10;

bool ReadsValue(std::string_view op) {
  return op == "aten::item" || op == "aten::_local_scalar_dense";
}

// A scaler of gradients reads whether the step has to be skipped between this op and another one.
constexpr std::string_view kScalerCheck = "_amp_foreach_non_finite_check";

struct HasScaler {
  explicit HasScaler(const Graph& graph)
      : has(std::ranges::any_of(graph.tables().scopes, [&](const Scope& s) {
          return s.kind == EventKind::kOp && Contains(graph.Name(s.name), kScalerCheck);
        })) {}
  bool has;
};

}  // namespace

std::string_view WaitUseName(WaitUse use) {
  switch (use) {
    case WaitUse::kNone:
      return "does not wait";
    case WaitUse::kSteers:
      return "its value steers the program";
    case WaitUse::kRead:
      return "reads a value";
    case WaitUse::kData:
      return "copies results to the host";
    case WaitUse::kSync:
      return "waits";
    case WaitUse::kToDevice:
      return "copies to the GPU";
    case WaitUse::kFree:
      return "gives memory back";
    case WaitUse::kRanks:
      return "waits for other processes";
    case WaitUse::kLoader:
      return "is in the data loader";
  }
  return "";
}

void GpuWaits::FindCopies() {
  for (const Edge& e : graph_.edges()) {
    if (e.rule != Rule::kHostWait || graph_.task(e.to).removed) continue;
    waits_.push_back(e.to);
    // Whoever waits for the device waits for a copy only by chance.
    if (calls_.Of(graph_.task(e.to).name) == CallKind::kDeviceSync) continue;
    const CopyDetail* copy = graph_.Copy(e.from);
    if (copy == nullptr) continue;
    bool to_device = copy->to == Memory::kDevice && copy->from != Memory::kDevice;
    bool to_host = copy->from == Memory::kDevice && copy->to != Memory::kDevice;
    CopyTo& to = copy_to_[e.to.index()];
    if (to == CopyTo::kResults) continue;
    if (to_host) to = copy->bytes > kLargestValue ? CopyTo::kResults : CopyTo::kHost;
    if (to_device) to = CopyTo::kDevice;
  }
}

GpuWaits::GpuWaits(const Graph& graph)
    : graph_(graph),
      loader_(graph),
      calls_(graph),
      copy_to_(graph.size(), CopyTo::kNone),
      use_(graph.size(), WaitUse::kNone) {
  FindCopies();
  const auto on_thread = [&](TaskId t) {
    return graph.lane(graph.task(t).lane).lane.kind == LaneKind::kThread;
  };
  if (!FactOfTables<HasScaler>(graph, [&] { return HasScaler(graph); })->has) {
    for (TaskId t : waits_) {
      if (on_thread(t)) use_[t.index()] = Classify(t, /*unscaled=*/false);
    }
    return;
  }
  std::vector<bool> waits(graph.size(), false);
  for (TaskId t : waits_) waits[t.index()] = true;
  uint16_t step = 0;
  bool unscaled = false;
  for (const GraphLane& lane : graph.lanes()) {
    if (lane.lane.kind != LaneKind::kThread) continue;
    for (TaskId t = lane.first; t.valid(); t = graph.task(t).lane_next) {
      const Task& task = graph.task(t);
      if (task.step != step) step = task.step, unscaled = false;
      if (!unscaled) unscaled = InOp(t, kScalerCheck);
      if (unscaled && InOp(t, "_amp_update_scale")) unscaled = false;
      if (waits[t.index()]) use_[t.index()] = Classify(t, unscaled);
    }
    unscaled = false;
  }
}

bool GpuWaits::InOp(TaskId t, std::string_view part) const {
  for (ScopeId s : ScopesAround(graph_, graph_.task(t).scope)) {
    const Scope& scope = ScopeAt(graph_, s);
    if (scope.kind == EventKind::kOp && Contains(graph_.Name(scope.name), part)) return true;
  }
  return false;
}

WaitUse GpuWaits::Classify(TaskId t, bool unscaled) {
  const Task& task = graph_.task(t);
  if (loader_.Around(task.scope).valid()) return WaitUse::kLoader;
  if (calls_.Of(task.name) == CallKind::kFree) return WaitUse::kFree;
  bool read = copy_to_[t.index()] == CopyTo::kHost, steers = false, ranks = false;
  for (ScopeId s : ScopesAround(graph_, task.scope)) {
    const Scope& scope = ScopeAt(graph_, s);
    if (scope.kind == EventKind::kFrame) continue;
    std::string_view name = graph_.Name(scope.name);
    ranks |= Contains(name, "barrier") || name.starts_with("nccl:") || name.starts_with("c10d::");
    steers |= SizesExchange(name);
    if (scope.kind != EventKind::kOp) continue;
    steers |= Steers(name);
    read |= ReadsValue(name);
  }
  if (ranks) return WaitUse::kRanks;
  if (steers || (read && unscaled)) return WaitUse::kSteers;
  if (copy_to_[t.index()] == CopyTo::kResults) return WaitUse::kData;
  if (read) return WaitUse::kRead;
  if (copy_to_[t.index()] == CopyTo::kDevice) return WaitUse::kToDevice;
  return WaitUse::kSync;
}

bool NeedsResult(const Graph& graph, TaskId t) {
  for (ScopeId s : ScopesAround(graph, graph.task(t).scope)) {
    const Scope& scope = ScopeAt(graph, s);
    const std::string_view name = graph.Name(scope.name);
    if (scope.kind == EventKind::kOp && (Steers(name) || ReadsValue(name))) return true;
  }
  return false;
}

std::string SiteOf(const Graph& graph, TaskId t) {
  std::string_view op, line;
  for (ScopeId s : ScopesAround(graph, graph.task(t).scope)) {
    const Scope& scope = ScopeAt(graph, s);
    std::string_view name = graph.Name(scope.name);
    if (scope.kind == EventKind::kOp) op = name;
    // Frames of Python read "train.py(88): main"; those of the framework are not the program's.
    size_t end = name.find("): ");
    bool code = scope.kind == EventKind::kFrame && end != std::string_view::npos &&
                Contains(name.substr(0, end), ".py(") && !Contains(name, "torch/");
    if (line.empty() && code) line = name.substr(0, end + 1);
  }
  const Task& task = graph.task(t);
  std::string site(op.empty() ? graph.Name(task.name) : op);
  if (!line.empty()) site += fmt::format(" at {}", line);
  if (task.layer.index() < graph.layers().size()) {
    site += fmt::format(" in {}", graph.Name(graph.layers()[task.layer.index()].name));
  }
  return site;
}

Duration RecordedHostTime(const Graph& graph, TaskId t) {
  const Task& task = graph.task(t);
  const Trace* trace = graph.tables().trace.get();
  if (task.kind != TaskKind::kCall) return task.duration;
  if (trace == nullptr || task.event >= trace->rows()) return task.duration;
  return std::max(task.duration, trace->duration[task.event]);
}

namespace {

size_t MeasuredSteps(const Graph& graph) {
  return static_cast<size_t>(
      std::ranges::count_if(graph.steps(), [](const GraphStep& step) { return step.measured; }));
}

// Three digits in the unit that fits; report/ formats times, but is above this folder.
std::string InReadableUnit(double seconds) {
  if (seconds >= 0.9995) return fmt::format("{:.3g} s", seconds);
  if (seconds >= 0.9995e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} us", seconds * 1e6);
}

}  // namespace

void SiteList::Add(const Graph& graph, TaskId task, std::string site, Duration host_time,
                   bool counts) {
  Site& s = sites_[std::move(site)];
  const size_t step = graph.task(task).step;
  const bool measured = step < graph.steps().size() && graph.steps()[step].measured;
  for (Seen* seen : {&s.ever, measured ? &s.measured : nullptr}) {
    if (seen == nullptr) continue;
    seen->count += counts ? 1 : 0;
    seen->time += host_time;
  }
}

std::vector<std::string> SiteList::Lines(const Graph& graph, size_t most) const {
  const size_t measured = MeasuredSteps(graph);
  const size_t all = std::max<size_t>(measured > 0 ? measured : graph.steps().size(), 1);
  std::vector<std::pair<std::string_view, Seen>> sorted;
  for (const auto& [name, site] : sites_) {
    const Seen& seen = measured > 0 ? site.measured : site.ever;
    if (seen.count > 0) sorted.emplace_back(name, seen);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.time > b.second.time; });
  auto line = [&](size_t count, std::string_view what, Duration time) {
    const double n = static_cast<double>(all), each = static_cast<double>(count) / n;
    // What does not happen in every step is counted in whole numbers.
    const std::string times = each == 1    ? std::string("once a step at")
                              : each > 1   ? fmt::format("{:.3g} times a step at", each)
                              : count == 1 ? fmt::format("once in {} steps at", all)
                                           : fmt::format("{} times in {} steps at", count, all);
    return fmt::format("{} {} ({} of host time a step)", times, what,
                       InReadableUnit(time.seconds() / n));
  };
  std::vector<std::string> lines;
  Seen others;
  for (const auto& [name, s] : sorted) {
    if (lines.size() < most) {
      lines.push_back(line(s.count, name, s.time));
    } else {
      others.count += s.count, others.time += s.time;
    }
  }
  if (others.count > 0) {
    lines.push_back(
        line(others.count, fmt::format("{} other places", sorted.size() - most), others.time));
  }
  return lines;
}

}  // namespace daydream
