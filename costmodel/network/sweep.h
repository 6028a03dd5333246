// A size sweep as nccl-tests and rccl-tests print it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "costmodel/network/size_curve.h"
#include "graph/ranks/collective_kind.h"

namespace daydream {

struct Sweep {
  std::vector<SizePoint> points;  // out of place, as printed; a size may come more than once
  CollectiveKind kind = CollectiveKind::kUnknown;  // kUnknown: the text does not say
  int ranks = 0, nodes = 0;                        // 0: the text does not say
  size_t skipped = 0;                              // lines that begin like a row and are none
  size_t skipped_line = 0;                         // the first of them, from 1
  size_t wrong = 0;  // rows left out: nccl-tests found their results wrong
};

// Rows are found by what stands in them: size, count, type, and behind them a time and the
// bandwidth that size and time give. So the columns of all versions are read, and what launchers
// put before a line is not in the way. E0822 when there is no row.
absl::StatusOr<Sweep> ReadSweep(std::string_view text, std::string_view where);

}  // namespace daydream
