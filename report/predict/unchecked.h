// Kernel times that rest on a model which was never compared with such kernels.
#pragma once

#include <optional>
#include <span>

#include "graph/graph.h"
#include "report/predict/causes.h"

namespace daydream {

// Part of the GPU time of `before` in kernels whose new times come from a model that was never
// compared with measured ones of their class (report/predict/residuals.h). None when no kernel time
// was modelled. O(tasks + edits).
std::optional<double> UncheckedShare(const Graph& before, std::span<const CauseJournal> journals);

}  // namespace daydream
