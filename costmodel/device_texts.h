// The text of the files in costmodel/devices/, in the order of their names.
#pragma once

#include <span>
#include <string_view>

namespace daydream {

struct DeviceText {
  std::string_view file;
  std::string_view text;
};

std::span<const DeviceText> DeviceTexts();

}  // namespace daydream
