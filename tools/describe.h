// An optimization described from its own data, for `opt show` and `explain`.
#pragma once

#include <string>

#include "transforms/transform.h"

namespace daydream {

std::string DescribeTransform(const Transform& transform);
// "12 us (10 us to 20 us)".
std::string DescribeDefault(const ParamSpec& spec);

}  // namespace daydream
