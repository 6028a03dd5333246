// Words of commands that are printed to be pasted into a shell.
#pragma once

#include <string>
#include <string_view>

namespace daydream {

// `text` as one word of a POSIX shell: as it is, or in single quotes where it has to be.
std::string ShellWord(std::string_view text);

// What is shown of files in pages that are passed on, which tell nothing of the folders of the
// machine that made them: the file or last folder of a path, and the same for each file of options
// in a text as of --opt.
std::string WithoutFolders(std::string_view path);
std::string SpecWithoutFolders(std::string_view spec);

}  // namespace daydream
