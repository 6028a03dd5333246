#include "report/predict/step_spread.h"

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <span>
#include <tuple>

#include "report/predict/step_places.h"
#include "report/windows.h"
#include "simulator/draw_eight.h"
#include "simulator/step_batch.h"

namespace daydream {
namespace {

constexpr size_t kMostSteps = std::tuple_size_v<Alternatives>;
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

StepSpread::StepSpread(const Graph& recorded) {
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

// Makes the sums of a batch longer by alternatives, all that belongs to one sum and slot at once.
class DrawnSums {
 public:
  explicit DrawnSums(StepBatch& batch)
      : first_(batch.all_sums()), base_(batch.reset_sums()), last_(base_.size(), kNone) {
    drawn_.reserve(base_.size());  // about as many, untouched where they are fewer
    of_.reserve(base_.size());
  }

  Alternatives& At(const int64_t* sum, uint32_t slot) {
    const auto index = static_cast<uint32_t>((sum - first_) / StepBatch::kWidth);
    uint32_t& last = last_[index];
    if (last == kNone || drawn_[last].slot != slot) {
      drawn_.push_back({index, slot, last != kNone, base_[index]});
      of_.emplace_back();
      last = static_cast<uint32_t>(of_.size() - 1);
    }
    return of_[last];
  }
  void Draw(std::span<const Choice> choices) { DrawEight(drawn_, of_, choices, first_); }

 private:
  int64_t* const first_;
  const std::span<const int64_t> base_;
  std::vector<uint32_t> last_;  // by sum
  std::vector<DrawnSum> drawn_;
  std::vector<Alternatives> of_;
};

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

std::vector<Duration> StepSpread::Resample(const Graph& graph, StepBatch& batch,
                                           size_t count) const {
  if (steps_ < 2 || count == 0) return {};
  DrawnSums sums(batch);
  for (size_t i = 0; i < varying_.size(); ++i) {
    const TaskId id(varying_[i].task);
    const Task& t = graph.task(id);
    if (t.removed) continue;  // takes nothing
    const StepBatch::Sums at = batch.sums(id);
    const auto tell = [&](const int64_t* sum, Duration own) {
      Alternatives& more = sums.At(sum, varying_[i].slot);
      for (size_t r = 0; r < steps_; ++r) {
        const float ratio = ratios_[i * steps_ + r];
        const float taken = std::min(static_cast<float>(own.ns) * ratio, kLongestDrawn);
        more[r] += static_cast<int64_t>(taken) - own.ns;
      }
    };
    tell(at.duration, t.duration);
    if (t.gap > Duration{}) tell(at.gap, t.gap);
  }
  const Draws draws = DrawSteps(count, slots_, steps_);
  const auto& different = draws.different;
  std::vector<Duration> played;
  std::vector<Choice> choices(slots_);
  while (played.size() < different.size()) {
    for (size_t s = 0; s < StepBatch::kWidth; ++s) {
      const auto& steps = *different[std::min(played.size() + s, different.size() - 1)];
      for (size_t slot = 0; slot < slots_; ++slot) choices[slot][s] = steps[slot];
    }
    sums.Draw(choices);
    for (Duration d : batch.Run()) played.push_back(d);
  }
  batch.Reset();
  std::vector<Duration> steps;
  steps.reserve(draws.draws.size());
  for (size_t d : draws.draws) steps.push_back(played[d]);
  return steps;
}

}  // namespace daydream
