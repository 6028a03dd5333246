#include "tools/version.h"

#include <fmt/format.h>

#include "trace/importer.h"

#ifndef DAYDREAM_VERSION
#define DAYDREAM_VERSION "0.1.0"
#endif

namespace daydream {

std::string ShortVersion() { return "daydream " DAYDREAM_VERSION "\n"; }

std::string LongVersion() {
#ifdef __clang__
  std::string compiler = "clang " __clang_version__;
#else
  std::string compiler = "g++ " __VERSION__;
#endif
#ifdef NDEBUG
  std::string_view build = "release";
#else
  std::string_view build = "with debug checks";
#endif
  std::string formats;
  for (const Importer* i : Importers()) {
    formats += fmt::format("{}{}", formats.empty() ? "" : ", ", i->name);
  }
  return ShortVersion() +
         fmt::format("compiler  {}\nbuild     {}\nreads     {}\n", compiler, build, formats);
}

}  // namespace daydream
