// The traces of several ranks as a run to play together.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "report/questions/joint.h"
#include "tools/flags.h"
#include "tools/session.h"

namespace daydream {

struct JointInput {
  JointRun run;
  unsigned jobs = 1;               // threads for what ranks can do side by side
  std::vector<std::string> files;  // by rank
  std::string clock;               // how times were brought together, for people
};

// --clock of commands that play ranks together.
extern const Flag kClockFlag;

// A folder with the traces of several ranks, whose collectives are to be matched.
bool HoldsRanks(const std::string& path);

// Was it typed, and not only taken from a file of defaults?
bool WasGiven(std::string_view flag, const Args& args);
// E0104 when one of `of_one_rank` was given to a command that plays ranks together.
absl::Status CheckAboutAllRanks(const Args& args, std::span<const std::string_view> of_one_rank);

// What of `whatif` asks for ranks together: "--on", "--peers joint" or nothing.
std::string_view AsksForAll(const Args& args);
// Are ranks played together, or one whose peers arrive as recorded? E0104 for flags of which one is
// about all ranks and another about one of them.
absl::StatusOr<bool> PlaysRanks(const Args& args);

// Reads every rank of `path`, and takes what recording cost it out of its host's time, unless
// --keep-recording-cost is there; with --rank R that one is left, and the others are its Ghosts.
// E0431 for two files of one rank or runs of different size, E0432 for a rank that is not there,
// E0104 for --steps, and for one rank where `asked` (AsksForAll()) is about several; E0434 and
// E0435 as MakeJointRun().
absl::StatusOr<JointInput> LoadJoint(const std::string& path, const Args& args, Session& session,
                                     std::string_view asked = {});

// The step of the ranks of `folder` played together, for a command that looks at one of them: it
// reads the files once more, without a word. None where they cannot be played together, where
// --steps asks for some of one rank, and of more than 16 MB of files, which would take seconds.
std::optional<Duration> StepOfFolder(const std::string& folder, const Args& args, Session& session);

}  // namespace daydream
