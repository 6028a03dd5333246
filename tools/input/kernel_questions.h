// What `daydream kernels` was asked about, as read from its flags and its table.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "costmodel/attention_backward.h"
#include "costmodel/attention_surface.h"
#include "costmodel/memory_kernel.h"
#include "costmodel/op_shape.h"
#include "costmodel/recurrent.h"
#include "tools/command.h"

namespace daydream {

// Values of --dtype.
inline constexpr std::string_view kKernelTypes[] = {"fp32", "tf32",  "fp16", "bf16",
                                                    "fp8",  "nvfp4", "int8", "int8_wo"};

struct KernelQuestion {
  OpWork work;
  std::optional<SelfAttention> attention;  // then of `work` only the FLOPs
  bool backward = false;                   // of the attention
  std::optional<LstmShape> lstm;           // likewise
  std::optional<MemoryKernel> memory;      // `work` is what it moves
  DType dtype = DType::kBf16;
  std::string text;  // "4096x4096x4096 bf16"

  bool product() const { return !work.products.empty(); }
};

// At least one.
absl::StatusOr<std::vector<KernelQuestion>> KernelQuestions(const Args& args);

}  // namespace daydream
