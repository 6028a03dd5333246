// What is shown of files in pages that are passed on: nothing of the folders of the machine that
// made them.
#pragma once

#include <string>
#include <string_view>

namespace daydream {

// The file or last folder of a path.
std::string WithoutFolders(std::string_view path);
// The same for each file of options in a text as of --opt.
std::string SpecWithoutFolders(std::string_view spec);

}  // namespace daydream
