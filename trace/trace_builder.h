// Collects events in any order and turns them into a Trace. Importers write here and nowhere
// else; every importer's input ends up as rows or as counts, never as nothing.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "trace/trace.h"

namespace daydream {

class TraceBuilder {
 public:
  TraceBuilder();

  struct Event {
    Instant start;  // on the input's own clock; Build() shifts the earliest to 0
    Duration duration;
    LaneId lane;
    NameId name;
    EventKind kind = EventKind::kOp;
    uint32_t correlation = 0;
    uint32_t detail = Id<void>::kNoneValue;
  };

  StringPool& names() { return *trace_.names; }
  // The lane with this identity, made on first use. O(1).
  LaneId AddLane(LaneKind kind, int64_t process, int64_t number, int32_t device, int32_t rank = 0);
  void NameLane(LaneId lane, std::string_view name);
  // REQUIRES: duration >= 0. Amortised O(1).
  void AddEvent(const Event& event);

  // Rows of the detail tables; equal details share a row.
  uint32_t AddKernel(const KernelDetail& d);
  uint32_t AddCopy(const CopyDetail& d);
  uint32_t AddOp(const OpDetail& d);
  uint32_t AddCollective(const CollectiveDetail& d);
  uint32_t AddSync(const SyncDetail& d);

  void AddDevice(Device device);
  void SetRank(int32_t rank, int32_t world_size);
  void AddSoftware(std::string what, std::string version);

  // Counts `n` inputs that do not become rows (or were repaired: count_as_event = false keeps the
  // sum "rows + counts = input events" right). Equal `what` add up.
  void Count(std::string_view what, std::string_view reason, bool loss, uint64_t n = 1,
             int64_t byte = -1, bool count_as_event = true);

  Provenance& provenance() { return trace_.provenance; }
  size_t events() const { return trace_.start.size(); }
  // Instant that the input calls 0 in absolute nanoseconds (Kineto's baseTimeNanoseconds).
  void SetClockBase(int64_t ns) { clock_base_ns_ = ns; }

  // Sorts, shifts and hands out the trace. The builder is empty afterwards.
  // Fails with ResourceExhausted past 2^31 events or 2^16 lanes.
  absl::StatusOr<std::shared_ptr<const Trace>> Build();

 private:
  struct CountState {
    ImportCount count;
    bool event = true;
  };
  Trace trace_;
  absl::flat_hash_map<std::tuple<uint8_t, int64_t, int64_t, int32_t, int32_t>, LaneId> lane_ids_;
  absl::flat_hash_map<std::string, uint32_t> detail_ids_[3];
  absl::flat_hash_map<std::string, size_t> count_ids_;
  std::vector<CountState> counts_;
  int64_t clock_base_ns_ = 0;
};

}  // namespace daydream
