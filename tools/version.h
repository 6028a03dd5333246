// What `daydream --version` prints.
#pragma once

#include <string>

namespace daydream {

std::string ShortVersion();  // "daydream 0.1.0 (e962130d8c)\n": the version and the commit
// Whether the commit names all that was built: not so when something was changed since, or where
// the sources are no checkout.
bool CommitIsWhole();
std::string LongVersion();  // with compiler, build type and the formats it reads

}  // namespace daydream
