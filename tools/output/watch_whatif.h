// `whatif --watch`: the same question again whenever the recording or an option file changes.
#pragma once

#include "tools/session.h"

namespace daydream {

// Prints one line an answer, the last scenario's; what went wrong is a line, too, and the next
// change may mend it. Where only option files change, the recording is not read again. Ends with
// Ctrl-C only, with exit code 0.
absl::StatusOr<Exit> WatchWhatIf(const Args& args, Session& session);

}  // namespace daydream
