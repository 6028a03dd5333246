// What autocast does to the memory of a step.
#pragma once

#include "absl/container/flat_hash_set.h"
#include "transforms/core/editor.h"

namespace daydream {

// Autocast's ops in 16 bit keep half of their fp32 bytes; while it lasts, it also holds each weight
// in 16 bit. Norms over rows, softmax and losses stay in fp32. Without a backward pass, what comes
// and goes are results, and half of those of the ops `to_half` goes. O(tasks).
void TellAutocastMemory(Editor& edit, const absl::flat_hash_set<ScopeId>& to_half);

}  // namespace daydream
