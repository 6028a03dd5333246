#include "graph/build.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/release.h"
#include "graph/builder.h"
#include "graph/clock_offset.h"
#include "graph/facts.h"
#include "trace/recorder_facts.h"
#include "trace/recording/lacks.h"

namespace daydream {
namespace {

// Why something is not there that a graph needs, and what helps: most of the file could not be
// read, or it was not recorded.
struct Lack {
  std::string why, fix;
};

Lack WhyLacking(const Provenance& p, std::string_view not_recorded) {
  const auto cut = std::ranges::find(p.counts, kEndMissing, &ImportCount::what);
  if (cut != p.counts.end()) {
    return {fmt::format("{}: what is left holds none", cut->reason),
            "copy the whole file; gzip -t FILE tells whether a compressed one is"};
  }
  const auto most = std::max_element(p.counts.begin(), p.counts.end(),
                                     [](const ImportCount& a, const ImportCount& b) {
                                       return (a.loss ? a.count : 0) < (b.loss ? b.count : 0);
                                     });
  if (most != p.counts.end() && most->loss && most->count > p.input_events / 2) {
    return {fmt::format("{} of {} events were not read, {}: {}", most->count, p.input_events,
                        most->what, most->reason),
            "read the file as its recorder wrote it: a script may have changed it"};
  }
  return {std::string(not_recorded), std::string(AdviceFor(p.importer).both)};
}

absl::Status CheckContents(const Trace& t) {
  std::array<uint64_t, 256> count{};
  for (EventKind kind : t.kind) ++count[static_cast<uint8_t>(kind)];
  const auto of = [&](EventKind kind) { return count[static_cast<uint8_t>(kind)]; };
  const uint64_t calls = of(EventKind::kCall), ops = of(EventKind::kOp);
  const uint64_t gpu = of(EventKind::kKernel) + of(EventKind::kMemcpy) + of(EventKind::kMemset);
  if (gpu == 0) {
    Lack lack = WhyLacking(
        t.provenance,
        calls == 0 ? "only the CPU's activity was recorded, or another tool held CUPTI"
                   : "the calls were recorded but the GPU's records were not: the window closed "
                     "too early, or another tool held CUPTI");
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      {.code = "E0301",
                       .what = "this trace has no GPU work",
                       .where = fmt::format("{}: {}, {} CPU ops, {} CUDA calls, 0 kernels",
                                            t.provenance.source, t.provenance.format, ops, calls),
                       .why = std::move(lack.why),
                       .fix = std::move(lack.fix)});
  }
  // Recorders that note the GPU's side alone say so: then that side is the graph. Plans need no
  // calls.
  if (calls == 0 && !t.provenance.no_waits && !t.provenance.planned) {
    Lack lack = WhyLacking(t.provenance, "only GPU activity was recorded");
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      {.code = "E0302",
                       .what = "this trace has GPU work but no CUDA calls that launched it",
                       .where = fmt::format("{}: {}, {} GPU operations, {} CPU ops",
                                            t.provenance.source, t.provenance.format, gpu, ops),
                       .why = std::move(lack.why),
                       .fix = std::move(lack.fix)});
  }
  return absl::OkStatus();
}

// Times that the importer could not find wrong, but of which no graph can be made.
absl::Status ImpossibleTimes(const std::string& source, const absl::Status& why) {
  return MakeStatus(absl::StatusCode::kDataLoss, {.code = "E0305",
                                                  .what = "the recorded times cannot be",
                                                  .where = source,
                                                  .why = std::string(Message(why)),
                                                  .effect = "no graph can be built of them",
                                                  .fix = "record again"});
}

// What is told nowhere else; report/questions/findings.h judges the numbers of the report.
void Warn(BuildReport& report) {
  constexpr double kMatched = 0.99;
  if (static_cast<double>(report.matched_calls) <
      kMatched * static_cast<double>(report.unlabelled_calls)) {
    report.warnings.push_back(fmt::format(
        "{} of {} calls have no counterpart in the steps whose layers were marked: this model does "
        "not do the same in every step; record with --layers=force",
        report.unlabelled_calls - report.matched_calls, report.unlabelled_calls));
  }
}

// What waited for what, concluded from a recording.
void AddRecorded(Builder& b) {
  LearnTypicalLags(b);
  AddHandOffs(b);
  for (HostThread& thread : b.threads) Release(thread.own);
  AddJobs(b);
  AddBlockingCalls(b);
  AddQueueLimits(b);
  AddEventWaits(b);
  SettleStarts(b);
}

// As far as nothing hangs on how the GPU's clock is set.
void AddWork(Builder& b) {
  b.report.steps = FindSteps(b.trace);
  if (b.trace.provenance.planned) return;
  AddHostThreads(b);
  AddStreams(b);
}

}  // namespace

absl::StatusOr<BuiltGraph> BuildGraph(std::shared_ptr<const Trace> trace,
                                      const BuildOptions& options) {
  DD_RETURN_IF_ERROR(CheckContents(*trace));
  std::optional<Builder> built(std::in_place, trace, options);
  AddWork(*built);
  std::vector<ClockOffset> offsets = FindClockOffsets(*built);
  if (!offsets.empty()) {
    built.emplace(WithClocksSet(*trace, offsets), options);
    AddWork(*built);
  }
  Builder& b = *built;
  b.report.clocks_set = std::move(offsets);
  if (b.trace.provenance.planned) {
    AddPlan(b);
  } else {
    AddRecorded(b);
  }
  DD_RETURN_IF_ERROR(CutContradictions(b));
  AssignSteps(b);
  if (absl::Status valid = FinishTasks(b); !valid.ok()) {
    return ImpossibleTimes(b.trace.provenance.source, valid);
  }
  Warn(b.report);
  b.graph.NameWiring();
  b.graph.ShareFacts(std::make_shared<GraphFacts>());
  return BuiltGraph{std::move(b.graph), std::move(b.report)};
}

}  // namespace daydream
