// The convolutions and products of a ResNet-50 that dPRO's authors measured on a V100 in fp32 and
// fp16 (MLSys 2022), as one step for each batch size.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "costmodel/device.h"
#include "trace/trace.h"

namespace daydream {

struct FormatStep {
  int64_t batch = 0;
  std::shared_ptr<const Trace> fp32;
  double fp16_ms = 0;            // the same ops in fp16, and the casts of their weights
  size_t ops = 0, left_out = 0;  // left out: not measured in both formats
};
absl::StatusOr<std::vector<FormatStep>> ComposeFormats(const DeviceSpec& gpu);

}  // namespace daydream
