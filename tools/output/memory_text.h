// The peak of GPU memory as text and JSON.
#pragma once

#include <string>

#include "report/predict/what_if.h"
#include "report/text/json_writer.h"

namespace daydream {

// "14.2 GB", "~14.2 GB" when it is an estimate, "<= ~14.2 GB" when it is that or lower, ">= 14.2
// GB" when `before` is without what was allocated before the recording, "not known".
std::string PeakText(const MemoryProfile& before, const PeakAfter& peak);
// "peak memory ~14.2 GB of 42.5 GB (an estimate from shapes: ...)", for a step as it is;
// where nothing is known, how traces that `importer` reads could tell.
std::string MemoryText(const MemoryProfile& memory, std::string_view importer);
// "  peak memory 14.2 GB -> ~9.1 GB of 42.5 GB: activations of 12 blocks are not kept -5.1 GB".
std::string MemoryLine(const MemoryProfile& memory, const Prediction& p);

// The profile as a value.
void WriteMemoryProfile(const MemoryProfile& memory, JsonWriter& json);
// "memory", "memory_change_bytes", "peak_memory_bytes", "peak_memory_estimate" and
// "peak_memory_at_most" of a prediction.
void WriteMemoryChange(const Prediction& p, JsonWriter& json);

}  // namespace daydream
