#include "report/predict/unrecorded.h"

#include <algorithm>
#include <utility>

#include "report/text/format.h"
#include "report/windows.h"
#include "simulator/simulate.h"

namespace daydream {
namespace {

absl::StatusOr<Duration> StepWithout(const CostOfEach& each, Graph graph) {
  TakeOffRecordingCost(each, graph);
  DD_ASSIGN_OR_RETURN(const Timeline timeline, Simulate(graph));
  return StepTime(graph, timeline);
}

}  // namespace

absl::StatusOr<std::optional<Unrecorded>> LeaveOutRecording(Graph& graph) {
  const CostOfEach each = CostOfEachIn(graph);
  if (!each.any()) return std::nullopt;
  Unrecorded out;
  DD_ASSIGN_OR_RETURN(out.shortest, StepWithout(CostOfEachIn(graph, 1), graph));
  DD_ASSIGN_OR_RETURN(out.longest, StepWithout(CostOfEachIn(graph, -1), graph));
  const RecordingCost& cost = graph.tables().trace->provenance.cost;
  if (cost.steps_without > 0) out.measured = cost.without;
  out.taken = TakeOffRecordingCost(each, graph);
  DD_ASSIGN_OR_RETURN(const Timeline timeline, Simulate(graph));
  out.step = StepTime(graph, timeline);
  // A step of which another part is the longest may become longer with less host work.
  out.shortest = std::min(out.shortest, out.step);
  out.longest = std::max(out.longest, out.step);
  return out;
}

std::string CostTakenText(const CostTaken& taken) {
  std::string text;
  const auto add = [&](std::string_view what, double ns) {
    if (ns <= 0) return;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what,
                        FormatTime(Duration::FromDouble(ns)));
  };
  add("a call", taken.each.call);
  add("a piece of GPU work", taken.each.work);
  add("a mark of a layer", taken.each.layer_mark);
  return text;
}

std::string UnrecordedText(const Unrecorded& u) {
  std::string text =
      fmt::format("recording cost {} of host work a step ({}), left out here: the step is {}",
                  FormatTime(u.taken.in_step), CostTakenText(u.taken), FormatTime(u.step));
  if (u.longest > u.shortest) {
    text += fmt::format(" ({} to {})", FormatTime(u.shortest), FormatTime(u.longest));
  }
  if (u.measured.has_value()) {
    text += fmt::format("; steps that were not recorded take {}", FormatTime(*u.measured));
  }
  return text;
}

}  // namespace daydream
