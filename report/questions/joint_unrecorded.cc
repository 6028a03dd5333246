#include "report/questions/joint_unrecorded.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/median.h"
#include "report/parallel.h"
#include "report/predict/intervals.h"
#include "report/predict/unrecorded.h"
#include "report/text/format.h"

namespace daydream {
namespace {

// The step without costs that are off by `errors` of their errors.
absl::StatusOr<Duration> StepWithout(const JointRun& run, double errors, unsigned jobs) {
  std::vector<Graph> graphs;
  std::vector<const Graph*> pointers;
  graphs.reserve(run.built.size());
  for (const BuiltGraph& b : run.built) graphs.push_back(b.graph);
  for (Graph& graph : graphs) {
    TakeOffRecordingCost(CostOfEachIn(graph, errors), graph);
    pointers.push_back(&graph);
  }
  DD_ASSIGN_OR_RETURN(const JointAnswer answer,
                      PlayJoint(run, TransferFrom::kClass, pointers, jobs));
  return answer.step;
}

// What the steps of the ranks take that were not recorded.
std::optional<Duration> NotRecorded(const JointRun& run) {
  std::vector<Duration> steps;
  for (const std::shared_ptr<const Trace>& trace : run.traces) {
    const RecordingCost& cost = trace->provenance.cost;
    if (cost.steps_without > 0) steps.push_back(cost.without);
  }
  if (steps.empty()) return std::nullopt;
  return Median(steps);
}

}  // namespace

absl::Status LeaveOutRecording(JointRun& run, unsigned jobs) {
  const bool told = std::any_of(run.built.begin(), run.built.end(),
                                [](const BuiltGraph& b) { return CostOfEachIn(b.graph).any(); });
  if (!told || run.built.size() < 2 || run.unrecorded) return absl::OkStatus();
  JointUnrecorded out;
  DD_ASSIGN_OR_RETURN(const JointAnswer recorded, PlayJoint(run, TransferFrom::kClass, {}, jobs));
  out.check = recorded.check;
  out.recorded = recorded.step;
  DD_ASSIGN_OR_RETURN(out.shortest, StepWithout(run, 1, jobs));
  DD_ASSIGN_OR_RETURN(out.longest, StepWithout(run, -1, jobs));
  out.taken.resize(run.built.size());
  ForEachParallel(run.built.size(), jobs, [&](size_t r) {
    Graph& graph = run.built[r].graph;
    out.taken[r] = TakeOffRecordingCost(CostOfEachIn(graph), graph);
  });
  out.measured = NotRecorded(run);
  run.unrecorded = std::move(out);
  DD_ASSIGN_OR_RETURN(const JointAnswer without, PlayJoint(run, TransferFrom::kClass, {}, jobs));
  JointUnrecorded& told_of = *run.unrecorded;
  told_of.step = without.step;
  // Ranks that wait for others may take longer when they have less to do themselves.
  told_of.shortest = std::min(told_of.shortest, told_of.step);
  told_of.longest = std::max(told_of.longest, told_of.step);
  return absl::OkStatus();
}

double UnsureShare(const JointRun& run) {
  if (!run.unrecorded || run.unrecorded->step <= Duration{}) return 0;
  const JointUnrecorded& u = *run.unrecorded;
  return AsDouble(std::max(u.longest - u.step, u.step - u.shortest)) / AsDouble(u.step);
}

std::string UnrecordedText(const JointRun& run) {
  const JointUnrecorded& u = *run.unrecorded;
  const auto most = std::max_element(
      u.taken.begin(), u.taken.end(),
      [](const CostTaken& a, const CostTaken& b) { return a.in_step < b.in_step; });
  std::string text = fmt::format(
      "recording cost {} of host work a step on rank {}, the most ({}), left out here: the step is "
      "{}",
      FormatTime(most->in_step), run.Number(static_cast<size_t>(most - u.taken.begin())),
      CostTakenText(*most), FormatTime(u.step));
  if (u.longest > u.shortest) {
    text += fmt::format(" ({} to {})", FormatTime(u.shortest), FormatTime(u.longest));
  }
  text += fmt::format(", recorded {}", FormatTime(u.recorded));
  if (u.measured) {
    text += fmt::format("; steps that were not recorded take {}", FormatTime(*u.measured));
  }
  const auto silent = static_cast<size_t>(std::count_if(
      u.taken.begin(), u.taken.end(), [](const CostTaken& t) { return !t.each.any(); }));
  if (silent > 0) {
    text +=
        fmt::format("; {} of {} ranks {} no cost that is above its error, and keep{} it", silent,
                    u.taken.size(), silent == 1 ? "tells" : "tell", silent == 1 ? "s" : "");
  }
  return text;
}

}  // namespace daydream
