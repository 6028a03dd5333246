#include "tools/version.h"

#include <fmt/format.h>

#include "tools/commit.h"  // made by the build
#include "trace/importer.h"

namespace daydream {

std::string ShortVersion() {
  const std::string_view commit = DAYDREAM_COMMIT;
  return commit.empty() ? "daydream " DAYDREAM_VERSION "\n"
                        : fmt::format("daydream " DAYDREAM_VERSION " ({})\n", commit);
}

bool CommitIsWhole() {
  const std::string_view commit = DAYDREAM_COMMIT;
  return !commit.empty() && !commit.ends_with("-dirty");
}

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
