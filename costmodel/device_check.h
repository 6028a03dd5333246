// Whether what a file says of a GPU can be one GPU, and whether that can run a kernel.
#pragma once

#include <string>
#include <string_view>

#include "costmodel/device.h"

namespace daydream {

// What of a recorded GPU contradicts the rest of it ("the name says H100, which has compute
// capability 9.0, not 8.0"), or "". Parts of a GPU (MIG) and GPUs that are not known contradict
// nothing.
std::string ContradictionIn(const Device& recorded);

// The architecture that a kernel of NVIDIA's libraries was built for, by its name, as the major
// compute capability: 8 of "sm80_xmma_gemm", "ampere_sgemm" and "cutlass_80_tensorop"; 0 where the
// name says nothing.
int ArchitectureOf(std::string_view kernel);

}  // namespace daydream
