#include <algorithm>
#include <map>

#include "trace/nsys/finish.h"

namespace daydream {
namespace {

struct GpuProperties {
  int64_t ordinal = -1;  // cuDevice; before 3.20
  Device device;
};

int32_t Int32(const SqliteRows& rows, int column) {
  const int64_t value = rows.Int(column, 0);
  return value < 0 || value > INT32_MAX ? 0 : static_cast<int32_t>(value);
}

// By TARGET_INFO_GPU.id.
absl::StatusOr<std::map<int64_t, GpuProperties>> ReadGpus(SqliteFile& db) {
  std::map<int64_t, GpuProperties> gpus;
  SqliteRows rows(db, "TARGET_INFO_GPU",
                  {"id", "cuDevice", "name", "totalMemory", "smCount", "computeMajor",
                   "computeMinor", "threadsPerWarp", "maxWarpsPerSm", "maxRegistersPerSm",
                   "maxShmemPerSm", "clockRate", "memoryBandwidth"});
  while (rows.Next()) {
    GpuProperties gpu;
    gpu.ordinal = rows.Int(1, -1);
    Device& d = gpu.device;
    d.name = std::string(rows.Text(2));
    d.memory_bytes = static_cast<uint64_t>(std::max<int64_t>(0, rows.Int(3, 0)));
    d.multiprocessors = Int32(rows, 4);
    d.compute_major = Int32(rows, 5);
    d.compute_minor = Int32(rows, 6);
    d.warp_size = Int32(rows, 7);
    d.max_threads_per_multiprocessor =
        static_cast<int32_t>(std::min<int64_t>(int64_t{d.warp_size} * Int32(rows, 8), INT32_MAX));
    d.registers_per_multiprocessor = Int32(rows, 9);
    d.shared_memory_per_multiprocessor = Int32(rows, 10);
    d.clock_khz = std::max<int64_t>(0, rows.Int(11, 0)) / 1000;  // Hz and bytes a second there
    d.memory_bandwidth_kbps = std::max<int64_t>(0, rows.Int(12, 0)) / 1000;
    gpus.try_emplace(rows.Int(0, -1), std::move(gpu));
  }
  DD_RETURN_IF_ERROR(rows.status());
  return gpus;
}

// (process id, ordinal of the process) -> TARGET_INFO_GPU.id; they differ on real nodes.
absl::StatusOr<std::map<std::pair<int64_t, int64_t>, int64_t>> ReadOrdinals(SqliteFile& db) {
  std::map<std::pair<int64_t, int64_t>, int64_t> ordinals;
  SqliteRows rows(db, "TARGET_INFO_CUDA_DEVICE", {"pid", "cudaId", "gpuId"});
  while (rows.Next()) ordinals[{rows.Int(0, -1), rows.Int(1, -1)}] = rows.Int(2, -1);
  DD_RETURN_IF_ERROR(rows.status());
  return ordinals;
}

absl::Status ReadStreamTypes(NsysFile& file) {
  constexpr StreamType kTypes[] = {StreamType::kUnknown, StreamType::kBlocking,
                                   StreamType::kNonBlocking, StreamType::kDefault};
  SqliteRows rows(file.db, "TARGET_INFO_CUDA_STREAM",
                  {"processId", "contextId", "streamId", "flag"});
  while (rows.Next()) {
    const int64_t flag = rows.Int(3, 0);
    if (flag < 1 || flag > 3) continue;
    file.lanes.SetStreamType(rows.Int(0, -1), rows.Int(1, -1), rows.Int(2, -1), kTypes[flag]);
  }
  DD_RETURN_IF_ERROR(rows.status());
  // Default streams are not in that table of older files.
  struct Source {
    std::string_view table, stream;
  };
  for (const Source& s : {Source{"TARGET_INFO_CUDA_NULL_STREAM", "streamId"},
                          Source{"TARGET_INFO_CUDA_CONTEXT_INFO", "nullStreamId"}}) {
    SqliteRows defaults(file.db, s.table, {"processId", "contextId", s.stream});
    while (defaults.Next()) {
      file.lanes.SetStreamType(defaults.Int(0, -1), defaults.Int(1, -1), defaults.Int(2, -1),
                               StreamType::kDefault);
    }
    DD_RETURN_IF_ERROR(defaults.status());
  }
  return absl::OkStatus();
}

absl::Status ReadThreadNames(NsysFile& file) {
  SqliteRows rows(file.db, "ThreadNames", {"globalTid", "nameId"});
  while (rows.Next()) {
    const int64_t thread = rows.Int(0, 0);
    if (!file.lanes.HasThread(thread)) continue;
    file.lanes.NameThread(thread, file.builder.names().Get(file.Text(rows.Int(1, -1))));
  }
  return rows.status();
}

// "2026.2.1" of "2026.2.1.210-...".
std::string Version(std::string_view text) {
  size_t dots = 0, end = 0;
  for (; end < text.size(); ++end) {
    const char c = text[end];
    if (c == '.' && ++dots == 3) break;
    if (c != '.' && (c < '0' || c > '9')) break;
  }
  return std::string(text.substr(0, end));
}

}  // namespace

absl::Status ReadNsysFacts(NsysFile& file) {
  DD_RETURN_IF_ERROR(ReadStreamTypes(file));
  DD_RETURN_IF_ERROR(ReadThreadNames(file));
  DD_ASSIGN_OR_RETURN(const auto gpus, ReadGpus(file.db));
  DD_ASSIGN_OR_RETURN(const auto ordinals, ReadOrdinals(file.db));
  file.lanes.Finish([&](int64_t process, int64_t own, int32_t id) {
    const auto exact = ordinals.find({process, own});
    for (const auto& [gpu, properties] : gpus) {
      const bool is_it = exact != ordinals.end() ? gpu == exact->second
                         : ordinals.empty()      ? properties.ordinal == own
                                                 : false;
      if (!is_it) continue;
      Device device = properties.device;
      device.id = id;
      file.builder.AddDevice(std::move(device));
      return;
    }
  });
  SqliteRows clock(file.db, "TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"});
  constexpr int64_t kMostNs = int64_t{1} << 61;
  if (clock.Next()) {
    const int64_t origin = clock.Int(0, 0);
    if (origin > 0 && origin < kMostNs) file.builder.SetClockBase(origin);
  }
  for (std::string_view table : {"META_DATA_EXPORT", "EXPORT_META_DATA"}) {
    const std::string version =
        Version(file.db.Find(table, "value", "name", "EXPORT_PRODUCT_VERSION"));
    if (!version.empty()) file.builder.AddSoftware("Nsight Systems", version);
  }
  if (file.schema.first > 0) {
    file.builder.AddSoftware("export schema",
                             fmt::format("{}.{}", file.schema.first, file.schema.second));
  }
  return absl::OkStatus();
}

}  // namespace daydream
