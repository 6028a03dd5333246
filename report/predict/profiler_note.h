// How much longer recording makes a step that its host bounds.
#pragma once

#include <string>

#include "graph/graph.h"
#include "report/predict/what_if.h"
#include "report/windows.h"

namespace daydream {

// One sentence for a step with this critical path; empty where the host takes less than half of
// it, or another program than the PyTorch profiler recorded it. Its times are those of ResNet-50 on
// a V100 in four published traces (pytorch/kineto, tb_plugin samples) and without a profiler, 16 to
// 51 % apart, and of an MLP and DLRM on an H200 (tests/data/h200): 31.8 against 15.4 ms, and 28.3
// against 14.0 and 16.7.
std::string ProfilerNote(const Graph& graph, const BoundBy& path);

// Adds it to the notes of a prediction.
void NoteProfiler(const Graph& graph, Prediction& prediction);
// Where it would be told, no confidence is high.
void DoubtProfiler(const Graph& graph, Prediction& prediction);
// The same where it would, as is known without a path.
void DoubtProfiler(Prediction& prediction);

// The word for a baseline that --true-step named: given where it is reached, and low where GPU work
// takes longer than all of it, with an interval between the two.
void TellTrueStep(const TrueStep& told, Prediction& baseline);

// The same for a baseline without what recording cost: measured where it is what the program's own
// steps take that were not recorded, else medium, with an interval by the errors of the costs.
void TellUnrecorded(const Unrecorded& unrecorded, Prediction& baseline);
// How far that step is off by these errors, as a share of it.
double UnsureShare(const Unrecorded& unrecorded);

}  // namespace daydream
