#include "report/questions/recorder_findings.h"

#include <string_view>

#include "trace/recording/lacks.h"

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

bool CallsDeviceSynchronize(const Trace& trace) {
  for (size_t row = 0; row < trace.rows(); ++row) {
    const bool call = trace.kind[row] == EventKind::kCall;
    if (call && trace.EventName(row).starts_with("cudaDeviceSynchronize")) return true;
  }
  return false;
}

// What an older CUPTI did not tell, where this program does it.
std::vector<Finding> OfLacks(const Trace& trace, const BuildReport& report) {
  std::vector<Finding> out;
  for (const auto& [what, effect] : trace.provenance.software) {
    if (!what.starts_with(kLacks)) continue;
    const std::string_view lack = std::string_view(what).substr(kLacks.size());
    const uint64_t unlaunched = report.gpu_tasks - report.launched;
    const bool needed = lack == kLackDriverCalls   ? unlaunched > 0
                        : lack == kLackEventIds    ? report.event_waits > 0
                        : lack == kLackDeviceWaits ? CallsDeviceSynchronize(trace)
                                                   : false;
    if (!needed) continue;
    const double share = lack == kLackDriverCalls ? static_cast<double>(unlaunched) /
                                                        static_cast<double>(report.gpu_tasks)
                                                  : 0;
    out.push_back({.kind = FindingKind::kNotTold,
                   .about = About::kPredictions,
                   .text = effect,
                   .where = {},
                   .time = {},
                   .share = share,
                   .fix = "record with the CUPTI of a newer CUDA: 12.8, or 13.0 Update 1"});
  }
  return out;
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
  if (trace == nullptr) return {};
  if (trace->provenance.no_waits) return {OfNoWaits(report.launched > 0, AdviceOn(graph).waits)};
  return OfLacks(*trace, report);
}

}  // namespace daydream
