// What a step is where kernels take longer, or less, than the model of another GPU says. The model
// times all of them anew, so all may be off by one factor; what that makes of the step hangs on
// what the host takes. Where the two take about as long, a slower GPU makes the step longer and a
// faster one does not.
#pragma once

#include <optional>

#include "graph/graph.h"
#include "report/predict/quick_host.h"
#include "report/predict/replays.h"

namespace daydream {

struct KernelEnds {
  Duration quick, slow;  // steps
  KernelEnds Scaled(double by) const { return {quick.Scaled(by), slow.Scaled(by)}; }
};

// With the kernels of `graph`, which `replays` plays, at the ends of 90 % of an error of `sigma`: a
// share of their time. Over a quick host where one is given. None where lanes may reorder.
// O(tasks + edges).
std::optional<KernelEnds> StepsAtKernelEnds(const Graph& graph, double sigma, Replays& replays,
                                            const QuickHost* host = nullptr);

}  // namespace daydream
