#include "tools/output/score.h"

#include "costmodel/device.h"
#include "report/text/format.h"
#include "simulator/simulate.h"
#include "trace/join/ranks.h"

namespace daydream {
namespace {

constexpr size_t kMissesShown = 6;
// Chosen: of the predictions in docs/accuracy.md that were measured, none is off by twice.
constexpr double kOtherProgram = 3;

// A file of few events is known by the time of day, too.
bool SameRecording(const Trace& a, const Trace& b) {
  return SameEvents(a, b) ||
         (a.clock_origin_ns == b.clock_origin_ns && a.start == b.start && a.duration == b.duration);
}

// Why this was not a measurement of what was predicted for `after`; empty when nothing speaks
// against it.
std::string NotTheSame(const Score& score, const Graph& after, const Graph& measured,
                       const Prediction& p) {
  std::string device = DeviceName(after);
  bool same = device == score.device;
  if (const DeviceSpec* other = after.model_changes().device.get();
      other != nullptr && !measured.tables().devices.empty()) {
    device = other->name;
    const DeviceSpec* known = MatchDevice(measured.tables().devices[0]).spec;
    same = known == nullptr || known->name == device;
  }
  if (!same) {
    return fmt::format("predicted for {}, measured on {}", Called(device), Called(score.device));
  }
  const double ratio = score.error + 1;
  if (p.bound || (ratio <= kOtherProgram && ratio >= 1 / kOtherProgram)) return "";
  return fmt::format("predicted {}, measured {}: so far off is another program", FormatTime(p.step),
                     FormatTime(score.measured));
}

}  // namespace

std::string Called(std::string_view device) {
  return device.empty() ? "a GPU that is not named" : fmt::format("'{}'", Printable(device));
}

WhatIfReport ReportOf(const Inputs& in) {
  WhatIfReport report;
  report.file = in.trace->provenance.source;
  report.headline = Headline(*in.trace, in.built);
  report.trace = in.trace.get();
  report.build = &in.built.report;
  report.warnings = in.built.report.warnings;
  report.findings = in.findings;
  report.true_step = in.true_step.has_value() ? &*in.true_step : nullptr;
  return report;
}

absl::StatusOr<Score> ScoreAgainst(const std::string& path, const Args& args, Session& session,
                                   const Inputs& in, const std::vector<Application>& scenario,
                                   const Prediction& p) {
  DD_ASSIGN_OR_RETURN(auto trace, ReadTrace(path, args, session));
  DD_ASSIGN_OR_RETURN(trace, PartToAsk(std::move(trace), "auto"));
  session.Progress(fmt::format("comparing with {}", path));
  auto built = BuildGraph(trace);
  if (!built.ok()) return WithCode(built.status(), "E0300");
  DD_ASSIGN_OR_RETURN(ReplayCheck replay, CheckReplay(*built, nullptr));
  DD_ASSIGN_OR_RETURN(const Health health, MakeSteady(*built, replay));
  DD_RETURN_IF_ERROR(replay.no_step);
  Score score;
  score.file = path;
  score.measured = MeanOf(MeasuredSteps(*built));
  // Stalls are in no prediction, so the measured step is without them, too.
  if (health.steady > Duration{}) score.measured = health.steady;
  // Nor what recording cost.
  DD_RETURN_IF_ERROR(LeaveOutRecording(args, *built, replay));
  if (replay.unrecorded.has_value()) score.measured = replay.unrecorded->step;
  score.headline = Headline(*trace, *built);
  score.error = score.measured.ns > 0
                    ? static_cast<double>(p.step.ns) / static_cast<double>(score.measured.ns) - 1
                    : 0;
  score.inside = p.low.has_value() && *p.low <= score.measured && score.measured <= *p.high;
  DD_ASSIGN_OR_RETURN(Played after, Play(in.built.graph, scenario));
  score.misses = LargestMisses(in.built.graph, after.graph, built->graph, kMissesShown);
  score.device = DeviceName(built->graph);
  score.not_the_same = SameRecording(*in.trace, *trace)
                           ? "it is the recording that the prediction was made from"
                           : NotTheSame(score, after.graph, built->graph, p);
  return score;
}

}  // namespace daydream
