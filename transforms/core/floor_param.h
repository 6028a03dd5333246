// What a kernel takes whatever it does: a parameter of all optimizations that make kernels shorter.
#pragma once

#include "base/time.h"
#include "transforms/core/params.h"

namespace daydream {

inline constexpr ParamSpec kFloorParam = {
    .name = "floor",
    .unit = Unit::kDuration,
    .fallback = 2000,
    .low = 1500,
    .high = 4000,
    .max = 1e6,
    .help = "a kernel takes this long whatever it does",
    .source = "docs/cost-model.md: shortest kernels of traces of V100, A100 and H100"};

inline Duration FloorOf(const Params& params) { return Duration::FromDouble(params["floor"]); }

}  // namespace daydream
