// What `daydream --version` prints.
#pragma once

#include <string>

namespace daydream {

std::string ShortVersion();  // "daydream 0.1.0\n"
std::string LongVersion();   // with compiler, build type and the formats it reads

}  // namespace daydream
