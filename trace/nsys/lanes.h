// Who ran what in an Nsight Systems file: processes as ranks, threads and streams as lanes, and
// correlation ids that no two processes share.
//
// A global id is 8 bits of hardware, 8 of virtual machine, 24 of process, 24 of thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "trace/trace_builder.h"

namespace daydream {

struct NsysStream {
  int64_t process = 0;  // global id
  int64_t device = -1, context = -1, stream = -1;
  friend bool operator==(const NsysStream&, const NsysStream&) = default;
};

class NsysLanes {
 public:
  explicit NsysLanes(TraceBuilder& builder) : builder_(builder) {}

  // The place of the process of a global id in the order of appearance, made on first use.
  uint32_t Process(int64_t global);
  LaneId Thread(int64_t global);
  // Where GPU work ran. Also notes that the process used the device, and which device the context
  // is on.
  LaneId Stream(const NsysStream& s);
  // The device of a context that GPU work was seen on, else `fallback`.
  int64_t DeviceOf(uint32_t process, int64_t context, int64_t fallback) const;
  // `id` of `process`, unique over all processes; 0 stays 0. Ids of the first process stay.
  uint32_t Correlation(uint32_t process, int64_t id);

  bool HasThread(int64_t global) const { return threads_.contains(global); }

  // ---- At the end ----

  void NameThread(int64_t global, std::string_view name);
  // Key as in the file: process id without hardware and machine.
  void SetStreamType(int64_t process_id, int64_t context, int64_t stream, StreamType type);
  // Processes with GPU work become ranks, ordered by their first device and their id. Several
  // processes that call their GPU 0 have several GPUs. Calls `device` with (process id, device of
  // the process, device of the trace) for each.
  template <class Fn>
  void Finish(const Fn& device) {
    for (const auto& [process, own, id] : FinishLanes()) device(process, own, id);
  }

 private:
  struct ProcessState {
    int64_t global = 0;          // upper 40 bits
    int64_t lowest_device = -1;  // -1: no GPU work
  };
  using DeviceUse = std::tuple<int64_t, int64_t, int32_t>;
  std::vector<DeviceUse> FinishLanes();
  std::vector<int32_t> RanksOfProcesses();

  TraceBuilder& builder_;
  std::vector<ProcessState> processes_;
  absl::flat_hash_map<int64_t, uint32_t> places_;  // by upper 40 bits
  int64_t last_process_ = -1, last_thread_ = -1;
  uint32_t last_place_ = 0;
  LaneId last_thread_lane_, last_stream_lane_;
  NsysStream last_stream_;
  absl::flat_hash_map<int64_t, LaneId> threads_;
  // A stream number may come back in another context: the first one has the lane of that number.
  std::map<std::tuple<uint32_t, int64_t, int64_t, int64_t>, LaneId> streams_;
  // The same by what the tables about streams call them: process id, context, stream.
  std::map<std::tuple<int64_t, int64_t, int64_t>, std::vector<LaneId>> by_info_;
  struct LaneOf {
    uint32_t process = 0;
    int64_t context = -1;
  };
  std::vector<LaneOf> lanes_;  // by lane
  std::map<std::pair<uint32_t, int64_t>, int64_t> device_of_context_;
  absl::flat_hash_map<std::pair<uint32_t, int64_t>, uint32_t> odd_correlations_;
};

}  // namespace daydream
