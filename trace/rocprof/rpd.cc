// RPD (rocmProfileData, ROCm 6 and older): SQLite with calls in rocpd_api, GPU work in rocpd_op,
// and which call made which work in rocpd_api_ops.
#include <algorithm>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "trace/rocprof/rows.h"
#include "trace/rows/ordered_index.h"
#include "trace/sqlite/database.h"

namespace daydream {
namespace {

constexpr std::string_view kTables[] = {"rocpd_api",       "rocpd_op",      "rocpd_api_ops",
                                        "rocpd_kernelapi", "rocpd_copyapi", "rocpd_string",
                                        "sqlite_sequence"};

class RpdReader {
 public:
  RpdReader(SqliteFile& db, RocprofRows& rows) : db_(db), rows_(rows) {}

  absl::Status Run() {
    DD_RETURN_IF_ERROR(ReadJoins());
    DD_RETURN_IF_ERROR(ReadLaunches());
    DD_RETURN_IF_ERROR(ReadCopySizes());
    DD_RETURN_IF_ERROR(ReadCalls());
    return ReadWork();
  }

 private:
  // What a call launched. Of a call that is not there nothing is known but blocks of threads.
  struct Launched {
    uint32_t launch = 0;  // in launches_
    bool in_items = true;
  };

  absl::Status ReadJoins() {
    SqliteRows rows(db_, "rocpd_api_ops", {"api_id", "op_id"});
    while (rows.Next()) call_of_.Add(rows.Int(1, -1), rows.Int(0, 0));
    return rows.status();
  }

  absl::Status ReadLaunches() {
    SqliteRows rows(db_, "rocpd_kernelapi",
                    {"api_ptr_id", "groupSegmentSize", "workgroupX", "workgroupY", "workgroupZ",
                     "gridX", "gridY", "gridZ"});
    while (rows.Next()) {
      RocprofLaunch launch;
      launch.shared_memory = rows.Int(1, 0);
      for (int i = 0; i < 3; ++i) {
        launch.block[static_cast<size_t>(i)] = rows.Int(2 + i, 0);
        launch.grid[static_cast<size_t>(i)] = rows.Int(5 + i, 0);
      }
      const auto [it, fresh] =
          launch_row_.try_emplace(launch, static_cast<uint32_t>(launches_.size()));
      if (fresh) launches_.push_back(launch);
      launched_.Add(rows.Int(0, -1), {.launch = it->second});
    }
    return rows.status();
  }

  absl::Status ReadCopySizes() {
    SqliteRows rows(db_, "rocpd_copyapi", {"api_ptr_id", "size"});
    while (rows.Next()) sizes_.Add(rows.Int(0, -1), rows.Int(1, 0));
    return rows.status();
  }

  // Ranges of roctx are calls "UserMarker" whose argument is the text.
  absl::Status ReadCalls() {
    SqliteRows rows(db_, "rocpd_api",
                    {"id", "pid", "tid", "start", "end", "apiName_id", "args_id"});
    while (rows.Next()) {
      const int64_t id = rows.Int(0, 0);
      RocprofSpan span{.start = rows.Int(3, -1),
                       .end = rows.Int(4, -1),
                       .process = rows.Int(1, 0),
                       .thread = rows.Int(2, 0),
                       .correlation = id};
      const std::string& name = Text(rows.Int(5, -1));
      if (name == "UserMarker") {
        span.correlation = 0;
        rows_.AddRegion(span, "MARKER", Text(rows.Int(6, -1)));
        continue;
      }
      rows_.AddRegion(span, name.starts_with("hsa") ? "HSA" : "HIP", name);
      if (Launched* launched = launched_.Find(id); launched != nullptr) {
        launched->in_items = CountsWorkItems(name);
      }
    }
    return rows.status();
  }

  // Calls of HIP's extension count work-items themselves, all others blocks.
  static bool CountsWorkItems(std::string_view call) {
    return call.find("Ext") != std::string_view::npos || call.find("Hcc") != std::string_view::npos;
  }

  RocprofLaunch LaunchOf(int64_t call) {
    const Launched* launched = launched_.Find(call);
    if (launched == nullptr) return {};
    RocprofLaunch launch = launches_[launched->launch];
    if (launched->in_items) return launch;
    constexpr int64_t kMost = int64_t{1} << 31;
    for (size_t i = 0; i < 3; ++i) {
      launch.grid[i] = std::clamp<int64_t>(launch.grid[i], 0, kMost) *
                       std::clamp<int64_t>(launch.block[i], 1, kMost);
    }
    return launch;
  }

  absl::Status ReadWork() {
    SqliteRows rows(db_, "rocpd_op",
                    {"id", "gpuId", "queueId", "start", "end", "description_id", "opType_id"});
    while (rows.Next()) {
      const int64_t* call = call_of_.Find(rows.Int(0, -1));
      RocprofSpan span{.start = rows.Int(3, -1),
                       .end = rows.Int(4, -1),
                       .agent = rows.Int(1, 0),
                       .stream = rows.Int(2, 0),
                       .correlation = call == nullptr ? 0 : *call};
      const std::string& type = Text(rows.Int(6, -1));
      const bool fill = type.starts_with("Fill");
      if (type.starts_with("Copy")) {
        const int64_t* size = sizes_.Find(span.correlation);
        rows_.AddAgent(span.agent, true, "");
        const bool to_host = type == "CopyDeviceToHost", from_host = type == "CopyHostToDevice";
        rows_.AddCopy(span,
                      to_host     ? "DEVICE_TO_HOST"
                      : from_host ? "HOST_TO_DEVICE"
                                  : "DEVICE_TO_DEVICE",
                      from_host ? -1 : span.agent, to_host ? -1 : span.agent,
                      size == nullptr ? 0 : *size);
      } else if (type.starts_with("Kernel") || fill) {
        rows_.AddAgent(span.agent, true, "");
        const std::string& name = Text(rows.Int(5, -1));
        rows_.AddDispatch(span, name.empty() && fill ? "__amd_rocclr_fillBuffer" : name,
                          LaunchOf(span.correlation));
      } else {
        rows_.Skip("barriers and markers of queues", "they do no work");
      }
    }
    return rows.status();
  }

  const std::string& Text(int64_t id) {
    const auto [it, fresh] = texts_.try_emplace(id);
    if (fresh && id >= 0) it->second = db_.FindByKey("rocpd_string", "string", "id", id);
    return it->second;
  }

  SqliteFile& db_;
  RocprofRows& rows_;
  OrderedIndex<int64_t> call_of_;  // of an operation
  OrderedIndex<int64_t> sizes_;    // of the copies of a call
  OrderedIndex<Launched> launched_;
  std::vector<RocprofLaunch> launches_;  // all that differ
  absl::flat_hash_map<RocprofLaunch, uint32_t> launch_row_;
  std::map<int64_t, std::string> texts_;
};

bool SniffRpd(const SqliteFile& file) { return file.Has("rocpd_api") && file.Has("rocpd_op"); }

absl::Status ImportRpd(SqliteFile& file, const ImportOptions& options, TraceBuilder& builder) {
  RocprofRows rows(options, builder, file.name());
  DD_RETURN_IF_ERROR(RpdReader(file, rows).Run());
  for (const std::string& table : file.tables()) {
    if (std::find(std::begin(kTables), std::end(kTables), table) != std::end(kTables)) continue;
    DD_ASSIGN_OR_RETURN(const uint64_t count, file.Rows(table));
    builder.AddTableNotRead(table, count);
  }
  return rows.Finish();
}

}  // namespace

const Importer kRpd = {
    .name = "rpd",
    .summary = "RPD database of rocmProfileData",
    .sniff_tables = SniffRpd,
    .import_tables = ImportRpd,
    .recorder = {.writer = "rocmProfileData (ROCm 6 and older), SQLite",
                 .record = "runTracer.sh -o trace.rpd PROGRAM",
                 .answers = "everything; waits by the names of calls",
                 .later = "record more steps, or begin later with rpdTracerControl",
                 .waits = kRecordRocpd},
};

}  // namespace daydream
