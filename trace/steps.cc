#include "trace/steps.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/median.h"
#include "trace/part/part.h"
#include "trace/range_names.h"
#include "trace/rows/rows_of_kind.h"
#include "trace/step_gaps.h"
#include "trace/step_launches.h"
#include "trace/step_names.h"

namespace daydream {
namespace {

// Annotations of one name on one thread, in order of time, without those inside one another.
struct MarkGroup {
  std::string name;  // digits as '#'
  LaneId lane;
  std::vector<size_t> rows;
  size_t inside = 0;  // further ones, left out
};

// "step 12" and "step 13" are the same mark.
std::string WithoutDigits(std::string_view name) {
  std::string out;
  for (char c : name) {
    bool digit = c >= '0' && c <= '9';
    if (!digit) out += c;
    if (digit && (out.empty() || out.back() != '#')) out += '#';
  }
  return out;
}

std::vector<MarkGroup> GroupAnnotations(const Trace& trace) {
  std::map<std::pair<uint32_t, std::string>, MarkGroup> groups;
  // By NameId. Abseil's tables are not to be destroyed after memory ended while they grew.
  std::unordered_map<uint32_t, std::string> names;
  for (size_t row : RowsOf(trace, EventKind::kAnnotation)) {
    LaneId lane = trace.lane[row];
    if (trace.lanes[lane.index()].kind != LaneKind::kThread) continue;
    auto [it, fresh] = names.try_emplace(trace.name[row].value);
    if (fresh) it->second = WithoutDigits(trace.EventName(row));
    MarkGroup& group = groups[{lane.value, it->second}];
    if (!group.rows.empty() && trace.start[row] < trace.End(group.rows.back())) {
      const size_t before = group.rows.back();
      // Marks that overlap by what clocks round are neighbours.
      const bool after =
          trace.start[before] < trace.start[row] && trace.End(before) < trace.End(row);
      if (!after) {
        if (trace.End(before) < trace.End(row)) group.rows.back() = row;  // begins with it
        ++group.inside;
        continue;
      }
    }
    group.name = it->second;
    group.lane = lane;
    group.rows.push_back(row);
  }
  std::vector<MarkGroup> out;
  out.reserve(groups.size());
  for (auto& [key, group] : groups) out.push_back(std::move(group));
  return out;
}

// The group with this prefix that has most marks, or nullptr.
const MarkGroup* Largest(std::span<const MarkGroup> groups, std::string_view prefix, size_t least) {
  const MarkGroup* best = nullptr;
  for (const MarkGroup& group : groups) {
    if (!group.name.starts_with(prefix) || group.rows.size() < least) continue;
    if (best == nullptr || group.rows.size() > best->rows.size()) best = &group;
  }
  return best;
}

Instant LaneBegin(const Trace& trace, LaneId lane) {
  return trace.start[trace.lane_begin[lane.index()]];
}

Instant LaneEnd(const Trace& trace, LaneId lane) {
  Instant end = Instant::Min();
  for (size_t row = trace.lane_begin[lane.index()]; row < trace.lane_begin[lane.index() + 1];
       ++row) {
    end = std::max(end, trace.End(row));
  }
  return end;
}

size_t LaunchesIn(std::span<const Launch> launches, Instant begin, Instant end) {
  auto at = [&](Instant t) {
    return std::lower_bound(launches.begin(), launches.end(), t,
                            [](const Launch& l, Instant x) { return l.start < x; });
  };
  size_t tasks = 0;
  for (auto it = at(begin), last = at(end); it < last; ++it) tasks += it->tasks;
  return tasks;
}

size_t TasksOf(std::span<const Launch> launches) {
  size_t tasks = 0;
  for (const Launch& l : launches) tasks += l.tasks;
  return tasks;
}

// A mark that takes no time says where its step begins; others end with the mark, or where the next
// begins.
Steps FromRanges(const Trace& trace, const MarkGroup& marks, StepMethod method) {
  Steps steps{.method = method, .lane = marks.lane, .steps = {}};
  // A function may call itself; a step is in no other.
  if (IsStepName(trace.EventName(marks.rows[0]))) steps.inside = marks.inside;
  const bool instants = std::all_of(marks.rows.begin(), marks.rows.end(),
                                    [&](size_t row) { return trace.End(row) <= trace.start[row]; });
  for (size_t i = 0; i < marks.rows.size(); ++i) {
    const size_t row = marks.rows[i];
    const bool last = i + 1 == marks.rows.size();
    const Instant next = !last      ? trace.start[marks.rows[i + 1]]
                         : instants ? LaneEnd(trace, marks.lane)
                                    : trace.End(row);
    steps.steps.push_back({.label = std::string(trace.EventName(row)),
                           .begin = trace.start[row],
                           .end = instants ? next : std::min(next, trace.End(row)),
                           .why = {}});
  }
  return steps;
}

Step NotRecorded(Instant begin, Instant end) {
  return {.label = "(not recorded)",
          .begin = begin,
          .end = end,
          .use = StepUse::kNotRecorded,
          .why = "it lies between two windows of steps"};
}

// Steps that the program marked while it was recorded.
Steps FromProgram(const Trace& trace) {
  Steps steps{.method = StepMethod::kMark, .lane = {}, .steps = {}};
  for (size_t row : RowsOf(trace, EventKind::kAnnotation)) {
    const std::string_view name = trace.EventName(row);
    if (!IsMarkedStep(name) && name != kNotRecordedRange) continue;
    if (!steps.lane.valid()) steps.lane = trace.lane[row];
    if (steps.lane != trace.lane[row]) continue;
    if (!steps.steps.empty() && trace.start[row] < steps.steps.back().end) {
      Step& before = steps.steps.back();
      if (trace.start[row] <= before.begin || trace.End(row) <= before.end) {
        ++steps.inside;
        continue;
      }
      before.end = trace.start[row];
    }
    if (name == kNotRecordedRange) {
      steps.steps.push_back(NotRecorded(trace.start[row], trace.End(row)));
      continue;
    }
    const bool labelled = name.starts_with(kLabelledStepRange);
    const size_t number = labelled ? kLabelledStepRange.size() : kStepRange.size();
    steps.steps.push_back({.label = fmt::format("step {}", name.substr(number)),
                           .begin = trace.start[row],
                           .end = trace.End(row),
                           .labelled = labelled,
                           .why = {}});
  }
  return steps;
}

// Steps between the given instants; labels count from 1.
Steps Between(LaneId lane, std::span<const Instant> bounds, StepMethod method) {
  Steps steps{.method = method, .lane = lane, .steps = {}};
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    if (bounds[i + 1] <= bounds[i]) continue;
    steps.steps.push_back({.label = fmt::format("iteration {}", steps.steps.size() + 1),
                           .begin = bounds[i],
                           .end = bounds[i + 1],
                           .why = {}});
  }
  return steps;
}

// An optimizer step is the last thing that an iteration does.
Steps FromOptimizer(const Trace& trace, const MarkGroup& marks) {
  std::vector<Instant> bounds = {LaneBegin(trace, marks.lane)};
  for (size_t row : marks.rows) bounds.push_back(trace.End(row));
  Steps steps = Between(marks.lane, bounds, StepMethod::kAnnotation);
  steps.ends_only = true;
  return steps;
}

// Fetching a batch is the first.
Steps FromLoader(const Trace& trace, const MarkGroup& marks) {
  std::vector<Instant> bounds;
  for (size_t row : marks.rows) bounds.push_back(trace.start[row]);
  bounds.push_back(LaneEnd(trace, marks.lane));
  return Between(marks.lane, bounds, StepMethod::kAnnotation);
}

// Any other annotation counts as a step when three of its kind hold most of the GPU work.
const MarkGroup* MostWork(const Trace& trace, std::span<const MarkGroup> groups,
                          std::span<const Launch> launches) {
  constexpr double kMost = 0.7;
  const MarkGroup* best = nullptr;
  size_t best_tasks = static_cast<size_t>(kMost * static_cast<double>(TasksOf(launches)));
  for (const MarkGroup& group : groups) {
    if (group.rows.size() < 3 || group.name.starts_with("nccl:")) continue;
    size_t tasks = 0;
    for (size_t row : group.rows) tasks += LaunchesIn(launches, trace.start[row], trace.End(row));
    if (tasks <= best_tasks) continue;
    best_tasks = tasks;
    best = &group;
  }
  return best;
}

LaneId BusiestLane(const Trace& trace, std::span<const Launch> launches) {
  std::vector<size_t> count(trace.lanes.size());
  for (const Launch& l : launches) ++count[l.lane.index()];
  auto most = std::max_element(count.begin(), count.end());
  return LaneId(static_cast<size_t>(most - count.begin()));
}

// Layers that are alike repeat as steps do. A step is not within one call of a module, and the next
// step calls the same modules again, where the next layer calls others: Linear_7 after Linear_0.
bool AreLayers(const Trace& trace, const Steps& steps) {
  const std::vector<Step>& all = steps.steps;
  std::vector<std::pair<uint32_t, size_t>> called;  // name of the module, step
  for (size_t row = 0; row < trace.rows(); ++row) {
    if (trace.kind[row] != EventKind::kFrame) continue;
    auto step = std::partition_point(all.begin(), all.end(),
                                     [&](const Step& s) { return s.begin < trace.start[row]; });
    if (all.end() - step >= 2 && (step + 1)->begin < trace.End(row)) return true;
    if (step == all.begin()) continue;
    called.emplace_back(trace.name[row].value, static_cast<size_t>(step - all.begin()));
  }
  std::sort(called.begin(), called.end());
  called.erase(std::unique(called.begin(), called.end()), called.end());
  size_t names = 0, again = 0;
  for (auto first = called.begin(); first != called.end(); ++names) {
    const auto last =
        std::find_if(first, called.end(), [&](const auto& c) { return c.first != first->first; });
    again += last - first > 1;
    first = last;
  }
  return 2 * again < names;
}

// Cuts where the sequence of launches starts over; an incomplete rest is left out.
Steps FromPeriod(const Trace& trace, std::span<const Launch> launches) {
  if (launches.empty()) return {};
  LaneId lane = BusiestLane(trace, launches);
  std::vector<uint64_t> sequence;
  std::vector<Instant> starts;
  for (const Launch& l : launches) {
    if (l.lane != lane) continue;
    sequence.push_back(l.what);
    starts.push_back(l.start);
  }
  size_t period = FindPeriod(sequence);
  if (period == 0) return {};
  std::vector<Instant> bounds;
  for (size_t i = 0; i < starts.size(); i += period) bounds.push_back(starts[i]);
  if (starts.size() % period == 0) bounds.push_back(LaneEnd(trace, lane));
  Steps steps = Between(lane, bounds, StepMethod::kPeriod);
  if (AreLayers(trace, steps)) return {};
  return steps;
}

Steps WholeWindow(const Trace& trace) {
  Steps steps;
  if (trace.rows() == 0) return steps;
  Step all{.label = "whole trace", .begin = Instant::AtNs(0), .end = Instant::AtNs(0), .why = {}};
  for (size_t row = 0; row < trace.rows(); ++row) all.end = std::max(all.end, trace.End(row));
  steps.steps.push_back(std::move(all));
  return steps;
}

// What each step hands to the GPU, and when that begins there.
void FindGpuWork(Steps& steps, std::span<const Launch> launches) {
  constexpr Instant kNever{INT64_MAX};
  auto next = launches.begin();
  for (size_t i = 0; i < steps.steps.size(); ++i) {
    Step& step = steps.steps[i];
    const Instant end = i + 1 < steps.steps.size() ? steps.steps[i + 1].begin : step.end;
    Instant first = kNever;
    while (next != launches.end() && next->start < step.begin) ++next;
    for (; next != launches.end() && next->start < end; ++next) {
      if (next->gpu_begin == kNever) continue;
      step.launched += next->tasks;
      first = std::min(first, next->gpu_begin);
    }
    if (first != kNever) step.gpu_begin = first;
  }
}

// Whether another step launches as much as this one, which is not next to nothing: a kind of step
// that comes again (one that accumulates gradients), not a piece of one.
bool ComesAgain(std::span<const size_t> tasks, size_t step, size_t typical) {
  constexpr double kAlmostNothing = 0.02, kAsMuch = 0.02;
  const auto own = static_cast<double>(tasks[step]);
  if (own <= kAlmostNothing * static_cast<double>(typical)) return false;
  return std::ranges::count_if(tasks, [&](size_t other) {
           return std::abs(static_cast<double>(other) - own) <= kAsMuch * own;
         }) > 1;
}

void MarkStubs(Steps& steps, std::span<const Launch> launches, std::string_view unit) {
  constexpr double kStubShare = 0.2, kCutShare = 0.8;
  std::vector<size_t> tasks;
  for (const Step& step : steps.steps) tasks.push_back(LaunchesIn(launches, step.begin, step.end));
  size_t typical = Median(tasks);
  bool open_ended = steps.method == StepMethod::kAnnotation;
  for (size_t i = 0; i < steps.steps.size(); ++i) {
    bool outer = i == 0 || i + 1 == steps.steps.size();
    // A recording may stop within its last step, whatever marked it.
    const bool cut = outer && (open_ended || i > 0) && steps.steps.size() > 2;
    double limit = cut ? kCutShare : kStubShare;
    if (static_cast<double>(tasks[i]) >= limit * static_cast<double>(typical)) continue;
    if (ComesAgain(tasks, i, typical)) continue;
    if (steps.steps[i].between || steps.steps[i].use == StepUse::kNotRecorded) continue;
    steps.steps[i].use = StepUse::kStub;
    steps.steps[i].why =
        fmt::format("it launches {} {}, a typical step {}", tasks[i], unit, typical);
  }
}

// Marks count on: places of those behind which a number is missing, and of the next ones.
std::vector<std::pair<size_t, size_t>> MissingMarks(const Steps& steps) {
  std::vector<size_t> numbered;  // steps with marks
  std::vector<int64_t> further;
  for (size_t i = 0; i < steps.steps.size(); ++i) {
    if (steps.steps[i].between || steps.steps[i].use == StepUse::kNotRecorded) continue;
    const int64_t number = NumberOfLabel(steps.steps[i].label);
    if (number == INT64_MIN) return {};
    if (!numbered.empty()) {
      const int64_t before = NumberOfLabel(steps.steps[numbered.back()].label);
      further.push_back(number > before ? number - before : 0);
    }
    numbered.push_back(i);
  }
  if (further.size() < 2) return {};
  const int64_t least = *std::min_element(further.begin(), further.end());
  std::vector<std::pair<size_t, size_t>> missing;
  for (size_t i = 0; i < further.size() && least > 0; ++i) {
    if (further[i] > least) missing.emplace_back(numbered[i], numbered[i + 1]);
  }
  return missing;
}

// Where a mark is missing and nothing lies between the two around it, the profiler was off: two
// windows that became one file.
void AddHoles(Steps& steps) {
  std::vector<bool> hole(steps.steps.size());
  for (const auto& [i, next] : MissingMarks(steps)) {
    hole[i] = next == i + 1 && steps.steps[i].end < steps.steps[next].begin;
  }
  std::vector<Step> with;
  for (size_t i = 0; i < hole.size(); ++i) {
    const Instant end = steps.steps[i].end;
    with.push_back(std::move(steps.steps[i]));
    if (hole[i]) with.push_back(NotRecorded(end, steps.steps[i + 1].begin));
  }
  steps.steps = std::move(with);
}

// What comes before a missing mark would last as long as two steps.
void MarkGaps(Steps& steps) {
  for (const auto& [i, next] : MissingMarks(steps)) {
    Step& step = steps.steps[i];
    const bool held = next > i + 1;  // by a step of its own
    if (held || step.use != StepUse::kMeasured) continue;
    step.use = StepUse::kStub;
    step.why =
        fmt::format("the next mark is \"{}\": one is missing behind it", steps.steps[next].label);
  }
}

void MarkLabelled(Steps& steps) {
  constexpr size_t kEnough = 3;
  size_t others = 0;
  for (const Step& step : steps.steps) {
    others += step.use == StepUse::kMeasured && !step.labelled;
  }
  if (others < kEnough) return;
  for (Step& step : steps.steps) {
    if (step.use != StepUse::kMeasured || !step.labelled) continue;
    step.use = StepUse::kLabelled;
    step.why = "its layers were marked, which takes time";
  }
}

void MarkWarmUp(std::span<const Launch> launches, Steps& steps) {
  std::vector<Step*> left;
  for (Step& step : steps.steps) {
    if (step.use == StepUse::kMeasured) left.push_back(&step);
  }
  if (left.size() < 2) return;
  std::vector<int64_t> others;
  for (size_t i = 1; i < left.size(); ++i) others.push_back((left[i]->end - left[i]->begin).ns);
  auto typical = static_cast<double>(Median(others));
  double first = static_cast<double>((left[0]->end - left[0]->begin).ns);
  bool slow = first > kSlowerStep * typical;
  // Of a recording, the steps before took what starting up takes.
  bool started = steps.steps.front().use == StepUse::kLabelled;
  if (!slow && !steps.ends_only && (left.size() < 3 || started)) return;
  left[0]->use = StepUse::kWarmUp;
  left[0]->why = "the profiler starts up during the first step";
  if (steps.ends_only) left[0]->why = "only ends of steps are known: it may have begun earlier";
  if (slow)
    left[0]->why = fmt::format("the first step takes {:.1f} ms, the median of the others {:.1f} ms",
                               first * 1e-6, typical * 1e-6);
  std::vector<std::pair<Instant, Instant>> behind;
  for (size_t i = 1; i < left.size(); ++i) behind.emplace_back(left[i]->begin, left[i]->end);
  const size_t more = SlowerAtFirst(behind, launches);
  others.erase(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(more));
  for (size_t i = 1; i <= more; ++i) {
    left[i]->use = StepUse::kWarmUp;
    left[i]->why = fmt::format("it takes {:.1f} ms, the median of those behind it {:.1f} ms",
                               (left[i]->end - left[i]->begin).ms(),
                               static_cast<double>(Median(others)) * 1e-6);
  }
}

// Of several windows that were recorded, the first step of each, as far as others are left: it pays
// for switching on, and what the GPU did before it is not known.
void MarkRestarts(Steps& steps) {
  size_t left = steps.measured();
  for (size_t i = 1; i < steps.steps.size() && left > 1; ++i) {
    Step& step = steps.steps[i];
    const bool behind = steps.steps[i - 1].use == StepUse::kNotRecorded;
    if (!behind || step.use != StepUse::kMeasured) continue;
    step.use = StepUse::kWarmUp;
    step.why = "recording starts again during this step";
    --left;
  }
}

Steps FindMarks(const Trace& trace, std::span<const Launch> launches) {
  if (Steps steps = FromProgram(trace); !steps.steps.empty()) return steps;
  std::vector<MarkGroup> groups = GroupAnnotations(trace);
  if (const MarkGroup* g = Largest(groups, "ProfilerStep#", 1)) {
    return FromRanges(trace, *g, StepMethod::kProfilerStep);
  }
  const MarkGroup* numbered = nullptr;
  for (const MarkGroup& group : groups) {
    if (group.rows.size() < 2 || !IsStepName(trace.EventName(group.rows[0]))) continue;
    if (numbered == nullptr || group.rows.size() > numbered->rows.size()) numbered = &group;
  }
  if (numbered != nullptr) return FromRanges(trace, *numbered, StepMethod::kAnnotation);
  if (const MarkGroup* g = Largest(groups, "Optimizer.step", 2)) return FromOptimizer(trace, *g);
  if (const MarkGroup* g = Largest(groups, "enumerate(DataLoader)", 2)) {
    return FromLoader(trace, *g);
  }
  if (const MarkGroup* g = MostWork(trace, groups, launches)) {
    return FromRanges(trace, *g, StepMethod::kAnnotation);
  }
  return {};
}

}  // namespace

size_t Steps::measured() const {
  return static_cast<size_t>(std::count_if(
      steps.begin(), steps.end(), [](const Step& s) { return s.use == StepUse::kMeasured; }));
}

Steps FindSteps(const Trace& trace) {
  if (trace.part != nullptr) return trace.part->steps;
  std::vector<Launch> launches = FindLaunches(trace);
  Steps steps = FindMarks(trace, launches);
  if (steps.steps.empty()) steps = FromPeriod(trace, launches);
  if (steps.steps.empty()) return WholeWindow(trace);
  bool gpu = std::any_of(trace.kind.begin(), trace.kind.end(), IsGpuWork);
  if (steps.lane.valid()) CloseGaps(launches, LaneEnd(trace, steps.lane), steps);
  AddHoles(steps);
  FindGpuWork(steps, launches);
  MarkStubs(steps, launches, gpu ? "GPU tasks" : "operators");
  MarkGaps(steps);
  MarkLabelled(steps);
  MarkWarmUp(launches, steps);
  MarkRestarts(steps);
  return steps;
}

}  // namespace daydream
