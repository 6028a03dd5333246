#include "tests/accuracy/loaded.h"

#include "trace/importer.h"

namespace daydream {

absl::StatusOr<Loaded> Load(const std::filesystem::path& path) {
  Loaded loaded;
  DD_ASSIGN_OR_RETURN(loaded.trace, ImportFile(path.string()));
  DD_ASSIGN_OR_RETURN(loaded.built, BuildGraph(loaded.trace));
  DD_ASSIGN_OR_RETURN(BuiltGraph typical, BuildGraph(loaded.trace, {.lags = Lags::kTypical}));
  DD_ASSIGN_OR_RETURN(loaded.replay, CheckReplay(loaded.built, &typical));
  return loaded;
}

}  // namespace daydream
