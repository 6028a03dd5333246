// VGG-19 on two GPUs over 1 Gbit/s, its gradients compressed by PowerSGD in PyTorch's hook and
// beside backward.
#pragma once

#include <string>
#include <vector>

#include "tests/accuracy/judged.h"

namespace daydream {

// A row for each way: the step of rank 64 from that of rank 1, which says how long one GPU
// computes.
void JudgePowersgd(std::vector<JudgedRow>& rows);
// What docs/accuracy.md says of them.
std::string HowPowersgdIsJudged();

}  // namespace daydream
