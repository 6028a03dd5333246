// Nsight Systems exports (`nsys export --type sqlite`), 2020 to 2026. docs/imports/nsys.md says
// which tables are read and what becomes of them.
#include <algorithm>
#include <map>

#include "trace/importer.h"
#include "trace/nsys/file.h"
#include "trace/nsys/finish.h"
#include "trace/nsys/gpu.h"
#include "trace/nsys/host.h"

namespace daydream {
namespace {

struct SkippedTable {
  std::string_view table, what, reason;
};

// Every row of these is counted and none becomes an event.
constexpr SkippedTable kCounted[] = {
    {"CUPTI_ACTIVITY_KIND_OVERHEAD", "profiler overhead", "it lies inside of calls"},
    {"PROFILER_OVERHEAD", "profiler overhead", "it lies inside of calls"},
    {"OSRT_API", "calls of the operating system", "they are part of the CPU's time"},
    {"SCHED_EVENTS", "scheduling of threads", "it is part of the CPU's time"},
    {"COMPOSITE_EVENTS", "samples of the CPU", "they are no events"},
    {"CUDA_GRAPH_EVENTS", "construction of CUDA graphs", "its calls are there"},
    {"CUDA_GRAPH_NODE_EVENTS", "construction of CUDA graphs", "its calls are there"},
    {"CUDA_CALLCHAINS", "call chains", "where in the program a call was made"},
    {"OSRT_CALLCHAINS", "call chains", "where in the program a call was made"},
    {"SAMPLING_CALLCHAINS", "call chains", "where in the program a call was made"},
    {"CUDA_UM_CPU_PAGE_FAULT_EVENTS", "page faults of unified memory", "they lie inside of work"},
    {"CUDA_UM_GPU_PAGE_FAULT_EVENTS", "page faults of unified memory", "they lie inside of work"},
    {"GPU_METRICS", "samples of GPU counters", "hardware counters are not read"},
};

// Tables that names and properties come from: looked up, not counted.
constexpr std::string_view kLookedUp[] = {
    "StringIds",
    "NVTX_PAYLOAD_SCHEMA_ENTRIES",
    "META_DATA_EXPORT",
    "EXPORT_META_DATA",
    "ThreadNames",
    "TARGET_INFO_GPU",
    "TARGET_INFO_CUDA_DEVICE",
    "TARGET_INFO_CUDA_STREAM",
    "TARGET_INFO_CUDA_NULL_STREAM",
    "TARGET_INFO_CUDA_CONTEXT_INFO",
    "TARGET_INFO_SESSION_START_TIME",
};

constexpr std::string_view kRead[] = {
    "CUPTI_ACTIVITY_KIND_RUNTIME",         "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",          "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",     "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "NVTX_EVENTS",
};

absl::Status NoteOtherTables(NsysFile& file) {
  const auto among = [](const auto& list, std::string_view table) {
    return std::find(std::begin(list), std::end(list), table) != std::end(list);
  };
  for (const std::string& table : file.db.tables()) {
    const bool counted = std::any_of(std::begin(kCounted), std::end(kCounted),
                                     [&](const SkippedTable& t) { return t.table == table; });
    if (counted || among(kRead, table) || among(kLookedUp, table)) continue;
    DD_ASSIGN_OR_RETURN(const uint64_t rows, file.db.Rows(table));
    file.builder.AddTableNotRead(table, rows);
  }
  return absl::OkStatus();
}

bool SniffNsys(const SqliteFile& file) {
  const bool event = std::any_of(std::begin(kRead), std::end(kRead),
                                 [&](std::string_view table) { return file.Has(table); });
  return file.Has("StringIds") && event;
}

absl::Status ImportNsys(SqliteFile& db, const ImportOptions& options, TraceBuilder& builder) {
  NsysFile file(db, options, builder);
  size_t done = 0;
  const auto progress = [&] {
    if (options.progress) options.progress(static_cast<int64_t>(++done), 5);
  };
  DD_RETURN_IF_ERROR(ReadNsysWork(file));
  progress();
  {
    NsysWaits waits(file);
    DD_RETURN_IF_ERROR(waits.Read());
    progress();
    DD_RETURN_IF_ERROR(ReadNsysCalls(file, waits));
    waits.Finish();
    progress();
  }
  NsysCollectives collectives;
  DD_RETURN_IF_ERROR(NsysRanges(file, collectives).Read());
  progress();
  for (const SkippedTable& t : kCounted) {
    DD_RETURN_IF_ERROR(file.SkipTable(t.table, t.what, t.reason));
  }
  DD_RETURN_IF_ERROR(NoteOtherTables(file));
  DD_RETURN_IF_ERROR(ReadNsysFacts(file));
  builder.WhenBuilt([collectives = std::move(collectives)](Trace& trace) mutable {
    collectives.Finish(trace);
    FinishNsysTrace(trace);
  });
  return file.Finish();
}

}  // namespace

const Importer kNsys = {
    .name = "nsys",
    .summary = "Nsight Systems export (SQLite)",
    .sniff_tables = SniffNsys,
    .import_tables = ImportNsys,
    .recorder = {.writer = "Nsight Systems 2020 to 2026, nsys export --type sqlite",
                 .record = "nsys profile --trace=cuda,nvtx --cuda-event-trace=true "
                           "--cuda-graph-trace=node PROGRAM",
                 .answers = "everything; layers and shapes with NVTX ranges (emit_nvtx)",
                 .later =
                     "record after warm-up: nsys profile --delay 30 --duration 10 (seconds), or "
                     "--capture-range=cudaProfilerApi"},
};

}  // namespace daydream
