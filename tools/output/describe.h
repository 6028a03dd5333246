// An optimization described from its own data, for `opt show` and `explain`.
#pragma once

#include <string>
#include <string_view>

#include "transforms/core/transform.h"

namespace daydream {

std::string DescribeTransform(const Transform& transform);
// "12 us (10 us to 20 us)".
std::string DescribeDefault(const ParamSpec& spec);

// `text` in lines of 78 columns, the first after `label`, the others below it. Empty for no text.
std::string Paragraph(std::string_view label, std::string_view text);

}  // namespace daydream
