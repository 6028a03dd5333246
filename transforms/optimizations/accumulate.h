// Several passes a step, also as a part of data parallelism, which exchanges gradients in the last.
#pragma once

#include "base/status.h"
#include "transforms/core/editor.h"

namespace daydream {

// `times` forward and backward passes before each step of the optimizer. E0617 when they are more
// than can be played.
absl::Status AccumulatePasses(Editor& edit, int times);

}  // namespace daydream
