// Measured operations for `daydream calibrate`, from a table or from a recording.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "costmodel/calibrate.h"
#include "graph/graph.h"

namespace daydream {

// A CSV table with a head. Columns: op (linear, bmm, softmax, layernorm, memory), us (time of the
// kernels), dtype (fp32 when missing), and the sizes that the op needs: b, m, k, n for products (b
// is 1 when missing), b and h for rows, bytes for memory. Other columns do not matter. E0805 at its
// place.
absl::StatusOr<std::vector<RateSample>> ReadRateTable(const std::string& path,
                                                      std::string_view text);

// One sample for each operator, shape and format of a recording: the median of its kernels' time.
// In order of first appearance.
std::vector<RateSample> SamplesOf(const Graph& graph);

// Fills in RateSample::own of each sample that `other` has, too, by what it took there on `device`.
// Returns how many.
size_t Compare(std::vector<RateSample>& samples, const std::vector<RateSample>& other,
               const DeviceSpec& device);

}  // namespace daydream
