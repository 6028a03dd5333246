// A trace made ready for predictions, and what is said when its replay is off.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "report/predict/what_if.h"
#include "report/questions/findings.h"
#include "tools/input/input.h"

namespace daydream {

struct Inputs {
  std::shared_ptr<const Trace> trace;
  BuiltGraph built;
  ReplayCheck replay;                 // of the trace as recorded
  std::vector<Finding> findings;      // worst first
  Stalls stalls;                      // of the recording; `built` is without them
  std::optional<TrueStep> true_step;  // what --true-step took off the host's work in `built`
};

// Flags of commands that predict.
inline constexpr Flag kTrueStepFlag = {
    .name = "--true-step",
    .value = "TIME",
    .help = "what the step takes without the profiler, 101ms or 9.9/s: host work shrinks to it"};
inline constexpr Flag kKeepRecordingCostFlag = {
    .name = "--keep-recording-cost",
    .help = "leave what recording cost, where a recording tells it, in the time of the host"};
inline constexpr Flag kSamplesFlag = {
    .name = "--samples",
    .value = "N",
    .help = "examples in a recorded step, for samples/s and batch; else the recorded shapes tell"};
inline constexpr Flag kOptFileFlag = {
    .name = "--opt-file",
    .value = "FILE",
    .help = "an optimization of your own (YAML); --opt can name it, else it is a scenario",
    .repeats = true};
inline constexpr Flag kSetFlag = {
    .name = "--set",
    .value = "NAME.PARAM=VALUE",
    .help = "another value for a parameter; daydream opt show NAME lists them",
    .repeats = true};
inline constexpr Flag kMaxReplayErrorFlag = {
    .name = "--max-replay-error",
    .value = "PCT",
    .help = "exit 4 when a check of the replay is further off (a warning from 3 %)",
    .fallback = "10%"};

// The base of every question: judges `in.built` as recorded, and makes it what predictions are made
// from, the steady step. Fills `replay`, `findings` and `stalls`. `typical`: of the replay.
absl::Status JudgeRecording(Inputs& in, std::optional<Duration> typical = {});
// Builds `trace` as recorded, into `built`, and with typical lags, whose step it returns (none
// where that has none): side by side, or, where it is long, one after the other in the same memory.
absl::StatusOr<std::optional<Duration>> BuildTwice(std::shared_ptr<const Trace> trace,
                                                   const Args& args, Session& session,
                                                   absl::StatusOr<BuiltGraph>& built);
// Both for `in.trace`, read from `path`: what every command checks.
absl::Status BuildAndJudge(Inputs& in, const std::string& path, const Args& args, Session& session);
// Of one rank out of a folder of ranks the first finding says so, unless --rank asked for it.
void TellOneRank(const std::string& path, const Args& args, Session& session, Inputs& in);
// Reads the trace and builds it twice, once with typical lags: side by side, or, where it is long,
// one after the other in the same memory. `replay` is of the recording as it is; `built` is without
// one-time stalls (report/stalls.h), and then as --true-step and --samples say, or without what
// recording cost.
absl::StatusOr<Inputs> LoadInputs(const std::string& path, const Args& args, Session& session);
// The last of these, unless --keep-recording-cost is there.
absl::Status LeaveOutRecording(const Args& args, BuiltGraph& built, ReplayCheck& replay);

// E0602: no predictions are made above `limit`, the share of --max-replay-error.
absl::Status ReplayFailed(const ReplayCheck& replay, double limit, const std::string& path);
// Why there is no answer: the recording holds no step (E0607), or the last. OK: there is one.
absl::Status NoAnswer(const ReplayCheck& replay, double limit, const std::string& path);
// W0602 when the replay is further off than 3 %.
void WarnAboutReplay(const ReplayCheck& replay, Session& session);

}  // namespace daydream
