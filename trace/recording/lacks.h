// What the CUPTI of a recorded program does not tell.
#pragma once

#include <string_view>

namespace daydream {

// An entry of Provenance::software that begins so is no software: {"lacks event ids", what follows
// from it}. Kept there because converted and joined files keep what is there.
inline constexpr std::string_view kLacks = "lacks ";

}  // namespace daydream
