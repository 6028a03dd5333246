// An optimization described from its own data, for `opt show` and `explain`.
#pragma once

#include <string>
#include <string_view>

#include "trace/steps.h"
#include "transforms/core/transform.h"

namespace daydream {

std::string DescribeTransform(const Transform& transform);
// "12 us (10 us to 20 us)".
std::string DescribeDefault(const ParamSpec& spec);

// Columns of a terminal that prose keeps to, so that it reads the same in a pipe.
inline constexpr size_t kProseWidth = 80;
// Where the facts above the table of `summary` begin.
inline constexpr size_t kLeadLabel = 15;
// `text` in lines of kProseWidth columns, broken at words, the first after `label`, the others
// below it, `indent` from the left. Empty for no text.
std::string Paragraph(std::string_view label, std::string_view text, size_t indent = 13);

// Why a step counts or does not, as `info` has it.
std::string_view UseText(StepUse use);

}  // namespace daydream
