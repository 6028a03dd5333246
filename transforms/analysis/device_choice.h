// The GPU that a user names: a known one, or a file that describes one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "costmodel/device.h"

namespace daydream {

struct DeviceChoice {
  DeviceSpec spec;
  std::string path;  // of the file; empty for known GPUs
  // For people; every number that the description leaves out or nobody measured. Known GPUs: the
  // fields that are marked as unsure.
  std::vector<std::string> assumptions;
};

// The names of all known GPUs, for messages.
std::vector<std::string_view> KnownGpus();

// `name`: that of a known GPU (letter case, spaces, '-' and '_' do not matter), its first words
// ("H100": of several the one with most power), its name in recordings ("NVIDIA H100 80GB HBM3"),
// or the path of a description in YAML or JSON
// (.yaml, .yml, .json) or in the protobuf text format (.textproto). E0801: no such GPU, or no such
// file; E0802 to E0804: the description is bad, at its place.
absl::StatusOr<DeviceChoice> ChooseDevice(std::string_view name);

// Whether `name` is meant as a path.
bool LooksLikeDeviceFile(std::string_view name);

// The description in `text`; `path` tells the format and stands in messages.
absl::StatusOr<DeviceChoice> ReadDeviceText(const std::string& path, std::string_view text);

}  // namespace daydream
