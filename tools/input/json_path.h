// Values out of JSON that this program has written.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace daydream {

// The number or text at "scenarios.1.step_ms" (a key of an object or the place in an array, from
// 0). An internal error when it is not there. O(text).
absl::StatusOr<std::string> AtJsonPath(std::string_view json, std::string_view path);

// The values of the array at `path`, each as JSON text of its own, at most `most` of them; none
// when there is no array. O(text).
std::vector<std::string> ElementsAtJsonPath(std::string_view json, std::string_view path,
                                            size_t most);

}  // namespace daydream
