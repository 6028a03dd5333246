// What a command says of work that takes longer than a second.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace daydream {

// What is counted: bytes of files, or pieces of work.
enum class Counted : uint8_t { kBytes, kPieces };

// What is being done, and how much of it is done.
struct Doing {
  std::string_view what;         // "reading big.json.gz"; another one is another phase
  uint64_t done = 0, total = 0;  // 0 of 0: nothing is counted; of 0: nobody knows of how many
  Counted counted = Counted::kPieces;
  bool last = false;  // nothing that takes long comes behind it
};

// How long that took so far.
struct DoingSince {
  uint64_t before = 0;  // was done when it began
  double seconds = 0;   // since it began
  double still = 0;     // ... since the last piece was done
};

// "reading big.json.gz 45 %, 120.0 MB a second, 3 s left of this", "sweeping 20 of 90, 5 a second,
// 14 s left", "building the graph, 3 s so far". The time that is left is that of the whole command
// only in the last phase. It is told where the rate is known, after half a second, and where the
// next piece comes as the others did; else how long it has taken so far.
std::string ProgressText(const Doing& doing, const DoingSince& since);

}  // namespace daydream
