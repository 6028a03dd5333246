// The part of the fake CUPTI that turns what the fake driver does into records and callbacks.
#pragma once

#include <cupti.h>

#include "tests/tracer/fake_cuda/fake_cuda.h"

namespace daydream {

// The functions that the fake driver calls.
const FakeTool& CuptiTool();
void StartTool(CUpti_CallbackFunc callback, void* userdata);
void SetKind(uint32_t kind, bool enabled);  // forgets earlier SetApi calls of the kind's domain
void SetApi(uint32_t domain, uint32_t cbid, bool enabled);
bool SetCallback(uint32_t domain, uint32_t cbid, bool enabled);
void UseSystemThreadIds(bool use);
// "cudaLaunchKernel_v7000"; null for functions that the fake driver does not have.
const char* CallbackName(uint32_t domain, uint32_t cbid);
// Ends all recording, as after a fatal error.
void Finalize();

}  // namespace daydream
