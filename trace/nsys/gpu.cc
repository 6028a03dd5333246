#include "trace/nsys/gpu.h"

#include <algorithm>

#include "trace/nsys/names.h"

namespace daydream {
namespace {

// 4294967295 is "not applicable" in columns of ids.
int64_t IdOr(const SqliteRows& rows, int column, int64_t fallback) {
  const int64_t id = rows.Int(column, -1);
  return id < 0 || id == int64_t{UINT32_MAX} ? fallback : id;
}

uint32_t Small(int64_t value) {
  return static_cast<uint32_t>(std::clamp<int64_t>(value, 0, UINT32_MAX));
}

// The columns that all tables of GPU work begin with.
constexpr std::string_view kWork[] = {"start",     "end",      "globalPid",     "deviceId",
                                      "contextId", "streamId", "correlationId", "graphNodeId"};
constexpr int kOwn = std::size(kWork);

std::vector<std::string_view> WorkColumns(std::initializer_list<std::string_view> own) {
  std::vector<std::string_view> columns(std::begin(kWork), std::end(kWork));
  columns.insert(columns.end(), own);
  return columns;
}

// Files that other tools cut down or made may not say which process a row is of: then it is the one
// whose call the file begins with.
class Processes {
 public:
  explicit Processes(NsysFile& file) : file_(file) {
    SqliteRows calls(file.db, "CUPTI_ACTIVITY_KIND_RUNTIME", {"globalTid"});
    if (calls.Next()) first_ = calls.Int(0, 0);
  }
  ~Processes() {
    file_.builder.Count("GPU records without their process",
                        "taken for those of the process of the first call", false, without_, -1,
                        false);
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  int64_t Of(const SqliteRows& rows, int column) {
    if (!rows.Empty(column)) return rows.Int(column, 0);
    ++without_;
    return first_;
  }

 private:
  NsysFile& file_;
  int64_t first_ = 0;
  uint64_t without_ = 0;
};

NsysStream StreamOf(const SqliteRows& rows, Processes& processes) {
  return {.process = processes.Of(rows, 2),
          .device = rows.Int(3, -1),
          .context = rows.Int(4, -1),
          .stream = IdOr(rows, 5, -1)};
}

// Time, lane and correlation of a row of GPU work. False: counted.
bool WorkRow(NsysFile& file, const SqliteRows& rows, Processes& processes,
             TraceBuilder::Event& event) {
  file.NoteRow();
  if (!file.Times(rows, 0, 1, event)) return false;
  const NsysStream stream = StreamOf(rows, processes);
  event.lane = file.lanes.Stream(stream);
  event.correlation = file.lanes.Correlation(file.lanes.Process(stream.process), IdOr(rows, 6, 0));
  return true;
}

absl::Status ReadKernels(NsysFile& file) {
  const auto columns = WorkColumns({"mangledName", "demangledName", "shortName", "gridX", "gridY",
                                    "gridZ", "blockX", "blockY", "blockZ", "registersPerThread",
                                    "staticSharedMemory", "dynamicSharedMemory"});
  SqliteRows rows(file.db, "CUPTI_ACTIVITY_KIND_KERNEL", columns);
  Processes processes(file);
  while (rows.Next()) {
    TraceBuilder::Event event{.kind = EventKind::kKernel};
    if (!WorkRow(file, rows, processes, event)) continue;
    event.name =
        file.KernelName(rows.Int(kOwn, -1), rows.Int(kOwn + 1, -1), rows.Int(kOwn + 2, -1));
    KernelDetail detail;
    for (int i = 0; i < 3; ++i) {
      detail.grid[static_cast<size_t>(i)] = Small(rows.Int(kOwn + 3 + i, 0));
      detail.block[static_cast<size_t>(i)] = Small(rows.Int(kOwn + 6 + i, 0));
    }
    detail.registers_per_thread = Small(rows.Int(kOwn + 9, 0));
    detail.shared_memory_bytes =
        Small(Small(rows.Int(kOwn + 10, 0)) + int64_t{Small(rows.Int(kOwn + 11, 0))});
    detail.graph_node = static_cast<uint64_t>(rows.Int(7, 0));
    event.detail = file.builder.AddKernel(detail);
    file.builder.AddEvent(event);
  }
  return rows.status();
}

absl::Status ReadCopies(NsysFile& file) {
  SqliteRows rows(file.db, "CUPTI_ACTIVITY_KIND_MEMCPY",
                  WorkColumns({"bytes", "copyKind", "srcKind", "dstKind"}));
  Processes processes(file);
  absl::flat_hash_map<int64_t, NameId> names;
  while (rows.Next()) {
    TraceBuilder::Event event{.kind = EventKind::kMemcpy};
    if (!WorkRow(file, rows, processes, event)) continue;
    const int64_t kind = rows.Int(kOwn + 1, 0), from = rows.Int(kOwn + 2, 7),
                  to = rows.Int(kOwn + 3, 7);
    const int64_t key = Small(kind) % 256 * 65536 + Small(from) % 256 * 256 + Small(to) % 256;
    auto [name, fresh] = names.try_emplace(key, NameId());
    if (fresh) name->second = file.builder.names().Intern(NsysCopyName(kind, from, to));
    event.name = name->second;
    event.detail = file.builder.AddCopy(
        {.bytes = static_cast<uint64_t>(std::max<int64_t>(0, rows.Int(kOwn, 0))),
         .from = NsysMemory(from),
         .to = NsysMemory(to)});
    file.builder.AddEvent(event);
  }
  return rows.status();
}

absl::Status ReadSets(NsysFile& file) {
  SqliteRows rows(file.db, "CUPTI_ACTIVITY_KIND_MEMSET", WorkColumns({"bytes", "memKind"}));
  Processes processes(file);
  while (rows.Next()) {
    TraceBuilder::Event event{.kind = EventKind::kMemset};
    if (!WorkRow(file, rows, processes, event)) continue;
    event.name = file.builder.names().Intern(NsysSetName(rows.Int(kOwn + 1, 7)));
    event.detail = file.builder.AddCopy(
        {.bytes = static_cast<uint64_t>(std::max<int64_t>(0, rows.Int(kOwn, 0)))});
    file.builder.AddEvent(event);
  }
  return rows.status();
}

// What ran inside is not known: one piece of GPU work as long as all of it.
absl::Status ReadGraphs(NsysFile& file) {
  SqliteRows rows(file.db, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", WorkColumns({"graphId"}));
  Processes processes(file);
  uint64_t launches = 0;
  while (rows.Next()) {
    TraceBuilder::Event event{.kind = EventKind::kKernel};
    if (!WorkRow(file, rows, processes, event)) continue;
    event.name = file.builder.names().Intern(fmt::format("CUDA graph {}", rows.Int(kOwn, 0)));
    file.builder.AddEvent(event);
    ++launches;
  }
  file.builder.Count("launches of whole CUDA graphs",
                     "what ran inside was not recorded: --cuda-graph-trace=node records it", false,
                     launches, -1, false);
  return rows.status();
}

}  // namespace

absl::Status ReadNsysWork(NsysFile& file) {
  DD_RETURN_IF_ERROR(ReadKernels(file));
  DD_RETURN_IF_ERROR(ReadCopies(file));
  DD_RETURN_IF_ERROR(ReadSets(file));
  return ReadGraphs(file);
}

absl::Status NsysWaits::Read() {
  constexpr std::string_view kTable = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
  DD_ASSIGN_OR_RETURN(const uint64_t all, file_.db.Rows(kTable));
  waits_.reserve(all);
  SqliteRows rows(file_.db, kTable,
                  {"start", "end", "globalPid", "deviceId", "contextId", "streamId",
                   "correlationId", "syncType", "eventId", "eventSyncId"});
  Processes processes(file_);
  while (rows.Next()) {
    file_.NoteRow();
    Wait wait{.event = {.kind = EventKind::kSync}, .stream = StreamOf(rows, processes)};
    if (!file_.Times(rows, 0, 1, wait.event)) continue;
    wait.process = file_.lanes.Process(wait.stream.process);
    // The table says 0 for processes on GPU 1.
    wait.stream.device =
        file_.lanes.DeviceOf(wait.process, wait.stream.context, wait.stream.device);
    wait.correlation = IdOr(rows, 6, 0);
    wait.type = rows.Int(7, 0);
    wait.event_sync = IdOr(rows, 9, 0);
    wait.detail = {.stream = wait.stream.stream, .event = IdOr(rows, 8, -1)};
    calls_.try_emplace({wait.process, wait.correlation});
    waits_.push_back(wait);
  }
  DD_RETURN_IF_ERROR(rows.status());
  return ReadRecords();
}

absl::Status NsysWaits::ReadRecords() {
  SqliteRows rows(
      file_.db, "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
      {"globalPid", "contextId", "streamId", "correlationId", "eventId", "eventSyncId"});
  Processes processes(file_);
  while (rows.Next()) {
    file_.NoteRow();
    file_.Skip("event records", "the waits for them say which they mean");
    const uint32_t process = file_.lanes.Process(processes.Of(rows, 0));
    if (records_.size() <= process) records_.resize(process + 1);
    records_[process].push_back({.correlation = Small(IdOr(rows, 3, 0)),
                                 .context = Small(rows.Int(1, 0)),
                                 .event = IdOr(rows, 4, -1),
                                 .event_sync = static_cast<uint64_t>(IdOr(rows, 5, 0)),
                                 .stream = IdOr(rows, 2, -1)});
  }
  return rows.status();
}

void NsysWaits::NoteCall(uint32_t process, int64_t correlation, SyncKind kind, bool query) {
  const auto it = calls_.find({process, correlation});
  if (it != calls_.end()) it->second = {kind, query};
}

// Before 3.25 the file's own table of kinds is wrong: 1 was stored for waits for the device, 2 for
// waits for a stream or an event.
SyncKind NsysWaits::KindOf(const Wait& wait) const {
  const SyncKind by_name = calls_.at({wait.process, wait.correlation}).kind;
  if (by_name != SyncKind::kUnknown || file_.schema < std::pair(3, 25)) return by_name;
  switch (wait.type) {
    case 1:
      return SyncKind::kEvent;
    case 2:
      return SyncKind::kStreamWaitEvent;
    case 3:
      return SyncKind::kStream;
    case 4:
      return SyncKind::kContext;
    default:
      return SyncKind::kUnknown;
  }
}

void NsysWaits::Join() {
  records_.resize(std::max<size_t>(records_.size(), 1));
  std::vector<std::vector<EventWait>> waits(records_.size());
  uint64_t without = 0;
  for (Wait& wait : waits_) {
    const SyncKind kind = wait.detail.kind;
    if (kind != SyncKind::kEvent && kind != SyncKind::kStreamWaitEvent) continue;
    if (wait.process >= waits.size()) {
      ++without;
      continue;
    }
    waits[wait.process].push_back({.correlation = Small(wait.correlation),
                                   .context = Small(wait.stream.context),
                                   .event_sync = static_cast<uint64_t>(wait.event_sync),
                                   .detail = &wait.detail});
  }
  for (size_t p = 0; p < waits.size(); ++p) without += JoinWaits(std::move(records_[p]), waits[p]);
  file_.builder.Count("waits for events whose record is not known",
                      "the recording has no CUDA events: --cuda-event-trace=true records them",
                      false, without, -1, false);
}

void NsysWaits::Finish() {
  for (Wait& wait : waits_) wait.detail.kind = KindOf(wait);
  Join();
  for (Wait& wait : waits_) {
    if (calls_.at({wait.process, wait.correlation}).query) {
      file_.Skip("rows of calls that only ask", "cudaEventQuery and its like wait for nothing");
      continue;
    }
    const bool context = wait.detail.kind == SyncKind::kContext;
    if (context) wait.detail.stream = wait.stream.stream = -1;
    if (wait.detail.record_correlation != 0) {
      wait.detail.record_correlation =
          file_.lanes.Correlation(wait.process, wait.detail.record_correlation);
    }
    constexpr std::string_view kNames[] = {"Synchronization", "Event Sync", "Stream Wait Event",
                                           "Stream Sync", "Context Sync"};
    static_assert(std::size(kNames) == static_cast<size_t>(SyncKind::kContext) + 1);
    wait.event.name = file_.builder.names().Intern(kNames[static_cast<size_t>(wait.detail.kind)]);
    wait.event.lane = file_.lanes.Stream(wait.stream);
    wait.event.correlation = file_.lanes.Correlation(wait.process, wait.correlation);
    wait.event.detail = file_.builder.AddSync(wait.detail);
    file_.builder.AddEvent(wait.event);
  }
}

}  // namespace daydream
