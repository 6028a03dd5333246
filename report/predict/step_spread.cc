#include "report/predict/step_spread.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <span>
#include <tuple>
#include <utility>

#include "graph/retimed.h"
#include "report/predict/step_places.h"
#include "report/windows.h"
#include "simulator/draw_eight.h"
#include "simulator/step_batch.h"

namespace daydream {
namespace {

constexpr size_t kMostSteps = std::tuple_size_v<Choice>;
// A piece that took a hundredth or a hundred times as long was not the same piece.
constexpr float kLeast = 0.01F, kMost = 100.0F;
constexpr uint32_t kNone = 0xffffffff;
constexpr float kLongestDrawn = 0x1p60f;  // ns of one task: as long as a replay may be

// Evenly chosen members of `all`, at most kMostSteps.
std::vector<size_t> Choose(const std::vector<size_t>& all) {
  std::vector<size_t> chosen;
  const size_t n = std::min(all.size(), kMostSteps);
  for (size_t i = 0; i < n; ++i) chosen.push_back(all[i * all.size() / n]);
  return chosen;
}

double TimeOf(const Task& t) {
  return static_cast<double>((t.duration + std::max(t.gap, Duration{})).ns);
}

// The tasks of one piece, one for each compared step.
using Piece = std::array<uint32_t, kMostSteps>;

}  // namespace

// What the sums of a batch are drawn from: all that belongs to one sum and slot at once.
struct StepSpread::Sums {
  std::vector<DrawnSum> drawn;
  std::vector<Alternatives> of;
  // Of those of a copy: what is other than in the recorded graph, some more than once.
  std::vector<uint32_t> changed;
};

// The same of the recorded graph, found by the first who asks about a copy of it.
struct StepSpread::Recorded {
  std::mutex mutex;
  bool found = false;
  Sums sums;
  std::vector<uint32_t> varying_of;  // by task
  struct Entries {
    uint32_t duration = kNone, gap = kNone;
  };
  std::vector<Entries> entries;  // by varying task
  // Copies of `sums` that are not in use: to bring back what changed takes less than copying all.
  std::vector<Sums> spare;

  Sums Copy() {
    std::lock_guard lock(mutex);
    if (spare.empty()) return sums;
    Sums copy = std::move(spare.back());
    spare.pop_back();
    return copy;
  }
  void GiveBack(Sums copy) {
    for (uint32_t entry : copy.changed) copy.of[entry] = sums.of[entry];
    copy.changed.clear();
    std::lock_guard lock(mutex);
    spare.push_back(std::move(copy));
  }
};

StepSpread::StepSpread(StepSpread&&) noexcept = default;
StepSpread::~StepSpread() = default;

StepSpread::StepSpread(const Graph& recorded)
    : recorded_(recorded), of_recorded_(std::make_unique<Recorded>()) {
  const std::vector<size_t> counted = CountedSteps(recorded), compared = Choose(counted);
  steps_ = compared.size();
  slots_ = counted.size();
  if (steps_ < 2) return;
  std::vector<uint32_t> slot(recorded.steps().size(), kNone), place = slot;
  for (size_t i = 0; i < counted.size(); ++i) slot[counted[i]] = static_cast<uint32_t>(i);
  for (size_t i = 0; i < compared.size(); ++i) place[compared[i]] = static_cast<uint32_t>(i);

  const auto takes_part = [&](const Task& t) {
    return !t.removed && t.step < slot.size() && slot[t.step] != kNone && TimeOf(t) > 0;
  };
  const StepPlaces places = FindStepPlaces(recorded, takes_part);
  Piece none;
  none.fill(kNone);
  std::vector<Piece> pieces(places.count, none);
  for (size_t i = 0; i < recorded.size(); ++i) {
    if (places.of_task[i] == StepPlaces::kNone) continue;
    const uint32_t at = place[recorded.tasks()[i].step];
    if (at != kNone) pieces[places.of_task[i]][at] = static_cast<uint32_t>(i);
  }
  ratios_.reserve(recorded.size() * steps_);  // more than are needed, untouched
  const auto compare = [&](TaskId id) {
    const uint32_t piece = places.of_task[id.index()];
    if (piece == StepPlaces::kNone) return;
    const Task& task = recorded.task(id);
    const double own = TimeOf(task);
    std::array<float, kMostSteps> ratios;
    bool varies = false;
    for (size_t r = 0; r < steps_; ++r) {
      const uint32_t other = pieces[piece][r];
      ratios[r] = 1;
      if (other == kNone) continue;
      const double ratio = TimeOf(recorded.task(TaskId(other))) / own;
      ratios[r] = std::clamp(static_cast<float>(ratio), kLeast, kMost);
      varies |= ratios[r] != 1.0F;
    }
    if (!varies) return;
    varying_.push_back({id.value, slot[task.step]});
    ratios_.insert(ratios_.end(), ratios.begin(), ratios.begin() + static_cast<ptrdiff_t>(steps_));
  };
  for (const GraphLane& lane : recorded.lanes()) {
    for (TaskId t = lane.first; t.valid(); t = recorded.task(t).lane_next) compare(t);
  }
}

namespace {

// The steps that each draw takes, and the different ones among the draws.
struct Draws {
  using Steps = std::vector<uint32_t>;  // by slot
  std::map<Steps, size_t> known;
  std::vector<const Steps*> different;
  std::vector<size_t> draws;  // into `different`
};

// With few steps the same ones are drawn again and again: each combination is played once. Which of
// them comes first says nothing of their mean, so they stand in order: 35 combinations of four
// steps instead of 256.
Draws DrawSteps(size_t count, size_t slots, size_t steps) {
  std::mt19937_64 random(1);
  Draws out;
  while (out.draws.size() < count) {
    Draws::Steps drawn(slots);
    for (uint32_t& d : drawn) d = static_cast<uint32_t>(random() % steps);
    std::ranges::sort(drawn);
    auto [it, fresh] = out.known.try_emplace(std::move(drawn), out.different.size());
    if (fresh) out.different.push_back(&it->first);
    out.draws.push_back(it->second);
  }
  return out;
}

}  // namespace

void StepSpread::Add(size_t varying, Duration own, int64_t times, int64_t* alternatives) const {
  for (size_t r = 0; r < steps_; ++r) {
    const float ratio = ratios_[varying * steps_ + r];
    const float taken = std::min(static_cast<float>(own.ns) * ratio, kLongestDrawn);
    alternatives[r] += times * (static_cast<int64_t>(taken) - own.ns);
  }
}

// Parts of tasks, those that add to the same sum behind one another, and the sums in order.
struct StepSpread::Parts {
  struct Part {
    uint32_t varying, sum;
    bool gap;
  };
  std::vector<Part> parts;
  void Sort(size_t sums) {
    std::vector<uint32_t> at(sums + 1);
    for (const Part& p : parts) ++at[p.sum + 1];
    std::partial_sum(at.begin(), at.end(), at.begin());
    std::vector<Part> sorted(parts.size());
    for (const Part& p : parts) sorted[at[p.sum]++] = p;
    parts = std::move(sorted);
  }
};

StepSpread::Sums StepSpread::SumsOf(const Graph& graph, const StepBatch& batch,
                                    Recorded* noted) const {
  Parts all;
  all.parts.reserve(2 * varying_.size());
  for (uint32_t i = 0; i < varying_.size(); ++i) {
    const TaskId id(varying_[i].task);
    const Task& t = graph.task(id);
    if (t.removed) continue;  // takes nothing
    const StepBatch::SumsOfTask at = batch.places(id);
    all.parts.push_back({i, at.duration, false});
    if (t.gap > Duration{}) all.parts.push_back({i, at.gap, true});
  }
  const size_t count = batch.reset_sums().size();
  all.Sort(count);
  Sums sums;
  sums.drawn.reserve(count);  // about as many, untouched where they are fewer
  sums.of.reserve(count);
  if (noted != nullptr) noted->entries.resize(varying_.size());
  for (const Parts::Part& p : all.parts) {
    const Varying& varying = varying_[p.varying];
    if (sums.drawn.empty() || sums.drawn.back() != DrawnSum{p.sum, varying.slot}) {
      sums.drawn.push_back({p.sum, varying.slot});
      sums.of.emplace_back();
    }
    const Task& t = graph.task(TaskId(varying.task));
    Add(p.varying, p.gap ? t.gap : t.duration, 1, sums.of.back().data());
    if (noted == nullptr) continue;
    Recorded::Entries& entries = noted->entries[p.varying];
    (p.gap ? entries.gap : entries.duration) = static_cast<uint32_t>(sums.of.size() - 1);
  }
  return sums;
}

// Those of the recorded graph with what is other in the copy.
StepSpread::Sums StepSpread::SumsOfCopy(const Graph& copy, const StepBatch& batch) const {
  Recorded& known = *of_recorded_;
  {
    std::lock_guard lock(known.mutex);
    if (!std::exchange(known.found, true)) {
      known.sums = SumsOf(recorded_, batch, &known);
      known.varying_of.assign(recorded_.size(), kNone);
      for (size_t i = 0; i < varying_.size(); ++i) {
        known.varying_of[varying_[i].task] = static_cast<uint32_t>(i);
      }
    }
  }
  Sums sums = known.Copy();
  bool gap_began = false;
  const auto tasks = RetimedOf(recorded_, copy);
  for (const Retimed& t : *tasks) {
    const uint32_t varying = known.varying_of[t.task.index()];
    if (varying == kNone || t.removed) continue;
    const Recorded::Entries& at = known.entries[varying];
    const auto change = [&](uint32_t entry, Duration before, Duration after) {
      if (before == after) return;
      Add(varying, before, -1, sums.of[entry].data());
      Add(varying, after, 1, sums.of[entry].data());
      sums.changed.push_back(entry);
    };
    change(at.duration, t.duration_was, t.duration);
    const Duration gap = std::max(t.gap, Duration{});
    if (at.gap != kNone) change(at.gap, t.gap_was, gap);
    gap_began |= at.gap == kNone && gap > Duration{};
  }
  if (!gap_began) return sums;
  known.GiveBack(std::move(sums));
  return SumsOf(copy, batch, nullptr);
}

std::vector<Duration> StepSpread::Resample(const Graph& graph, StepBatch& batch,
                                           size_t count) const {
  if (steps_ < 2 || count == 0) return {};
  Sums sums = graph.structure() != 0 ? SumsOfCopy(graph, batch) : SumsOf(graph, batch, nullptr);
  const Draws draws = DrawSteps(count, slots_, steps_);
  const auto& different = draws.different;
  std::vector<std::vector<Choice>> groups((different.size() + StepBatch::kWidth - 1) /
                                          StepBatch::kWidth);
  for (size_t i = 0; i < groups.size() * StepBatch::kWidth; ++i) {
    std::vector<Choice>& choices = groups[i / StepBatch::kWidth];
    choices.resize(slots_);
    const auto& steps = *different[std::min(i, different.size() - 1)];
    for (size_t slot = 0; slot < slots_; ++slot) choices[slot][i % StepBatch::kWidth] = steps[slot];
  }
  const std::vector<Duration> played = batch.RunDrawn({sums.drawn, sums.of}, groups);
  if (!sums.changed.empty()) of_recorded_->GiveBack(std::move(sums));
  std::vector<Duration> steps;
  steps.reserve(draws.draws.size());
  for (size_t d : draws.draws) steps.push_back(played[d]);
  return steps;
}

}  // namespace daydream
