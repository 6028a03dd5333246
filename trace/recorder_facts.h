// Who writes files of a format and how to record it best: what `daydream import --from list`
// prints, and what messages about a file advise. Each importer has its own.
#pragma once

#include <string_view>

namespace daydream {

struct RecorderFacts {
  std::string_view writer;   // "Nsight Systems 2020 to 2026"
  std::string_view record;   // command or code that records most
  std::string_view answers;  // "everything", or which questions
  // How to record calls and GPU work, how to begin after the program has warmed up, and how to
  // record when the CPU waits for the GPU. Empty: `record` does.
  std::string_view both = {}, later = {}, waits = {};
};

// What to advise about files of this importer, nothing empty; of the PyTorch profiler for traces
// that no importer made.
RecorderFacts AdviceFor(std::string_view importer);

}  // namespace daydream
