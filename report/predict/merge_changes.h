// What several transforms did, as if one had done it.
#pragma once

#include "transforms/core/transform.h"

namespace daydream {

// Counts add up, factors multiply, each text stays once.
void Merge(Changes& into, const Changes& from);

}  // namespace daydream
