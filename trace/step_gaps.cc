#include "trace/step_gaps.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/median.h"

namespace daydream {
namespace {

// Chosen: of the work of a mark. Less is copies ahead, or a loss that is looked at.
constexpr double kMuch = 0.20;
// Chosen: of the launches between marks that are those of a step, for it to be one.
constexpr double kAlike = 0.90;

using Launches = std::span<const Launch>;

Launches Within(Launches launches, Instant begin, Instant end) {
  const auto at = [&](Instant t) {
    return std::partition_point(launches.begin(), launches.end(),
                                [t](const Launch& l) { return l.start < t; });
  };
  const auto first = at(begin), last = at(end);
  return first < last ? Launches(first, last) : Launches();
}

// How many of `some` are launched by `step`, so many times over, too.
size_t Alike(Launches some, Launches step, size_t times) {
  absl::flat_hash_map<uint64_t, size_t> left;
  for (const Launch& l : step) left[l.what] += times;
  size_t alike = 0;
  for (const Launch& l : some) {
    const auto it = left.find(l.what);
    if (it == left.end() || it->second == 0) continue;
    --it->second;
    ++alike;
  }
  return alike;
}

// Whether `between` is what `step` launches, once or several times.
bool Repeats(Launches between, Launches step) {
  if (step.empty()) return false;
  const size_t times = (between.size() + step.size() / 2) / step.size();
  const double most = static_cast<double>(std::max(between.size(), times * step.size()));
  return static_cast<double>(Alike(between, step, times)) >= kAlike * most;
}

// Whether what `some` launches is a part of what `step` does, or more than one of it.
bool IsMadeOf(Launches some, Launches step) {
  if (some.empty() || step.empty()) return false;
  const size_t times = (some.size() + step.size() - 1) / step.size();
  return static_cast<double>(Alike(some, step, times)) >= kAlike * static_cast<double>(some.size());
}

// Around the only mark: pieces of steps of which no mark is whole.
void AddStepsAround(Launches launches, Instant lane_end, Steps& steps) {
  const Step mark = steps.steps.front();
  const Launches inside = Within(launches, mark.begin, mark.end);
  const auto is_more = [&](Launches some) {
    return static_cast<double>(some.size()) > kMuch * static_cast<double>(inside.size()) &&
           IsMadeOf(some, inside);
  };
  const auto piece = [](std::string_view label, Instant begin, Instant end) {
    return Step{.label = std::string(label),
                .begin = begin,
                .end = end,
                .use = StepUse::kStub,
                .between = true,
                .why = "no mark holds it"};
  };
  const Launches before = Within(launches, Instant::Min(), mark.begin);
  const Launches behind = Within(launches, mark.end, Instant::AtNs(INT64_MAX));
  if (is_more(behind)) {
    const Instant end = std::max(lane_end, behind.back().start);
    steps.steps.push_back(piece("behind the mark", mark.end, end));
  }
  if (is_more(before)) {
    const Step first = piece("before the mark", before.front().start, mark.begin);
    steps.steps.insert(steps.steps.begin(), first);
  }
}

class Gaps {
 public:
  Gaps(Launches launches, Steps& steps) : launches_(launches), steps_(steps) {
    const std::vector<Step>& all = steps.steps;
    std::vector<size_t> inside, behind;
    for (size_t i = 0; i < all.size(); ++i) {
      inside.push_back(Inside(i).size());
      if (i + 1 < all.size()) behind.push_back(Behind(i).size());
    }
    if (behind.empty()) return;
    inside_ = static_cast<double>(Median(inside));
    behind_ = static_cast<double>(Median(behind));
    FindMissing();
  }

  // What lies behind most marks belongs to their steps.
  bool MarksEndEarly() const {
    const auto missing = static_cast<size_t>(std::count(missing_.begin(), missing_.end(), true));
    return behind_ > kMuch * inside_ && 2 * missing <= missing_.size();
  }

  void GoOn(Instant lane_end) {
    std::vector<Step>& all = steps_.steps;
    steps_.behind_marks = behind_ / (behind_ + inside_);
    for (size_t i = 0; i + 1 < all.size(); ++i) {
      if (!missing_[i]) all[i].end = all[i + 1].begin;
    }
    const double last = static_cast<double>(Within(launches_, all.back().end, lane_end).size());
    if (last > (1 + kMuch) * behind_) {
      all.back().use = StepUse::kStub;
      all.back().why = "more lies behind its mark than behind others";
    } else {
      all.back().end = std::max(all.back().end, lane_end);
    }
  }

  void FillMissing() {
    std::vector<Step> with;
    for (size_t i = 0; i < steps_.steps.size(); ++i) {
      const Instant end = steps_.steps[i].end;
      with.push_back(std::move(steps_.steps[i]));
      if (i >= missing_.size() || end >= steps_.steps[i + 1].begin) continue;
      if (!missing_[i] && !IsMuch(i, end)) continue;
      with.push_back({.label = "between marks",
                      .begin = end,
                      .end = steps_.steps[i + 1].begin,
                      .use = StepUse::kStub,
                      .between = true,
                      .why = "no mark holds it"});
    }
    steps_.steps = std::move(with);
  }

 private:
  Launches Inside(size_t i) const {
    return Within(launches_, steps_.steps[i].begin, steps_.steps[i].end);
  }
  Launches Behind(size_t i) const {
    return Within(launches_, steps_.steps[i].end, steps_.steps[i + 1].begin);
  }
  bool IsMuch(size_t i, Instant end) const {
    const size_t found = Within(launches_, end, steps_.steps[i + 1].begin).size();
    return static_cast<double>(found) > kMuch * inside_;
  }

  void FindMissing() {
    const std::vector<Step>& all = steps_.steps;
    for (size_t i = 0; i + 1 < all.size(); ++i) {
      const bool much = IsMuch(i, all[i].end);
      const int64_t number = NumberOfLabel(all[i].label), next = NumberOfLabel(all[i + 1].label);
      // The profiler counts by one.
      const bool skips = steps_.method == StepMethod::kProfilerStep && number != INT64_MIN &&
                         next != INT64_MIN && next > number && next - number > 1;
      missing_.push_back(much && (skips || Repeats(Behind(i), Inside(i))));
    }
  }

  Launches launches_;
  Steps& steps_;
  double inside_ = 0, behind_ = 0;  // launches, of a usual step
  std::vector<bool> missing_;       // by step: a step without a mark follows
};

}  // namespace

int64_t NumberOfLabel(std::string_view label) {
  const size_t last = label.find_last_not_of("0123456789");
  const std::string_view digits = label.substr(last == std::string_view::npos ? 0 : last + 1);
  int64_t number = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return digits.empty() || read.ec != std::errc() ? INT64_MIN : number;
}

void CloseGaps(std::span<const Launch> launches, Instant lane_end, Steps& steps) {
  if (steps.steps.size() == 1) return AddStepsAround(launches, lane_end, steps);
  if (steps.steps.empty()) return;
  Gaps gaps(launches, steps);
  if (gaps.MarksEndEarly()) gaps.GoOn(lane_end);
  gaps.FillMissing();
}

}  // namespace daydream
