// The layers of the backward pass, from the marks that enter and leave them
// (trace/recording/marks.h has the rule).
#pragma once

#include <vector>

#include "trace/recording/marks.h"

namespace daydream {

// The path of a layer: the text of its marks up to the first TAB.
NameId LayerPath(NameId mark, StringPool& names);

// Adds spans of layers to `out`, of which the ranges are known. `marks` are in time order.
void ReadBackwardLayers(const std::vector<RecordedMark>& marks, Instant end, StringPool& names,
                        MarkedProgram& out);

}  // namespace daydream
