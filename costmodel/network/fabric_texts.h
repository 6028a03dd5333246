// The text of the files in costmodel/network/fabrics/, in the order of their names.
#pragma once

#include <span>
#include <string_view>

namespace daydream {

struct FabricText {
  std::string_view file, text;
};

std::span<const FabricText> FabricTexts();

}  // namespace daydream
