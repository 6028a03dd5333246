// Where the time of one step goes. All times are per step: totals over the counted windows
// (report/windows.h) divided by their number.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "report/windows.h"
#include "simulator/critical_path.h"
#include "simulator/timeline.h"

namespace daydream {

enum class GroupBy : uint8_t { kClass, kOp, kKernel, kLayer, kPhase, kStream };

std::optional<GroupBy> ParseGroupBy(std::string_view name);
std::string_view Name(GroupBy by);
std::string_view Name(Phase phase);  // "forward", "no phase"
std::string_view Name(TaskKind kind);
std::string_view Name(Rule rule);
std::string_view Name(Resource resource);

// GPU work that the recording does not hold, whose time is a guess (rule G8): a CUDA graph whose
// nodes were not recorded. Never shown as measured.
bool IsGuessed(const Graph& graph, TaskId task);
inline constexpr std::string_view kGuessed = "not recorded, guessed";

// The group a task belongs to: "gemm", "aten::addmm", "layer1.0.conv1". Never empty. By class,
// kernel and stream all tasks of the CPU are one group, "CPU work". What IsGuessed() is in groups
// of its own: kGuessed by class and kernel, "backward (not recorded, guessed)" by what is known of
// it.
std::string GroupOf(const Graph& graph, TaskId task, GroupBy by);

// GroupOf for many tasks: remembers the class of every kernel name.
class Grouper {
 public:
  Grouper(const Graph& graph, GroupBy by) : graph_(graph), by_(by) {}
  std::string Of(TaskId task);

 private:
  const Graph& graph_;
  GroupBy by_;
  std::unordered_map<uint32_t, std::string> class_of_name_;
};

struct Group {
  std::string name;
  Duration time;     // GPU work per step, overlaps counted twice
  double calls = 0;  // GPU tasks per step
  Duration path;     // part of the critical path per step, GPU and CPU
};

struct Summary {
  size_t steps = 0;               // windows counted
  Duration step;                  // StepTime()
  std::vector<Duration> periods;  // CountedPeriods(), whose mean is `step`
  Duration window;                // mean length of the windows: what the shares below refer to
  Duration gpu_busy;              // at least one stream has work
  Duration comm;                  // at least one collective runs
  Duration exposed_comm;          // only communication runs on the GPU
  Duration gpu_idle;              // window - gpu_busy
  Duration gpu_time;              // sum over all GPU tasks
  Duration guessed;               // of these, the sum of those that IsGuessed()
  BoundBy path;                   // critical path by resource; sums to `window`
  std::vector<Group> groups;      // longest GPU time first, then by name
};

// REQUIRES: a timeline with blockers. O(tasks log tasks).
Summary Summarize(const Graph& graph, const Timeline& timeline, GroupBy by);

// One counted window by itself; the fields are those of Summary, whose means they have.
struct StepSummary {
  size_t step = 0;    // index into Graph::steps()
  Duration recorded;  // GraphStep::recorded_period
  Duration window, gpu_busy, exposed_comm, gpu_idle;
  BoundBy path;
};
// In time order. REQUIRES: a timeline with blockers. O(tasks log tasks).
std::vector<StepSummary> SummarizeSteps(const Graph& graph, const Timeline& timeline);

// The first `top` groups and one "[N others]" that holds the rest, so that totals stay true.
std::vector<Group> WithOthers(const std::vector<Group>& groups, size_t top);

}  // namespace daydream
