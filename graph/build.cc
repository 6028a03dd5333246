#include "graph/build.h"

#include <algorithm>

#include "graph/builder.h"

namespace daydream {
namespace {

absl::Status CheckContents(const Trace& t) {
  uint64_t gpu = 0, calls = 0, ops = 0;
  for (EventKind kind : t.kind) {
    gpu += IsGpuWork(kind);
    calls += kind == EventKind::kCall;
    ops += kind == EventKind::kOp;
  }
  if (gpu == 0) {
    return MakeStatus(
        absl::StatusCode::kFailedPrecondition,
        {.code = "E0301",
         .what = "this trace has no GPU work",
         .where = fmt::format("{}: {}, {} CPU ops, {} CUDA calls, 0 kernels", t.provenance.source,
                              t.provenance.format, ops, calls),
         .why = calls == 0
                    ? "it was recorded with activities=[CPU] only, or another tool held CUPTI"
                    : "the calls were recorded but the GPU's records were not: the window "
                      "closed too early, or another tool held CUPTI",
         .fix = "profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], ...)"});
  }
  if (calls == 0) {
    return MakeStatus(
        absl::StatusCode::kFailedPrecondition,
        {.code = "E0302",
         .what = "this trace has GPU work but no CUDA calls that launched it",
         .where = fmt::format("{}: {}, {} GPU operations, {} CPU ops", t.provenance.source,
                              t.provenance.format, gpu, ops),
         .why = "only GPU activity was recorded",
         .fix = "profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], ...)"});
  }
  return absl::OkStatus();
}

// A trace of which rules explain little is not worth predicting from; say so.
void Warn(BuildReport& report) {
  if (report.window > Duration{} && report.unexplained_time * 20 > report.window) {
    report.warnings.push_back(fmt::format(
        "{:.1f} % of the window is delays that no rule explains; predictions keep them as they are",
        100.0 * report.unexplained_time.seconds() / report.window.seconds()));
  }
  if (report.early > 0) {
    report.warnings.push_back(fmt::format(
        "{} of {} GPU operations start before the call that launched them: the clocks of "
        "host and GPU do not belong together",
        report.early, report.gpu_tasks));
  }
  if (report.launched * 2 < report.gpu_tasks) {
    report.warnings.push_back(fmt::format(
        "{} of {} GPU operations have no recorded launch; they keep their place in the stream",
        report.gpu_tasks - report.launched, report.gpu_tasks));
  }
  constexpr double kMatched = 0.99;
  if (static_cast<double>(report.matched_calls) <
      kMatched * static_cast<double>(report.unlabelled_calls)) {
    report.warnings.push_back(fmt::format(
        "{} of {} calls have no counterpart in the steps whose layers were marked: this model does "
        "not do the same in every step; record with --layers=force",
        report.unlabelled_calls - report.matched_calls, report.unlabelled_calls));
  }
  if (report.unrecorded > 0) {
    report.warnings.push_back(fmt::format(
        "{:.1f} ms of CUDA graph work in {} stretches was not recorded; it is kept as it is",
        report.unrecorded_time.ms(), report.unrecorded));
  }
}

}  // namespace

absl::StatusOr<BuiltGraph> BuildGraph(std::shared_ptr<const Trace> trace,
                                      const BuildOptions& options) {
  DD_RETURN_IF_ERROR(CheckContents(*trace));
  Builder b(std::move(trace), options);
  b.report.steps = FindSteps(b.trace);
  AddHostThreads(b);
  AddStreams(b);
  LearnTypicalLags(b);
  AddHandOffs(b);
  AddBlockingCalls(b);
  AddQueueLimits(b);
  AddEventWaits(b);
  SettleStarts(b);
  DD_RETURN_IF_ERROR(CutContradictions(b));
  EstimateTransfers(b);
  AssignSteps(b);
  MapLayersAndPhases(b);
  Warn(b.report);
  return BuiltGraph{std::move(b.graph), std::move(b.report)};
}

}  // namespace daydream
