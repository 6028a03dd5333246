// Names of recordings: "%h-%q{JOB}-%n" with the parts filled in, some of them only when the
// recorded process is known.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace daydream {

// What differs between the recordings of one session.
struct OutputValues {
  int64_t pid = 0;
  int64_t rank = -1;  // -1: not one of several; written as "-"
  int64_t number = 1;
};

class OutputPattern {
 public:
  // %h host name, %p process id, %q{VAR} environment variable, %r rank, %n the next free number,
  // %% a percent sign. A name that does not end in .ddtrace gets that ending. E0104 for anything
  // else behind '%' and for a variable that is not set.
  static absl::StatusOr<OutputPattern> Parse(
      std::string_view text, const std::function<const char*(const char*)>& environment);

  bool Has(char part) const;  // part: 'p', 'r' or 'n'
  // Name without ".ddtrace".
  std::string Stem(const OutputValues& values) const;

 private:
  struct Piece {
    char part = 0;  // 0: text as it is
    std::string text;
  };
  std::vector<Piece> pieces_;
};

// "train-%n" for `python train.py`, "a.out-%n" for `./a.out`: the first Python script of the
// command, or the command itself.
std::string DefaultPattern(std::span<const std::string> command);

// The rank of the process whose environment this is, or -1 when it is not one of several.
int64_t RankOf(const std::function<const char*(const char*)>& environment);

}  // namespace daydream
