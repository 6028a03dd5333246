#include "report/stalls.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "absl/container/flat_hash_map.h"
#include "base/median.h"
#include "base/text.h"
#include "graph/call_kind.h"
#include "report/windows.h"
#include "trace/step_names.h"
#include "transforms/analysis/loader.h"

namespace daydream {
namespace {

constexpr double kOfRest = 0.25;                    // of what remains of a window of one step
constexpr Duration kLeastOfRest = Duration::Ms(1);  // shorter stretches are noise of the host
constexpr Duration kLongCall = Duration::Ms(5);
constexpr int64_t kTimesUsual = 20;
constexpr double kOfStep = 0.10;     // of one of several steps
constexpr int64_t kTimesOthers = 5;  // chosen: the longest stretch outside of operators elsewhere
constexpr double kIdle = 0.5;        // of the stretch, without GPU work
constexpr size_t kEnoughAlike = 4;   // pieces of a name, to say what it usually takes
// Starting CUDA takes longer than this, and less only where it was done before.
constexpr Duration kCudaStarts = Duration::Ms(50);
constexpr double kReservedOfRest = 0.05;  // of what remains, before reserved memory matters
constexpr double kManyMemoryCalls = 10;   // of a kind, a step
constexpr double kChurnOfStep = 0.20;

// By name: calls that make the first use of a device, and with it its context.
bool StartsCuda(std::string_view name) {
  return ContainsAny(name, {"StreamPriorityRange", "StreamCreate", "GetDeviceProp", "cuInit",
                            "hipInit", "PrimaryCtxRetain", "CtxCreate", "SetDevice",
                            "GetDeviceCount", "DeviceGetAttribute", "Free"});
}

StallKind KindOfCall(std::string_view name) {
  if (ContainsAny(name, {"Malloc", "HostAlloc"})) return StallKind::kMemory;
  if (ContainsAny(name, {"Launch", "Module", "Library", "FuncGetAttributes", "FuncSetAttribute",
                         "OccupancyMax"})) {
    return StallKind::kModule;
  }
  return StartsCuda(name) ? StallKind::kStart : StallKind::kCall;
}

bool GivesMemoryBack(std::string_view name) {
  return ContainsAny(name, {"cudaFree", "hipFree", "cuMemFree"});
}

// What a call does about memory of the driver.
enum class MemoryCall : uint8_t { kNone, kReserves, kGivesBack };

struct HostPiece {
  TaskId task;
  bool gap = false;
  Duration time;
};

class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(graph), loader_(graph) {
    const std::vector<size_t> counted = CountedSteps(graph);
    one_step_ = counted.size() < 2;
    unmarked_ = counted.empty();
    counts_.assign(std::max<size_t>(graph.steps().size(), 1), counted.empty());
    for (size_t s : counted) counts_[s] = true;
    steps_ = std::max<size_t>(counted.size(), 1);
    for (size_t s : counted) out_.time += graph.steps()[s].recorded_period;
  }

  Stalls Run() {
    Collect();
    if (one_step_) {
      FindInWindow();
    } else {
      FindAmongSteps();
    }
    FindChurn();
    FindHeldUp();
    std::stable_sort(out_.all.begin(), out_.all.end(),
                     [](const Stall& a, const Stall& b) { return a.taken() > b.taken(); });
    std::vector<const Stall*> all;
    for (const Stall& s : out_.all) all.push_back(&s);
    out_.taken = TakenTogether(graph_, std::move(all));
    if (one_step_ && !out_.all.empty()) {
      // However long a program pauses in a step that is marked, the rest is that step. Nor is a
      // step none because a compiler took long.
      const bool pauses = !unmarked_ && std::ranges::all_of(out_.all, [](const Stall& s) {
        return s.kind == StallKind::kOutside;
      });
      const bool nothing_left = !pauses && out_.time - out_.taken < kLeastOfRest;
      const bool cold = std::any_of(out_.all.begin(), out_.all.end(), [](const Stall& s) {
        return s.kind == StallKind::kStart && s.time >= kCudaStarts;
      });
      // Where no marks say what a step is, what the program did between its operators for most of
      // the window may be part of it, or what remains a part of one.
      const bool between =
          unmarked_ && std::any_of(out_.all.begin(), out_.all.end(), [&](const Stall& s) {
            return s.kind == StallKind::kOutside && s.taken() * 2 > out_.time;
          });
      out_.no_step = nothing_left || cold || between;
    }
    return std::move(out_);
  }

 private:
  void Collect() {
    Instant begin, end;
    bool any = false;
    busy_ = RecordedGpuWork(graph_);
    for (size_t i = 0; i < graph_.size(); ++i) {
      const Task& t = graph_.tasks()[i];
      if (t.removed) continue;
      const Instant last = t.recorded_start + t.duration;
      begin = any ? std::min(begin, t.recorded_start) : t.recorded_start;
      end = any ? std::max(end, last) : last;
      any = true;
      if (t.kind == TaskKind::kHost || t.kind == TaskKind::kCall) AddPieces(TaskId(i));
    }
    if (out_.time <= Duration{}) out_.time = end - begin;
  }

  void AddPieces(TaskId id) {
    const Task& t = graph_.task(id);
    const bool loads = loader_.Around(t.scope).valid();
    alike_[{t.kind, t.name}].push_back(t.duration);
    (t.kind == TaskKind::kCall ? calls_ : ops_).push_back(t.duration);
    if (t.step >= counts_.size() || !counts_[t.step]) return;
    if (t.kind == TaskKind::kCall) AddMemoryCall(id);
    if (!loads && t.duration > kLeastOfRest) pieces_.push_back({id, false, t.duration});
    if (!loader_.OwnsGapOf(t) && t.gap > kLeastOfRest) {
      pieces_.push_back({id, true, t.gap});
    }
  }

  static MemoryCall MemoryCallOf(std::string_view name) {
    if (Contains(name, "Async")) return MemoryCall::kNone;  // from a pool
    if (GivesMemoryBack(name)) return MemoryCall::kGivesBack;
    return KindOfCall(name) == StallKind::kMemory ? MemoryCall::kReserves : MemoryCall::kNone;
  }

  void AddMemoryCall(TaskId id) {
    const auto [known, first] = memory_calls_.try_emplace(graph_.task(id).name);
    if (first) known->second = MemoryCallOf(graph_.TaskName(id));
    if (known->second == MemoryCall::kNone) return;
    const HostPiece piece{id, false, graph_.task(id).duration};
    gives_back_ |= known->second == MemoryCall::kGivesBack;
    if (known->second == MemoryCall::kReserves) reserves_.push_back(piece);
    churn_.push_back(piece);
  }

  // What such work takes.
  Duration Usual(const HostPiece& p) {
    const Task& t = graph_.task(p.task);
    if (p.gap) return {};
    const std::vector<Duration>& alike = alike_[{t.kind, t.name}];
    const bool rare = alike.size() < kEnoughAlike;
    const auto [usual, unknown] = usual_.try_emplace({t.kind, rare ? NameId() : t.name});
    if (unknown) usual->second = rare ? UsualOfRare(t.kind) : UsualOf(alike);
    return rare ? std::min(usual->second, p.time) : usual->second;
  }
  // In a window of one step half of all pieces may be stalls.
  Duration UsualOf(const std::vector<Duration>& alike) const {
    return Ranked(alike, alike.size() / (one_step_ ? 4 : 2));
  }
  // Rare calls are slow for a reason of their own.
  Duration UsualOfRare(TaskKind kind) const {
    return kind == TaskKind::kCall ? Ranked(calls_, calls_.size() / 4) : Median(ops_);
  }

  // How long the GPU had nothing to do meanwhile.
  Duration Idle(const HostPiece& p) const {
    const Task& t = graph_.task(p.task);
    const Instant begin = p.gap ? t.recorded_start + t.duration : t.recorded_start;
    const Window stretch{0, begin, begin + p.time};
    return p.time - Inside(busy_, stretch);
  }
  bool GpuIdle(const HostPiece& p) const { return Idle(p) >= p.time.Scaled(kIdle); }

  void SortByTime() {
    std::stable_sort(pieces_.begin(), pieces_.end(),
                     [](const HostPiece& a, const HostPiece& b) { return a.time > b.time; });
  }

  void FindInWindow() {
    SortByTime();
    Duration rest = out_.time;
    std::vector<HostPiece> slow;
    for (const HostPiece& p : pieces_) {
      const Duration usual = Usual(p);
      const bool call = graph_.task(p.task).kind == TaskKind::kCall && !p.gap;
      if (p.time - usual >= (rest - p.time).Scaled(kOfRest) && GpuIdle(p)) {
        rest = rest - (p.time - usual);
        Add(p, usual);
      } else if (call && p.time >= kLongCall && p.time >= usual * kTimesUsual && GpuIdle(p)) {
        slow.push_back(p);
      }
    }
    if (!out_.all.empty()) {
      for (const HostPiece& p : slow) Add(p, Usual(p));
    }
    FindReserved(rest);
  }

  // A step that takes memory from the driver and never gives any back is no step of many.
  void FindReserved(Duration rest) {
    Duration sum;
    for (const HostPiece& p : reserves_) sum += p.time;
    if (gives_back_ || sum < rest.Scaled(kReservedOfRest)) return;
    for (const HostPiece& p : reserves_) {
      if (!IsKnown(p) && GpuIdle(p)) Add(p, {});
    }
  }

  void FindAmongSteps() {
    std::vector<Duration> periods;
    for (size_t s : CountedSteps(graph_)) periods.push_back(graph_.steps()[s].recorded_period);
    const Duration least = Ranked(std::move(periods), (steps_ - 1) / 2).Scaled(kOfStep);
    std::map<std::pair<TaskKind, NameId>, std::vector<HostPiece>> slow;
    for (const HostPiece& p : pieces_) {
      if (IsOutside(p)) continue;
      const Task& t = graph_.task(p.task);
      const Duration usual = Usual(p);
      if (p.time < usual * kTimesUsual || p.time - usual < least) continue;
      if (Idle(p) >= least) slow[{t.kind, t.name}].push_back(p);
    }
    std::vector<Stall> again;
    for (const auto& [key, found] : slow) {
      std::set<uint16_t> where;
      for (const HostPiece& p : found) where.insert(graph_.task(p.task).step);
      const bool op = key.first == TaskKind::kHost && !WaitsForOthers(graph_.Name(key.second));
      const bool some = op && where.size() * 2 <= steps_;
      if (where.size() > 1 && !some) continue;
      for (const HostPiece& p : found) {
        Add(p, Usual(p));
        if (where.size() == 1) continue;
        again.push_back(std::move(out_.all.back()));
        out_.all.pop_back();
      }
    }
    out_.waits = std::move(again);
    FindMemoryOfOneStep(least);
    FindPauses(least);
  }

  // Calls about memory that no other step makes: an allocator whose memory is used up gives all
  // back that it keeps, and takes it anew. Many are short, so that it is their sum that counts.
  void FindMemoryOfOneStep(Duration least) {
    std::map<NameId, std::set<uint16_t>> steps_of;
    for (const HostPiece& p : churn_) {
      steps_of[graph_.task(p.task).name].insert(graph_.task(p.task).step);
    }
    const auto elsewhere = [&](const HostPiece& p) {
      return steps_of[graph_.task(p.task).name].size() > 1 || IsKnown(p);
    };
    std::map<uint16_t, std::vector<HostPiece>> alone;
    for (const HostPiece& p : churn_) {
      if (!elsewhere(p)) alone[graph_.task(p.task).step].push_back(p);
    }
    for (const auto& [step, pieces] : alone) {
      Duration idle;
      for (const HostPiece& p : pieces) idle += Idle(p);
      if (idle < least) continue;
      for (const HostPiece& p : pieces) {
        Add(p, {});
        out_.all.back().kind = StallKind::kMemory;
      }
      std::erase_if(churn_, [&](const HostPiece& p) {
        return graph_.task(p.task).step == step && steps_of[graph_.task(p.task).name].size() == 1;
      });
    }
  }

  bool IsOutside(const HostPiece& p) const { return p.gap || IsOutsideOfOperators(graph_, p.task); }

  // Where it paused in one step: nothing tells what such a stretch usually takes but the longest of
  // the other steps.
  void FindPauses(Duration least) {
    std::vector<Duration> longest(counts_.size());
    for (const HostPiece& p : pieces_) {
      if (!IsOutside(p)) continue;
      Duration& of_step = longest[graph_.task(p.task).step];
      of_step = std::max(of_step, p.time);
    }
    const auto at = static_cast<size_t>(std::ranges::max_element(longest) - longest.begin());
    longest[at] = kLeastOfRest;
    const Duration others = *std::ranges::max_element(longest);
    for (const HostPiece& p : pieces_) {
      if (!IsOutside(p) || graph_.task(p.task).step != at) continue;
      if (p.time >= others * kTimesOthers && Idle(p) >= least) Add(p, {});
    }
  }

  // Only where both go on in every step.
  void FindChurn() {
    Duration sum;
    size_t given = 0, taken = 0;
    for (const HostPiece& p : churn_) {
      sum += p.time;
      ++(GivesMemoryBack(graph_.TaskName(p.task)) ? given : taken);
    }
    const auto many = [&](size_t n) {
      return static_cast<double>(n) >= kManyMemoryCalls * static_cast<double>(steps_);
    };
    if (!many(given) || !many(taken) || sum < out_.time.Scaled(kChurnOfStep)) return;
    std::vector<bool> churns(graph_.size(), false);
    for (const HostPiece& p : churn_) churns[p.task.index()] = true;
    std::erase_if(out_.all, [&](const Stall& s) { return !s.gap && churns[s.task.index()]; });
    for (const HostPiece& p : churn_) {
      out_.all.push_back({.task = p.task,
                          .kind = StallKind::kChurn,
                          .what = std::string(graph_.TaskName(p.task)),
                          .time = p.time,
                          .kept = {}});
    }
  }

  void FindHeldUp() {
    std::set<NameId> names;
    std::map<NameId, Duration> middle_of;
    std::vector<std::pair<HostPiece, Duration>> held;  // and what it takes otherwise
    Duration sum;
    for (const HostPiece& p : pieces_) {
      const Task& t = graph_.task(p.task);
      const Scope* scope = graph_.ScopeOf(p.task);
      if (p.gap || t.kind != TaskKind::kHost || scope == nullptr) continue;
      if (scope->kind != EventKind::kOp || p.time < kLongOp) continue;
      if (WaitsForOthers(graph_.TaskName(p.task))) continue;
      const std::vector<Duration>& alike = alike_[{t.kind, t.name}];
      if (alike.size() < kOpsToCompare) continue;
      const auto [middle, unknown] = middle_of.try_emplace(t.name);
      if (unknown) middle->second = Median(alike);
      const Duration usual = middle->second;
      if (p.time < usual * kOpsFarLonger) continue;
      if (IsKnown(p)) continue;
      held.emplace_back(p, usual);
      names.insert(t.name);
      sum += p.time - usual;
    }
    for (const auto& [p, usual] : held) {
      Add(p, usual);
      out_.all.back().kind = StallKind::kHeldUp;
    }
    const bool many = held.size() >= kManyHeldUp && names.size() >= kSeveralNames &&
                      sum >= out_.time.Scaled(kHeldUpShare);
    const bool ranks = std::ranges::any_of(graph_.tasks(), [](const Task& t) {
      return t.kind == TaskKind::kCollective && !t.removed;
    });
    if (many && !ranks) return;
    const auto first = out_.all.end() - static_cast<std::ptrdiff_t>(held.size());
    out_.waits.insert(out_.waits.end(), first, out_.all.end());
    out_.all.erase(first, out_.all.end());
  }

  bool IsKnown(const HostPiece& p) const {
    const auto same = [&](const Stall& s) { return s.task == p.task && s.gap == p.gap; };
    return std::ranges::any_of(out_.all, same) || std::ranges::any_of(out_.waits, same);
  }

  void Add(const HostPiece& p, Duration usual) {
    Stall s{.task = p.task, .gap = p.gap, .what = {}, .time = p.time, .kept = usual};
    const Task& t = graph_.task(p.task);
    const Scope* scope = graph_.ScopeOf(p.task);
    if (p.gap) {
      s.kind = StallKind::kOutside;
      s.what = "the time outside of operators";
    } else if (t.kind == TaskKind::kCall) {
      s.kind = KindOfCall(graph_.TaskName(p.task));
      s.what = std::string(graph_.TaskName(p.task));
      if (scope != nullptr) s.what += fmt::format(" in {}", graph_.Name(scope->name));
    } else {
      const bool op = scope != nullptr && scope->kind == EventKind::kOp;
      s.kind = op ? StallKind::kOp : StallKind::kOutside;
      s.what = std::string(graph_.TaskName(p.task));
      if (s.what.empty() || IsStepName(s.what)) s.what = "the time outside of operators";
    }
    out_.all.push_back(std::move(s));
  }

  const Graph& graph_;
  LoaderScopes loader_;
  Stalls out_;
  bool one_step_ = true, unmarked_ = false;
  size_t steps_ = 1;
  std::vector<bool> counts_;  // by step
  std::vector<HostPiece> pieces_;
  std::vector<HostPiece> reserves_;  // calls that take memory from the driver
  std::vector<HostPiece> churn_;     // those, and calls that give it back
  bool gives_back_ = false;
  std::vector<Interval> busy_;  // the GPU, as recorded
  absl::flat_hash_map<std::pair<TaskKind, NameId>, std::vector<Duration>> alike_;
  absl::flat_hash_map<NameId, MemoryCall> memory_calls_;
  std::vector<Duration> calls_, ops_;
  std::map<std::pair<TaskKind, NameId>, Duration> usual_;  // without a name: of rare ones
};

}  // namespace

std::string_view Name(StallKind kind) {
  constexpr std::string_view kNames[] = {"start of CUDA",
                                         "code of a kernel is loaded",
                                         "memory is taken or given back",
                                         "slow API call",
                                         "first run of an operator",
                                         "time outside of operators",
                                         "memory goes back and forth",
                                         "operator held up",
                                         "wait for a batch"};
  static_assert(std::size(kNames) == static_cast<size_t>(StallKind::kBatch) + 1);
  return kNames[static_cast<size_t>(kind)];
}

bool WaitsForOthers(std::string_view op) {
  constexpr std::string_view kParts[] = {"c10d",  "nccl",    "gloo",   "barrier",
                                         "comms", "all_red", "wait_t", "DataLoader"};
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [&](std::string_view part) { return Contains(op, part); });
}

Stalls FindStalls(const Graph& graph) { return Finder(graph).Run(); }

bool IsOutsideOfOperators(const Graph& graph, TaskId task) {
  const Scope* scope = graph.ScopeOf(task);
  const bool op = scope != nullptr && scope->kind == EventKind::kOp;
  return graph.task(task).kind == TaskKind::kHost && !op;
}

}  // namespace daydream
