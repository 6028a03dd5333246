// Work of one rank, faster or slower as a whole.
#pragma once

#include <cstdint>

#include "transforms/core/editor.h"

namespace daydream {

// The rank whose graph this is; 0 where none was recorded.
int32_t RankOf(const Graph& graph);

// Own work of the host (with the time between calls) and of the GPU (without collectives) takes so
// many times as long. Factors >= 0. O(tasks).
void ScaleRank(Editor& edit, double host, double gpu);

}  // namespace daydream
