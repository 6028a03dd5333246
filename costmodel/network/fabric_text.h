// The text form of a Fabric (proto/fabric.proto), and back.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "costmodel/network/fabric.h"

namespace daydream {

// `where` names the text in errors. E0821 for text that is none, a level that uses an unknown
// fabric, numbers out of range, or a fabric that says nothing of its rates.
absl::StatusOr<Fabric> FabricOfText(std::string_view text, std::string_view where);

// FabricOfText gives the same fabric again.
std::string TextOfFabric(const Fabric& fabric);

}  // namespace daydream
