// SQLite files made in a test: the statements of `sql`, as the bytes of a file.
#pragma once

#include <sqlite3.h>

#include <string>

#include <gtest/gtest.h>

namespace daydream {

inline std::string SqliteBytes(const std::string& sql) {
  sqlite3* db = nullptr;
  EXPECT_EQ(sqlite3_open(":memory:", &db), SQLITE_OK);
  char* error = nullptr;
  const std::string all = "PRAGMA page_size=512;" + sql;
  EXPECT_EQ(sqlite3_exec(db, all.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
  sqlite3_free(error);
  sqlite3_int64 size = 0;
  unsigned char* bytes = sqlite3_serialize(db, "main", &size, 0);
  std::string file(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  sqlite3_free(bytes);
  sqlite3_close(db);
  return file;
}

}  // namespace daydream
