// Recorded ranks as one run: matched, aligned, and played together, as recorded or after edits.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/build.h"
#include "graph/ranks/join.h"
#include "graph/recording_cost.h"
#include "report/predict/causes.h"
#include "report/predict/what_if.h"
#include "report/questions/findings.h"
#include "report/stalls.h"
#include "simulator/ranks/joint_replay.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

enum class AlignClocks : uint8_t {
  kGiven,  // as the shifts say: one machine, or the user knows
  kEnds,   // by the ends of collectives
};

// How well one number for each class of collectives reproduces what was recorded.
struct JointCheck {
  double duration_error = 0;  // sum of |replayed - recorded| / sum of recorded, of all collectives
  double span_error = 0;      // of the rank whose length is furthest off
};

// What recording cost each rank, which is not in the host's time of JointRun::built any more.
struct JointUnrecorded {
  std::vector<CostTaken> taken;  // by rank; one that tells none has nothing
  JointCheck check;              // of the run as recorded
  Duration recorded;             // its step, as replayed
  Duration step;
  Duration shortest, longest;  // the same with each cost two standard errors larger and smaller
  // The median over the ranks of what their steps take that were not recorded; none: there is none.
  std::optional<Duration> measured;
};

// What happened once on a rank, or held it up, which is not in JointRun::built any more.
struct JointSteady {
  JointCheck check;         // of the run as recorded
  Duration recorded, step;  // with and without
};

struct JointRun {
  std::vector<std::shared_ptr<const Trace>> traces;  // by rank number
  std::vector<BuiltGraph> built;
  std::vector<RankCollectives> ranks;
  MatchedRanks matched;
  ClockShifts clocks;           // added to what was given
  std::vector<Duration> added;  // to each rank's clock, against what was given
  std::vector<Duration> begin;  // of each rank, against the first to begin
  Meetings meetings;
  std::vector<Stalls> stalls;           // by rank, as in its trace
  std::vector<Finding> findings;        // about the ranks; worst first (MakeRanksSteady())
  std::optional<JointSteady> steady;    // the stalls were taken out
  std::optional<Duration> not_held_up;  // the step without Stalls::waits; none: there are none
  std::optional<JointUnrecorded> unrecorded;  // LeaveOutRecording() was here
  int32_t Number(size_t rank) const;          // as the run numbers it
};

// `given`: what the clocks say of when each trace begins. E0434 when collectives of two ranks are
// in opposite order, E0435 when no two ranks have a collective in common, or one rank alone has
// none. The other problems are in
// `matched`. O(rows log rows), ranks side by side on `jobs` threads.
absl::StatusOr<JointRun> MakeJointRun(std::vector<std::shared_ptr<const Trace>> traces,
                                      std::span<const Duration> given, AlignClocks align,
                                      unsigned jobs);

struct JointAnswer {
  JointReplay replay;
  Duration step;          // mean period of the recorded steps; the period, when ranks have one step
  Duration window;        // first start to last end over all ranks
  bool repeated = false;  // `step` is the period of the repeated window
  JointCheck check;       // of the unchanged run only, as it was recorded
  std::string bound_by;   // "own cycle of rank 5", "transfers"
};

// The rank with the longest cycle of its own.
size_t SlowestAlone(const JointReplay& replay);

// The run with transfers of `from`; `graphs` as built, or edited since: a transfer follows what the
// edits made of it, the median over the members. Ranks alone are played on `jobs` threads.
absl::StatusOr<JointAnswer> PlayJoint(const JointRun& run, TransferFrom from,
                                      std::span<const Graph* const> graphs = {}, unsigned jobs = 1);

// What a scenario leaves a step of, without an interval or causes. E0601 where it changes no rank.
struct JointStep {
  Duration step;
  double samples = 1;                 // examples a step handles, for each that it handled before
  std::vector<std::string> left_out;  // options that changed no rank
};
absl::StatusOr<JointStep> StepOnRanks(const JointRun& run,
                                      const std::vector<Application>& scenario);

// One scenario on all ranks, each edited as it would be alone.
struct JointPrediction {
  std::string name;                   // "amp + fuse"
  std::vector<std::string> opts;      // "amp", "fuse"
  absl::Status error;                 // not OK: the rest is empty
  std::vector<size_t> edited;         // ranks that something changed on
  std::vector<std::string> left_out;  // options that changed none of them
  Changes changes;  // of all options on the first of them; notes and warnings in it
  JointAnswer answer;
  double speedup = 1;
  bool bound = false;                 // a limit, not a prediction
  std::optional<Duration> low, high;  // 90 %; of limits none
  // Never high: each kind was checked on one rank alone.
  Confidence confidence = Confidence::kMedium;
  std::string why, raise;  // what would raise it; empty: nothing that is known
  // Why, of each option on top of those before it (report/questions/joint_causes.h): they sum to
  // the difference from the baseline, to the nanosecond.
  std::vector<CauseShare> causes;
};
// `on`: numbers of the ranks that are edited; empty: all. What is drawn (jitter) is drawn 15 times:
// the answer is that of the draw with the middle step, and the interval holds how far steps of
// draws are apart.
JointPrediction PredictJoint(const JointRun& run, const JointAnswer& baseline,
                             const std::vector<Application>& scenario,
                             std::span<const int32_t> on = {});

}  // namespace daydream
