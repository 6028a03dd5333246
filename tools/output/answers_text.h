// Which optimizations a trace can be asked about, and why not the others.
#pragma once

#include <span>
#include <string>

#include "absl/status/status.h"
#include "transforms/core/transform.h"

namespace daydream {

struct Answer {
  const Transform* transform;
  absl::Status status;  // FailedPrecondition: a required parameter, or nothing to change
};

// One paragraph of all that can be asked, and one a reason of those that cannot.
std::string AnswersText(std::span<const Answer> answers);

}  // namespace daydream
