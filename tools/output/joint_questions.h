// What `whatif` and `advise` answer about ranks that are played together, for the commands and for
// Python.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tools/output/joint_output.h"
#include "tools/running/interrupt.h"

namespace daydream {

// Told before the first scenario and after each; false: no more is to be begun.
using JointProgress = std::function<bool(size_t done, size_t total)>;
// `note`: hears of it, and may end it; may be null.
JointProgress ProgressOf(std::string_view what, Session& session, InterruptNote* note);

// As PredictAll() has them: each scenario behind its own parts alone; of those that are asked twice
// the last, as the last answers.
std::vector<std::vector<Application>> WithParts(
    const std::vector<std::vector<Application>>& scenarios);

// Each scenario on the ranks that `on` names ("all", "ranks 0-3,6"; E0104 for others). A scenario
// that cannot be predicted has its error in its prediction. `in` outlives the report. What was
// not begun is in JointReport::missing.
absl::StatusOr<JointReport> PredictOnRanks(const JointInput& in, std::string name,
                                           const std::vector<std::vector<Application>>& scenarios,
                                           std::string_view on, const JointProgress& progress = {});

// Leaves out what was asked for only as a part of a list and finds something to do only beside the
// others.
void DropPartsOnlyTogether(const std::vector<std::vector<Application>>& asked, JointReport& report);

// What to ask first about a run: the resource that the longest own cycle consists of, a tenth less
// of it, or a network twice as fast.
std::string OptionOfBound(const JointReport& report);

// As --no-interval asks.
void DropIntervals(JointReport& report);

// E0602 when the replay of the unchanged ranks is further off than `limit`: no prediction is made.
absl::Status CheckJointReplay(const JointReport& report, double limit);

}  // namespace daydream
