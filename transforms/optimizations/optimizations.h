// The list of all optimizations that come with the program; their names are in transforms.def.
#pragma once

#include <span>
#include <string_view>

#include "transforms/core/transform.h"

namespace daydream {

// All transforms in the order of transforms.def.
std::span<const Transform* const> Transforms();
const Transform* FindTransform(std::string_view name);

#define TRANSFORM(symbol) extern const Transform symbol;
#include "transforms/optimizations/transforms.def"
#undef TRANSFORM

}  // namespace daydream
