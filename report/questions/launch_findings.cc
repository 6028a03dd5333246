#include "report/questions/launch_findings.h"

#include <algorithm>

#include <fmt/format.h>

#include "graph/call_kinds.h"
#include "report/summary.h"
#include "report/text/format.h"

namespace daydream {
namespace {

constexpr double kMissing = 0.10;       // of the launches, without a record of the GPU
constexpr double kLargeGuessed = 0.05;  // of the step

bool MakesWork(CallKind kind) {
  return kind == CallKind::kLaunch || kind == CallKind::kGraphLaunch ||
         kind == CallKind::kCopyAsync || kind == CallKind::kCopy || kind == CallKind::kMemset;
}

class LaunchFindings {
 public:
  LaunchFindings(const Graph& graph, const std::vector<bool>& counts, size_t steps, Duration step)
      : from_nsys_(graph.tables().trace != nullptr &&
                   graph.tables().trace->provenance.importer == "nsys"),
        steps_(steps),
        step_(step) {
    // Not every recorder has them.
    const bool fills = std::ranges::any_of(
        graph.tasks(), [](const Task& t) { return t.kind == TaskKind::kMemset && !t.removed; });
    std::vector<bool> did(graph.size(), false), launched(graph.size(), false);
    for (const Edge& e : graph.edges()) {
      if (e.rule != Rule::kLaunch) continue;
      did[e.from.index()] = launched[e.to.index()] = true;
    }
    CallKinds kinds(graph);
    for (size_t i = 0; i < graph.size(); ++i) {
      const Task& t = graph.tasks()[i];
      if (t.removed) continue;
      if (t.kind == TaskKind::kCall) {
        const CallKind kind = kinds.Of(t.name);
        if (!MakesWork(kind) || (kind == CallKind::kMemset && !fills)) continue;
        ++calls_;
        (kind == CallKind::kGraphLaunch ? graphs_without_ : without_) += !did[i];
        if (kind == CallKind::kLaunch && did[i]) last_ = std::max(last_, t.recorded_start);
        if (kind == CallKind::kLaunch && !did[i]) lone_.push_back(t.recorded_start);
      } else if (IsGuessed(graph, TaskId(i))) {
        if (t.step < counts.size() && counts[t.step]) guessed_ += t.duration;
      } else if (IsGpu(t.kind) && t.event != Id<void>::kNoneValue) {
        ++operations_;  // that were recorded: no delays, no pieces of a backlog (Q5)
        gpu_ += t.duration;
        if (launched[i]) continue;
        ++orphans_;
        orphan_time_ += t.duration;
      }
    }
  }

  std::vector<Finding> Run() {
    // Elsewhere the gap after a graph stands for its work.
    if (guessed_ == Duration{}) without_ += graphs_without_;
    FindWithoutWork();
    FindWithoutLaunch();
    FindGuessed();
    return std::move(out_);
  }

 private:
  Duration PerStep(Duration d) const { return d / static_cast<int64_t>(steps_); }
  static double ShareOf(Duration part, Duration whole) {
    return whole.ns > 0 ? part.seconds() / whole.seconds() : 0;
  }

  // What is launched last may run behind the window. A hole before that would be filled by no rule:
  // it becomes a delay of the next kernel, which no faster GPU makes shorter.
  void FindHoles() {
    const auto holes = std::ranges::count_if(lone_, [&](Instant at) { return at < last_; });
    if (holes == 0) return;
    out_.push_back(
        {.kind = FindingKind::kPartialGpu,
         .about = About::kPredictions,
         .text = fmt::format("{} of {} launches have no record of their GPU work; the time that it "
                             "took is taken for delays",
                             FormatCount(static_cast<uint64_t>(holes)), FormatCount(calls_)),
         .where = {},
         .time = {},
         .share = static_cast<double>(holes) / static_cast<double>(calls_),
         .fix = "record again, for fewer steps: the profiler lost records"});
  }

  void FindWithoutWork() {
    if (static_cast<double>(without_) <= kMissing * static_cast<double>(calls_)) {
      return FindHoles();
    }
    out_.push_back({.kind = FindingKind::kPartialGpu,
                    .about = About::kStep,
                    .text = fmt::format("{} of {} launches have no record of their GPU work: the "
                                        "GPU was recorded for a part of the window only",
                                        FormatCount(without_), FormatCount(calls_)),
                    .where = {},
                    .time = {},
                    .share = static_cast<double>(without_) / static_cast<double>(calls_),
                    .fix = "torch.cuda.synchronize() before the profiler stops"});
  }

  void FindWithoutLaunch() {
    if (orphan_time_ <= gpu_.Scaled(kMissing) || calls_ == 0) return;
    out_.push_back({.kind = FindingKind::kNoLaunches,
                    .about = About::kPredictions,
                    .text = fmt::format("{} of {} GPU operations, {} of the GPU time, have no "
                                        "recorded launch; they keep their place in the stream",
                                        FormatCount(orphans_), FormatCount(operations_),
                                        FormatPercent(ShareOf(orphan_time_, gpu_), 0)),
                    .where = {},
                    .time = PerStep(orphan_time_),
                    .share = ShareOf(orphan_time_, gpu_),
                    .fix = "record more steps: what was launched before the window is a smaller "
                           "part then"});
  }

  void FindGuessed() {
    const double share = ShareOf(PerStep(guessed_), step_);
    if (share <= kLargeGuessed) return;
    out_.push_back({.kind = FindingKind::kUnrecorded,
                    .about = About::kPredictions,
                    .text = fmt::format("{} of the step, {}, is GPU work of CUDA graphs that was "
                                        "not recorded: what runs there is unknown, and how long "
                                        "it takes is a guess, from the gap that it leaves",
                                        FormatPercent(share, 0), FormatTime(PerStep(guessed_))),
                    .where = {},
                    .time = PerStep(guessed_),
                    .share = share,
                    .fix = fmt::format("record the kernels of graphs, too ({}), or without graphs",
                                       from_nsys_ ? "nsys --cuda-graph-trace=node"
                                                  : "a newer PyTorch and driver")});
  }

  const bool from_nsys_;
  const size_t steps_;
  const Duration step_;
  size_t calls_ = 0, without_ = 0, graphs_without_ = 0, orphans_ = 0, operations_ = 0;
  Duration gpu_, orphan_time_, guessed_;
  Instant last_;  // launch of a kernel that was recorded
  std::vector<Instant> lone_;
  std::vector<Finding> out_;
};

}  // namespace

std::vector<Finding> FindingsOfLaunches(const Graph& graph, const std::vector<bool>& counts,
                                        size_t steps, Duration step) {
  return LaunchFindings(graph, counts, steps, step).Run();
}

}  // namespace daydream
