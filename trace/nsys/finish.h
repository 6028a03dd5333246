// What is filled in when the rows of an Nsight Systems file are read.
#pragma once

#include "trace/nsys/file.h"

namespace daydream {

// Ranks, devices, types of streams, names of threads, the clock, versions.
absl::Status ReadNsysFacts(NsysFile& file);

// With the rows in order: ranges around work of the model become layers (kFrame, called by path).
void FinishNsysTrace(Trace& trace);

}  // namespace daydream
