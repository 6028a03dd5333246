// Ranks that are played together, as they are when nobody records them.
#pragma once

#include <string>

#include "base/status.h"
#include "report/questions/joint.h"

namespace daydream {

// Takes what recording cost each rank out of the time of its own host, where its recording tells
// it, so that ranks wait for one another as they do when nobody records them. Fills
// JointRun::unrecorded; nothing happens where no rank tells a cost, and to one rank alone, whose
// Ghosts stay where the recording had them. O(tasks + edges) for each of four replays.
absl::Status LeaveOutRecording(JointRun& run, unsigned jobs);

// How far the step may be off by the errors of the costs, of the step; 0 where nothing was taken.
double UnsureShare(const JointRun& run);

// "recording cost 0.8 ms of host work a step on rank 3, the most (a call 3.0 us), left out here:
// the step is 9.1 ms".
std::string UnrecordedText(const JointRun& run);

}  // namespace daydream
