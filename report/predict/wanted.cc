#include "report/predict/wanted.h"

#include <algorithm>

#include "report/predict/intervals.h"

namespace daydream {

bool Wanted::Why(std::span<const Duration> steps) const {
  if (options_.why) return true;
  if (brief() && IsLowAnyway(replay_, steps)) return false;
  return std::ranges::any_of(scenario_, [&](const Application& a) {
    return !a.transform->stated_by_user && (scenario_.size() > 1 || a.transform->same_work);
  });
}

bool Wanted::Causes(std::span<const Duration> steps) const {
  return options_.why || (scenario_.size() > 1 && Why(steps));
}

bool Wanted::Path(std::span<const Duration> steps) const {
  return Why(steps) && (!brief() || std::ranges::any_of(scenario_, [](const Application& a) {
           return !a.transform->stated_by_user && a.transform->same_work;
         }));
}

EditNotes Wanted::Notes() const {
  const auto stated = [](const Application& a) { return a.transform->stated_by_user; };
  const bool each = Why() || (!brief() && !std::ranges::all_of(scenario_, stated));
  return each ? EditNotes::kKept : EditNotes::kOneAStep;
}

}  // namespace daydream
