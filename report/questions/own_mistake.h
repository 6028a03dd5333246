// Whether advice was made in spite of a mistake of ours.
#pragma once

#include "report/questions/advise.h"

namespace daydream {

// The error of the first option that failed by a mistake in the program (E09.., or an error without
// a code), not by what the trace holds; OK without one.
absl::Status OwnMistake(const Advised& advised);

}  // namespace daydream
