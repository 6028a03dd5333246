// A recording as every row of the accuracy page starts from it.
#pragma once

#include <filesystem>
#include <memory>

#include "report/predict/what_if.h"

namespace daydream {

struct Loaded {
  std::shared_ptr<const Trace> trace;
  BuiltGraph built;
  ReplayCheck replay;  // with typical lags, too
};

// Errors as those of ImportFile(), BuildGraph() and CheckReplay().
absl::StatusOr<Loaded> Load(const std::filesystem::path& path);

}  // namespace daydream
