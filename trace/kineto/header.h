// What a Kineto file says besides its events: devices, rank, software, clock.
#pragma once

#include <string_view>

#include "trace/trace_builder.h"

namespace daydream {

// True when ReadKinetoHeader() uses the value of this top-level key.
bool IsKinetoHeaderKey(std::string_view key);

// Takes over the value of a top-level key: complete JSON text, followed by kJsonPadding readable
// bytes. Values of unexpected shape are left out.
void ReadKinetoHeader(std::string_view key, std::string_view json, TraceBuilder& builder);

}  // namespace daydream
