// Impossible times in the formats of other tools: a day or 30 years away, negative, at the ends of
// 64 bits. Whatever a small recording is damaged into, no trace of a day comes out of it.
#include <sqlite3.h>

#include <fstream>
#include <functional>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "graph/build.h"
#include "graph/validate.h"
#include "trace/importer.h"

namespace daydream {
namespace {

constexpr int64_t kDay = 86'400'000'000'000, kYear = 365 * kDay, kMost = INT64_MAX;
constexpr Duration kLongest = Duration::Ns(kDay / 24);  // all of the files hold milliseconds

struct Times {
  int64_t begin, end;
};
std::vector<Times> Impossible(Times t) {
  return {{t.begin + kDay, t.end + kDay},
          {t.begin - kDay, t.end - kDay},
          {t.begin + 30 * kYear, t.end + 30 * kYear},
          {t.begin, t.begin + kDay},
          {t.begin, kMost},
          {t.end, t.begin},
          {-5000, -10},
          {0, 0},
          {INT64_MIN, t.end},
          {INT64_MIN, kMost},
          {kMost - 5, kMost},
          {kMost, INT64_MIN}};
}

std::string Corpus(const std::string& file) {
  std::ifstream in(DAYDREAM_SOURCE_DIR "/tests/fuzz/corpus/" + file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Returns whether a trace came out.
bool Check(const std::string& bytes, const std::string& what) {
  const auto trace = ImportBytes(bytes, "damaged", {.max_malformed = 1.0});
  if (!trace.ok()) return false;
  const Trace& t = **trace;
  Instant first = Instant::AtNs(kMost), last;
  for (size_t row = 0; row < t.rows(); ++row) {
    first = std::min(first, t.start[row]);
    last = std::max(last, t.End(row));
  }
  EXPECT_LE(last - first, kLongest) << what;
  const auto built = BuildGraph(*trace);
  EXPECT_TRUE(!built.ok() || Validate(built->graph).ok()) << what;
  return true;
}

void ChangeInSqlite(const std::string& bytes, const std::string& statement, std::string* changed) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(":memory:", &db), SQLITE_OK);
  auto* memory = static_cast<unsigned char*>(sqlite3_malloc64(bytes.size()));
  std::copy(bytes.begin(), bytes.end(), memory);
  const auto size = static_cast<sqlite3_int64>(bytes.size());
  ASSERT_EQ(sqlite3_deserialize(db, "main", memory, size, size,
                                SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE),
            SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, statement.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << statement;
  sqlite3_int64 length = 0;
  unsigned char* out = sqlite3_serialize(db, "main", &length, 0);
  changed->assign(reinterpret_cast<const char*>(out), static_cast<size_t>(length));
  sqlite3_free(out);
  sqlite3_close(db);
}

TEST(ImpossibleTimes, InSqlite) {
  const std::string uuid = "_00000000_0000_4000_8000_000000000001";
  const std::pair<const char*, std::string> tables[] = {
      {"import_nsys_fuzz/nsys-small.sqlite", "CUPTI_ACTIVITY_KIND_KERNEL"},
      {"import_nsys_fuzz/nsys-small.sqlite", "CUPTI_ACTIVITY_KIND_RUNTIME"},
      {"import_nsys_fuzz/nsys-small.sqlite", "NVTX_EVENTS"},
      {"import_rocpd_fuzz/rocpd-schema3-small.db", "rocpd_kernel_dispatch" + uuid},
      {"import_rocpd_fuzz/rocpd-schema3-small.db", "rocpd_region" + uuid},
      {"import_rpd_fuzz/rpd-small.rpd", "rocpd_op"},
      {"import_rpd_fuzz/rpd-small.rpd", "rocpd_api"}};
  size_t read = 0;
  for (const auto& [file, table] : tables) {
    const std::string bytes = Corpus(file);
    ASSERT_TRUE(Check(bytes, file));
    for (const char* rows : {"rowid = 5", "rowid > 8"}) {
      for (const auto& [begin, end] : Impossible({1'000'000, 1'050'000})) {
        const std::string statement =
            fmt::format("UPDATE \"{}\" SET start={}, \"end\"={} WHERE {}", table, begin, end, rows);
        std::string changed;
        ChangeInSqlite(bytes, statement, &changed);
        if (HasFatalFailure()) return;
        read += Check(changed, statement);
      }
    }
  }
  EXPECT_GT(read, 60u) << "most are read without the rows that cannot be";
}

// Calls `use` with every object that has two times.
void EachRecord(nlohmann::json& value, const std::function<void(nlohmann::json&)>& use) {
  if (value.is_object() && value.contains("start_timestamp")) use(value);
  if (!value.is_structured()) return;
  for (nlohmann::json& inner : value) EachRecord(inner, use);
}

TEST(ImpossibleTimes, InRocprofJson) {
  const std::string bytes = Corpus("import_rocprof_fuzz/rocprofv3-small.json");
  ASSERT_TRUE(Check(bytes, "as it is"));
  nlohmann::json all = nlohmann::json::parse(bytes);
  size_t records = 0, read = 0;
  EachRecord(all, [&](nlohmann::json& record) {
    ++records;
    const nlohmann::json before = record;
    for (const auto& [begin, end] :
         Impossible({record["start_timestamp"], record["end_timestamp"]})) {
      record["start_timestamp"] = begin;
      record["end_timestamp"] = end;
      read += Check(all.dump(), record.dump());
    }
    record = before;
  });
  EXPECT_GT(records, 10u);
  EXPECT_GT(read, records);
}

// Every integer of a protobuf message and of those in it, each in turn, is replaced.
class Integers {
 public:
  static constexpr uint64_t kLeastTime = 5;  // what is smaller is an id, a kind or an offset near 0

  Integers(std::string bytes, std::function<void(const std::string&)> use)
      : bytes_(std::move(bytes)), use_(std::move(use)) {}
  // Of bytes [begin, end), where only whole messages are looked into; false: this is no message.
  // `wrap` puts what replaces them into the whole file.
  using Wrap = std::function<std::string(const std::string&)>;
  static bool Varint(std::string_view b, size_t& at, uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 70 && at < b.size(); shift += 7) {
      const auto byte = static_cast<unsigned char>(b[at++]);
      value |= shift < 64 ? uint64_t{byte & 127u} << shift : 0;
      if (byte < 128) return true;
    }
    return false;
  }
  static std::string Packed(uint64_t value) {
    std::string out;
    for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
    return out + static_cast<char>(value);
  }
  bool Visit(std::string_view b, const Wrap& wrap) const {
    struct Field {
      size_t begin, value, end;
      uint64_t kind, number;
    };
    std::vector<Field> fields;
    for (size_t at = 0; at < b.size();) {
      Field f{.begin = at, .value = 0, .end = 0, .kind = 0, .number = 0};
      uint64_t tag = 0, length = 0;
      if (!Varint(b, at, tag) || tag >> 3 == 0) return false;
      f.value = at;
      f.kind = tag & 7;
      if (f.kind == 0 && !Varint(b, at, f.number)) return false;
      if (f.kind == 2) {
        if (!Varint(b, at, length) || length > b.size() - at) return false;
        f.value = at;
        at += length;
      } else if (f.kind == 1 || f.kind == 5) {
        at += f.kind == 1 ? 8 : 4;
      } else if (f.kind != 0) {
        return false;
      }
      if (at > b.size()) return false;
      f.end = at;
      fields.push_back(f);
    }
    for (const Field& f : fields) {
      const auto put = [&](const std::string& value) {
        return wrap(std::string(b.substr(0, f.value)) + value + std::string(b.substr(f.end)));
      };
      if (f.kind == 0 && f.number >= kLeastTime) {
        for (int64_t v :
             {kDay / 1000, kDay, 30 * kYear, kMost, kMost - 1, int64_t{-1}, INT64_MIN}) {
          use_(put(Packed(static_cast<uint64_t>(v))));
        }
      }
      if (f.kind != 2) continue;
      size_t tag_end = f.begin;
      uint64_t tag = 0;
      (void)Varint(b, tag_end, tag);
      (void)Visit(b.substr(f.value, f.end - f.value), [&](const std::string& inner) {
        return wrap(std::string(b.substr(0, tag_end)) + Packed(inner.size()) + inner +
                    std::string(b.substr(f.end)));
      });
    }
    return true;
  }
  bool Run() const {
    return Visit(bytes_, [](const std::string& all) { return all; });
  }

 private:
  const std::string bytes_;
  const std::function<void(const std::string&)> use_;
};

TEST(ImpossibleTimes, InXPlane) {
  const std::string bytes = Corpus("import_xplane_fuzz/jax-small.xplane.pb");
  ASSERT_TRUE(Check(bytes, "as it is"));
  size_t tried = 0, read = 0;
  const Integers integers(bytes, [&](const std::string& changed) {
    read += Check(changed, fmt::format("change {}", tried++));
  });
  ASSERT_TRUE(integers.Run());
  EXPECT_GT(tried, 300u);
  EXPECT_GT(read, tried / 4);
}

// Nodes stand one after the other, each behind its length. A plan may have nodes of any length;
// their times are what a graph can hold.
TEST(ImpossibleTimes, InChakra) {
  const std::string bytes = Corpus("import_chakra_fuzz/chakra-small.0.et");
  size_t tried = 0;
  for (size_t at = 0; at < bytes.size();) {
    const size_t begin = at;
    uint64_t length = 0;
    ASSERT_TRUE(Integers::Varint(bytes, at, length));
    const std::string node = bytes.substr(at, length), head = bytes.substr(0, begin);
    at += length;
    const std::string tail = bytes.substr(at);
    const Integers integers(node, [&](const std::string& changed) {
      const auto trace = ImportBytes(head + Integers::Packed(changed.size()) + changed + tail,
                                     "damaged.0.et", {.max_malformed = 1.0});
      ++tried;
      if (!trace.ok()) return;
      const auto built = BuildGraph(*trace);
      EXPECT_TRUE(!built.ok() || Validate(built->graph).ok()) << tried;
    });
    ASSERT_TRUE(integers.Run());
  }
  EXPECT_GT(tried, 50u);
}

}  // namespace
}  // namespace daydream
