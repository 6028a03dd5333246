// Words of commands that are printed to be pasted into a shell.
#pragma once

#include <string>
#include <string_view>

namespace daydream {

// `text` as one word of a POSIX shell: as it is, or in single quotes where it has to be.
std::string ShellWord(std::string_view text);

}  // namespace daydream
