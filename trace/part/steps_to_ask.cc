#include "trace/part/steps_to_ask.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <utility>

namespace daydream {
namespace {

// A launch queue holds 1,024 operations (docs/how-it-works.md, rule Q1).
constexpr size_t kTwoQueues = 2 * 1024;
// A part of more of the recording than this saves too little.
constexpr double kMostOfAll = 0.75;
// Runs whose means are as near as this to that of all are told apart by their distribution.
constexpr int64_t kAsNear = 1000;  // one in
// At most so many of them, nearest first: each is sorted.
constexpr size_t kMostCompared = 64;
// Rows of a part of uneven steps, over those of a usual one.
constexpr size_t kMoreWhereUneven = 4;

}  // namespace

std::vector<std::optional<Duration>> StepTimes(const Steps& found) {
  const std::vector<Step>& steps = found.steps;
  std::vector<std::optional<Duration>> times(steps.size());
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    const Step &step = steps[i], &next = steps[i + 1];
    if (step.use != StepUse::kMeasured || !step.gpu_begin || !next.gpu_begin) continue;
    if (*step.gpu_begin < *next.gpu_begin) times[i] = *next.gpu_begin - *step.gpu_begin;
  }
  return times;
}

Duration MeanTime(std::span<const std::optional<Duration>> times) {
  Duration sum;
  int64_t count = 0;
  for (const auto& time : times) {
    if (time.has_value()) sum += *time, ++count;
  }
  return count == 0 ? Duration{} : Duration{sum.ns / count};
}

namespace {

struct Run {
  size_t first = 0;
  int64_t off = 0;  // of the sum of its times from as many of the mean, in ns
};

class Runs {
 public:
  explicit Runs(std::span<const std::optional<Duration>> times)
      : times_(times), mean_(MeanTime(times)) {
    for (const auto& time : times) {
      if (time.has_value()) sorted_.push_back(*time);
    }
    std::ranges::sort(sorted_);
  }

  // The best run of `length`, of those with a step before them; none when there is none.
  std::optional<Run> Best(size_t length) const {
    std::vector<Run> runs = All(length);
    if (runs.empty()) return std::nullopt;
    std::ranges::stable_sort(runs, {}, &Run::off);
    const int64_t near = mean_.ns * static_cast<int64_t>(length) / kAsNear;
    Run best = runs[0];
    int64_t least = std::numeric_limits<int64_t>::max();
    for (size_t i = 0; i < std::min(runs.size(), kMostCompared) && runs[i].off <= near; ++i) {
      const int64_t unlike = Unlike(runs[i].first, length);
      if (std::pair(unlike, runs[i].first) >= std::pair(least, best.first)) continue;
      best = runs[i];
      least = unlike;
    }
    return best;
  }

  double Off(const Run& run, size_t length) const {
    return static_cast<double>(run.off) / static_cast<double>(length) /
           static_cast<double>(mean_.ns);
  }
  size_t size() const { return sorted_.size(); }

 private:
  std::vector<Run> All(size_t length) const {
    std::vector<Run> runs;
    int64_t sum = 0;
    size_t held = 0;  // times that count without a break, up to here
    for (size_t i = 0; i < times_.size(); ++i) {
      if (!times_[i].has_value()) {
        sum = 0, held = 0;
        continue;
      }
      sum += times_[i]->ns;
      if (++held > length) sum -= times_[i - length]->ns;
      if (held < length || i < length) continue;
      runs.push_back({i + 1 - length, std::abs(sum - mean_.ns * static_cast<int64_t>(length))});
    }
    return runs;
  }

  // Sum of the differences between its times and those that as many of all steps would have, both
  // in order of length.
  int64_t Unlike(size_t first, size_t length) const {
    std::vector<Duration> own;
    for (size_t i = first; i < first + length; ++i) own.push_back(*times_[i]);
    std::ranges::sort(own);
    int64_t sum = 0;
    for (size_t i = 0; i < length; ++i)
      sum += std::abs((own[i] - sorted_[(2 * i + 1) * sorted_.size() / (2 * length)]).ns);
    return sum;
  }

  std::span<const std::optional<Duration>> times_;
  Duration mean_;
  std::vector<Duration> sorted_;
};

StepRange WithStepsAround(const Steps& steps, size_t first, size_t last) {
  StepRange range{.first = first, .last = last, .behind = last + 1 < steps.steps.size() ? 1U : 0U};
  size_t launched = 0;
  while (range.begin() > 0 && (range.before == 0 || launched < kTwoQueues)) {
    ++range.before;
    launched += steps.steps[range.begin()].launched;
  }
  return range;
}

// Steps whose layers were marked lend them to those whose were not (graph/lend_layers.h): a part
// may hold none of them.
bool CanBeCut(const Steps& steps) {
  return steps.method != StepMethod::kWindow && std::ranges::none_of(steps.steps, &Step::labelled);
}

}  // namespace

std::optional<StepRange> StepsAround(const Steps& steps, size_t first, size_t last) {
  if (!CanBeCut(steps) || last >= steps.steps.size() || first > last) return std::nullopt;
  const StepRange range = WithStepsAround(steps, first, last);
  const auto part = static_cast<double>(range.end() - range.begin());
  if (part > kMostOfAll * static_cast<double>(steps.steps.size())) return std::nullopt;
  return range;
}

std::optional<StepRange> ChooseSteps(const Steps& steps, size_t rows, size_t most_rows) {
  const size_t all = steps.steps.size();
  if (rows <= most_rows || all <= kFewestSteps || !CanBeCut(steps)) return std::nullopt;
  const std::vector<std::optional<Duration>> times = StepTimes(steps);
  const Runs runs(times);
  const auto part = [&](size_t length) {  // of the recording that so many steps are
    return static_cast<double>(length) / static_cast<double>(all);
  };
  const size_t allowed = std::max(most_rows * all / rows, size_t{1});
  const size_t around = WithStepsAround(steps, all / 2, all / 2).before + 1;
  size_t length = std::max(kFewestSteps, allowed - std::min(allowed, around));
  std::optional<StepRange> chosen;
  for (; part(length + around) <= kMostOfAll; length *= 2) {
    const bool more = chosen.has_value();
    if (more && length + around > allowed * kMoreWhereUneven) return chosen;
    const std::optional<Run> best = runs.Best(length);
    if (!best.has_value()) return chosen;
    const bool alike = runs.Off(*best, length) <= kUnlikeSteps;
    if (!more || alike) chosen = WithStepsAround(steps, best->first, best->first + length - 1);
    if (alike) return chosen;
  }
  return rows <= kMoreWhereUneven * most_rows ? std::nullopt : chosen;
}

}  // namespace daydream
