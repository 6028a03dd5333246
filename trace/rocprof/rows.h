// What rocprofv3 records, whichever of its formats holds it: dispatches, copies and regions (calls
// and ranges of the program). Both readers fill this, so that both give equal traces.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "trace/importer.h"
#include "trace/rows/lane_rows.h"

namespace daydream {

inline constexpr std::string_view kRecordRocpd =
    "rocprofv3 --hip-trace --kernel-trace --memory-copy-trace --marker-trace --output-format rocpd "
    "-- PROGRAM";

// One interval of a recording, with what all of them have.
struct RocprofSpan {
  int64_t start = 0, end = 0;  // ns of the boot clock
  int64_t process = 0, thread = 0;
  int64_t agent = -1, stream = -1;  // GPU work
  int64_t correlation = 0;          // the same for a call and what it launched; 0 = none
};

struct RocprofLaunch {
  std::array<int64_t, 3> grid{};  // work-items, unlike CUDA
  std::array<int64_t, 3> block{};
  int64_t registers = 0, shared_memory = 0;
  friend bool operator==(const RocprofLaunch&, const RocprofLaunch&) = default;
  template <class H>
  friend H AbslHashValue(H h, const RocprofLaunch& l) {
    return H::combine(std::move(h), l.grid, l.block, l.registers, l.shared_memory);
  }
};

class RocprofRows {
 public:
  RocprofRows(const ImportOptions& options, TraceBuilder& builder, std::string source)
      : options_(options), builder_(builder), source_(std::move(source)) {}

  // GPUs count from 0 in the order in which they are told, before their work; CPUs do not count.
  void AddAgent(int64_t id, bool gpu, std::string_view name);
  // `symbol` as in the file: "_Z4axpyPf.kd".
  void AddDispatch(const RocprofSpan& span, std::string_view symbol, const RocprofLaunch& launch);
  // `direction` as in the file: "MEMORY_COPY_HOST_TO_DEVICE".
  void AddCopy(const RocprofSpan& span, std::string_view direction, int64_t source,
               int64_t destination, int64_t bytes);
  // `category` as in the file: "HIP_RUNTIME_API_EXT", "MARKER_CORE_RANGE_API", "RCCL_API".
  void AddRegion(const RocprofSpan& span, std::string_view category, std::string_view name);
  // An input that becomes no event.
  void Skip(std::string_view what, std::string_view reason, uint64_t n = 1);
  // Call once, at the end. E0210 with too many damaged inputs.
  absl::Status Finish();

 private:
  using LaneKey = std::tuple<bool, int64_t, int64_t>;  // GPU: device and stream; process, thread
  struct OneLane {
    LaneRows rows;
    Instant first{INT64_MAX};
  };
  bool Times(const RocprofSpan& span, TraceBuilder::Event& event);
  void Add(const TraceBuilder::Event& event, const RocprofSpan& span);
  void HandOut();
  int32_t DeviceOf(int64_t agent) const;

  const ImportOptions& options_;
  TraceBuilder& builder_;
  const std::string source_;
  std::map<int64_t, std::string> gpus_;  // by agent
  std::map<int64_t, int32_t> devices_;   // by agent
  std::set<int64_t> used_;               // agents that have work
  std::map<LaneKey, OneLane> lanes_;
  std::map<std::string, NameId, std::less<>> symbols_;
  uint64_t inputs_ = 0, damaged_ = 0, calls_ = 0;
};

}  // namespace daydream
