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
  // What messages about a file say: how to record calls and GPU work, how to begin after the
  // program has warmed up, and how to record when the CPU waits for the GPU.
  std::string_view both, later, waits;
};

std::span<const FormatFacts> AllFormatFacts();
// Of the importer of this name, or nullptr.
const FormatFacts* FindFormatFacts(std::string_view name);
// For advice: the same, and what holds of the PyTorch profiler for traces that no importer made.
const FormatFacts& AdviceFor(std::string_view importer);

}  // namespace daydream
