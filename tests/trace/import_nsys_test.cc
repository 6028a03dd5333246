// Nsight Systems exports: small ones made here. The real ones are in import_nsys_real_test.cc.
#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "graph/build.h"
#include "simulator/simulate.h"
#include "tests/trace/kineto_text.h"
#include "tests/trace/nsys_small.h"
#include "tests/trace/sqlite_bytes.h"
#include "tests/trace/trace_equal.h"
#include "trace/ddtrace/writer.h"
#include "trace/importer.h"
#include "trace/nsys/names.h"
#include "trace/nsys/range_text.h"
#include "trace/steps.h"

namespace daydream {
namespace {

std::shared_ptr<const Trace> Load(const std::string& sql, const ImportOptions& options = {}) {
  auto trace = ImportBytes(SqliteBytes(sql), "small.sqlite", options);
  EXPECT_TRUE(trace.ok()) << trace.status();
  return trace.ok() ? *trace : nullptr;
}

size_t CountOf(const Trace& t, EventKind kind) {
  return static_cast<size_t>(std::count(t.kind.begin(), t.kind.end(), kind));
}

std::vector<const SyncDetail*> Waits(const Trace& t) {
  std::vector<const SyncDetail*> waits;
  for (size_t row = 0; row < t.rows(); ++row) {
    if (t.kind[row] == EventKind::kSync) waits.push_back(&t.syncs[t.detail[row]]);
  }
  return waits;
}

TEST(ImportNsys, EveryRowIsAnEventOrCounted) {
  auto t = Load(SmallNsys());
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->provenance.importer, "nsys");
  EXPECT_EQ(t->provenance.input_events, 3u * (4 + 2 + 1 + 1));
  EXPECT_EQ(AccountedFor(*t), t->provenance.input_events);
  EXPECT_EQ(CountOf(*t, EventKind::kKernel), 3u);
  EXPECT_EQ(CountOf(*t, EventKind::kOp), 6u);
}

TEST(ImportNsys, NamesAreThoseOfThePyTorchProfiler) {
  auto t = Load(SmallNsys());
  ASSERT_NE(t, nullptr);
  for (size_t row = 0; row < t->rows(); ++row) {
    const std::string_view name = t->EventName(row);
    if (t->kind[row] == EventKind::kKernel) {
      EXPECT_EQ(name, "void axpy<float>(float*, int)");
    }
    EXPECT_EQ(name.find("_v"), std::string_view::npos) << name;
  }
  EXPECT_EQ(NsysCallName("cudaMemcpyAsync_ptsz_v7000"), "cudaMemcpyAsync");
  EXPECT_EQ(NsysCallName("cuLaunchKernelEx"), "cuLaunchKernelEx");
  EXPECT_EQ(NsysCopyName(1, 1, 2), "Memcpy HtoD (Pinned -> Device)");
  EXPECT_EQ(PlainKernelName("void f<(int)4, (bool)1, <unnamed>::g>(float *, const T1 &)"),
            "void f<4, true, (anonymous namespace)::g>(float*, const T1&)");
  EXPECT_EQ(PlainKernelName("h(long)::[lambda(int) (instance 2)]::operator ()() const"),
            "h(long)::{lambda(int)#2}::operator()() const");
}

TEST(ImportNsys, RangesOfEmitNvtxAreReadFromTheRight) {
  const NsysRangeText plain = ParseRangeText("a, b = 3, op_id = x");
  EXPECT_EQ(plain.name, "a, b = 3, op_id = x");
  EXPECT_FALSE(plain.is_op());
  const NsysRangeText op = ParseRangeText(
      "f(a, seq = 1), seq = 7, op_id = 9, sizes = [[1, 2], []], input_op_ids = [(3,0)]");
  EXPECT_EQ(op.name, "f(a, seq = 1)");
  EXPECT_EQ(op.sequence, 7);
  EXPECT_EQ(op.op, 9);
  EXPECT_EQ(op.shapes, "[[1, 2], []]");
  EXPECT_EQ(op.producers, "[(3,0)]");
  const NsysRangeText old = ParseRangeText("aten::add, seq = 4, sizes = [[2]]");
  EXPECT_EQ(old.name, "aten::add");
  EXPECT_EQ(old.sequence, 4);
}

TEST(ImportNsys, ArgumentsNameTheOpThatMadeThem) {
  auto t = Load(SmallNsys());
  ASSERT_NE(t, nullptr);
  ASSERT_EQ(t->dependencies.size(), 3u);
  for (const DataDependency& d : t->dependencies) {
    EXPECT_EQ(t->EventName(d.producer), "aten::linear");
    EXPECT_EQ(t->EventName(d.consumer), "aten::relu");
    EXPECT_LE(t->End(d.producer), t->start[d.consumer]);
  }
}

TEST(ImportNsys, RangesThatComeBackInEveryStepAreLayers) {
  auto t = Load(SmallNsys());
  ASSERT_NE(t, nullptr);
  const Steps steps = FindSteps(*t);
  EXPECT_EQ(steps.steps.size(), 3u);
  EXPECT_EQ(steps.method, StepMethod::kAnnotation);
  EXPECT_EQ(CountOf(*t, EventKind::kFrame), 3u);
  EXPECT_EQ(CountOf(*t, EventKind::kAnnotation), 3u);
}

// The stored kind is 1 for a wait for the device up to 3.24, and 1 for an event from 3.25 on.
TEST(ImportNsys, WhatAWaitIsForIsSaidByItsCall) {
  for (const char* version : {"", "3.16.1", "3.25.0"}) {
    auto t = Load(SmallNsys(version));
    ASSERT_NE(t, nullptr);
    ASSERT_EQ(Waits(*t).size(), 3u);
    for (const SyncDetail* wait : Waits(*t)) EXPECT_EQ(wait->kind, SyncKind::kContext) << version;
  }
}

TEST(ImportNsys, WithoutTheCallTheNumberCountsFrom325On) {
  const std::string wait = NsysWait(10, 20, 5, 1, 7);
  EXPECT_EQ(Waits(*Load(NsysTables("3.24.0") + wait))[0]->kind, SyncKind::kUnknown);
  EXPECT_EQ(Waits(*Load(NsysTables("3.25.0") + wait))[0]->kind, SyncKind::kEvent);
}

TEST(ImportNsys, CallsThatOnlyAskAreNoWaits) {
  auto t = Load(NsysTables("3.7.2") + NsysCall(10, 20, 5, 8) + NsysWait(10, 20, 5, 2, 7));
  ASSERT_NE(t, nullptr);
  EXPECT_TRUE(Waits(*t).empty());
  EXPECT_EQ(AccountedFor(*t), 2u);
}

TEST(ImportNsys, AWaitForAnEventKnowsWhereTheEventWasRecorded) {
  std::string sql = NsysTables("3.24.0");
  sql += NsysCall(10, 11, 3, 10) + NsysCall(20, 21, 4, 10) + NsysCall(30, 31, 6, 11);
  sql += std::string("INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES (0,1,7,3,") + kNsysPid +
         ",50,1), (0,1,9,4," + kNsysPid + ",50,2);";
  auto with = Load(sql + NsysWait(30, 31, 6, 2, 13, 50, 1));
  EXPECT_EQ(Waits(*with)[0]->wait_on_stream, 7);
  EXPECT_EQ(Waits(*with)[0]->record_correlation, 3u);
  auto without = Load(sql + NsysWait(30, 31, 6, 2, 13, 50));
  EXPECT_EQ(Waits(*without)[0]->wait_on_stream, 9) << "the last record before the wait";
  EXPECT_EQ(Waits(*without)[0]->kind, SyncKind::kStreamWaitEvent);
  EXPECT_EQ(Waits(*without)[0]->stream, 13);
}

// Two processes that count their calls from 1 and call their GPU 0.
TEST(ImportNsys, ProcessesAreRanksAndShareNothing) {
  std::string sql = SmallNsys();
  const std::string other = "134217728";  // process 8
  sql += "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1500,1510,1,134217737,1,1,0);";
  sql += "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1600,1700,0,1,7,1," + other +
         ",6,5,4,32,10,1,1,256,1,1,0,0,NULL);";
  auto t = Load(sql);
  ASSERT_NE(t, nullptr);
  ASSERT_EQ(t->ranks.size(), 2u);
  EXPECT_EQ(t->ranks[1].rank, 1);
  std::set<uint32_t> first, second;
  std::set<int32_t> devices;
  for (size_t row = 0; row < t->rows(); ++row) {
    const Lane& lane = t->lanes[t->lane[row].index()];
    if (t->correlation[row] != 0) (lane.rank == 0 ? first : second).insert(t->correlation[row]);
    if (lane.kind == LaneKind::kStream && lane.rank == 1) devices.insert(lane.device);
  }
  EXPECT_EQ(second.size(), 1u);
  EXPECT_FALSE(first.contains(*second.begin()));
  EXPECT_EQ(devices, std::set<int32_t>{1}) << "its GPU 0 is another one";
}

TEST(ImportNsys, BacktracesOfCallsAreCounted) {
  auto t = Load(SmallNsys() + "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1030,1040,67," +
                kNsysTid + ",1,1,0);");
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(CountOf(*t, EventKind::kCall), 6u);
  EXPECT_EQ(AccountedFor(*t), t->provenance.input_events);
}

TEST(ImportNsys, AWholeGraphIsOneKernel) {
  auto t = Load(SmallNsys() +
                "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT, end INT, deviceId INT, "
                "contextId INT, streamId INT, correlationId INT, globalPid INT, graphId INT);"
                "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1700,1800,0,1,7,99," +
                kNsysPid + ",4);");
  ASSERT_NE(t, nullptr);
  EXPECT_TRUE(t->names->Find("CUDA graph 4").valid());
}

TEST(ImportNsys, NothingOfTheEnvironmentIsCopied) {
  auto t = Load(SmallNsys());
  ASSERT_NE(t, nullptr);
  auto bytes = SerializeDdtrace(*t);
  ASSERT_TRUE(bytes.ok());
  for (size_t i = 0; i < t->names->size(); ++i) {
    EXPECT_EQ(t->names->Get(NameId(i)).find("secret"), std::string_view::npos);
  }
  const std::string info = trace_equal_internal::ProvenanceText(t->provenance);
  EXPECT_EQ(info.find("secret"), std::string::npos);
  ASSERT_FALSE(t->provenance.tables_not_read.empty());
  EXPECT_EQ(t->provenance.tables_not_read[0].first, "TARGET_INFO_SYSTEM_ENV");
}

TEST(ImportNsys, ReadsBackFromDdtraceAsItWas) {
  auto t = Load(SmallNsys());
  ASSERT_NE(t, nullptr);
  auto bytes = SerializeDdtrace(*t);
  ASSERT_TRUE(bytes.ok());
  auto again = ImportBytes(*bytes, "small.ddtrace");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(TraceDifference(*t, **again), "");
}

TEST(ImportNsys, RowsWithoutTimesAreCountedUpToALimit) {
  const std::string sql = SmallNsys() + NsysKernel(900, 800, 77);
  EXPECT_EQ(DiagnosticOf(ImportBytes(SqliteBytes(sql), "s").status()).code, "E0210");
  auto t = Load(sql, {.max_malformed = 1});
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(AccountedFor(*t), t->provenance.input_events);
}

TEST(ImportNsys, OtherSqliteFilesAreNamed) {
  const auto error = [](const std::string& bytes) {
    return DiagnosticOf(ImportBytes(bytes, "s").status());
  };
  EXPECT_EQ(error(SqliteBytes("CREATE TABLE users (id INT);")).code, "E0203");
  const std::string cpu = "CREATE TABLE StringIds (id INT); CREATE TABLE META_DATA_EXPORT (name);";
  EXPECT_NE(error(SqliteBytes(cpu)).what.find("neither GPU work nor CUDA calls"),
            std::string::npos);
  // Version 2020 without rows of CUDA or NVTX: their tables are not there.
  const std::string old = "CREATE TABLE StringIds (id INT); CREATE TABLE OSRT_API (start INT);";
  EXPECT_NE(error(SqliteBytes(old)).what.find("neither GPU work nor CUDA calls"),
            std::string::npos);
  const std::string nvprof =
      "CREATE TABLE StringTable (_id_ INT); CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (_id_ INT);";
  EXPECT_NE(error(SqliteBytes(nvprof)).what.find("nvprof"), std::string::npos);
  EXPECT_NE(error(SqliteBytes("CREATE TABLE users (id INT);")).why.find("users"),
            std::string::npos);
  const std::string whole = SqliteBytes(SmallNsys());
  EXPECT_EQ(error(whole.substr(0, whole.size() / 2)).code, "E0230");
  EXPECT_EQ(error(whole.substr(0, 60)).code, "E0230");
}

// The exporter leaves out what it has no rows for; converters leave out more.
TEST(ImportNsys, MissingTablesAndColumnsAreNoErrors) {
  auto t = Load(
      "CREATE TABLE StringIds (id INT, value TEXT);"
      "INSERT INTO StringIds VALUES (1, 'k<(int)2>');"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, shortName INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5, 9, 1);");
  ASSERT_NE(t, nullptr);
  ASSERT_EQ(t->rows(), 1u);
  EXPECT_EQ(t->EventName(0), "k<2>");
}

// A layout as NCCL registers it, and two calls: one with its payload in it, one in a group.
TEST(ImportNsys, PayloadsOfNcclSayWhatItsKernelsMove) {
  const std::string bytes_16m = "0000000100000000", bytes_1m = "0000100000000000";
  const auto payload = [](const std::string& bytes) {
    return "X'01000000000000000200000000000000"
           "1000000000000000"
           "3000000000000000" +
           std::string("efbeadde00000000") + bytes + "'";
  };
  const auto range = [&](int start, int end, const std::string& name, const std::string& data) {
    return "INSERT INTO NVTX_EVENTS VALUES (" + std::to_string(start) + "," + std::to_string(end) +
           ",59,'" + name + "'," + kNsysTid + ",NULL,1," + data + ");";
  };
  std::string sql = NsysTables("3.25.0");
  sql +=
      "CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INT, schemaId INT, idx INT, type INT,"
      " name TEXT, offset INT);"
      "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (1, 2, 0, 18, 'NCCL communicator ID', NULL),"
      " (1, 2, 1, 22, 'Message size [bytes]', 8), (1, 3, 0, 18, 'NCCL communicator ID', NULL),"
      " (1, 3, 1, 5, 'No. of ranks', 8);"
      "UPDATE StringIds SET value = 'ncclDevKernel_AllReduce_Sum_f32_RING_LL' WHERE id = 4;";
  sql += NsysRange(1, 2, "NCCL", 75);
  sql +=
      "UPDATE NVTX_EVENTS SET domainId = 1;"
      "ALTER TABLE NVTX_EVENTS ADD COLUMN binaryData;";
  sql += range(10, 90, "ncclCommInitRank",
               "X'01000000000000000300000000000000"
               "0c00000000000000"
               "2c00000000000000"
               "efbeadde0000000004000000'");
  sql += range(100, 200, "ncclAllReduce", payload(bytes_16m)) + NsysCall(110, 120, 1, 1) +
         NsysKernel(300, 400, 1);
  sql += range(500, 510, "ncclGroupStart", "NULL") +
         range(520, 530, "ncclAllGather", payload(bytes_1m)) +
         range(540, 600, "ncclGroupEnd", "NULL") + NsysCall(550, 560, 2, 1) +
         NsysKernel(700, 800, 2);
  auto t = Load(sql);
  ASSERT_NE(t, nullptr);
  std::vector<std::string> found;
  for (size_t row = 0; row < t->rows(); ++row) {
    if (t->kind[row] != EventKind::kKernel) {
      EXPECT_EQ(t->detail[row] == Id<void>::kNoneValue || t->kind[row] != EventKind::kAnnotation,
                true);
      continue;
    }
    const uint32_t collective = t->kernels[t->detail[row]].collective;
    ASSERT_LT(collective, t->collectives.size());
    const CollectiveDetail& c = t->collectives[collective];
    found.push_back(fmt::format("{} {} {} of {} {}", t->Name(c.name), c.elements_in,
                                t->Name(c.dtype), c.group_size, t->Name(c.process_group)));
  }
  EXPECT_EQ(found, (std::vector<std::string>{"allreduce 16777216 Byte of 4 00000000deadbeef",
                                             "allgather 1048576 Byte of 4 00000000deadbeef"}));
}

// Work that takes twice as long holds up a program that waits after each kernel by all of it.
TEST(ImportNsys, AProgramThatWaitsForEachKernelIsAsMuchSlowerAsItsGpu) {
  std::string sql = NsysTables("3.16.1");
  int64_t busy = 0;
  for (int i = 0; i < 50; ++i) {
    const int t = 1'000'000 + i * 300'000, length = 100'000 + i * 1000;
    sql += NsysCall(t, t + 5000, 2 * i + 1, 1) + NsysKernel(t + 8000, t + 8000 + length, 2 * i + 1);
    sql += NsysCall(t + 6000, t + 10'000 + length, 2 * i + 2, 3) +
           NsysWait(t + 6000, t + 10'000 + length, 2 * i + 2, 1, 4294967295);
    busy += length;
  }
  const auto t = Load(sql);
  ASSERT_NE(t, nullptr);
  auto built = BuildGraph(t);
  ASSERT_TRUE(built.ok()) << built.status();
  const auto before = Simulate(built->graph);
  ASSERT_TRUE(before.ok());
  for (size_t i = 0; i < built->graph.size(); ++i) {
    Task& task = built->graph.mutable_task(TaskId(i));
    if (IsGpu(task.kind)) task.duration = task.duration * 2;
  }
  const auto after = Simulate(built->graph);
  ASSERT_TRUE(after.ok());
  EXPECT_NEAR(static_cast<double>((after->makespan - before->makespan).ns),
              static_cast<double>(busy), 0.001 * static_cast<double>(busy));
}

}  // namespace
}  // namespace daydream
