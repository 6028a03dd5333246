// What a command writes is none of what it reads.
#pragma once

#include "base/status.h"
#include "tools/command.h"

namespace daydream {

// E0105 when a file that `command` would replace is one that it reads or keeps, or another one that
// it writes: the same file under any name, links followed. -f is no wish for that.
absl::Status CheckOverwrites(const Command& command, const Args& args);

}  // namespace daydream
