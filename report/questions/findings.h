// What is wrong with a recording, or with the recorded program, before anything is predicted from
// it. Printed above every table, worst first, and as `findings` in JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "graph/build.h"
#include "report/predict/what_if.h"
#include "report/stalls.h"

namespace daydream {

enum class FindingKind : uint8_t {
  kPlanned,        // a plan, not a recording
  kOneRank,        // one rank of a run, whose step is not the run's
  kNoStep,         // what remains without one-time work is no step
  kOneTime,        // one-time work inside of the window
  kCutStep,        // the window does not hold a whole step
  kSearch,         // a library tries algorithms
  kPartialGpu,     // GPU records cover a part of the window
  kLongCall,       // one piece of host work takes more than half of a step
  kUnequalSteps,   // steps differ by more than 10 %
  kOtherSteps,     // steps of a long recording that were not asked are unlike those that were
  kOpStalls,       // operators that take a thousand times as long as they usually do
  kSomeSteps,      // host work that takes longer in some steps than in others
  kReplay,         // the replay explains little
  kUnrecorded,     // work that was guessed
  kPause,          // nothing is recorded for long, or one kernel takes longer than all others
  kUnits,          // times that look written in another unit
  kTooFast,        // work in less time than the GPU can do it in
  kOtherGpu,       // the file names a GPU that these kernels did not run on
  kMemory,         // more memory in use than there is
  kMarks,          // marks of steps that are missing, or that end before their step does
  kNoOperators,    // several threads launch, and nothing says which hands over to which
  kLost,           // records that could not be read, or were lost while recording
  kNoTime,         // GPU operations or launches that take 0 ns, operators that begin at once
  kTwice,          // the same GPU work twice
  kWrongLaunch,    // kernels on calls that cannot have launched them
  kNoLaunches,     // GPU work whose launch was not recorded
  kQueue,          // launches that a full launch queue held up, behind nothing that is known
  kNoWaits,        // nothing says when the host stood still for the GPU
  kNotTold,        // the CUPTI of the recording does not tell what the answer needs
  kUnexplained,    // delays that no rule explains
  kClocks,         // GPU work before its launch, or all of it long behind
  kAllocator,      // memory is taken from the driver and given back in every step
  kCopies,         // copies from the host take half of a step
  kLoader,         // the step waits for loader workers
  kWaitsForRanks,  // communication that is waiting for another rank
  kOther,          // what building the graph warns of
};
std::string_view Name(FindingKind kind);  // "one_time", as in JSON

// What a finding puts in doubt, worst first.
enum class About : uint8_t {
  kStep,         // the length of the step itself
  kPredictions,  // what is predicted from it
  kProgram,      // nothing: the program can be made faster there
};
std::string_view Name(About about);  // "step"

struct Finding {
  FindingKind kind = FindingKind::kOneTime;
  About about = About::kPredictions;
  std::string
      text;  // one sentence, no full stop: "295 of 328 ms happens once: 2 stalls in delta_r2"
  std::string where;  // "delta_r2 on thread 1987242"; empty: everywhere
  Duration time;      // how much of a step (or of the window, when there is one step)
  double share = 0;   // the same of the (longest) step, at most 1; 0 where nothing can be said
  std::string fix;    // what to do about it
  bool operator==(const Finding&) const = default;
};

// Worst first: by what is in doubt, then by share, then by kind.
void SortFindings(std::vector<Finding>& findings);

// All findings about a recording. `built` is as recorded, without anything taken out; `stalls` are
// FindStalls() of it. O(tasks log tasks).
std::vector<Finding> FindFindings(const BuiltGraph& built, const Stalls& stalls,
                                  const ReplayCheck& replay);

// Why no prediction over this recording is of more than low confidence, or "".
std::string DoubtOf(const std::vector<Finding>& findings);
// The first that is about predictions, or "".
std::string CautionOf(const std::vector<Finding>& findings);

struct Health {
  std::vector<Finding> findings;
  Stalls stalls;
  Duration steady;  // the replayed step without stalls; 0 when there are none
};
// Judges a recording before anything is predicted from it: finds what is wrong, takes one-time
// stalls out of `built`, and tells `replay`, which is of `built` as recorded, what to doubt. Fails
// as Simulate().
absl::StatusOr<Health> MakeSteady(BuiltGraph& built, ReplayCheck& replay);

}  // namespace daydream
