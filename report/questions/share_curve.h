// The step and its kernels against the share of the GPU's multiprocessors that the program has.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"

namespace daydream {

struct ShareCurve {
  std::string device;
  int multiprocessors = 0;
  double slower = 0.05;  // what a knee may cost
  struct Point {
    double share = 1;
    Duration step;     // mean, as everywhere
    Duration kernels;  // per step
  };
  std::vector<Point> points;  // from small shares to 1
  double step_knee = 1;  // smallest share, in whole multiprocessors, that costs at most `slower`
  struct Kernel {
    std::string name;
    Duration time;  // per step
    double calls = 0;
    double knee = 1;  // weighted by the time of its launches
  };
  std::vector<Kernel> kernels;  // longest first
  double by_launch = 0;         // share of kernel time with a recorded grid
};

// E0810 when the GPU of the recording is not known. About 15 replays.
absl::StatusOr<ShareCurve> MakeShareCurve(const Graph& graph);

}  // namespace daydream
