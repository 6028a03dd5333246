#include "report/questions/findings.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/median.h"
#include "report/lane_rows.h"
#include "report/questions/busy_before.h"
#include "report/questions/copy_findings.h"
#include "report/questions/delay_findings.h"
#include "report/questions/far_longer.h"
#include "report/questions/gpu_findings.h"
#include "report/questions/launch_findings.h"
#include "report/questions/limit_findings.h"
#include "report/questions/loader_findings.h"
#include "report/questions/long_call.h"
#include "report/questions/mark_findings.h"
#include "report/questions/name_findings.h"
#include "report/questions/op_stalls.h"
#include "report/questions/queue_findings.h"
#include "report/questions/record_findings.h"
#include "report/questions/recorder_findings.h"
#include "report/questions/time_findings.h"
#include "report/summary.h"
#include "report/text/format.h"
#include "report/unequal_steps.h"
#include "report/windows.h"
#include "trace/part/part.h"

namespace daydream {
namespace {

constexpr double kStepOff = 0.03;
constexpr double kLargeWait = 0.10;      // of the step, for other ranks
constexpr double kManyMemoryCalls = 10;  // a step
constexpr double kUnevenSteps = 0.10;    // of the median
constexpr size_t kLaunchesOfSearch = 12;

double ShareOf(Duration part, Duration whole) {
  return whole.ns > 0 ? part.seconds() / whole.seconds() : 0;
}

class Findings {
 public:
  Findings(const BuiltGraph& built, const Stalls& stalls, const ReplayCheck& replay)
      : graph_(built.graph), report_(built.report), stalls_(stalls), replay_(replay) {
    const std::vector<size_t> counted = CountedSteps(graph_);
    steps_ = std::max<size_t>(counted.size(), 1);
    counts_.assign(std::max<size_t>(graph_.steps().size(), 1), counted.empty());
    for (size_t s : counted) counts_[s] = true;
    step_ = replay.measured;
    taken_out_.resize(graph_.size());
    for (const Stall& s : stalls.all) {
      if (!s.gap && s.task.index() < graph_.size()) taken_out_[s.task.index()] = true;
    }
  }

  std::vector<Finding> Run() {
    out_ = FindingsOfRecorder(graph_, report_);
    if (IsPlan(graph_)) return std::move(out_);
    for (Finding& f : FindingsOfRecords(graph_)) out_.push_back(std::move(f));
    for (Finding& f : FindingsOfLimits(graph_)) out_.push_back(std::move(f));
    for (Finding& f : FindingsOfNames(graph_)) out_.push_back(std::move(f));
    for (Finding& f : FindingsOfGpus(graph_)) out_.push_back(std::move(f));
    for (Finding& f : FindingsOfMarks(report_.steps)) out_.push_back(std::move(f));
    if (const auto& trace = graph_.tables().trace; trace != nullptr) {
      for (Finding& f : FindingsOfMovedMarks(report_.steps, *trace)) out_.push_back(std::move(f));
    }
    FindOneTime();
    for (Finding& f : FindingsOfLaunches(graph_, counts_, steps_, step_)) {
      out_.push_back(std::move(f));
    }
    if (auto queue = FindingOfQueues(graph_, counts_, steps_, step_)) {
      out_.push_back(*std::move(queue));
    }
    FindClocks();
    FindMemoryCalls();
    if (!stalls_.no_step) FindInSteps();
    for (const std::string& warning : report_.warnings) {
      out_.push_back({.kind = FindingKind::kOther,
                      .about = About::kPredictions,
                      .text = warning,
                      .where = {},
                      .time = {},
                      .fix = {}});
    }
    for (Finding& f : out_) f.share = std::clamp(f.share, 0.0, 1.0);
    SortFindings(out_);
    return std::move(out_);
  }

 private:
  bool Counts(const Task& t) const { return t.step < counts_.size() && counts_[t.step]; }
  std::string At(TaskId t) const { return LaneTitle(graph_, graph_.task(t).lane); }
  static std::string Time(Duration d) { return FormatTime(d); }
  Duration PerStep(Duration d) const { return d / static_cast<int64_t>(steps_); }

  // What is said of steps, where there are some.
  void FindInSteps() {
    TellBusyBefore();
    for (Finding& f : FindingsOfOpStalls(graph_)) out_.push_back(std::move(f));
    std::vector<bool> told = taken_out_;
    if (auto some = FindingOfSomeSteps(graph_, stalls_, StepsDiffer())) {
      out_.push_back(*std::move(some));
      for (const Stall& s : stalls_.waits) told[s.task.index()] = true;
    }
    const Duration step = steps_ == 1 ? step_ - stalls_.taken : step_;
    if (auto call = FindingOfLongCall(graph_, counts_, told, step)) {
      out_.push_back(*std::move(call));
    }
    for (Finding& f : FindingsOfCopies(graph_, counts_, steps_, step_)) {
      out_.push_back(std::move(f));
    }
    for (Finding& f : FindingsOfTimes(graph_, counts_, step_)) out_.push_back(std::move(f));
    FindSearch();
    FindUnequal();
    FindOtherSteps();
    if (auto delays = FindingOfDelays(graph_, report_, stalls_, steps_)) {
      out_.push_back(*std::move(delays));
    }
    const Duration steady = step_ - PerStep(stalls_.taken);
    for (Finding& f : FindingsOfLoader(graph_, counts_, steps_, steady)) {
      out_.push_back(std::move(f));
    }
    FindWaitsForRanks();
    FindReplay();
  }

  void FindOneTime() {
    std::map<std::string, std::vector<const Stall*>> by_what;
    std::vector<const Stall*> once;
    for (const Stall& s : stalls_.all) {
      if (s.kind == StallKind::kChurn || s.kind == StallKind::kHeldUp) continue;
      once.push_back(&s);
      by_what[s.what].push_back(&s);
    }
    if (once.empty()) return;
    const Stall* first = once.front();
    const Duration taken = TakenTogether(graph_, std::move(once));
    std::vector<std::pair<std::string, std::pair<size_t, Duration>>> rows;
    for (auto& [what, all] : by_what) {
      const size_t count = all.size();
      rows.push_back({what, {count, TakenTogether(graph_, std::move(all))}});
    }
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
      return a.second.second > b.second.second;
    });
    constexpr size_t kShown = 3;
    std::string named;
    for (size_t i = 0; i < std::min(rows.size(), kShown); ++i) {
      const auto& [what, sums] = rows[i];
      named += fmt::format("{}{} ({}{})", i == 0 ? "" : ", ", Printable(what), Time(sums.second),
                           sums.first > 1 ? fmt::format(", {} times", sums.first) : "");
    }
    if (rows.size() > kShown) named += fmt::format(" and {} more", rows.size() - kShown);
    Finding f{.kind = stalls_.no_step ? FindingKind::kNoStep : FindingKind::kOneTime,
              .about = About::kStep,
              .where = fmt::format("{} on {}", first->what, At(first->task)),
              .time = taken,
              .share = ShareOf(taken, stalls_.time),
              .fix = WhatToDoAbout(*first)};
    f.text = named;
    if (stalls_.no_step) {
      const bool pauses = std::ranges::all_of(
          stalls_.all, [](const Stall& s) { return s.kind == StallKind::kOutside; });
      f.text = fmt::format("{} of the {} recorded happens once: {}; {}", Time(taken),
                           Time(stalls_.time), named,
                           pauses ? "no marks say what a step is, and what remains may be a part "
                                    "of one"
                                  : "this is the first iteration of a program, and what remains "
                                    "is no step");
    }
    out_.push_back(std::move(f));
  }

  // Warming up helps where something starts or is made for the first time.
  std::string WhatToDoAbout(const Stall& s) const {
    const bool starts = s.kind != StallKind::kOutside && s.kind != StallKind::kCall;
    return steps_ == 1 || starts ? std::string(AdviceOn(graph_).later)
                                 : "see what the program does there (a checkpoint, a log, a wait "
                                   "for others); record steps without it, or more of them";
  }

  void TellBusyBefore() {
    if (steps_ > 1) return;
    if (auto busy = FindingOfBusyBefore(graph_, counts_, step_)) out_.push_back(*std::move(busy));
  }

  // Under torch.backends.cudnn.benchmark the first call of a convolution runs every algorithm.
  void FindSearch() {
    std::map<ScopeId, std::pair<size_t, Duration>> launches;  // by op
    for (const Edge& e : graph_.edges()) {
      if (e.rule != Rule::kLaunch) continue;
      const Task& call = graph_.task(e.from);
      if (!Counts(call) || graph_.task(e.to).kind != TaskKind::kKernel) continue;
      const Scope* scope = graph_.ScopeOf(e.from);
      if (scope == nullptr || graph_.Name(scope->name).find("conv") == std::string_view::npos) {
        continue;
      }
      auto& [count, time] = launches[call.scope];
      ++count;
      time += graph_.task(e.to).duration;
    }
    std::vector<size_t> counts(launches.size());
    std::ranges::transform(launches, counts.begin(), [](const auto& l) { return l.second.first; });
    if (counts.empty()) return;
    const size_t usual = Median(counts);
    Duration time;
    size_t ops = 0;
    ScopeId most;
    for (const auto& [scope, row] : launches) {
      if (row.first < kLaunchesOfSearch || row.first < usual * 4) continue;
      time += row.second;
      ++ops;
      if (!most.valid() || row.first > launches[most].first) most = scope;
    }
    if (ops == 0 || PerStep(time) < step_.Scaled(0.01)) return;
    const Scope& scope = graph_.tables().scopes[most.index()];
    out_.push_back(
        {.kind = FindingKind::kSearch,
         .about = About::kStep,
         .text = fmt::format("{} of {} launch up to {} kernels where others launch {}: the library "
                             "tries algorithms, which it does once",
                             Plural(ops, "call"), Printable(graph_.Name(scope.name)),
                             launches[most].first, usual),
         .where = std::string(graph_.Name(scope.name)),
         .time = PerStep(time),
         .share = ShareOf(PerStep(time), step_),
         .fix = std::string(AdviceOn(graph_).later)});
  }

  std::vector<Duration> StepsByLength() const {
    std::vector<Duration> sorted = replay_.measured_steps;
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }

  bool StepsDiffer() const {
    const std::vector<Duration> sorted = StepsByLength();
    if (sorted.size() < 2) return false;
    const Duration quarters = sorted[sorted.size() * 3 / 4] - sorted[sorted.size() / 4];
    const Duration whole = sorted.back() - sorted.front();
    const Duration differ = sorted.size() < 4 ? whole : std::max(quarters, (whole / 2));
    return differ > Median(sorted).Scaled(kUnevenSteps);
  }

  void FindUnequal() {
    if (!StepsDiffer()) return;
    const std::vector<Duration> sorted = StepsByLength();
    const Duration whole = sorted.back() - sorted.front();
    Finding f{.kind = FindingKind::kUnequalSteps,
              .about = About::kPredictions,
              .text = fmt::format("recorded steps take {} to {}", Time(sorted.front()),
                                  Time(sorted.back())),
              .where = {},
              .time = whole,
              .share = ShareOf(whole, sorted.back()),
              .fix = stalls_.all.empty() ? "record more steps; predictions are of the mean of these"
                                         : "do what the finding above says; predictions are of the "
                                           "steady step, without what it takes out"};
    if (const auto cause = WhatMakesStepsUnequal(graph_)) {
      f.text +=
          fmt::format("; {} makes {} of the difference ({} to {} a step)", Printable(cause->name),
                      FormatPercent(cause->share, 0), Time(cause->least), Time(cause->most));
      f.where = cause->name;
    }
    out_.push_back(std::move(f));
  }

  // Steps of a long recording that stand for all are always told.
  void FindOtherSteps() {
    const Part* part = graph_.tables().trace->part.get();
    if (part == nullptr || part->is != PartIs::kChosen) return;
    const Duration off{std::abs((part->mean - part->of_all).ns)};
    Finding f{
        .kind = FindingKind::kOtherSteps,
        .about = About::kProgram,
        .text = fmt::format("places {} to {} of {} steps stand for all of a long recording: "
                            "{} on average, all take {}; {} of others are not asked",
                            part->range.first, part->range.last, part->recorded, Time(part->mean),
                            Time(part->of_all), Plural(part->rows_left_out, "event")),
        .where = {},
        .time = off,
        .share = ShareOf(off, part->of_all),
        .fix = "--steps all asks every step"};
    if (part->unlike() > kUnlikeSteps) {
      f.about = About::kPredictions;
      f.where = part->longest;
      f.text += fmt::format("; steps are uneven: {} takes {}", Printable(part->longest),
                            Time(part->longest_time));
    }
    out_.push_back(std::move(f));
  }

  void FindClocks() {
    constexpr std::string_view kFix = "update the driver and the profiler, or record again";
    if (report_.late > Duration{}) {
      out_.push_back(
          {.kind = FindingKind::kClocks,
           .about = About::kPredictions,
           .text = fmt::format("GPU work that found its stream at rest starts {} or more behind "
                               "its launch: the clocks of host and GPU disagree",
                               Time(report_.late)),
           .where = {},
           .time = report_.late,
           .share = 1,
           .fix = std::string(kFix)});
    }
    for (const ClockOffset& o : report_.clocks_set) {
      const bool late = o.late > Duration{};
      out_.push_back(
          {.kind = FindingKind::kClocks,
           .about = About::kProgram,
           .text = fmt::format(
               "the clock of GPU {} is {} {} the host's: {} of {} {}; what it did is taken to be "
               "so much {}",
               o.device, Time(Duration{std::abs(o.late.ns)}), late ? "behind" : "ahead of",
               FormatCount(o.impossible), FormatCount(o.seen),
               late ? "waits return before what they wait for has ended"
                    : "operations start before the call that launched them",
               late ? "earlier" : "later"),
           .where = {},
           .time = Duration{std::abs(o.late.ns)},
           .share = 0,
           .fix = std::string(kFix)});
    }
    if (report_.early == 0) return;
    out_.push_back({.kind = FindingKind::kClocks,
                    .about = About::kPredictions,
                    .text = fmt::format("{} of {} GPU operations start before the call that "
                                        "launched them: the clocks of host and GPU disagree",
                                        FormatCount(report_.early), FormatCount(report_.gpu_tasks)),
                    .where = {},
                    .time = {},
                    .share = static_cast<double>(report_.early) /
                             static_cast<double>(std::max<uint64_t>(report_.gpu_tasks, 1)),
                    .fix = std::string(kFix)});
  }

  void FindMemoryCalls() {
    std::map<std::string, std::pair<double, Duration>> calls;
    const bool churns = std::ranges::any_of(
        stalls_.all, [](const Stall& s) { return s.kind == StallKind::kChurn; });
    for (size_t i = 0; i < graph_.size(); ++i) {
      const Task& t = graph_.tasks()[i];
      if (t.removed || !IsHost(t.kind) || t.kind == TaskKind::kHost || !Counts(t)) continue;
      const std::string_view name = graph_.TaskName(TaskId(i));
      if (name != "cudaMalloc" && name != "cudaFree" && name != "hipMalloc" && name != "hipFree") {
        continue;
      }
      auto& [count, time] = calls[std::string(name)];
      count += t.kind == TaskKind::kCall ? 1 : 0;
      if (!taken_out_[i] || churns) time += t.duration;
    }
    std::string text;
    double most = 0;
    Duration time;
    for (const auto& [name, row] : calls) {
      const double each = row.first / static_cast<double>(steps_);
      if (each < 1) continue;
      text += fmt::format("{}{:.0f} {}", text.empty() ? "" : " and ", each, name);
      most = std::max(most, each);
      time += PerStep(row.second);
    }
    if (most < kManyMemoryCalls) return;
    const bool uncached = TakesEachTensor();
    const bool freed = calls.contains("cudaFree") || calls.contains("hipFree");
    out_.push_back(
        {.kind = FindingKind::kAllocator,
         .about = churns ? About::kStep : About::kProgram,
         .text = fmt::format(
             "memory is taken from the driver{} within a step: {} a step, {} of the host{}",
             freed ? " and given back" : ", and none is given back,", text, Time(time),
             uncached ? "; there are as many as tensors, so the caching allocator is off" : ""),
         .where = {},
         .time = time,
         .share = ShareOf(time, step_),
         .fix = uncached ? "let the allocator keep memory: unset PYTORCH_NO_CUDA_MEMORY_CACHING "
                           "(on AMD PYTORCH_NO_HIP_MEMORY_CACHING, too), and call no "
                           "torch.cuda.empty_cache() in a step"
                : !freed ? "the allocator still grows, as in first steps: record later"
                         : "if it goes on after warm-up, leave the allocator more room: "
                           "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or a smaller batch"});
  }

  // Whether the driver is asked about as often as tensors are made. A caching allocator that runs
  // out of memory asks for few of them.
  bool TakesEachTensor() const {
    size_t tensors = 0, calls = 0;
    for (const Scope& s : graph_.tables().scopes) {
      tensors += s.kind == EventKind::kOp && graph_.Name(s.name).starts_with("aten::empty");
    }
    for (size_t i = 0; i < graph_.size(); ++i) {
      const std::string_view name = graph_.TaskName(TaskId(i));
      const bool call = graph_.tasks()[i].kind == TaskKind::kCall;
      calls += call && (name == "cudaMalloc" || name == "hipMalloc");
    }
    return static_cast<double>(tensors) >= kManyMemoryCalls && 2 * calls >= tensors;
  }

  void FindWaitsForRanks() {
    Duration waits;
    std::map<std::string, Duration> by_name;
    for (size_t i = 0; i < graph_.size(); ++i) {
      const Task& t = graph_.tasks()[i];
      if (t.removed || t.kind != TaskKind::kCollective || !Counts(t)) continue;
      const Duration wait = t.duration - graph_.Transfer(TaskId(i));
      if (wait <= Duration{}) continue;
      waits += wait;
      by_name[std::string(graph_.TaskName(TaskId(i)))] += wait;
    }
    if (by_name.empty() || PerStep(waits) <= step_.Scaled(kLargeWait)) return;
    const auto most = std::ranges::max_element(by_name, {}, [](const auto& x) { return x.second; });
    out_.push_back(
        {.kind = FindingKind::kWaitsForRanks,
         .about = About::kProgram,
         .text = fmt::format("communication waits {} a step for other ranks, which is no "
                             "transfer: one of them is late",
                             Time(PerStep(waits))),
         .where = most->first,
         .time = PerStep(waits),
         .share = ShareOf(PerStep(waits), step_),
         .fix = "record all ranks into one folder: daydream ranks DIR names the late one"});
  }

  void FindReplay() {
    const ReplayCheck::Worst worst = replay_.worst();
    if (worst.error <= kStepOff) return;
    out_.push_back({.kind = FindingKind::kReplay,
                    .about = About::kPredictions,
                    .text = fmt::format("the replay explains less than it should: {}; predictions "
                                        "may be off by as much",
                                        worst.what),
                    .where = {},
                    .time = step_.Scaled(worst.error),
                    .share = worst.error,
                    .fix = steps_ > 1
                               ? "choose steps that are alike with --steps, or record more of them"
                               : "record more steps"});
  }

  const Graph& graph_;
  const BuildReport& report_;
  const Stalls& stalls_;
  const ReplayCheck& replay_;
  size_t steps_ = 1;
  std::vector<bool> counts_;     // by step
  std::vector<bool> taken_out_;  // by task: a stall, as a whole
  Duration step_;
  std::vector<Finding> out_;
};

}  // namespace

std::string_view Name(FindingKind kind) {
  constexpr std::string_view kNames[] = {
      "planned",       "one_rank",       "no_step",         "one_time",
      "cut_step",      "library_search", "partial_gpu",     "long_call",
      "unequal_steps", "other_steps",    "op_stalls",       "longer_in_some_steps",
      "replay",        "unrecorded",     "pause",           "units",
      "too_fast",      "other_gpu",      "memory",          "marks",
      "no_operators",  "lost",           "no_time",         "twice",
      "wrong_launch",  "no_launches",    "queue",           "no_waits",
      "not_told",      "unexplained",    "clocks",          "allocator",
      "copies",        "loader",         "waits_for_ranks", "other"};
  static_assert(std::size(kNames) == static_cast<size_t>(FindingKind::kOther) + 1);
  return kNames[static_cast<size_t>(kind)];
}

std::string_view Name(About about) {
  constexpr std::string_view kNames[] = {"step", "predictions", "program"};
  static_assert(std::size(kNames) == static_cast<size_t>(About::kProgram) + 1);
  return kNames[static_cast<size_t>(about)];
}

void SortFindings(std::vector<Finding>& findings) {
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    const bool none = a.kind == FindingKind::kNoStep, other = b.kind == FindingKind::kNoStep;
    return std::tuple(!none, a.about, -a.share, a.kind) <
           std::tuple(!other, b.about, -b.share, b.kind);
  });
}

std::vector<Finding> FindFindings(const BuiltGraph& built, const Stalls& stalls,
                                  const ReplayCheck& replay) {
  return Findings(built, stalls, replay).Run();
}

}  // namespace daydream
