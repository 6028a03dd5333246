#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/trace/kineto_text.h"
#include "tests/trace/sqlite_bytes.h"

namespace daydream {
namespace {

std::shared_ptr<const Trace> Import(std::string_view text) {
  auto trace = ImportText(text);
  EXPECT_TRUE(trace.ok()) << Message(trace.status());
  return trace.ok() ? *trace : nullptr;
}

std::string Kernel(std::string_view name, std::string_view ts, std::string_view args = "") {
  return Slice("kernel", name, ts, "5",
               fmt::format(R"("device": 0, "stream": 7, "correlation": 3{})", args),
               R"("pid": 0, "tid": 7)");
}

// The row with this name; fails the test when there is none.
size_t RowOf(const Trace& t, std::string_view name) {
  for (size_t row = 0; row < t.rows(); ++row) {
    if (t.EventName(row) == name) return row;
  }
  ADD_FAILURE() << "no row named " << name;
  return 0;
}

TEST(ImportKineto, ReadsEveryGenerationOfCategoryNames) {
  struct Case {
    std::string category, name;
    EventKind kind;
  };
  const std::vector<Case> cases = {
      {"cpu_op", "aten::mm", EventKind::kOp},
      {"Operator", "aten::add", EventKind::kOp},
      {"Operator", "ProfilerStep#5", EventKind::kAnnotation},
      {"Operator", "Optimizer.step#SGD.step", EventKind::kAnnotation},
      {"Operator", "enumerate(DataLoader)#x", EventKind::kAnnotation},
      {"Operator", "nccl:all_reduce", EventKind::kAnnotation},
      {"Operator", "## forward ##", EventKind::kAnnotation},
      {"user_annotation", "mine", EventKind::kAnnotation},
      {"python_function", "nn.Module: Linear_0", EventKind::kFrame},
      {"cuda_runtime", "cudaLaunchKernel", EventKind::kCall},
      {"Runtime", "cudaMemcpyAsync", EventKind::kCall},
      {"cuda_driver", "cuLaunchKernel", EventKind::kCall},
      {"hip_runtime", "hipLaunchKernel", EventKind::kCall},
      {"kernel", "gemm", EventKind::kKernel},
      {"Kernel", "gemm2", EventKind::kKernel},
      {"gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", EventKind::kMemcpy},
      {"Memcpy", "Memcpy DtoH (Device -> Pageable)", EventKind::kMemcpy},
      {"gpu_memset", "Memset (Device)", EventKind::kMemset},
      {"Memset", "Memset (Unknown)", EventKind::kMemset},
      {"cuda_sync", "Context Sync", EventKind::kSync},
  };
  std::vector<std::string> events;
  events.reserve(cases.size());
  for (const Case& c : cases) events.push_back(Slice(c.category, c.name, "10", "1"));
  auto trace = Import(KinetoFile(events));
  ASSERT_NE(trace, nullptr);
  ASSERT_EQ(trace->rows(), cases.size());
  for (const Case& c : cases) EXPECT_EQ(trace->kind[RowOf(*trace, c.name)], c.kind) << c.name;
}

TEST(ImportKineto, CountsWhatDoesNotBecomeARow) {
  const std::vector<std::string> events = {
      Slice("cpu_op", "aten::mm", "10", "1"),
      Slice("python_function", "train.py(3): step", "10", "1"),
      Slice("gpu_user_annotation", "ProfilerStep#1", "10", "1"),
      Slice("overhead", "Buffer Flush", "10", "1"),
      Slice("Trace", "PyTorch Profiler (0)", "10", "1"),
      Slice("cuda_profiler_range", "k", "10", "1"),
      Slice("mtia_workload", "k", "10", "1"),
      R"({"ph": "s", "id": 1, "pid": 1, "tid": 1, "ts": 1, "cat": "ac2g", "name": "ac2g"})",
      R"({"ph": "f", "id": 1, "pid": 1, "tid": 1, "ts": 1, "cat": "fwdbwd", "name": "fwdbwd"})",
      R"({"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 1, "args": {"a": 1}})",
      R"({"name": "thread_name", "ph": "M", "pid": 1, "tid": 2, "args": {"name": "main "}})",
  };
  auto trace = Import(KinetoFile(events));
  ASSERT_NE(trace, nullptr);
  EXPECT_EQ(trace->rows(), 1u);
  EXPECT_EQ(trace->provenance.input_events, events.size());
  EXPECT_EQ(AccountedFor(*trace), events.size());
  for (const char* what :
       {"Python frames", "GPU copies of annotations", "profiler overhead", "trace spans",
        "profiler counter ranges", "flow events", "forward-backward flow events", "instant events",
        "metadata events", "events of category mtia_workload"}) {
    EXPECT_EQ(CountOf(*trace, what), 1u) << what;
  }
  EXPECT_EQ(trace->Name(trace->lanes[0].name), "main");
}

TEST(ImportKineto, KeepsAllocationsOfGpuMemoryInTheOrderOfTime) {
  auto mark = [](int ts, std::string_view args) {
    return fmt::format(
        R"({{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, )"
        R"("tid": 2, "ts": {}, "args": {{{}}}}})",
        ts, args);
  };
  auto trace = Import(KinetoFile({
      Slice("cpu_op", "aten::mm", "10", "20"),
      mark(15, R"("Device Type": 1, "Device Id": 0, "Bytes": -512, "Addr": 7)"),
      mark(12, R"("Total Reserved": 4096, "Total Allocated": 1024, "Device Type": 1, )"
               R"("Device Id": 2, "Bytes": 512)"),
      mark(13, R"("Device Type": 0, "Device Id": -1, "Bytes": 4)"),
      mark(13, R"("Device Type": 1, "Device Id": 0, "Bytes": 9000000000000000000)"),
  }));
  ASSERT_NE(trace, nullptr);
  EXPECT_EQ(CountOf(*trace, "GPU memory marks"), 2u);
  EXPECT_EQ(CountOf(*trace, "instant events"), 2u);
  EXPECT_EQ(trace->allocations,
            (std::vector<Allocation>{
                {.at = Instant{2000},
                 .lane = LaneId(0),
                 .device = 2,
                 .bytes = 512,
                 .allocated = 1024,
                 .reserved = 4096},
                {.at = Instant{5000}, .lane = LaneId(0), .device = 0, .bytes = -512}}));
}

TEST(ImportKineto, TimesAreExactNanoseconds) {
  auto trace = Import(KinetoFile({Slice("cpu_op", "a", "1712195495519689.047", "63.813"),
                                  Slice("cpu_op", "b", "\"1712195495519690.047\"", "\"2\"")},
                                 "\"baseTimeNanoseconds\": 5000,"));
  ASSERT_NE(trace, nullptr);
  ASSERT_EQ(trace->rows(), 2u);
  EXPECT_EQ(trace->start[0].ns, 0);
  EXPECT_EQ(trace->duration[0].ns, 63813);
  EXPECT_EQ(trace->start[1].ns, 1000);
  EXPECT_EQ(trace->duration[1].ns, 2000);
  EXPECT_EQ(trace->clock_origin_ns, 1712195495519689047 + 5000);
}

TEST(ImportKineto, KeepsTheDetailsOfGpuWork) {
  auto trace = Import(KinetoFile({
      Kernel("k", "10", R"(, "grid": [8, 16, 5], "block": [128, 1, 1], "shared memory": 12544,
             "registers per thread": 122, "graph node id": 18446744073709551615)"),
      Kernel("nccl", "20", R"(, "Collective name": "allreduce", "In msg nelems": 60,
             "Out msg nelems": 61, "Group size": 2, "dtype": "Float", "Process Group Name": "0")"),
      Slice("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", "30", "1",
            R"("device": 1, "stream": 20, "bytes": 4096)"),
      Slice("cuda_sync", "Stream Wait Event", "40", "0",
            R"("cuda_sync_kind": "Stream Wait Event", "stream": 20, "wait_on_stream": 7,
            "wait_on_cuda_event_record_corr_id": 9, "wait_on_cuda_event_id": 4, "device": 1)"),
  }));
  ASSERT_NE(trace, nullptr);
  const KernelDetail& k = trace->kernels[trace->detail[RowOf(*trace, "k")]];
  EXPECT_EQ(k, (KernelDetail{.grid = {8, 16, 5},
                             .block = {128, 1, 1},
                             .registers_per_thread = 122,
                             .shared_memory_bytes = 12544,
                             .graph_node = UINT64_MAX}));
  const KernelDetail& n = trace->kernels[trace->detail[RowOf(*trace, "nccl")]];
  const CollectiveDetail& c = trace->collectives.at(n.collective);
  EXPECT_EQ(trace->Name(c.name), "allreduce");
  EXPECT_EQ(trace->Name(c.dtype), "Float");
  EXPECT_EQ(trace->Name(c.process_group), "0");
  EXPECT_EQ(c.elements_in, 60);
  EXPECT_EQ(c.elements_out, 61);
  EXPECT_EQ(c.group_size, 2);
  size_t copy = RowOf(*trace, "Memcpy HtoD (Pageable -> Device)");
  EXPECT_EQ(trace->copies[trace->detail[copy]],
            (CopyDetail{.bytes = 4096, .from = Memory::kPageable, .to = Memory::kDevice}));
  const Lane& lane = trace->lanes[trace->lane[copy].index()];
  EXPECT_EQ(lane.kind, LaneKind::kStream);
  EXPECT_EQ(lane.device, 1);
  EXPECT_EQ(lane.number, 20);
  EXPECT_EQ(trace->Name(lane.name), "stream 20");
  EXPECT_EQ(trace->syncs[trace->detail[RowOf(*trace, "Stream Wait Event")]],
            (SyncDetail{.kind = SyncKind::kStreamWaitEvent,
                        .stream = 20,
                        .wait_on_stream = 7,
                        .record_correlation = 9,
                        .event = 4}));
}

TEST(ImportKineto, KeepsTheDetailsOfOperators) {
  auto trace = Import(KinetoFile({
      Slice("cpu_op", "a", "1", "1", R"("Sequence number": 5, "Fwd thread id": 1,
            "Input Dims": [[951, 1024], []], "Input type": ["int", "Scalar"])"),
      Slice("Operator", "b", "3", "1", R"("Input dims": [[1]], "External id": 3)"),
      Slice("cpu_op", "c", "5", "1", R"("External id": 4)"),
  }));
  ASSERT_NE(trace, nullptr);
  const OpDetail& a = trace->ops.at(trace->detail[0]);
  EXPECT_EQ(a.sequence, 5);
  EXPECT_EQ(a.forward_thread, 1);
  EXPECT_EQ(trace->Name(a.shapes), "[[951, 1024], []]");
  EXPECT_EQ(trace->Name(a.types), R"(["int", "Scalar"])");
  EXPECT_EQ(trace->Name(trace->ops.at(trace->detail[1]).shapes), "[[1]]");
  EXPECT_EQ(trace->detail[2], Id<void>::kNoneValue);
}

TEST(ImportKineto, ThreadsMayBeTextAndEventsMayLieInAnArray) {
  auto trace =
      Import("[" + Slice("cpu_op", "a", "1", "1", "", R"("pid": "7", "tid": "1890023232")") + "," +
             Slice("cpu_op", "b", "1", "1", "", R"("pid": 7, "tid": "loader")") + "," +
             Slice("Kernel", "k", "1", "1", R"("device": 2, "stream": 7)",
                   R"("pid": 2, "tid": "stream 7")"));
  ASSERT_NE(trace, nullptr);
  ASSERT_EQ(trace->lanes.size(), 3u);
  EXPECT_EQ(trace->lanes[0].process, 7);
  EXPECT_EQ(trace->lanes[0].number, 1890023232);
  EXPECT_EQ(trace->Name(trace->lanes[1].name), "loader");
  EXPECT_EQ(trace->lanes[2].device, 2);
}

TEST(ImportKineto, ReadsTheHeaderWhereverItIs) {
  const std::string before = R"("deviceProperties": [{"id": 3, "name": "A \"B\"",
      "totalGlobalMem": 42, "computeMajor": 8, "computeMinor": 6, "numSms": 84, "warpSize": 32},
      {"id": 1}], "nested": {"traceEvents": [1]}, "n": null, "cuda_runtime_version": 12040,)";
  for (std::string_view distributed :
       {R"({"rank": 3, "world_size": 8, "nccl_version": "2.17.1"})",
        R"("{\"rank\": 3, \"world_size\": 8, \"nccl_version\": \"2.17.1\"}")"}) {
    std::string text = KinetoFile({Slice("cpu_op", "a", "1", "1")}, before);
    text.resize(text.rfind('}'));
    text += fmt::format(", \"distributedInfo\": {}, \"x\": [\"}}\"] }}", distributed);
    auto trace = Import(text);
    ASSERT_NE(trace, nullptr);
    ASSERT_EQ(trace->devices.size(), 2u);
    const Device* device = trace->FindDevice(3);
    ASSERT_NE(device, nullptr);
    EXPECT_EQ(device->name, "A \"B\"");
    EXPECT_EQ(device->memory_bytes, 42u);
    EXPECT_EQ(device->multiprocessors, 84);
    EXPECT_EQ(trace->ranks[0].rank, 3);
    EXPECT_EQ(trace->ranks[0].world_size, 8);
    const std::vector<std::pair<std::string, std::string>> software = {{"CUDA runtime", "12.4"},
                                                                       {"NCCL", "2.17.1"}};
    EXPECT_EQ(trace->provenance.software, software);
    EXPECT_TRUE(trace->provenance.counts.empty());
  }
}

TEST(ImportKineto, KernelsTellOnHowManyMultiprocessorsTheyWereLaunched) {
  const auto kernel = [](std::string_view blocks, std::string_view grid) {
    return Slice(
        "kernel", "k", "1", "1",
        fmt::format(R"("device": 0, "stream": 7, "blocks per SM": {}, "grid": {})", blocks, grid));
  };
  const std::string header = R"("deviceProperties": [{"id": 0, "numSms": 108}],)";
  const auto seen = [&](const std::vector<std::string>& events) {
    auto trace = Import(KinetoFile(events, header));
    return trace == nullptr ? -1 : trace->FindDevice(0)->launched_multiprocessors;
  };
  EXPECT_EQ(seen({kernel("5.3", "[4, 106, 1]"), kernel("6.7", "[67, 8, 1]"),
                  kernel("75.757576", "[10000, 1, 1]")}),
            80)
      << "that of most";
  EXPECT_EQ(seen({kernel("75.757576", "[10000, 1, 1]")}), 132);
  EXPECT_EQ(seen({kernel("0.007576", "[1, 1, 1]")}), 0) << "too coarse";
  EXPECT_EQ(seen({kernel("\"x\"", "[10000, 1, 1]"), kernel("NaN", "[10000, 1, 1]"),
                  kernel("5", "[4294967295, 4294967295, 4294967295]"), kernel("7", "[1, 1, 1]")}),
            0);
}

TEST(ImportKineto, ImpossibleEventsAreCountedWithTheirReason) {
  struct Case {
    std::string event, what;
  };
  const std::vector<Case> cases = {
      {Slice("cpu_op", "x", "NaN", "1"), "events without a usable start"},
      {Slice("cpu_op", "x", "9223372036854775808", "1"), "events without a usable start"},
      {Slice("cpu_op", "x", "1e300", "1"), "events without a usable start"},
      {Slice("cpu_op", "x", "1", "-1"), "events of negative duration"},
      {Slice("cpu_op", "x", "1", "inf"), "events without a usable duration"},
      {Slice("cpu_op", "x", "1", "\"N/A\""), "events without a usable duration"},
      {R"({"ph": "X", "cat": "cpu_op", "name": "x", "pid": 1, "tid": 2, "ts": 1})",
       "events without a duration"},
      {R"({"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 2, "ts": 1, "dur": 1})",
       "events without a name"},
      {R"({"ph": "X", "cat": "cpu_op", "name": "x", "ts": 1, "dur": 1})",
       "events without a thread"},
      {R"({"ph": "X", "cat": "kernel", "name": "x", "ts": 1, "dur": 1})",
       "GPU events without a stream"},
      {R"({"name": "x", "ts": 1})", "events without a phase"},
  };
  for (const Case& c : cases) {
    auto trace = Import(KinetoFile({Slice("cpu_op", "a", "1", "1"), c.event}));
    ASSERT_NE(trace, nullptr);
    EXPECT_EQ(trace->rows(), 1u) << c.event;
    EXPECT_EQ(CountOf(*trace, c.what), 1u) << c.event;
    EXPECT_EQ(AccountedFor(*trace), 2u) << c.event;
    auto strict =
        ImportText(KinetoFile({Slice("cpu_op", "a", "1", "1"), c.event}), {.strict = true});
    EXPECT_EQ(DiagnosticOf(strict.status()).code, "E0210") << c.event;
  }
}

TEST(ImportKineto, CopiesOfImpossibleSizesAreCounted) {
  const auto copy = [](std::string_view category, std::string_view bytes) {
    return Slice(category, "Memcpy HtoD (Pinned -> Device)", "1", "1",
                 fmt::format("\"stream\": 7, \"device\": 0, \"bytes\": {}", bytes));
  };
  for (std::string_view category : {"gpu_memcpy", "gpu_memset"}) {
    for (std::string_view bytes : {"-1", "281474976710657", "9223372036854775807"}) {
      auto trace = Import(KinetoFile({copy(category, bytes), copy(category, "281474976710656")}));
      ASSERT_NE(trace, nullptr);
      EXPECT_EQ(trace->rows(), 1u) << bytes;
      EXPECT_EQ(CountOf(*trace, "copies of an impossible size"), 1u) << bytes;
      EXPECT_EQ(AccountedFor(*trace), 2u) << bytes;
    }
  }
}

TEST(ImportKineto, CorrelationsThatRepeatOrOverflowAreCounted) {
  auto call = [](std::string_view category, std::string_view id) {
    return Slice(category, "cudaLaunchKernel", "1", "1", fmt::format("\"correlation\": {}", id));
  };
  auto trace = Import(
      KinetoFile({call("cuda_runtime", "5"), call("cuda_driver", "5"), call("cuda_runtime", "5"),
                  call("cuda_runtime", "-1"), call("cuda_runtime", "99999999999")}));
  ASSERT_NE(trace, nullptr);
  EXPECT_EQ(trace->rows(), 5u);
  EXPECT_EQ(CountOf(*trace, "repeated correlation ids"), 1u);
  EXPECT_EQ(CountOf(*trace, "correlation ids out of range"), 2u);
  EXPECT_EQ(AccountedFor(*trace), 5u);
}

// As `cat a.json b.json` makes it; blanks and a second bracket are no document.
TEST(ImportKineto, ADocumentBehindTheFirstIsCounted) {
  const std::string one = KinetoFile({Slice("cpu_op", "a", "1", "1")});
  const std::string array = "[" + Slice("cpu_op", "a", "1", "1") + "]";
  const std::string behind = "documents behind the first";
  for (const std::string& text : {one + one, fmt::format("{}\n{}", one, array), array + one}) {
    auto trace = Import(text);
    ASSERT_NE(trace, nullptr);
    EXPECT_EQ(trace->rows(), 1u) << text;
    EXPECT_EQ(CountOf(*trace, behind), 1u) << text;
  }
  for (const std::string& text : {one, one + "\n\n", array + " ]"}) {
    EXPECT_EQ(CountOf(*Import(text), behind), 0u) << text;
  }
}

TEST(ImportKineto, TooManyMalformedEventsAreRefused) {
  std::vector<std::string> events(1000, Slice("cpu_op", "a", "1", "1"));
  for (size_t i = 0; i < 20; ++i) events[i * 50] = Slice("cpu_op", "a", "NaN", "1");
  EXPECT_EQ(DiagnosticOf(ImportText(KinetoFile(events)).status()).code, "E0210");
  EXPECT_TRUE(ImportText(KinetoFile(events), {.max_malformed = 0.05}).ok());
}

TEST(Importer, NamesWhatItKnowsAndWhatItDoesNot) {
  auto code = [](std::string_view bytes) { return DiagnosticOf(ImportBytes(bytes, "t").status()); };
  EXPECT_EQ(code("hello, world").code, "E0203");
  EXPECT_NE(code("hello, world").why.find("kineto"), std::string::npos);
  EXPECT_EQ(code(std::string_view("SQLite format 3\0...", 19)).code, "E0230");
  EXPECT_EQ(code(R"({"schema": "1.0.1", "pid": 1, "nodes": []})").code, "E0204");
  EXPECT_EQ(code(R"({"some": "json"})").code, "E0211");
  EXPECT_EQ(code(R"({"traceEvents": []})").code, "E0211");
}

// What --from asks for is not tried on what is known to be another's.
TEST(Importer, AForcedFormatSaysThatTheFileIsOfAnother) {
  const std::string users = SqliteBytes("CREATE TABLE users (id INT);");
  const std::string nsys = SqliteBytes(
      "CREATE TABLE StringIds (id INT, value TEXT);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT);");
  const std::tuple<std::string, std::string, std::string> cases[] = {
      {"{}", "nsys", "this is no Nsight Systems export (SQLite)"},
      {nsys, "rocpd", "this is no rocprofv3 database (rocpd)"},
      {nsys, "kineto", "this is no PyTorch profiler JSON"},
      {users, "chakra", "this is no Chakra execution trace (.et)"},
      {users, "nsys", "this SQLite file is no trace that is known"}};
  for (const auto& [bytes, from, what] : cases) {
    const Diagnostic d = DiagnosticOf(ImportBytes(bytes, "t", {}, from).status());
    EXPECT_EQ(d.code, "E0203") << from;
    EXPECT_EQ(d.what, what) << from;
  }
}

TEST(ImportKineto, QueuesOfOtherGpusAreStreams) {
  auto trace = ImportText(R"({"traceEvents": [
    {"ph": "X", "cat": "xpu_runtime", "name": "urEnqueueKernelLaunch", "pid": 1, "tid": 2,
     "ts": 1, "dur": 2, "args": {"correlation": 5}},
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": "queue", "ts": 4, "dur": 6,
     "args": {"correlation": 5, "device": 0, "sycl queue": 3, "l0 queue": "0x7f"}},
    {"ph": "X", "cat": "kernel", "name": "copy", "pid": 0, "tid": "queue", "ts": 20, "dur": 6,
     "args": {"correlation": 6, "device": 0, "l0 queue": "0x7f"}},
    {"ph": "X", "cat": "mtia_ccp_events", "name": "fc", "pid": 1, "tid": 9, "ts": 40, "dur": 6,
     "args": {"correlation": 7, "device": 1, "stream": 9}}]})");
  ASSERT_TRUE(trace.ok()) << trace.status();
  std::vector<int64_t> streams;
  std::vector<std::string> names;
  for (const Lane& lane : (*trace)->lanes) {
    if (lane.kind != LaneKind::kStream) continue;
    streams.push_back(lane.number);
    names.emplace_back((*trace)->Name(lane.name));
  }
  ASSERT_EQ(streams.size(), 3u);
  EXPECT_EQ(streams[0], 3);
  EXPECT_NE(streams[1], 3);
  EXPECT_EQ(names[1], "0x7f") << "a text for a number stays what it is called";
  EXPECT_EQ(streams[2], 9);
  EXPECT_EQ((*trace)->rows(), 4u);
}

}  // namespace
}  // namespace daydream
