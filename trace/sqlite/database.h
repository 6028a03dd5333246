// An SQLite file as an input: opened read-only, never trusted, read a column at a time. Several
// recorders write such files; which one did is told from the tables.
//
// Only plain tables are read: no views, no virtual tables, nothing that the file could make run.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "trace/bytes/source.h"

struct sqlite3;
struct sqlite3_stmt;

namespace daydream {

inline bool IsSqlite(std::string_view head) {
  return head.starts_with(std::string_view("SQLite format 3\0", 16));
}

class SqliteFile {
 public:
  // A plain file is read where it is (immutable: no journal, no lock, folders may be read-only); a
  // stream is unpacked into memory. E0230: it is damaged or ends early.
  static absl::StatusOr<std::unique_ptr<SqliteFile>> Open(ByteSource& source);
  ~SqliteFile();
  SqliteFile(const SqliteFile&) = delete;
  SqliteFile& operator=(const SqliteFile&) = delete;

  const std::string& name() const { return name_; }
  const std::set<std::string, std::less<>>& tables() const { return tables_; }
  bool Has(std::string_view table) const { return tables_.contains(table); }
  // Names of its columns; empty when there is no such table.
  std::set<std::string, std::less<>> Columns(std::string_view table);
  // Number of rows; 0 when there is no such table. O(pages of the table).
  absl::StatusOr<uint64_t> Rows(std::string_view table);
  // One row of one column: the first where `key` is `value`; empty when there is none.
  std::string Find(std::string_view table, std::string_view column, std::string_view key,
                   std::string_view value);
  // The same where `column` is the key of the table (HasKey): O(log rows).
  std::string FindByKey(std::string_view table, std::string_view column, std::string_view key,
                        int64_t value);
  bool HasKey(std::string_view table, std::string_view column);
  int64_t bytes() const { return bytes_; }

  // E0230 with what SQLite says.
  absl::Status Damaged() const;

 private:
  friend class SqliteRows;
  SqliteFile() = default;
  absl::Status OpenPath(const std::string& path);
  absl::Status OpenMemory(ByteSource& source);
  absl::Status Prepare();

  std::string name_;
  int64_t bytes_ = 0;
  sqlite3* db_ = nullptr;
  int64_t steps_left_ = 0;  // hundreds of steps of SQLite's machine; bounds what a file can cost
  std::set<std::string, std::less<>> tables_;
};

// The rows of a table, in the order of the file.
//
//   SqliteRows rows(file, "NVTX_EVENTS", {"start", "end"});
//   while (rows.Next()) Use(rows.Int(0, -1), rows.Int(1, -1));
//   DD_RETURN_IF_ERROR(rows.status());
//
// Columns that the table lacks are empty in every row; a table that is not there has no rows.
class SqliteRows {
 public:
  SqliteRows(SqliteFile& file, std::string_view table, std::span<const std::string_view> columns);
  SqliteRows(SqliteFile& file, std::string_view table,
             std::initializer_list<std::string_view> columns)
      : SqliteRows(file, table, std::span(columns.begin(), columns.size())) {}
  ~SqliteRows();
  SqliteRows(const SqliteRows&) = delete;
  SqliteRows& operator=(const SqliteRows&) = delete;

  bool Next();
  // Empty values (and texts that are no number) are `fallback`.
  int64_t Int(int column, int64_t fallback) const;
  bool Empty(int column) const;
  // Valid until Next(). Numbers are written out.
  std::string_view Text(int column) const;
  const absl::Status& status() const { return status_; }

 private:
  SqliteFile& file_;
  sqlite3_stmt* statement_ = nullptr;
  absl::Status status_;
};

}  // namespace daydream
