// Collects events in any order and turns them into a Trace. Importers write here and nowhere
// else; every importer's input ends up as rows or as counts, never as nothing.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "trace/rows/lane_rows.h"
#include "trace/rows/row_table.h"
#include "trace/trace.h"

namespace daydream {

struct FarEvents;

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
  void SetStreamType(LaneId lane, StreamType type) { trace_.lanes[lane.index()].stream = type; }
  const Lane& lane(LaneId lane) const { return trace_.lanes[lane.index()]; }
  // For importers that learn late which rank or device a lane belongs to. AddLane() goes on to find
  // it by what it was made with.
  void SetLane(LaneId lane, const Lane& to) { trace_.lanes[lane.index()] = to; }
  // REQUIRES: duration >= 0. Amortised O(1).
  void AddEvent(const Event& event);

  // Rows of the detail tables; equal details share a row.
  uint32_t AddKernel(const KernelDetail& d);
  const KernelDetail& kernel(uint32_t row) const { return trace_.kernels[row]; }
  uint32_t AddCopy(const CopyDetail& d);
  uint32_t AddOp(const OpDetail& d);
  uint32_t AddCollective(const CollectiveDetail& d);
  uint32_t AddSync(const SyncDetail& d);

  // Its time is on the input's own clock, like that of events.
  void AddAllocation(const Allocation& a) { trace_.allocations.push_back(a); }
  std::span<Allocation> allocations() { return trace_.allocations; }
  // The `consumer`-th event added (from 0) reads what the `producer`-th has written.
  void AddDependency(uint32_t producer, uint32_t consumer) {
    trace_.dependencies.push_back({producer, consumer});
  }
  void AddDevice(Device device);
  std::span<Device> devices() { return trace_.devices; }
  void SetRank(int32_t rank, int32_t world_size);
  // One more rank of a trace that holds several.
  void AddRank(int32_t rank, int32_t world_size) { trace_.ranks.push_back({rank, world_size}); }
  void AddSoftware(std::string what, std::string version);

  // Counts `n` inputs that do not become rows (or were repaired: count_as_event = false keeps the
  // sum "rows + counts = input events" right). Equal `what` add up.
  void Count(std::string_view what, std::string_view reason, bool loss, uint64_t n = 1,
             int64_t byte = -1, bool count_as_event = true);

  // A table of the input that nothing is taken from. Without rows it is not worth telling.
  void AddTableNotRead(std::string name, uint64_t rows);
  // `finish` gets the rows in their order, before anybody else sees them.
  void WhenBuilt(std::function<void(Trace&)> finish) { finish_ = std::move(finish); }

  Provenance& provenance() { return trace_.provenance; }
  size_t events() const { return rows_; }
  size_t lanes() const { return trace_.lanes.size(); }
  // Instant that the input calls 0 in absolute nanoseconds (Kineto's baseTimeNanoseconds).
  void SetClockBase(int64_t ns) { clock_base_ns_ = ns; }

  // Sorts, shifts and hands out the trace. The builder is empty afterwards.
  // Fails with ResourceExhausted past 2^31 events or 2^16 lanes. Of events of one rank that lie far
  // from each other (trace/rows/far_events.h) the stretch with most of them stays, and what is left
  // out is counted; E0214 when GPU work lies far from its launches, or no stretch holds a tenth.
  // Ranks may have clocks of their own.
  absl::StatusOr<std::shared_ptr<const Trace>> Build();

 private:
  struct CountState {
    ImportCount count;
    bool event = true;
  };
  struct KernelHash {
    size_t operator()(const KernelDetail& d) const;
  };
  struct CopyHash {
    size_t operator()(const CopyDetail& d) const;
  };
  struct OpHash {
    size_t operator()(const OpDetail& d) const;
  };
  struct CollectiveHash {
    size_t operator()(const CollectiveDetail& d) const;
  };
  struct SyncHash {
    size_t operator()(const SyncDetail& d) const;
  };

  absl::Status LeaveOutFarEvents();
  absl::Status LeaveOutFarEventsOf(std::span<LaneRows* const> lanes);
  void LeaveOut(std::span<LaneRows* const> lanes, const FarEvents& found);
  absl::Status TimesApart(const FarEvents& found, uint64_t torn) const;
  // Of rows that are not left out: the first start and the last end; of none, the first behind the
  // last.
  struct Extent {
    Instant first, last;
  };
  static Extent Wider(Extent a, std::pair<Instant, Instant> b);
  Extent Recorded();
  void LeaveOutFarAllocations(Extent recorded);
  void ReserveColumns();
  void ResizeColumns(size_t rows);
  // The rows of a lane, in order, at the end of the columns. `row_of`, if not empty, gets where
  // each event of the lane went.
  void FillLane(LaneId lane, Instant origin, std::span<uint32_t> row_of);
  // Dependencies of events as they were added become those of their places by lane.
  void GroupDependencies(const std::vector<uint32_t>& lane_first);
  void FinishDependencies(const std::vector<uint32_t>& row_of);
  void FinishProvenance();
  // What only Add...() needs.
  void ForgetIndexes();

  Trace trace_;
  std::vector<LaneRows> lane_rows_;  // by lane
  size_t heap_left_ = LaneRows::kOfHeap;
  std::vector<uint16_t> lane_of_;  // by event, as added: what a dependency names
  bool any_left_out_ = false;
  size_t rows_ = 0;
  absl::flat_hash_map<std::tuple<uint8_t, int64_t, int64_t, int32_t, int32_t>, LaneId> lane_ids_;
  RowTable<KernelDetail, KernelHash> kernel_rows_;
  RowTable<CopyDetail, CopyHash> copy_rows_;
  RowTable<OpDetail, OpHash> op_rows_;
  RowTable<CollectiveDetail, CollectiveHash> collective_rows_;
  RowTable<SyncDetail, SyncHash> sync_rows_;
  absl::flat_hash_map<std::string, size_t> count_ids_;
  std::vector<CountState> counts_;
  int64_t clock_base_ns_ = 0;
  std::function<void(Trace&)> finish_;
};

}  // namespace daydream
