// An Nsight Systems export while it is read: what all its tables share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "trace/importer.h"
#include "trace/nsys/lanes.h"
#include "trace/sqlite/database.h"

namespace daydream {

class NsysFile {
 public:
  NsysFile(SqliteFile& db, const ImportOptions& options, TraceBuilder& builder);

  SqliteFile& db;
  TraceBuilder& builder;
  NsysLanes lanes;
  // 3.25 is {3, 25}; {0, 0} when the file does not say (2020 and 2021).
  std::pair<int, int> schema;

  // The text of StringIds, cleaned; interned only when it is asked for: the table also holds what
  // the recorder noted about the machine.
  NameId Text(int64_t id);
  // The same under the name that the PyTorch profiler uses for calls.
  NameId CallName(int64_t id);
  // C++ name of a kernel from the three columns that may hold it; -1 = empty.
  NameId KernelName(int64_t mangled, int64_t demangled, int64_t plain);

  // One row of a table that is read. Every row is counted once, whatever becomes of it.
  void NoteRow() { ++rows_; }
  // A row that does not become an event.
  void Skip(std::string_view what, std::string_view reason, bool loss = false);
  // Start and length of a row. False when they are no times: counted.
  bool Times(const SqliteRows& rows, int start, int end, TraceBuilder::Event& event);
  // A whole table of which rows are counted and nothing is taken.
  absl::Status SkipTable(std::string_view table, std::string_view what, std::string_view reason);
  // E0210 when there was too much nonsense.
  absl::Status Finish();

 private:
  std::string RawText(int64_t id);

  const ImportOptions& options_;
  uint64_t rows_ = 0, malformed_ = 0;
  absl::flat_hash_map<int64_t, std::string> all_strings_;  // only when StringIds has no key
  bool has_key_ = true;
  absl::flat_hash_map<int64_t, NameId> texts_, calls_, mangled_, demangled_, plain_;
};

}  // namespace daydream
