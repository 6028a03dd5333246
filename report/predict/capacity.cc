#include "report/predict/capacity.h"

#include <cstdint>
#include <optional>

#include <fmt/format.h>

namespace daydream {
namespace {

void WarnOfCapacity(const MemoryProfile& recorded, Prediction& p) {
  const std::optional<uint64_t> capacity = p.changes.capacity;
  if (capacity.value_or(0) == 0) return;
  if (p.peak.has_value() && !p.peak->fits()) {
    p.changes.warnings.push_back(fmt::format(
        "the peak of {:.1f} GB {} fit into {:.1f} GB", p.peak->peak * 1e-9,
        p.peak->at_most ? "may not" : "does not", static_cast<double>(*capacity) * 1e-9));
  } else if ((!p.peak.has_value() || p.peak->unknown) && *capacity < recorded.capacity) {
    p.changes.warnings.push_back(fmt::format(
        "{:.0f} GB of memory instead of {:.0f}: whether the program fits is not known",
        static_cast<double>(*capacity) * 1e-9, static_cast<double>(recorded.capacity) * 1e-9));
  }
}

}  // namespace

void TellMemory(const MemoryProfile& recorded, Prediction& p) {
  p.memory_change = SumOfChanges(p.changes.memory);
  if (recorded.known()) {
    p.peak = AfterChanges(recorded, p.changes.memory);
    if (p.changes.capacity.has_value()) p.peak->capacity = *p.changes.capacity;
  }
  WarnOfCapacity(recorded, p);
}

}  // namespace daydream
