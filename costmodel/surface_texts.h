// The text of the files in costmodel/surfaces/, in the order of their names.
#pragma once

#include <span>
#include <string_view>

namespace daydream {

struct SurfaceText {
  std::string_view file, text;
};

std::span<const SurfaceText> SurfaceTexts();

}  // namespace daydream
