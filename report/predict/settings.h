// The text of an application that is bound, and one of its parameters changed.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "transforms/core/transform.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

// Text of --opt for one application.
std::string SpelledAs(const Application& application);
// What a prediction of them together is called: "amp + fuse".
std::string NameOf(std::span<const Application> scenario);

// `application` with `param` set to `value`, all other given parameters kept.
absl::StatusOr<Application> WithParam(const Application& application, std::string_view param,
                                      const std::string& value);

}  // namespace daydream
