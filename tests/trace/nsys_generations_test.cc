// One program as each generation of Nsight Systems exports it: what a version lacks is not
// recorded, and nothing else changes.
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/build.h"
#include "tests/trace/kineto_text.h"
#include "tests/trace/sqlite_bytes.h"
#include "tests/trace/trace_equal.h"
#include "trace/importer.h"

namespace daydream {
namespace {

using ::testing::ElementsAre;

// What a generation has, beyond the tables of 2020.
struct Generation {
  const char* name;
  const char* version_table;  // nullptr: none
  const char* version;
  bool mangled = false;       // 2.9: names as the compiler made them, CUDA_EVENT
  bool contexts = false;      // 3.7: CONTEXT_INFO in place of NULL_STREAM
  bool devices = false;       // 3.20: CUDA_DEVICE
  bool event_sync = false;    // 3.24: numbers of records
  bool sync_is_true = false;  // 3.25: syncType as its table says
};

constexpr Generation kGenerations[] = {
    {"2020", nullptr, ""},
    {"2.9.1", "EXPORT_META_DATA", "2.9.1", true},
    {"3.0.0", "EXPORT_META_DATA", "3.0.0", true},
    {"3.1.7", "EXPORT_META_DATA", "3.1.7", true},
    {"3.4.0", "META_DATA_EXPORT", "3.4.0", true},
    {"3.7.2", "META_DATA_EXPORT", "3.7.2", true, true},
    {"3.13.2", "META_DATA_EXPORT", "3.13.2", true, true},
    {"3.16.1", "META_DATA_EXPORT", "3.16.1", true, true},
    {"3.20.3", "META_DATA_EXPORT", "3.20.3", true, true, true},
    {"3.24.14", "META_DATA_EXPORT", "3.24.14", true, true, true, true},
    {"3.25.0", "META_DATA_EXPORT", "3.25.0", true, true, true, true, true},
    {"3.28.1", "META_DATA_EXPORT", "3.28.1", true, true, true, true, true},
};

// Process 7 with thread 8, on the GPU that it calls 0 and the machine calls 3 (from 3.20 on).
constexpr const char* kPid = "117440512";
constexpr const char* kTid = "117440520";

std::string Names(const Generation& g) {
  std::string sql =
      "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
      "INSERT INTO StringIds VALUES (1,'cudaLaunchKernel_v7000'),(2,'cudaMemcpyAsync_v3020'),"
      "(3,'cudaDeviceSynchronize_v3020'),(4,'_Z4axpyIfEvPT_i'),(5,'axpy'),"
      "(6,'void axpy<float>(T1 *, int)'),(7,'cudaEventRecord_v3020'),"
      "(8,'cudaStreamWaitEvent_v3020'),(9,'cudaStreamSynchronize_v3020');";
  if (g.version_table != nullptr) {
    sql += fmt::format(
        "CREATE TABLE {0} (name TEXT, value TEXT);"
        "INSERT INTO {0} VALUES ('EXPORT_SCHEMA_VERSION', '{1}'), ('EXPORT_SCHEMA_VERSION_MAJOR', "
        "'0');",
        g.version_table, g.version);
  }
  return sql;
}

std::string Machine(const Generation& g) {
  const char* ordinal = g.devices ? "9" : "0";  // cuDevice counts the machine's GPUs from 3.20 on
  std::string sql = fmt::format(
      "CREATE TABLE TARGET_INFO_GPU (id INT, name TEXT, cuDevice INT, totalMemory INT, smCount INT,"
      "computeMajor INT, computeMinor INT, threadsPerWarp INT, maxWarpsPerSm INT, clockRate INT,"
      "memoryBandwidth INT);"
      "INSERT INTO TARGET_INFO_GPU VALUES (3,'NVIDIA A100',{},42000000000,108,8,0,32,64,1410000000,"
      "1555000000000);"
      "CREATE TABLE TARGET_INFO_CUDA_STREAM (streamId INT, processId INT, contextId INT,"
      "priority INT, flag INT);"
      "INSERT INTO TARGET_INFO_CUDA_STREAM VALUES (13, 7, 1, 4294967295, 2);",
      ordinal);
  sql += g.contexts ? "CREATE TABLE TARGET_INFO_CUDA_CONTEXT_INFO (nullStreamId INT, contextId INT,"
                      "processId INT, deviceId INT);"
                      "INSERT INTO TARGET_INFO_CUDA_CONTEXT_INFO VALUES (7, 1, 7, 0);"
                    : "CREATE TABLE TARGET_INFO_CUDA_NULL_STREAM (streamId INT, processId INT,"
                      "contextId INT);"
                      "INSERT INTO TARGET_INFO_CUDA_NULL_STREAM VALUES (7, 7, 1);";
  if (g.devices) {
    sql +=
        "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INT, cudaId INT, pid INT);"
        "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (3, 0, 7);";
  }
  return sql;
}

std::string Calls() {
  std::string sql =
      "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, eventClass INT, globalTid INT,"
      "correlationId INT, nameId INT, returnValue INT);";
  // correlation: name
  const std::map<int, int> calls = {{1, 2}, {2, 1}, {3, 7}, {4, 8}, {5, 1}, {6, 9}, {7, 3}};
  for (const auto& [id, name] : calls) {
    sql += fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({},{},1,{},{},{},0);",
                       id * 100, id * 100 + 50, kTid, id, name);
  }
  return sql;
}

std::string Work(const Generation& g) {
  return fmt::format(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, contextId INT,"
      "streamId INT, correlationId INT, globalPid INT, demangledName INT, shortName INT, gridX INT,"
      "gridY INT, gridZ INT, blockX INT, blockY INT, blockZ INT{2});"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (300,900,0,1,7,2,{0},6,5,10,1,1,256,1,1{1}),"
      "(900,950,0,1,13,5,{0},6,5,10,1,1,256,1,1{1});"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, contextId INT,"
      "streamId INT, correlationId INT, globalPid INT, bytes INT, copyKind INT, srcKind INT,"
      "dstKind INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (200,290,0,1,7,1,{0},4096,1,1,2);",
      kPid, g.mangled ? ",4" : "", g.mangled ? ", mangledName INT" : "");
}

// Waits: stream 13 for the record of event 5 on stream 7; then for stream 13, then for all.
std::string Waits(const Generation& g) {
  const std::string_view columns = g.event_sync ? ", eventSyncId INT" : "";
  const auto sync = [&](int id, int type, std::string_view stream, std::string_view event,
                        std::string_view number) {
    return fmt::format(
        "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES ({},{},0,1,{},{},{},{},{}{}{});",
        id * 100, id * 100 + 40, stream, id, kPid, type, event, g.event_sync ? "," : "",
        g.event_sync ? number : "");
  };
  std::string sql = fmt::format(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INT, end INT, deviceId INT,"
      "contextId INT, streamId INT, correlationId INT, globalPid INT, syncType INT, eventId "
      "INT{});",
      columns);
  constexpr std::string_view kNo = "4294967295";
  sql += sync(4, 2, "13", "5", "1");
  sql += sync(6, g.sync_is_true ? 3 : 2, "13", kNo, kNo);
  sql += sync(7, g.sync_is_true ? 4 : 1, kNo, kNo, kNo);
  if (!g.mangled) return sql;
  return sql + fmt::format(
                   "CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (deviceId INT, contextId INT,"
                   "streamId INT, correlationId INT, globalPid INT, eventId INT{0});"
                   "INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES (0,1,7,3,{1},5{2});",
                   columns, kPid, g.event_sync ? ",1" : "");
}

std::string File(const Generation& g) {
  return Names(g) + Machine(g) + Calls() + Work(g) + Waits(g);
}

class NsysGenerations : public ::testing::TestWithParam<Generation> {};

TEST_P(NsysGenerations, TheProgramIsTheSame) {
  const Generation& g = GetParam();
  const auto loaded = ImportBytes(SqliteBytes(File(g)), "small.sqlite");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const Trace& t = **loaded;
  EXPECT_EQ(t.provenance.input_events, 13u + g.mangled);
  EXPECT_EQ(AccountedFor(t), t.provenance.input_events);
  std::vector<std::string> gpu, waits, types;
  for (size_t row = 0; row < t.rows(); ++row) {
    if (IsGpuWork(t.kind[row])) gpu.emplace_back(t.EventName(row));
    if (t.kind[row] != EventKind::kSync) continue;
    const SyncDetail& wait = t.syncs[t.detail[row]];
    waits.push_back(
        fmt::format("{} {} {}", static_cast<int>(wait.kind), wait.stream, wait.wait_on_stream));
  }
  for (const Lane& lane : t.lanes) {
    if (lane.kind != LaneKind::kStream || lane.number < 0) continue;
    types.push_back(fmt::format("{} {}", lane.number, static_cast<int>(lane.stream)));
  }
  // NVIDIA's own demangler does not fill in what a template was made for.
  const std::string axpy =
      g.mangled ? "void axpy<float>(float*, int)" : "void axpy<float>(T1*, int)";
  EXPECT_THAT(gpu, ElementsAre("Memcpy HtoD (Pinned -> Device)", axpy, axpy));
  // Without CUDA_EVENT nobody knows on which stream the event was recorded.
  EXPECT_THAT(waits, ::testing::UnorderedElementsAre(g.mangled ? "2 13 7" : "2 13 -1", "3 13 -1",
                                                     "4 -1 -1"));
  EXPECT_THAT(types, ElementsAre("7 3", "13 2"));
  // Where it is not known which event was waited for, the waiting stream is.
  const auto built = BuildGraph(*loaded);
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(built->report.event_waits, 1u);
  EXPECT_EQ(built->report.blocking_calls, 2u);
  ASSERT_EQ(t.devices.size(), 1u);
  EXPECT_EQ(t.devices[0].id, 0);
  EXPECT_EQ(t.devices[0].name, "NVIDIA A100");
  EXPECT_EQ(t.devices[0].clock_khz, 1'410'000);
  EXPECT_EQ(t.devices[0].memory_bandwidth_kbps, 1'555'000'000);
  EXPECT_EQ(t.devices[0].max_threads_per_multiprocessor, 2048);
}

INSTANTIATE_TEST_SUITE_P(Nsys, NsysGenerations, ::testing::ValuesIn(kGenerations),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return "Schema" + name;
                         });

// Tools that cut exports down may leave the process out.
TEST(NsysCutDown, GpuWorkWithoutAProcessIsThatOfTheFirstCall) {
  std::string sql = File(kGenerations[9]);
  for (const char* table : {"KERNEL", "MEMCPY", "SYNCHRONIZATION", "CUDA_EVENT"}) {
    sql += fmt::format("ALTER TABLE CUPTI_ACTIVITY_KIND_{} DROP COLUMN globalPid;", table);
  }
  const auto t = ImportBytes(SqliteBytes(sql), "small.sqlite");
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_EQ((*t)->ranks.size(), 1u);
  EXPECT_EQ(AccountedFor(**t), (*t)->provenance.input_events);
  uint64_t without = 0;
  for (const ImportCount& count : (*t)->provenance.counts) {
    if (count.what == "GPU records without their process") without = count.count;
  }
  EXPECT_EQ(without, 7u) << "two kernels, a copy, three waits, an event";
  const auto built = BuildGraph(*t);
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(built->report.launched, 3u);
  EXPECT_EQ(built->report.blocking_calls, 2u);
}

}  // namespace
}  // namespace daydream
