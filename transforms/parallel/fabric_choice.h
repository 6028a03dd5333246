// A fabric as users name it: one that is built in, or a file.
#pragma once

#include <string_view>

#include "base/status.h"
#include "costmodel/network/fabric.h"

namespace daydream {

// "nvlink4", or the path of a text (costmodel/network/fabric_text.h) that ends in .textproto,
// .fabric or .txt. E0820 for a name that is neither, with the nearest that is known; E0821 for a
// file that cannot be read.
absl::StatusOr<Fabric> ChooseFabric(std::string_view name_or_file);

}  // namespace daydream
