// What there is to know about each format that is read: `daydream import --from list`, and what
// `info` says about a file that could have been recorded better.
#pragma once

#include <span>
#include <string_view>

namespace daydream {

struct FormatFacts {
  std::string_view name;    // as after --from
  std::string_view writer;  // "Nsight Systems 2020 to 2026"
  std::string_view record;  // command or code that records most
  std::string_view answers;
};

std::span<const FormatFacts> AllFormatFacts();
// Of the importer of this name, or nullptr.
const FormatFacts* FindFormatFacts(std::string_view name);

}  // namespace daydream
