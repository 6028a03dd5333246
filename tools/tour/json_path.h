// One value out of JSON that this program has written.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace daydream {

// The number or text at "scenarios.1.step_ms" (a key of an object or the place in an array, from
// 0). An internal error when it is not there. O(text).
absl::StatusOr<std::string> AtJsonPath(std::string_view json, std::string_view path);

}  // namespace daydream
