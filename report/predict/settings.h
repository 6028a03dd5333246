// The text of an application that is bound, and one of its parameters changed.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "transforms/core/transform.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

// Text of --opt for one application.
std::string SpelledAs(const Application& application);

// `application` with `param` set to `value`, all other given parameters kept.
absl::StatusOr<Application> WithParam(const Application& application, std::string_view param,
                                      const std::string& value);

}  // namespace daydream
