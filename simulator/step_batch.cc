#include "simulator/step_batch.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "graph/host_lead.h"
#include "graph/large_pages.h"
#include "graph/retimed.h"
#include "graph/step_windows.h"
#include "simulator/contract.h"
#include "simulator/lone_step.h"
#include "simulator/same_shape.h"
#include "simulator/simulate.h"
#include "simulator/step_candidates.h"

namespace daydream {
namespace {

// What is the same for all threads.
struct Shape {
  explicit Shape(const Graph& g, bool rounds = false)
      : graph(g),
        is_rounds(rounds),
        steps(g.steps().begin(), g.steps().end()),
        candidates(g, rounds),
        lead(HostLead::Of(g)) {}
  const Graph& graph;
  const bool is_rounds;  // of a lone step: asked for are cycles
  // Of several steps that count, the one that is told by its cycle; and the steps without it.
  std::optional<size_t> cycle_of;
  std::vector<GraphStep> steps;
  CandidateFinder candidates;
  Contracted contracted;
  std::optional<HostLead> lead;
};

}  // namespace

struct StepBatch::Impl {
  explicit Impl(std::shared_ptr<const Shape> s)
      : shape(std::move(s)),
        graph(shape->graph),
        candidates(shape->candidates),
        contracted(shape->contracted),
        now(&graph),
        base(contracted.sums) {}
  static std::unique_ptr<Impl> Of(std::shared_ptr<Shape> shape, const Plan& plan);
  // None where the rounds cannot be played in order.
  static std::unique_ptr<Impl> OfParts(const Graph& graph, const Plan& plan, size_t step);

  // Starts and ends of one scenario, a row each `stride` numbers.
  struct Instants {
    const int64_t *start, *end;
    size_t stride;
  };
  Instants Of(size_t scenario) const {
    return {start.get() + scenario, end.get() + scenario, kWidth};
  }

  void AddToBase(TaskId t, Duration duration, Duration gap) {
    const Contracted::Sums& at = contracted.sums_of[t.index()];
    base[at.duration] += duration.ns;
    base[at.gap] += gap.ns;
  }

  void Reset() {
    if (sums == nullptr) sums = LargeArray(base.size() * kWidth);
    if (all_lent) {
      int64_t* cell = sums.get();
      for (int64_t sum : base) cell = std::fill_n(cell, kWidth, sum);
    } else {
      for (uint32_t at : lent) std::fill_n(sums.get() + at * kWidth, kWidth, base[at]);
    }
    lent.clear();
    all_lent = behind = false;
  }
  int64_t* Sums() {
    if (behind) Reset();
    return sums.get();
  }
  void Lend(const Contracted::Sums& at) {
    if (all_lent) return;
    lent.insert(lent.end(), {at.duration, at.gap});
    all_lent = lent.size() > base.size() / 4;  // to bring all back, in order, takes no longer then
  }
  void Run() {
    if (start == nullptr) {
      start = LargeArray((contracted.program.tasks + 1) * kWidth);
      end = LargeArray((contracted.program.tasks + 1) * kWidth);
    }
    EvaluateEight(contracted.program, Sums(), start.get(), end.get());
  }
  Duration RunBase() {
    if (rounds != nullptr) return RunPartsOnce();
    if (start_of_one == nullptr) {
      start_of_one = LargeArray(contracted.program.tasks + 1);
      end_of_one = LargeArray(contracted.program.tasks + 1);
    }
    EvaluateOne(contracted.program, base.data(), start_of_one.get(), end_of_one.get());
    return StepOf({start_of_one.get(), end_of_one.get(), 1}, base.data(), 0);
  }

  // By how much longer the task is than the graph has it, at these cells of what was told.
  Longer LongerBy(TaskId t, const int64_t* duration, const int64_t* gap) const {
    const Task& task = graph.task(t);
    return {t, Duration::Ns(*duration) - task.duration, Duration::Ns(*gap) - task.gap};
  }

  // The tasks of `asked` that `base` has longer, or shorter: task i as those of `as(i)`.
  template <class As>
  std::vector<Longer> ChangedInBase(std::span<const TaskId> asked, const As& as) const {
    std::vector<Longer> changed;
    for (size_t i = 0; i < asked.size(); ++i) {
      const Contracted::Sums& at = contracted.sums_of[asked[i].index()];
      Longer by = LongerBy(asked[i], &base[at.duration], &base[at.gap]);
      if (by.duration == Duration{} && by.gap == Duration{}) continue;
      for (TaskId t : as(i)) changed.push_back({t, by.duration, by.gap});
    }
    return changed;
  }

  // The same of what the eight scenarios have, told to `to`.
  template <class As>
  void TellChanges(std::span<const TaskId> asked, const As& as, StepBatch& to) {
    const int64_t* told = Sums();
    to.Reset();
    for (size_t i = 0; i < asked.size(); ++i) {
      const Contracted::Sums& at = contracted.sums_of[asked[i].index()];
      const int64_t *duration = told + at.duration * kWidth, *gap = told + at.gap * kWidth;
      std::array<Longer, kWidth> by;
      for (size_t s = 0; s < kWidth; ++s) by[s] = LongerBy(asked[i], duration + s, gap + s);
      const bool same = std::ranges::all_of(
          by, [](const Longer& l) { return l.duration == Duration{} && l.gap == Duration{}; });
      if (same) continue;
      for (TaskId t : as(i)) {
        const StepBatch::Sums of_task = to.sums(t);
        for (size_t s = 0; s < kWidth; ++s) {
          of_task.duration[s] += by[s].duration.ns;
          of_task.gap[s] += by[s].gap.ns;
        }
      }
    }
  }

  // In each of the rounds, task i of the lone step.
  std::array<TaskId, LoneStep::kRounds> InRounds(size_t i) const {
    std::array<TaskId, LoneStep::kRounds> in;
    for (size_t k = 0; k < in.size(); ++k) in[k] = TaskId(k * lone->tasks().size() + i);
    return in;
  }

  Duration RunPartsOnce() {
    const Duration cycle =
        rounds->StepWith(ChangedInBase(lone->tasks(), [&](size_t i) { return InRounds(i); }));
    if (rest == nullptr) return TellCycle(cycle);
    rest->impl_->cycles[0] = cycle;
    const Duration step =
        rest->StepWith(ChangedInBase(all, [&](size_t i) { return std::span(all).subspan(i, 1); }));
    periods.assign(rest->periods().begin(), rest->periods().end());
    return step;
  }

  std::array<Duration, kWidth> RunParts() {
    TellChanges(
        lone->tasks(), [&](size_t i) { return InRounds(i); }, *rounds);
    const std::array<Duration, kWidth> told = rounds->Run();
    if (rest == nullptr) {
      TellCycle(told.back());
      return told;
    }
    TellChanges(
        all, [&](size_t i) { return std::span(all).subspan(i, 1); }, *rest);
    rest->impl_->cycles = told;
    const std::array<Duration, kWidth> steps = rest->Run();
    periods.assign(rest->periods().begin(), rest->periods().end());
    return steps;
  }

  // Only the lone step counts.
  Duration TellCycle(Duration cycle) {
    periods.assign(graph.steps().size() - 1, cycle);
    return cycle;
  }

  StepExtent ExtentOf(size_t step, Instants at) const {
    const auto row = [&](TaskId t) { return size_t{contracted.row_of[t.index()]} * at.stride; };
    const Candidates& c = candidates.of_step[step];
    static const GraphStep kOnly;
    const GraphStep& of_graph = graph.steps().empty() ? kOnly : graph.steps()[step];
    StepExtent extent{.gpu = candidates.has_gpu(step),
                      .any = !c.last.empty(),
                      .counts = of_graph.measured,
                      .backlog = of_graph.backlog,
                      .host_led = of_graph.host_led,
                      .recorded = of_graph.recorded_period,
                      .first = Instant::AtNs(std::numeric_limits<int64_t>::max()),
                      .last = Instant::AtNs(std::numeric_limits<int64_t>::min())};
    for (TaskId t : c.first) {
      extent.first.ns = std::min(extent.first.ns, at.start[row(t)]);
    }
    for (TaskId t : c.last) {
      extent.last.ns = std::max(extent.last.ns, at.end[row(t)]);
    }
    if (c.first.empty()) extent.first = extent.last;  // no window depends on it
    for (size_t i = 0; i < c.host_first.size(); ++i) {
      const StepWindow lane = {{at.start[row(c.host_first[i])]}, {at.end[row(c.host_last[i])]}};
      if (i == 0) extent.host = lane;
      extent.host->begin = std::min(extent.host->begin, lane.begin);
      extent.host->end = std::max(extent.host->end, lane.end);
    }
    if (!c.next_host_first.empty() && extent.host.has_value()) {
      int64_t next = std::numeric_limits<int64_t>::max();
      for (TaskId t : c.next_host_first) next = std::min(next, at.start[row(t)]);
      extent.host->end.ns = std::max(next, extent.host->begin.ns);
    }
    for (const StepMarks::Launch& l : candidates.launches(step)) {
      const int64_t* of_call = l.from == Anchor::kEnd ? at.end : at.start;
      const Instant arrives = Instant::AtNs(of_call[row(l.task)]) + l.lag;
      extent.launched = std::max(extent.launched.value_or(arrives), arrives);
    }
    if (candidates.waits(step).empty() || !extent.host.has_value()) return extent;
    int64_t arrives = std::numeric_limits<int64_t>::max();
    for (const StepMarks::Wait& wait : candidates.waits(step)) {
      const int64_t start_ns = at.start[row(wait.task)];
      arrives = std::min(arrives, start_ns - wait.lag.ns);
    }
    extent.host->begin.ns = std::max(extent.host->begin.ns, arrives);
    extent.host_led = false;
    return extent;
  }

  // By the windows alone.
  void FindPeriods(Instants at) {
    const size_t steps = candidates.of_step.size();
    extents.clear();
    periods.clear();
    for (size_t s = 0; s < steps; ++s) extents.push_back(ExtentOf(s, at));
    if (steps == 1) {
      periods.push_back(extents[0].any ? extents[0].last - extents[0].first : Duration{});
      return;
    }
    windows = StepWindows(extents);
    for (size_t s = 1; s < steps; ++s) periods.push_back(windows[s].length());
  }

  Duration CycleIn(Instants at) {
    std::vector<std::optional<Instant>> host_ends(windows.size());
    for (size_t s = 0; s < windows.size(); ++s) {
      for (TaskId t : candidates.of_step[s].round_last) {
        const Instant end_of_lane = {at.end[size_t{contracted.row_of[t.index()]} * at.stride]};
        host_ends[s] = std::max(host_ends[s].value_or(end_of_lane), end_of_lane);
      }
    }
    return CycleOf(windows, host_ends);
  }

  // What the host takes in the scenario with these sums, `stride` numbers apart.
  Duration HostPeriodOf(const int64_t* of_scenario, size_t stride) {
    if (gpu_sums.empty()) {
      for (size_t i = 0; i < graph.size(); ++i) {
        if (!OnStream(graph, TaskId(i))) continue;
        const Contracted::Sums& at = contracted.sums_of[i];
        gpu_sums.insert(gpu_sums.end(), {at.duration, at.gap});
      }
      start_of_host = LargeArray(contracted.program.tasks + 1);
      end_of_host = LargeArray(contracted.program.tasks + 1);
    }
    host_sums.resize(base.size());
    for (size_t i = 0; i < base.size(); ++i) host_sums[i] = of_scenario[i * stride];
    for (uint32_t at : gpu_sums) host_sums[at] = 0;
    EvaluateOne(contracted.program, host_sums.data(), start_of_host.get(), end_of_host.get());
    FindPeriods({start_of_host.get(), end_of_host.get(), 1});
    return shape->lead->HostPeriod(extents, StepTimeOf(shape->steps, periods));
  }

  Duration StepOf(Instants at, const int64_t* of_scenario, size_t scenario) {
    FindPeriods(at);
    if (candidates.of_step.size() == 1) return periods.front();
    if (shape->is_rounds) return CycleIn(at);
    AddWhatIsUsedUp(at, of_scenario);
    if (shape->cycle_of.has_value()) periods[*shape->cycle_of - 1] = cycles[scenario];
    return StepTimeOf(graph.steps(), periods);
  }

  void AddWhatIsUsedUp(Instants at, const int64_t* of_scenario) {
    if (!shape->lead.has_value()) return;
    HostLead::Starts starts;
    for (size_t i = 0; i < starts.size() && !shape->lead->one_step(); ++i) {
      const TaskId t = shape->lead->tasks()[i];
      starts[i] = Instant::AtNs(at.start[size_t{contracted.row_of[t.index()]} * at.stride]);
    }
    const Duration step = StepTimeOf(shape->steps, periods);
    const Duration used_up = shape->lead->UsedUp(starts, extents, step);
    if (used_up <= Duration{}) return;
    std::vector<Duration> longer = periods;
    AddUsedUp(
        shape->steps, used_up, [&] { return HostPeriodOf(of_scenario, at.stride); }, longer);
    periods = std::move(longer);
  }

  const std::shared_ptr<const Shape> shape;
  const Graph& graph;
  const CandidateFinder& candidates;
  const Contracted& contracted;
  const Graph* now;                             // the scenarios after Reset()
  bool follows = false;                         // `now` takes other times than `graph`
  std::vector<int64_t> base, kept_base;         // the sums of `now`; while others are played
  std::unique_ptr<int64_t[]> sums, start, end;  // [place][scenario]; made when first used
  std::unique_ptr<int64_t[]> start_of_one, end_of_one;
  // Of the host alone; filled when first asked for.
  std::vector<uint32_t> gpu_sums;
  std::vector<int64_t> host_sums;
  std::unique_ptr<int64_t[]> start_of_host, end_of_host;
  // What brings `sums` back to `base`: those that were lent since.
  std::vector<uint32_t> lent;
  bool all_lent = true;
  bool behind = true;  // that is still to be done
  std::vector<StepExtent> extents;
  std::vector<StepWindow> windows;
  std::vector<Duration> periods;
  // Of a lone step: its rounds, which are what is played, and all of the graph where others count,
  // too: there `cycles` are how long the lone step is in each scenario.
  std::shared_ptr<const LoneStep> lone;
  std::unique_ptr<StepBatch> rounds, rest;
  std::vector<TaskId> all;  // tasks, where there is a rest
  std::array<Duration, kWidth> cycles = {};
};

StepBatch::StepBatch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StepBatch::StepBatch(StepBatch&&) noexcept = default;
StepBatch& StepBatch::operator=(StepBatch&&) noexcept = default;
StepBatch::~StepBatch() = default;

absl::StatusOr<StepBatch> StepBatch::Make(const Graph& graph) {
  DD_ASSIGN_OR_RETURN(const Plan plan, Plan::Make(graph));
  return Make(graph, plan);
}

StepBatch StepBatch::Make(const Graph& graph, const Plan& plan) {
  if (const std::optional<size_t> step = LoneStepOf(graph)) {
    if (auto parts = Impl::OfParts(graph, plan, *step)) return StepBatch(std::move(parts));
  }
  return StepBatch(Impl::Of(std::make_shared<Shape>(graph), plan));
}

std::unique_ptr<StepBatch::Impl> StepBatch::Impl::OfParts(const Graph& graph, const Plan& plan,
                                                          size_t step) {
  auto lone = std::make_shared<const LoneStep>(graph, step);
  const auto plan_of_rounds = Plan::Make(lone->rounds());
  if (!plan_of_rounds.ok()) return nullptr;
  auto places = std::make_shared<Shape>(graph);
  places->contracted = PlaceOfEach(graph);
  auto impl = std::make_unique<Impl>(std::move(places));
  auto rounds = std::make_shared<Shape>(lone->rounds(), /*rounds=*/true);
  impl->rounds.reset(new StepBatch(Of(std::move(rounds), *plan_of_rounds)));
  impl->lone = std::move(lone);
  if (StepMarks::OnlyOne(graph)) return impl;
  auto rest = std::make_shared<Shape>(graph);
  rest->cycle_of = step;
  rest->steps = StepsBehind(graph, step);
  impl->rest.reset(new StepBatch(Of(std::move(rest), plan)));
  for (size_t i = 0; i < graph.size(); ++i) impl->all.push_back(TaskId(i));
  return impl;
}

std::unique_ptr<StepBatch::Impl> StepBatch::Impl::Of(std::shared_ptr<Shape> shape,
                                                     const Plan& plan) {
  std::vector<TaskId> starts, ends;
  for (const Candidates& c : shape->candidates.of_step) {
    starts.insert(starts.end(), c.first.begin(), c.first.end());
    starts.insert(starts.end(), c.host_first.begin(), c.host_first.end());
    starts.insert(starts.end(), c.next_host_first.begin(), c.next_host_first.end());
    ends.insert(ends.end(), c.last.begin(), c.last.end());
    ends.insert(ends.end(), c.host_last.begin(), c.host_last.end());
    ends.insert(ends.end(), c.round_last.begin(), c.round_last.end());
  }
  for (size_t s = 0; s < shape->candidates.of_step.size(); ++s) {
    for (const StepMarks::Wait& wait : shape->candidates.waits(s)) starts.push_back(wait.task);
    for (const StepMarks::Launch& l : shape->candidates.launches(s)) {
      (l.from == Anchor::kEnd ? ends : starts).push_back(l.task);
    }
  }
  if (shape->lead.has_value() && !shape->lead->one_step()) {
    starts.insert(starts.end(), shape->lead->tasks().begin(), shape->lead->tasks().end());
  }
  shape->contracted = Contract(shape->graph, plan.program(), starts, ends);
  return std::make_unique<Impl>(std::move(shape));
}

StepBatch StepBatch::Another() const {
  auto impl = std::make_unique<Impl>(impl_->shape);
  impl->lone = impl_->lone;
  impl->all = impl_->all;
  if (impl_->rounds != nullptr)
    impl->rounds = std::make_unique<StepBatch>(impl_->rounds->Another());
  if (impl_->rest != nullptr) impl->rest = std::make_unique<StepBatch>(impl_->rest->Another());
  return StepBatch(std::move(impl));
}

void StepBatch::Reset() { impl_->behind = true; }

void StepBatch::Follow(const Graph& retimed) {
  Impl& m = *impl_;
  if (m.follows) m.base = m.contracted.sums;
  m.follows = !retimed.retimed().empty();
  m.all_lent = m.behind = true;
  m.now = &retimed;
  ForEachRetimed(retimed, [&](TaskId t) {
    const Task &was = m.graph.task(t), &is = retimed.task(t);
    m.AddToBase(t, is.duration - was.duration, is.gap - was.gap);
  });
}

int64_t* StepBatch::all_sums() {
  int64_t* const sums = impl_->Sums();
  impl_->all_lent = true;
  return sums;
}
std::span<const int64_t> StepBatch::reset_sums() const { return impl_->base; }

StepBatch::Sums StepBatch::sums(TaskId task) {
  const Contracted::Sums& at = impl_->contracted.sums_of[task.index()];
  int64_t* const sums = impl_->Sums();
  impl_->Lend(at);
  return {sums + size_t{at.duration} * kWidth, sums + size_t{at.gap} * kWidth};
}

void StepBatch::Set(size_t s, TaskId task, Duration duration, Duration gap) {
  const Task& t = impl_->now->task(task);
  const Sums at = sums(task);
  at.duration[s] += (duration - t.duration).ns;
  at.gap[s] += (gap - t.gap).ns;
}

std::array<Duration, StepBatch::kWidth> StepBatch::Run() {
  static_assert(kWidth == kSideBySide);
  if (impl_->rounds != nullptr) return impl_->RunParts();
  impl_->Run();
  std::array<Duration, kWidth> steps;
  for (size_t s = 0; s < kWidth; ++s)
    steps[s] = impl_->StepOf(impl_->Of(s), impl_->sums.get() + s, s);
  return steps;
}

void StepBatch::AddTo(std::span<int64_t> more, const Longer& longer) const {
  const Contracted::Sums& at = impl_->contracted.sums_of[longer.task.index()];
  more[at.duration] += longer.duration.ns;
  more[at.gap] += longer.gap.ns;
}

Duration StepBatch::StepWith(std::span<const Longer> longer, std::span<const int64_t> more) {
  if (longer.empty() && more.empty()) return impl_->RunBase();
  std::vector<int64_t>& base = impl_->base;
  std::vector<int64_t>& kept = impl_->kept_base;
  kept.assign(base.begin(), base.end());
  for (size_t i = 0; i < more.size(); ++i) base[i] += more[i];
  for (const Longer& l : longer) impl_->AddToBase(l.task, l.duration, l.gap);
  const Duration step = impl_->RunBase();
  base.swap(kept);
  return step;
}

std::span<const Duration> StepBatch::periods() const { return impl_->periods; }

std::optional<Duration> StepBatch::StepOf(const Graph& graph) {
  const Graph& now = *impl_->now;
  if (!SameShape(now, graph)) return std::nullopt;
  std::vector<Longer> longer;
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task &was = now.tasks()[i], &is = graph.tasks()[i];
    if (!SamePlace(was, is)) return std::nullopt;
    if (is.removed || (was.duration == is.duration && was.gap == is.gap)) continue;
    if (is.gap < Duration{} && impl_->graph.tasks()[i].gap >= Duration{}) return std::nullopt;
    longer.push_back({TaskId(i), is.duration - was.duration, is.gap - was.gap});
  }
  return StepWith(longer);
}

}  // namespace daydream
