// The waterfall of causes as a picture for tickets and pages: from the recorded step to the
// predicted one, a bar for each cause, as on the page of `report`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"

namespace daydream {

// One prediction, as far as the picture shows it.
struct Waterfall {
  struct Cause {
    std::string what;
    Duration delta;  // of the step
  };
  std::string name;  // "amp + fuse"
  Duration before, after;
  std::optional<Duration> low, high;  // 90 % interval of `after`
  bool bound = false;                 // `after` is a limit
  std::vector<Cause> causes;          // sum to after - before
};

enum class Theme : uint8_t { kLight, kDark };

// SVG without scripts, fonts or anything else to load, 760 wide; its ground is that of the page
// that shows it. Bars begin at 0. The 90 % interval is a line across the end of the last bar.
// Causes beyond eight, and those of less than 2 % of the largest, are one row.
std::string WaterfallSvg(const Waterfall& w, Theme theme);

}  // namespace daydream
