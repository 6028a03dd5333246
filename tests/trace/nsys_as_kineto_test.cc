// The rows of a real export of Nsight Systems, read twice: by its importer, and as the JSON that
// the PyTorch profiler would have written of them. Waits are left out: Nsight stores other kinds.
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "tests/real_traces.h"
#include "tests/trace/kineto_text.h"
#include "trace/importer.h"

namespace daydream {
namespace {

// Calls `row(column)` with whole numbers; texts are asked of the statement.
class Table {
 public:
  Table(sqlite3* db, const std::string& sql) {
    EXPECT_EQ(sqlite3_prepare_v2(db, sql.c_str(), -1, &statement_, nullptr), SQLITE_OK) << sql;
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  ~Table() { sqlite3_finalize(statement_); }
  bool Next() { return sqlite3_step(statement_) == SQLITE_ROW; }
  int64_t operator[](int column) const { return sqlite3_column_int64(statement_, column); }
  std::string Text(int column) const {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return text == nullptr ? "" : text;
  }

 private:
  sqlite3_stmt* statement_ = nullptr;
};

std::string Event(const char* category, const std::string& name, const Table& row, int64_t process,
                  int64_t thread, const std::string& args) {
  const int64_t length = row[1] - row[0];
  return fmt::format(R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": {}, "tid": {}, )"
                     R"("ts": {}.{:03}, "dur": {}.{:03}, "args": {{{}}}}})",
                     category, name, process, thread, row[0] / 1000, row[0] % 1000, length / 1000,
                     length % 1000, args);
}

std::string AsKineto(sqlite3* db) {
  std::vector<std::string> events;
  const auto host = [&](const char* category, const Table& row, const std::string& name,
                        const std::string& args) {
    events.push_back(Event(category, name, row, row[2] >> 24 & 0xffffff, row[2] & 0xffffff, args));
  };
  const auto gpu = [&](const char* category, const Table& row, const std::string& args) {
    events.push_back(Event(category, category, row, row[2], row[3],
                           fmt::format(R"("device": {}, "stream": {}, "correlation": {}, {})",
                                       row[2], row[3], row[4], args)));
  };
  Table calls(db, "SELECT start, end, globalTid, correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME");
  while (calls.Next()) {
    host("cuda_runtime", calls, "call", fmt::format(R"("correlation": {})", calls[3]));
  }
  Table ranges(db, "SELECT start, end, globalTid FROM NVTX_EVENTS WHERE eventType = 59");
  while (ranges.Next()) host("cpu_op", ranges, "range", "");
  Table kernels(db,
                "SELECT start, end, deviceId, streamId, correlationId, gridX, gridY, gridZ, "
                "blockX, blockY, blockZ, registersPerThread, staticSharedMemory, "
                "dynamicSharedMemory FROM CUPTI_ACTIVITY_KIND_KERNEL");
  while (kernels.Next()) {
    const Table& k = kernels;
    gpu("kernel", k,
        fmt::format(R"("grid": [{}, {}, {}], "block": [{}, {}, {}], "registers per thread": {}, )"
                    R"("shared memory": {})",
                    k[5], k[6], k[7], k[8], k[9], k[10], k[11], k[12] + k[13]));
  }
  for (const auto& [table, category] :
       {std::pair("MEMCPY", "gpu_memcpy"), {"MEMSET", "gpu_memset"}}) {
    Table rows(db, fmt::format("SELECT start, end, deviceId, streamId, correlationId, bytes FROM "
                               "CUPTI_ACTIVITY_KIND_{}",
                               table));
    while (rows.Next()) gpu(category, rows, fmt::format(R"("bytes": {})", rows[5]));
  }
  return KinetoFile(events);
}

// All that a row says but for names, waits and, of threads and streams, all but their number.
using RowText = std::tuple<int64_t, int64_t, int, int64_t, uint32_t, std::string>;

std::vector<RowText> RowsOf(const Trace& t) {
  constexpr uint32_t kOwn = (1u << 27) - 1;  // above: which process (trace/nsys/lanes.h)
  std::vector<RowText> rows;
  for (size_t row = 0; row < t.rows(); ++row) {
    const EventKind kind = t.kind[row];
    if (kind == EventKind::kSync) continue;
    const Lane& lane = t.lanes[t.lane[row].index()];
    const bool range = !IsGpuWork(kind) && kind != EventKind::kCall;
    std::string detail;
    if (kind == EventKind::kKernel) {
      const KernelDetail& k = t.kernels[t.detail[row]];
      detail = fmt::format("{} {} {} {} {} {} {} {}", k.grid[0], k.grid[1], k.grid[2], k.block[0],
                           k.block[1], k.block[2], k.registers_per_thread, k.shared_memory_bytes);
    } else if (IsGpuWork(kind)) {
      detail = fmt::format("{} bytes", t.copies[t.detail[row]].bytes);
    }
    rows.emplace_back(t.start[row].ns + t.clock_origin_ns, t.duration[row].ns,
                      range ? -1 : static_cast<int>(kind), lane.number * 64 + lane.device,
                      t.correlation[row] & kOwn, detail);
  }
  std::sort(rows.begin(), rows.end());
  // From the first of them on: the files count from other instants.
  const int64_t first = rows.empty() ? 0 : std::get<0>(rows.front());
  for (RowText& r : rows) std::get<0>(r) -= first;
  return rows;
}

TEST(NsysAsKineto, BothImportersMakeTheSameRows) {
  const auto path = RealTraceFolder() / "nsys/diffusion-2xh100.sqlite";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";
  sqlite3* db = nullptr;
  const std::string address = "file:" + path.string() + "?mode=ro&immutable=1";
  ASSERT_EQ(sqlite3_open_v2(address.c_str(), &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr),
            SQLITE_OK);
  const std::string json = AsKineto(db);
  sqlite3_close(db);
  const auto nsys = ImportFile(path.string());
  const auto kineto = ImportText(json);
  ASSERT_TRUE(nsys.ok()) << nsys.status();
  ASSERT_TRUE(kineto.ok()) << kineto.status();
  const std::vector<RowText> a = RowsOf(**nsys), b = RowsOf(**kineto);
  EXPECT_EQ(a.size(), 26946u);  // 27,190 without 244 waits
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(a[i], b[i]) << i;
}

}  // namespace
}  // namespace daydream
