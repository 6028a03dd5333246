#include "trace/recording/cost.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "base/median.h"

namespace daydream {
namespace {

// The first steps of a program load, tune and allocate.
constexpr size_t kFirstSteps = 3;
// As many steps tell how much steps differ.
constexpr size_t kFewestCompared = 5;
// The recorder marks layers in three steps by itself; the first of them pays for switching it on.
constexpr size_t kFewestLabelled = 2;

using SeenSteps = std::vector<const SeenStep*>;

template <class Value>
auto MedianOf(const SeenSteps& steps, Value value) {
  std::vector<decltype(value(SeenStep()))> values;
  for (const SeenStep* step : steps) values.push_back(value(*step));
  return Median(std::move(values));
}

Duration StepTime(const SeenSteps& steps) {
  return MedianOf(steps, [](const SeenStep& s) { return s.time; });
}
double CallsOf(const SeenSteps& steps) {
  return static_cast<double>(MedianOf(steps, [](const SeenStep& s) { return s.calls; }));
}
double WorkOf(const SeenSteps& steps) {
  return static_cast<double>(MedianOf(steps, [](const SeenStep& s) { return s.work; }));
}
double LayerMarksOf(const SeenSteps& steps) {
  return static_cast<double>(MedianOf(steps, [](const SeenStep& s) { return s.layer_marks; }));
}

void AddDistances(const SeenSteps& steps, std::vector<Duration>& out) {
  const Duration median = StepTime(steps);
  for (const SeenStep* s : steps)
    out.push_back(s->time < median ? median - s->time : s->time - median);
}

// The median time, and the median distance from it.
std::pair<Duration, Duration> TimeAndSpread(const SeenSteps& steps) {
  std::vector<Duration> distances;
  AddDistances(steps, distances);
  return {StepTime(steps), Median(std::move(distances))};
}

// Steps by what of them was recorded. GPU work is recorded for a while after the calls, and with
// CUDA graphs before them, too. A step in which the recorder is switched belongs nowhere.
class SortedSteps {
 public:
  explicit SortedSteps(const std::vector<SeenStep>& steps) {
    bool after = false;
    for (size_t i = 0; i < steps.size(); ++i) {
      const SeenStep& step = steps[i];
      after |= step.recorded;
      if (i > 0 && steps[i - 1].recorded != step.recorded) continue;
      if (step.recorded) {
        (step.labelled ? labelled : with).push_back(&step);
      } else if (step.work > 0) {
        const bool inside = i > 0 && i + 1 < steps.size() && steps[i - 1].work > 0 &&
                            steps[i + 1].work > 0 && !steps[i + 1].recorded;
        if (inside && i >= kFirstSteps) work_only.push_back(&step);
      } else if (i >= kFirstSteps) {
        (after ? after_it : before).push_back(&step);
      }
    }
    without = before;
    without.insert(without.end(), after_it.begin(), after_it.end());
  }

  SeenSteps with, labelled, work_only, without, before, after_it;
};

// The standard deviation, of the median distance, of normal errors: as many steps may lie outside
// of it as inside.
constexpr double kNormal = 1.4826;

class StepComparison {
 public:
  explicit StepComparison(const SortedSteps& steps) {
    std::vector<Duration> distances;
    for (const SeenSteps* group :
         {&steps.with, &steps.labelled, &steps.work_only, &steps.without}) {
      AddDistances(*group, distances);
    }
    sigma_ns_ = kNormal * static_cast<double>(Median(std::move(distances)).ns);
    if (std::min(steps.before.size(), steps.after_it.size()) >= kFirstSteps) {
      const Duration first = StepTime(steps.before), last = StepTime(steps.after_it);
      drift_ = first < last ? last - first : first - last;
    }
  }

  Duration drift() const { return drift_; }

  // By how much a step of `more` is longer than one of `less`, shared by `count` things. Nothing
  // when it is shorter for sure: then the program did something else there.
  std::optional<RecordingCost::Each> Each(const SeenSteps& more, const SeenSteps& less,
                                          double count) const {
    if (count <= 0) return std::nullopt;
    // Two standard errors of medians, and what the program itself changed between the steps before
    // and after.
    const double error = std::hypot(2 * 1.2533 * std::sqrt(Variance(more) + Variance(less)),
                                    static_cast<double>(drift_.ns) / 2);
    const auto ns = static_cast<double>((StepTime(more) - StepTime(less)).ns);
    if (ns + error < 0) return std::nullopt;
    return RecordingCost::Each{ns / count, error / count};
  }

 private:
  // Of the mean of normal values. Steps of one kind may differ more than all do, as the few whose
  // layers are marked, the first of which load what marks them; few tell too little to differ less.
  double Variance(const SeenSteps& steps) const {
    const auto own = kNormal * static_cast<double>(TimeAndSpread(steps).second.ns);
    return std::pow(std::max(sigma_ns_, own), 2) / static_cast<double>(steps.size());
  }

  double sigma_ns_ = 0;
  Duration drift_;
};

}  // namespace

RecordingCost CostOfRecording(const std::vector<SeenStep>& seen) {
  const SortedSteps steps(seen);
  RecordingCost cost{.steps_with = steps.with.size(), .steps_without = steps.without.size()};
  std::tie(cost.with, cost.with_spread) = TimeAndSpread(steps.with);
  std::tie(cost.without, cost.without_spread) = TimeAndSpread(steps.without);
  const StepComparison comparison(steps);
  cost.drift = comparison.drift();
  if (steps.with.size() < kFewestCompared || cost.with.ns <= 0) return cost;
  cost.hidden = MedianOf(steps.with, [](const SeenStep& s) { return s.gpu; });
  if (steps.labelled.size() >= kFewestLabelled) {
    cost.layer_mark = comparison.Each(steps.labelled, steps.with,
                                      LayerMarksOf(steps.labelled) - LayerMarksOf(steps.with));
  }
  if (steps.without.size() < kFewestCompared) return cost;
  // Most of the GPU work of a step, or it tells little about the step with all of it.
  const bool apart = steps.work_only.size() >= kFewestCompared &&
                     WorkOf(steps.work_only) >= 0.9 * WorkOf(steps.with);
  if (apart) cost.work = comparison.Each(steps.work_only, steps.without, WorkOf(steps.work_only));
  cost.call =
      comparison.Each(steps.with, cost.work ? steps.work_only : steps.without, CallsOf(steps.with));
  return cost;
}

}  // namespace daydream
