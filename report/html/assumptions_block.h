// What the predictions of the page assume, with where it comes from.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "transforms/scenario/scenario.h"

namespace daydream {

// [{"opt", "param", "value", "given", "range", "help", "source"}]: every parameter of each
// optimization in `scenarios`, once for each value. "given" is false for a default, whose "source"
// then says where it comes from; "range" is what intervals draw from, or "". A last row of an
// optimization, without "param", has its sources as a whole.
std::string AssumptionsJson(std::span<const std::vector<Application>> scenarios);

}  // namespace daydream
