// The text form of a DeviceSpec: named fields with places, from costmodel/devices/, from a file
// that a user wrote, and back.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "costmodel/device.h"

namespace daydream {

struct GivenField {
  std::string name;                 // as in proto/device.proto; "measured.bandwidth_share"
  std::vector<std::string> values;  // more than one for lists only
  size_t line = 1, column = 1;      // of the field
};

// Makes the error for a place of the text: line and column from 1, length of what is marked.
using ErrorAt =
    std::function<absl::Status(size_t line, size_t column, size_t length, Diagnostic d)>;
// Without a text to show.
absl::Status PlainError(size_t line, size_t column, size_t length, Diagnostic d);

// The fields of a text in the protobuf text format, in the order of proto/device.proto. E0802 for
// other texts.
absl::StatusOr<std::vector<GivenField>> FieldsOfTextproto(std::string_view text,
                                                          const ErrorAt& error);

// The names of all fields, for suggestions.
std::vector<std::string_view> DeviceFieldNames();

// Each field into its place, nothing else. E0803 for an unknown name, a value that is no number or
// out of its range, or a field given twice.
absl::StatusOr<DeviceSpec> SpecOfFields(std::span<const GivenField> fields, const ErrorAt& error);

struct DescribedDevice {
  DeviceSpec spec;
  // For people: what was not given and how it was filled in, and which rates nobody measured.
  std::vector<std::string> assumptions;
};
// SpecOfFields, with stated rules for what is missing. E0804 when name, multiprocessors, memory
// bandwidth, or all of what tells the fp32 rate is missing, or fields contradict each other.
absl::StatusOr<DescribedDevice> DescribeDevice(std::span<const GivenField> fields,
                                               const ErrorAt& error);

// The fields of `spec` that are not empty, in the protobuf text format: SpecOfFields gives the same
// spec again.
std::string DeviceTextproto(const DeviceSpec& spec);

}  // namespace daydream
