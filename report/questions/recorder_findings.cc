#include "report/questions/recorder_findings.h"

namespace daydream {
namespace {

// Its replay cannot be off.
Finding OfPlan() {
  return {.kind = FindingKind::kPlanned,
          .about = About::kStep,
          .text =
              "this is a plan, not a recording: its times follow from durations and "
              "dependencies, and there is nothing to check the replay against",
          .where = {},
          .time = {},
          .share = 1,
          .fix = "look at a recording of the same program, where there is one"};
}

// Recorders of JAX and, unless asked for more, of AMD.
Finding OfNoWaits(bool calls, std::string_view fix) {
  return {.kind = FindingKind::kNoWaits,
          .about = About::kPredictions,
          .text = calls ? "waits are not recorded: nothing says when the host stood still for the "
                          "GPU, so predictions about GPU time are about the GPU's side alone"
                        : "host calls are not recorded: work keeps its place in its stream and its "
                          "distance from the work before, so predictions are about the GPU's side "
                          "alone",
          .where = {},
          .time = {},
          .fix = std::string(fix)};
}

}  // namespace

bool IsPlan(const Graph& graph) {
  const Trace* trace = graph.tables().trace.get();
  return trace != nullptr && trace->provenance.planned;
}

RecorderFacts AdviceOn(const Graph& graph) {
  const Trace* trace = graph.tables().trace.get();
  return AdviceFor(trace == nullptr ? "" : std::string_view(trace->provenance.importer));
}

std::vector<Finding> FindingsOfRecorder(const Graph& graph, const BuildReport& report) {
  if (IsPlan(graph)) return {OfPlan()};
  const Trace* trace = graph.tables().trace.get();
  if (trace == nullptr || !trace->provenance.no_waits) return {};
  return {OfNoWaits(report.launched > 0, AdviceOn(graph).waits)};
}

}  // namespace daydream
