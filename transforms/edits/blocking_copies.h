// How the call of a copy stops waiting for it.
#pragma once

#include <vector>

#include "transforms/core/editor.h"

namespace daydream {

// The call of a blocking copy returns at once: it costs no more than `cost`, and the wait in it and
// the synchronization that PyTorch adds right behind it are gone. `waits` are those of
// WaitsForGpu(); edges into the call itself stay.
void ReturnAtOnce(Editor& edit, TaskId call, const std::vector<bool>& waits, Duration cost);

}  // namespace daydream
