// Tables of the page hold the rows that matter; the rest of a trace with ten thousand layers is one
// row.
#pragma once

#include <cstddef>
#include <vector>

#include "report/host_table.h"
#include "report/summary.h"

namespace daydream {

// Keeps the `most` rows with the most time, and the `most` with the most of the critical path, of
// either side; the rest of a side become its last row, "[N others]". Both sides keep the same rows,
// so that one before has its own after. Sides of no more than `most` rows stay as they are. `after`
// may be empty. O(rows log rows).
void CutGroups(size_t most, std::vector<Group>& before, std::vector<Group>& after);
// The same for work of the host. What is inside of the others is not summed: it may be twice there.
void CutHostRows(size_t most, std::vector<HostRow>& before, std::vector<HostRow>& after);

}  // namespace daydream
