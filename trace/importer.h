// Trace importers: one folder each, one line each in importers.def. An importer recognises its
// format from the first bytes, or from the tables of an SQLite file, and reads the rest; unpacking
// and file access live in trace/bytes/source.h and trace/sqlite/database.h, once, in front of all.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "trace/bytes/source.h"
#include "trace/recorder_facts.h"
#include "trace/trace_builder.h"

namespace daydream {

struct ImportOptions {
  // Refuse the input if any event is malformed, instead of counting it.
  bool strict = false;
  // Share of malformed events above which the import fails. 1 % unless told otherwise.
  double max_malformed = 0.01;
  // Uncompressed bytes read before the import fails: a guard against decompression bombs.
  int64_t max_text_bytes = int64_t{16} << 30;
  // Called now and then with the bytes consumed of the (compressed) input; may be empty.
  std::function<void(int64_t consumed, int64_t total)> progress;
};

class SqliteFile;

struct Importer {
  std::string_view name;     // "kineto"
  std::string_view summary;  // "PyTorch profiler JSON (Chrome trace format)"
  // True when `head` (up to the first 4 KiB, uncompressed) is this format. No side effects.
  bool (*sniff)(std::string_view head) = nullptr;
  // Reads all of `source` into `builder`. On error the builder is to be thrown away.
  absl::Status (*import)(ByteSource& source, const ImportOptions& options,
                         TraceBuilder& builder) = nullptr;
  // The same for formats that are SQLite files, instead of the two above.
  bool (*sniff_tables)(const SqliteFile& file) = nullptr;
  absl::Status (*import_tables)(SqliteFile& file, const ImportOptions& options,
                                TraceBuilder& builder) = nullptr;
  RecorderFacts recorder = {};
};

// All importers, in the order of importers.def.
std::span<const Importer* const> Importers();
// The importer with this name, or nullptr.
const Importer* FindImporter(std::string_view name);

// Opens `path` ("-" = standard input), finds the importer (or takes `from`, "auto" = by content)
// and reads. The error of an unknown format names the formats that are known.
absl::StatusOr<std::shared_ptr<const Trace>> ImportFile(const std::string& path,
                                                        const ImportOptions& options = {},
                                                        std::string_view from = "auto");
// The same for bytes in memory; `name` stands in for the file name.
absl::StatusOr<std::shared_ptr<const Trace>> ImportBytes(std::string_view bytes, std::string name,
                                                         const ImportOptions& options = {},
                                                         std::string_view from = "auto");

#define IMPORTER(symbol) extern const Importer symbol;
#include "trace/importers.def"
#undef IMPORTER

}  // namespace daydream
