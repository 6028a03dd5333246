// The part of the page of `report` that is about ranks played together.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tools/command.h"
#include "tools/input/joint_input.h"
#include "tools/output/joint_output.h"
#include "tools/running/interrupt.h"

namespace daydream {

// Not to be moved: the report points at the input.
struct RanksPart {
  JointInput in;
  JointReport report;
  absl::Status off;  // E0602, and the report predicts nothing
};

// The ranks of a folder with what is asked of them, each scenario behind its own parts alone, and
// the last one last. Null for one trace, for one rank of several, and for ranks with no
// collective in common. `note`: counts what is done, and may end it; may be null.
absl::StatusOr<std::unique_ptr<RanksPart>> PlayRanks(
    const Args& args, const std::vector<std::vector<Application>>& scenarios, Session& session,
    InterruptNote* note);

// "run, 8 ranks, NVIDIA A100".
std::string HeadlineOfRanks(const RanksPart& part, std::string_view title, std::string_view device);

// Says which scenarios could not be predicted; what the command ends with, or `off`.
absl::StatusOr<Exit> EndOfRanks(const RanksPart& part, Session& session);

}  // namespace daydream
