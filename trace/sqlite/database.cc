#include "trace/sqlite/database.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstring>

namespace daydream {
namespace {

constexpr int kStepsPerCall = 100;

extern "C" int CountSteps(void* left) { return --*static_cast<int64_t*>(left) < 0 ? 1 : 0; }

// As an identifier of SQL.
std::string Quoted(std::string_view name) {
  std::string quoted = "\"";
  for (char c : name) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

// A file: address has its own meaning for some characters.
std::string AddressOf(const std::string& path) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string address = "file:";
  for (char c : path) {
    if (c != '%' && c != '?' && c != '#') {
      address += c;
      continue;
    }
    address += '%';
    address += kDigits[static_cast<unsigned char>(c) >> 4];
    address += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return address + "?mode=ro&immutable=1";
}

absl::Status Damage(const std::string& name, std::string why) {
  return MakeStatus(absl::StatusCode::kDataLoss,
                    {.code = "E0230",
                     .what = "this SQLite file is damaged or ends early",
                     .where = name,
                     .why = std::move(why),
                     .fix = "export or copy it again"});
}

uint32_t BigEndian(std::string_view bytes, size_t at, size_t size) {
  uint32_t value = 0;
  for (size_t i = 0; i < size; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

// The header says how many pages there are (https://www.sqlite.org/fileformat.html, 1.3).
absl::Status CheckLength(const std::string& name, std::string_view head, int64_t bytes) {
  if (head.size() < 100) return Damage(name, "its header is incomplete");
  const uint32_t stored = BigEndian(head, 16, 2);
  const int64_t page = stored == 1 ? 65536 : stored;
  const bool counted = BigEndian(head, 24, 4) == BigEndian(head, 92, 4);
  const int64_t expected = page * BigEndian(head, 28, 4);
  if (!counted || bytes >= expected) return absl::OkStatus();
  return Damage(name, fmt::format("{} of {} bytes are there", bytes, expected));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteFile>> SqliteFile::Open(ByteSource& source) {
  std::unique_ptr<SqliteFile> file(new SqliteFile());
  file->name_ = source.name();
  const std::string path = source.Path();
  DD_RETURN_IF_ERROR(path.empty() ? file->OpenMemory(source) : file->OpenPath(path));
  if (path.empty()) return file;
  DD_ASSIGN_OR_RETURN(std::string_view head, source.Peek());
  DD_RETURN_IF_ERROR(CheckLength(file->name_, head, source.total()));
  file->bytes_ = source.total();
  DD_RETURN_IF_ERROR(file->Prepare());
  return file;
}

SqliteFile::~SqliteFile() { sqlite3_close_v2(db_); }

absl::Status SqliteFile::OpenPath(const std::string& path) {
  constexpr int kFlags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(AddressOf(path).c_str(), &db_, kFlags, nullptr) == SQLITE_OK) {
    return absl::OkStatus();
  }
  return Damaged();
}

absl::Status SqliteFile::OpenMemory(ByteSource& source) {
  DD_ASSIGN_OR_RETURN(std::string bytes, ReadAll(source));
  DD_RETURN_IF_ERROR(CheckLength(name_, bytes, static_cast<int64_t>(bytes.size())));
  // A file in WAL mode cannot be opened in memory; what its journal holds is not here anyway.
  if (bytes[18] == 2) bytes[18] = bytes[19] = 1;
  bytes_ = static_cast<int64_t>(bytes.size());
  auto* memory = static_cast<unsigned char*>(sqlite3_malloc64(bytes.size()));
  if (memory == nullptr) return Damage(name_, "there is not enough memory to unpack it");
  std::memcpy(memory, bytes.data(), bytes.size());
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(":memory:", &db_, kFlags, nullptr) != SQLITE_OK) {
    sqlite3_free(memory);
    return Damaged();
  }
  // Frees the memory, also when it fails.
  if (sqlite3_deserialize(db_, "main", memory, bytes_, bytes_,
                          SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY) !=
      SQLITE_OK) {
    return Damaged();
  }
  return Prepare();
}

absl::Status SqliteFile::Prepare() {
  // A scan takes about three steps for each byte of a table.
  constexpr int64_t kStepsPerByte = 50, kStepsAtLeast = 20'000'000;
  steps_left_ = (kStepsAtLeast + kStepsPerByte * bytes_) / kStepsPerCall;
  sqlite3_progress_handler(db_, kStepsPerCall, CountSteps, &steps_left_);
  sqlite3_db_config(db_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_limit(db_, SQLITE_LIMIT_LENGTH, 64 << 20);
  for (const char* pragma : {"PRAGMA trusted_schema=OFF", "PRAGMA cell_size_check=ON"}) {
    if (sqlite3_exec(db_, pragma, nullptr, nullptr, nullptr) != SQLITE_OK) return Damaged();
  }
  SqliteRows rows(*this, "sqlite_master", {"type", "name", "sql"});
  while (rows.Next()) {
    const std::string_view sql = rows.Text(2);
    constexpr std::string_view kPlain = "CREATE TABLE";
    if (rows.Text(0) == "table" && sql.starts_with(kPlain)) tables_.emplace(rows.Text(1));
  }
  return rows.status();
}

absl::Status SqliteFile::Damaged() const {
  if (steps_left_ < 0) return Damage(name_, "reading it takes far longer than its size explains");
  return Damage(name_, fmt::format("SQLite says: {}", sqlite3_errmsg(db_)));
}

std::set<std::string, std::less<>> SqliteFile::Columns(std::string_view table) {
  std::set<std::string, std::less<>> columns;
  sqlite3_stmt* statement = nullptr;
  const std::string sql = fmt::format("PRAGMA table_info({})", Quoted(table));
  if (sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr) == SQLITE_OK) {
    while (sqlite3_step(statement) == SQLITE_ROW) {
      const auto* name = reinterpret_cast<const char*>(sqlite3_column_text(statement, 1));
      if (name != nullptr) columns.emplace(name);
    }
  }
  sqlite3_finalize(statement);
  return columns;
}

absl::StatusOr<uint64_t> SqliteFile::Rows(std::string_view table) {
  if (!Has(table)) return 0;
  sqlite3_stmt* statement = nullptr;
  const std::string sql = fmt::format("SELECT count(*) FROM {}", Quoted(table));
  uint64_t rows = 0;
  bool read = sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr) == SQLITE_OK &&
              sqlite3_step(statement) == SQLITE_ROW;
  if (read) rows = static_cast<uint64_t>(sqlite3_column_int64(statement, 0));
  sqlite3_finalize(statement);
  if (!read) return Damaged();
  return rows;
}

std::string SqliteFile::Find(std::string_view table, std::string_view column, std::string_view key,
                             std::string_view value) {
  SqliteRows rows(*this, table, {key, column});
  while (rows.Next()) {
    if (rows.Text(0) == value) return std::string(rows.Text(1));
  }
  return "";
}

bool SqliteFile::HasKey(std::string_view table, std::string_view column) {
  const std::string sql = fmt::format("PRAGMA table_info({})", Quoted(table));
  sqlite3_stmt* statement = nullptr;
  bool key = false;
  if (sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr) == SQLITE_OK) {
    while (sqlite3_step(statement) == SQLITE_ROW) {
      const auto* name = reinterpret_cast<const char*>(sqlite3_column_text(statement, 1));
      key |= name != nullptr && name == column && sqlite3_column_int(statement, 5) == 1;
    }
  }
  sqlite3_finalize(statement);
  return key;
}

std::string SqliteFile::FindByKey(std::string_view table, std::string_view column,
                                  std::string_view key, int64_t value) {
  const std::string sql = fmt::format("SELECT {} FROM {} WHERE {} = {}", Quoted(column),
                                      Quoted(table), Quoted(key), value);
  sqlite3_stmt* statement = nullptr;
  std::string found;
  if (sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr) == SQLITE_OK &&
      sqlite3_step(statement) == SQLITE_ROW) {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
    if (text != nullptr)
      found.assign(text, static_cast<size_t>(sqlite3_column_bytes(statement, 0)));
  }
  sqlite3_finalize(statement);
  return found;
}

SqliteRows::SqliteRows(SqliteFile& file, std::string_view table,
                       std::span<const std::string_view> columns)
    : file_(file) {
  const bool schema = table == "sqlite_master";
  if (!schema && !file.Has(table)) return;
  const auto known = file.Columns(table);
  std::string sql = "SELECT ";
  for (size_t i = 0; i < columns.size(); ++i) {
    const bool there = known.contains(columns[i]);
    sql += (i == 0 ? "" : ", ") + (there ? Quoted(columns[i]) : std::string("NULL"));
  }
  sql += " FROM " + Quoted(table);
  if (sqlite3_prepare_v2(file.db_, sql.c_str(), -1, &statement_, nullptr) != SQLITE_OK) {
    status_ = file.Damaged();
  }
}

SqliteRows::~SqliteRows() { sqlite3_finalize(statement_); }

bool SqliteRows::Next() {
  if (statement_ == nullptr || !status_.ok()) return false;
  const int result = sqlite3_step(statement_);
  if (result == SQLITE_ROW) return true;
  if (result != SQLITE_DONE) status_ = file_.Damaged();
  return false;
}

int64_t SqliteRows::Int(int column, int64_t fallback) const {
  const int type = sqlite3_column_type(statement_, column);
  if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) return fallback;
  return sqlite3_column_int64(statement_, column);
}

bool SqliteRows::Empty(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

std::string_view SqliteRows::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  if (text == nullptr) return {};
  return {text, static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

}  // namespace daydream
