#include "report/predict/true_step.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "report/text/format.h"
#include "report/windows.h"
#include "simulator/simulate.h"
#include "transforms/core/params.h"

namespace daydream {
namespace {

constexpr double kClose = 0.001;  // of the target
// By how much GPU work may be longer for being recorded, and how near to it a step is bound by it.
constexpr double kGpuToo = 0.10, kBoundByGpu = 0.01;
constexpr int kHalvings = 40;

Duration HostTime(const Task& t) {
  if (!IsHost(t.kind) || t.removed) return {};
  return t.duration + std::max(t.gap, Duration{});
}

void ScaleTime(Graph& graph, TaskId t, double share) {
  const Task& task = graph.task(t);
  graph.SetDuration(t, task.duration.Scaled(share));
  if (task.gap > Duration{}) graph.SetGap(t, task.gap.Scaled(share));
}

// Plays the graph with other host times.
class Host {
 public:
  explicit Host(const Graph& graph) : graph_(graph) {}

  // `kept(time)`: the share of a piece of host work of that length that is left.
  absl::StatusOr<Duration> Step(const std::function<double(Duration)>& kept) const {
    Graph copy = graph_;
    Change(copy, kept);
    DD_ASSIGN_OR_RETURN(Timeline timeline, Simulate(copy));
    return StepTime(copy, timeline);
  }

  static void Change(Graph& graph, const std::function<double(Duration)>& kept) {
    for (size_t i = 0; i < graph.size(); ++i) {
      const Duration time = HostTime(graph.task(TaskId(i)));
      if (time <= Duration{}) continue;
      ScaleTime(graph, TaskId(i), kept(time));
    }
  }

 private:
  const Graph& graph_;
};

double Less(Duration time, double ns) {
  return std::max(0.0, 1 - ns / static_cast<double>(time.ns));
}

// The x in [low, high] at which the step takes `target`; it gets no longer with x.
absl::StatusOr<double> Solve(Duration target, double low, double high,
                             const std::function<absl::StatusOr<Duration>(double)>& step) {
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    DD_ASSIGN_OR_RETURN(Duration now, step(middle));
    if (std::fabs(now.seconds() / target.seconds() - 1) < kClose) return middle;
    (now > target ? low : high) = middle;
  }
  return (low + high) / 2;
}

absl::Status Impossible(Duration target, std::string why, std::string fix) {
  return MakeStatus(
      absl::StatusCode::kFailedPrecondition,
      {.code = "E0621",
       .what = fmt::format("--true-step {}: this trace cannot take that long", FormatTime(target)),
       .why = std::move(why),
       .fix = std::move(fix)});
}

}  // namespace

Graph OverOtherHost(const TrueStep& step, Graph graph) {
  for (size_t i = 0; i < std::min(step.other.size(), graph.size()); ++i) {
    if (!IsHost(graph.task(TaskId(i)).kind) || step.other[i] == 1) continue;
    ScaleTime(graph, TaskId(i), step.other[i]);
  }
  return graph;
}

absl::StatusOr<Duration> ParseTrueStep(std::string_view text) {
  const bool rate = text.ends_with("/s");
  const auto value = ParseValue(rate ? text.substr(0, text.size() - 2) : text,
                                rate ? Unit::kNone : Unit::kDuration);
  if (value.ok() && *value > 0 && std::isfinite(*value)) {
    const Duration step = Duration::FromDouble(rate ? 1e9 / *value : *value);
    if (step > Duration{}) return step;
  }
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0104",
                     .what = fmt::format("--true-step '{}' is no time of a step", text),
                     .fix = "--true-step 101ms, or steps a second: --true-step 9.9/s"});
}

absl::StatusOr<TrueStep> TakeOffRecording(Duration target, Graph& graph) {
  const Host host(graph);
  TrueStep found{.asked = target, .target = target};
  DD_ASSIGN_OR_RETURN(found.recorded, host.Step([](Duration) { return 1.0; }));
  if (target.seconds() > found.recorded.seconds() * (1 + kClose)) {
    return Impossible(target,
                      fmt::format("the recorded step takes {}, and recording makes no step "
                                  "shorter",
                                  FormatTime(found.recorded)),
                      "the time of a step without the profiler, over the same work");
  }
  DD_ASSIGN_OR_RETURN(Duration least, host.Step([](Duration) { return 0.0; }));
  if (target.seconds() < least.seconds() * (1 - kGpuToo)) {
    return Impossible(
        target,
        fmt::format("with a host that takes no time it takes {}: the rest is GPU work and "
                    "waiting, of which recording is no more than a tenth, so nothing below {} "
                    "can be true",
                    FormatTime(least), FormatTime(least.Scaled(1 - kGpuToo))),
        "check that both are the same program, batch and GPU");
  }
  target = std::min(std::max(target, least.Scaled(1 + kBoundByGpu)), found.recorded);
  found.target = target;
  Duration longest;
  std::vector<bool> counts(graph.steps().size(), graph.steps().size() <= 1);
  for (size_t s : CountedSteps(graph)) counts[s] = true;
  for (const Task& t : graph.tasks()) {
    const Duration time = HostTime(t);
    longest = std::max(longest, time);
    if (time > Duration{} && (t.step >= counts.size() || counts[t.step])) ++found.tasks;
  }
  found.tasks /= static_cast<double>(std::max<size_t>(CountedSteps(graph).size(), 1));
  DD_ASSIGN_OR_RETURN(double per_event,
                      Solve(target, 0, static_cast<double>(longest.ns), [&](double ns) {
                        return host.Step([ns](Duration time) { return Less(time, ns); });
                      }));
  DD_ASSIGN_OR_RETURN(double taken, Solve(target, 0, 1, [&](double share) {
                        return host.Step([share](Duration) { return 1 - share; });
                      }));
  found.per_event = Duration::FromDouble(per_event);
  found.share = 1 - taken;
  found.other.assign(graph.size(), 1);
  for (size_t i = 0; i < graph.size(); ++i) {
    const Duration time = HostTime(graph.tasks()[i]);
    const double left = time > Duration{} ? Less(time, per_event) : 0;
    if (left > 0) found.other[i] = static_cast<float>(found.share / left);
  }
  const auto less = [&](Duration time) { return Less(time, per_event); };
  DD_ASSIGN_OR_RETURN(found.target, host.Step(less));
  Host::Change(graph, less);
  return found;
}

}  // namespace daydream
