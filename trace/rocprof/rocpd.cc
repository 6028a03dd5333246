// rocpd: the SQLite files of rocprofv3 (ROCm 7), schema 3 and 4. Tables are called
// rocpd_NAME_UUID; a file may hold several recordings, each with its UUID. In schema 4 times are
// rows of rocpd_timestamp, and who ran what is said by rocpd_track.
#include <map>

#include "trace/rocprof/rows.h"
#include "trace/rows/ordered_index.h"
#include "trace/sqlite/database.h"

namespace daydream {
namespace {

constexpr std::string_view kDispatches = "rocpd_kernel_dispatch", kCopies = "rocpd_memory_copy",
                           kRegions = "rocpd_region";
// Looked up, not counted: names and properties.
constexpr std::string_view kReadWithOthers[] = {
    "rocpd_metadata",   "rocpd_string",    "rocpd_info_agent", "rocpd_info_kernel_symbol",
    "rocpd_event",      "rocpd_timestamp", "rocpd_track",      "rocpd_info_process",
    "rocpd_info_thread"};

class RocpdReader {
 public:
  RocpdReader(SqliteFile& db, std::string suffix, RocprofRows& rows)
      : db_(db),
        suffix_(std::move(suffix)),
        rows_(rows),
        spine_(db.Has(Table("rocpd_timestamp"))) {}

  absl::Status Run() {
    DD_RETURN_IF_ERROR(ReadAgents());
    DD_RETURN_IF_ERROR(ReadSymbols());
    DD_RETURN_IF_ERROR(ReadIds());
    DD_RETURN_IF_ERROR(ReadEvents());
    DD_RETURN_IF_ERROR(ReadTimes());
    DD_RETURN_IF_ERROR(ReadDispatches());
    DD_RETURN_IF_ERROR(ReadCopies());
    return ReadRegions();
  }

 private:
  struct Symbol {
    std::string name;
    int64_t registers = 0;
  };
  struct Event {
    int64_t stack = 0, category = -1;
  };
  struct Track {
    int64_t process = 0, thread = 0, agent = -1, queue = -1, stream = -1;
  };

  std::string Table(std::string_view name) const { return std::string(name) + suffix_; }

  absl::Status ReadAgents() {
    SqliteRows rows(db_, Table("rocpd_info_agent"), {"id", "type", "product_name", "name"});
    while (rows.Next()) {
      const bool gpu = rows.Text(1) == "GPU";
      rows_.AddAgent(rows.Int(0, -1), gpu, rows.Empty(2) ? rows.Text(3) : rows.Text(2));
    }
    return rows.status();
  }

  absl::Status ReadSymbols() {
    SqliteRows rows(db_, Table("rocpd_info_kernel_symbol"),
                    {"id", "kernel_name", "arch_vgpr_count", "accum_vgpr_count"});
    while (rows.Next()) {
      symbols_[rows.Int(0, -1)] = {std::string(rows.Text(1)), rows.Int(2, 0) + rows.Int(3, 0)};
    }
    return rows.status();
  }

  // Ids of processes and threads of the file -> those of the system; tracks.
  absl::Status ReadIds() {
    SqliteRows processes(db_, Table("rocpd_info_process"), {"id", "pid"});
    while (processes.Next()) processes_[processes.Int(0, -1)] = processes.Int(1, 0);
    DD_RETURN_IF_ERROR(processes.status());
    SqliteRows threads(db_, Table("rocpd_info_thread"), {"id", "tid"});
    while (threads.Next()) threads_[threads.Int(0, -1)] = threads.Int(1, 0);
    DD_RETURN_IF_ERROR(threads.status());
    if (!spine_) return absl::OkStatus();
    SqliteRows tracks(db_, Table("rocpd_track"),
                      {"id", "pid", "tid", "agent_id", "queue_id", "stream_id"});
    while (tracks.Next()) {
      tracks_[tracks.Int(0, -1)] = {tracks.Int(1, 0), tracks.Int(2, 0), tracks.Int(3, -1),
                                    tracks.Int(4, -1), tracks.Int(5, -1)};
    }
    return tracks.status();
  }

  absl::Status ReadEvents() {
    SqliteRows rows(db_, Table("rocpd_event"), {"id", "stack_id", "category_id"});
    while (rows.Next()) events_.Add(rows.Int(0, -1), {rows.Int(1, 0), rows.Int(2, -1)});
    return rows.status();
  }

  absl::Status ReadTimes() {
    if (!spine_) return absl::OkStatus();
    SqliteRows rows(db_, Table("rocpd_timestamp"), {"id", "value"});
    while (rows.Next()) times_.Add(rows.Int(0, -1), rows.Int(1, -1));
    return rows.status();
  }

  // The columns that tables of intervals begin with.
  std::vector<std::string_view> Columns(std::initializer_list<std::string_view> own) const {
    std::vector<std::string_view> columns =
        spine_ ? std::vector<std::string_view>{"start_id", "end_id", "event_id", "track_id",
                                               "pid",      "pid",    "pid",      "pid"}
               : std::vector<std::string_view>{"start", "end",      "event_id", "pid",
                                               "tid",   "agent_id", "queue_id", "stream_id"};
    columns.insert(columns.end(), own);
    return columns;
  }
  static constexpr int kOwn = 8;

  RocprofSpan SpanOf(const SqliteRows& rows) {
    RocprofSpan span;
    Track track;
    if (spine_) {
      const int64_t* start = times_.Find(rows.Int(0, -1));
      span.start = start == nullptr ? -1 : *start;
      const int64_t* end = times_.Find(rows.Int(1, -1));
      span.end = end == nullptr ? -1 : *end;
      if (const auto it = tracks_.find(rows.Int(3, -1)); it != tracks_.end()) track = it->second;
    } else {
      span.start = rows.Int(0, -1);
      span.end = rows.Int(1, -1);
      track = {rows.Int(3, 0), rows.Int(4, 0), rows.Int(5, -1), rows.Int(6, -1), rows.Int(7, -1)};
    }
    const auto process = processes_.find(track.process), thread = threads_.find(track.thread);
    span.process = process == processes_.end() ? track.process : process->second;
    span.thread = thread == threads_.end() ? track.thread : thread->second;
    span.agent = track.agent;
    span.stream = track.stream >= 0 ? track.stream : track.queue;
    if (const Event* event = events_.Find(rows.Int(2, -1)); event != nullptr) {
      span.correlation = event->stack;
    }
    return span;
  }

  absl::Status ReadDispatches() {
    SqliteRows rows(
        db_, Table(kDispatches),
        Columns({"kernel_id", "group_segment_size", "workgroup_size_x", "workgroup_size_y",
                 "workgroup_size_z", "grid_size_x", "grid_size_y", "grid_size_z"}));
    while (rows.Next()) {
      const auto symbol = symbols_.find(rows.Int(kOwn, -1));
      RocprofLaunch launch;
      for (int i = 0; i < 3; ++i) {
        launch.block[static_cast<size_t>(i)] = rows.Int(kOwn + 2 + i, 0);
        launch.grid[static_cast<size_t>(i)] = rows.Int(kOwn + 5 + i, 0);
      }
      launch.shared_memory = rows.Int(kOwn + 1, 0);
      const bool known = symbol != symbols_.end();
      launch.registers = known ? symbol->second.registers : 0;
      rows_.AddDispatch(SpanOf(rows), known ? symbol->second.name : "", launch);
    }
    return rows.status();
  }

  absl::Status ReadCopies() {
    SqliteRows rows(db_, Table(kCopies),
                    Columns({"name_id", "src_agent_id", "dst_agent_id", "size"}));
    while (rows.Next()) {
      rows_.AddCopy(SpanOf(rows), Text(rows.Int(kOwn, -1)), rows.Int(kOwn + 1, -1),
                    rows.Int(kOwn + 2, -1), rows.Int(kOwn + 3, 0));
    }
    return rows.status();
  }

  absl::Status ReadRegions() {
    SqliteRows rows(db_, Table(kRegions), Columns({"name_id"}));
    while (rows.Next()) {
      const std::string& name = Text(rows.Int(kOwn, -1));
      const Event* event = events_.Find(rows.Int(2, -1));
      std::string category;
      if (event != nullptr) category = Text(event->category);
      if (category.empty() && name.starts_with("hip")) category = "HIP";
      rows_.AddRegion(SpanOf(rows), category, name);
    }
    return rows.status();
  }

  const std::string& Text(int64_t id) {
    const auto [it, fresh] = texts_.try_emplace(id);
    if (fresh && id >= 0) it->second = db_.FindByKey(Table("rocpd_string"), "string", "id", id);
    return it->second;
  }

  SqliteFile& db_;
  const std::string suffix_;
  RocprofRows& rows_;
  const bool spine_;
  std::map<int64_t, Symbol> symbols_;
  std::map<int64_t, int64_t> processes_, threads_;
  std::map<int64_t, Track> tracks_;
  OrderedIndex<Event> events_;
  OrderedIndex<int64_t> times_;
  std::map<int64_t, std::string> texts_;
};

// What follows the name in the tables of dispatches and regions.
std::set<std::string> Suffixes(const SqliteFile& file) {
  std::set<std::string> suffixes;
  for (const std::string& table : file.tables()) {
    for (std::string_view name : {kDispatches, kCopies, kRegions}) {
      const std::string_view rest =
          std::string_view(table).substr(std::min(name.size(), table.size()));
      if (table.starts_with(name) && (rest.empty() || rest[0] == '_')) suffixes.emplace(rest);
    }
  }
  return suffixes;
}

bool SniffRocpd(const SqliteFile& file) {
  for (const std::string& table : file.tables()) {
    if (table.starts_with("rocpd_metadata") && !file.Has("rocpd_api")) {
      return !Suffixes(file).empty();
    }
  }
  return false;
}

absl::Status ImportRocpd(SqliteFile& file, const ImportOptions& options, TraceBuilder& builder) {
  RocprofRows rows(options, builder, file.name());
  const std::set<std::string> suffixes = Suffixes(file);
  for (const std::string& suffix : suffixes) {
    DD_RETURN_IF_ERROR(RocpdReader(file, suffix, rows).Run());
  }
  for (const std::string& table : file.tables()) {
    bool read = table == "sqlite_sequence";
    for (const std::string& suffix : suffixes) {
      for (std::string_view name : {kDispatches, kCopies, kRegions}) {
        read |= table == std::string(name) + suffix;
      }
      for (std::string_view name : kReadWithOthers) read |= table == std::string(name) + suffix;
    }
    if (read) continue;
    DD_ASSIGN_OR_RETURN(const uint64_t count, file.Rows(table));
    builder.AddTableNotRead(table, count);
  }
  return rows.Finish();
}

}  // namespace

const Importer kRocpd = {
    .name = "rocpd",
    .summary = "rocprofv3 database (rocpd)",
    .sniff_tables = SniffRocpd,
    .import_tables = ImportRocpd,
    .recorder = {.writer = "rocprofv3 of ROCm 7, SQLite",
                 .record = kRecordRocpd,
                 .answers = "everything; without --hip-trace the GPU side only",
                 .later = "record more steps, or after warm-up: rocprofv3 --collection-period "
                          "30:10:1 (seconds)"},
};

}  // namespace daydream
