#include "simulator/step_batch.h"

#include <algorithm>
#include <utility>

#include "absl/functional/function_ref.h"
#include "graph/large_pages.h"
#include "graph/retimed.h"
#include "simulator/batch_step.h"
#include "simulator/contract.h"
#include "simulator/lone_step.h"
#include "simulator/same_shape.h"
#include "simulator/simulate.h"

namespace daydream {

struct StepBatch::Impl {
  explicit Impl(std::shared_ptr<const BatchShape> s)
      : shape(std::move(s)),
        graph(shape->graph),
        contracted(shape->contracted),
        now(&graph),
        base(contracted.sums),
        step_of(*shape) {}
  static std::unique_ptr<Impl> Of(std::shared_ptr<BatchShape> shape, const Plan& plan) {
    shape->Keep(plan);
    return std::make_unique<Impl>(std::move(shape));
  }
  // None where the rounds cannot be played in order.
  static std::unique_ptr<Impl> OfParts(const Graph& graph, const Plan& plan, size_t step);

  Duration StepOf(InstantsOfRows at, size_t scenario,
                  absl::FunctionRef<void(std::span<int64_t>)> write_sums) {
    const Duration step = step_of.Of(at, cycles[scenario], write_sums);
    periods = step_of.periods();
    return step;
  }

  void AddToBase(TaskId t, Duration duration, Duration gap) {
    const Contracted::Sums& at = contracted.sums_of[t.index()];
    base[at.duration] += duration.ns;
    base[at.gap] += gap.ns;
  }

  void Reset() {
    if (sums == nullptr) sums = MakeLargeArray(base.size() * kWidth);
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
  // Room for the instants of so many scenarios.
  int64_t* Room(LargeArray& instants, size_t scenarios) const {
    if (instants == nullptr) instants = MakeLargeArray(2 * contracted.program.tasks * scenarios);
    return instants.get();
  }
  // Groups of eight that are played together: as many as have their instants in the second cache.
  size_t Together() const {
    constexpr size_t kCache = 1 << 20, kMost = 8;
    const size_t of_group = 2 * contracted.program.tasks * kWidth * sizeof(int64_t);
    return std::clamp<size_t>(kCache / std::max<size_t>(of_group, 1), 1, kMost);
  }
  void RunDrawn(const DrawnSums& drawn, std::span<const std::vector<Choice>> groups,
                std::vector<Duration>& steps) {
    const int64_t* instants = Room(of_drawn, Together() * kWidth);
    EvaluateDrawn(contracted.program, base, drawn, groups, of_drawn.get());
    for (const std::vector<Choice>& choices : groups) {
      step_of.Read(instants, kWidth);
      for (size_t s = 0; s < kWidth; ++s) {
        steps.push_back(StepOf({instants, s, kWidth}, s, [&](std::span<int64_t> to) {
          std::ranges::copy(base, to.begin());
          for (size_t i = 0; i < drawn.drawn.size(); ++i) {
            const auto [sum, slot] = drawn.drawn[i];
            to[sum] += drawn.of[i][static_cast<size_t>(choices[slot][s])];
          }
        }));
      }
      instants += 2 * contracted.program.tasks * kWidth;
    }
  }
  Duration RunBase() {
    if (rounds != nullptr) return RunPartsOnce();
    int64_t* const instants = Room(of_one, 1);
    EvaluateOne(contracted.program, base.data(), instants);
    step_of.Read(instants, 1);
    return StepOf({instants, 0, 1}, 0,
                  [&](std::span<int64_t> to) { std::ranges::copy(base, to.begin()); });
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

  std::array<Duration, kWidth> RunParts(Told each) {
    TellChanges(
        lone->tasks(), [&](size_t i) { return InRounds(i); }, *rounds);
    const std::array<Duration, kWidth> told = rounds->Run();
    if (rest == nullptr) {
      for (size_t s = 0; s < kWidth; ++s) each(s, TellCycle(told[s]));
      return told;
    }
    TellChanges(
        all, [&](size_t i) { return std::span(all).subspan(i, 1); }, *rest);
    rest->impl_->cycles = told;
    return rest->Run([&](size_t s, Duration step) {
      periods.assign(rest->periods().begin(), rest->periods().end());
      each(s, step);
    });
  }

  // Only the lone step counts.
  Duration TellCycle(Duration cycle) {
    periods.assign(graph.steps().size() - 1, cycle);
    return cycle;
  }

  const std::shared_ptr<const BatchShape> shape;
  const Graph& graph;
  const Contracted& contracted;
  const Graph* now;                       // the scenarios after Reset()
  bool follows = false;                   // `now` takes other times than `graph`
  std::vector<int64_t> base, kept_base;   // the sums of `now`; while others are played
  LargeArray sums;                        // [place][scenario]; made when first used
  LargeArray of_eight, of_one, of_drawn;  // instants
  // What brings `sums` back to `base`: those that were lent since.
  std::vector<uint32_t> lent;
  bool all_lent = true;
  bool behind = true;  // that is still to be done
  BatchStep step_of;
  std::vector<Duration> periods;  // behind the last step time
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
  return StepBatch(Impl::Of(std::make_shared<BatchShape>(graph), plan));
}

std::unique_ptr<StepBatch::Impl> StepBatch::Impl::OfParts(const Graph& graph, const Plan& plan,
                                                          size_t step) {
  auto lone = std::make_shared<const LoneStep>(graph, step);
  const auto plan_of_rounds = Plan::Make(lone->rounds());
  if (!plan_of_rounds.ok()) return nullptr;
  auto places = std::make_shared<BatchShape>(graph);
  places->contracted = PlaceOfEach(graph);
  auto impl = std::make_unique<Impl>(std::move(places));
  auto rounds = std::make_shared<BatchShape>(lone->rounds(), /*rounds=*/true);
  impl->rounds.reset(new StepBatch(Of(std::move(rounds), *plan_of_rounds)));
  impl->lone = std::move(lone);
  if (StepMarks::OnlyOne(graph)) return impl;
  auto rest = std::make_shared<BatchShape>(graph);
  rest->cycle_of = step;
  rest->steps = StepsBehind(graph, step);
  impl->rest.reset(new StepBatch(Of(std::move(rest), plan)));
  for (size_t i = 0; i < graph.size(); ++i) impl->all.push_back(TaskId(i));
  return impl;
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
  if (!m.follows) return;
  const auto retimed_tasks = RetimedOf(m.graph, retimed);
  for (const Retimed& t : *retimed_tasks) {
    m.AddToBase(t.task, t.duration - t.duration_was, t.gap - t.gap_was);
  }
}

std::span<const int64_t> StepBatch::reset_sums() const { return impl_->base; }

StepBatch::SumsOfTask StepBatch::places(TaskId task) const {
  const Contracted::Sums& at = impl_->contracted.sums_of[task.index()];
  return {at.duration, at.gap};
}

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

std::array<Duration, StepBatch::kWidth> StepBatch::Run(Told each) {
  static_assert(kWidth == kSideBySide);
  if (impl_->rounds != nullptr) return impl_->RunParts(each);
  int64_t* const instants = impl_->Room(impl_->of_eight, kWidth);
  EvaluateEight(impl_->contracted.program, impl_->Sums(), instants);
  impl_->step_of.Read(instants, kWidth);
  std::array<Duration, kWidth> steps;
  for (size_t s = 0; s < kWidth; ++s) {
    steps[s] = impl_->StepOf({instants, s, kWidth}, s, [&](std::span<int64_t> to) {
      for (size_t i = 0; i < to.size(); ++i) to[i] = impl_->sums[i * kWidth + s];
    });
    each(s, steps[s]);
  }
  return steps;
}

std::vector<Duration> StepBatch::RunDrawn(const DrawnSums& drawn,
                                          std::span<const std::vector<Choice>> groups) {
  std::vector<Duration> steps;
  if (impl_->rounds != nullptr) {
    for (const std::vector<Choice>& choices : groups) {
      DrawEight(impl_->base, 0, drawn, choices, impl_->Sums());
      impl_->all_lent = true;
      impl_->RunParts([&](size_t, Duration step) { steps.push_back(step); });
    }
    Reset();
    return steps;
  }
  while (!groups.empty()) {
    const size_t together = std::min(impl_->Together(), groups.size());
    impl_->RunDrawn(drawn, groups.first(together), steps);
    groups = groups.subspan(together);
  }
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

std::span<const StepWindow> StepBatch::windows() const {
  if (impl_->rounds != nullptr) return {};
  return impl_->step_of.windows();
}

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
