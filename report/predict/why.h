// Why a prediction is not better: how much of the removed work shows in the step, what the rest hid
// behind, and how far the same change would carry.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "report/predict/causes.h"
#include "report/predict/replays.h"
#include "report/windows.h"
#include "simulator/critical_path.h"
#include "simulator/timeline.h"

namespace daydream {

// Something that can be on the critical path: one kind of work on one lane.
struct Limiter {
  Resource resource = Resource::kCpu;
  std::string what;  // "cudaLaunchKernel", "gemm kernels", "host work"
  std::string lane;  // "thread 1 (python)"; empty for a total, and where `what` says it
  Duration time;     // per step
  double count = 0;  // pieces per step
};

// The critical path inside the counted windows by limiter, per step; longest first.
std::vector<Limiter> PathByLimiter(const Graph& graph, const CountedPath& counted);
inline std::vector<Limiter> PathByLimiter(const Graph& graph, const Timeline& timeline) {
  return PathByLimiter(graph, CountedPath(graph, timeline));
}

// How a limiter's part of the path changed.
struct Exposure {
  Limiter limiter;  // as it is after
  Duration before;
  double count_before = 0;
  Duration growth() const { return limiter.time - before; }
};

struct Explanation {
  std::string cause, opt;         // the cause that took away most work
  bool gpu = true;                // that work was the GPU's
  Duration work;                  // how much it took away per step
  Duration gained;                // how much of that shows in the step; negative when it got longer
  std::vector<Exposure> exposed;  // grew on the critical path, largest growth first
  std::optional<Limiter> next;    // holds the largest part of the path now
  // The same work, 1 to 64 times faster: 98 % of what can be gained is gained from here on. None
  // when nothing can be told, infinity when it never levels off.
  std::optional<double> enough;
  std::string text;  // one sentence of all this
};

struct WhyQuestion {
  const Graph* before = nullptr;
  const Graph* after = nullptr;
  Duration step_after;
  const std::vector<Limiter>* path_before = nullptr;
  const std::vector<Limiter>* path_after = nullptr;
  const std::vector<CauseShare>* causes = nullptr;
  std::span<const CauseJournal> journals;
  Replays* replays = nullptr;  // of `after`; none: `enough` is not told
};

// None when no cause took any work away. Replays a batch of scenarios; O(tasks + edges).
std::optional<Explanation> ExplainPrediction(const WhyQuestion& question);

}  // namespace daydream
