#include "trace/trace_builder.h"

#include <sys/mman.h>

#include <algorithm>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "base/check.h"
#include "base/sort_runs.h"
#include "trace/rows/far_events.h"

namespace daydream {
namespace {

constexpr size_t kMaxRows = size_t{1} << 31;
constexpr size_t kMaxLanes = size_t{1} << 16;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr uint32_t kLeftOut = UINT32_MAX;  // of events that became no row

// First touch of fresh memory is several times faster in huge pages, where the system grants them.
void AdviseHugePages(void* memory, size_t bytes) {
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(memory) % kHugePage) % kHugePage;
  if (bytes < before + kHugePage) return;
  const size_t whole = (bytes - before) / kHugePage * kHugePage;
  madvise(static_cast<char*>(memory) + before, whole, MADV_HUGEPAGE);
}

// Not touched before it is filled: until then its rows are elsewhere. Each column that grows by
// huge pages has up to one that is not needed yet: worth it for the widest.
template <class T>
void ReserveColumn(std::vector<T>& column, size_t rows) {
  column.reserve(rows);
  if (sizeof(T) == 8) AdviseHugePages(column.data(), rows * sizeof(T));
}

bool IsNear(const TraceRow& row, const FarEvents& found) {
  const auto within = [&](Instant t) { return t >= found.begin && t < found.end; };
  return within(row.start) && within(row.start + row.duration);
}

// Far events that belong to a near one and to no far one: a launch and its kernel are never apart.
// (Processes that ran one after the other may count their calls alike.)
uint64_t TornPairs(std::span<LaneRows* const> lanes, const FarEvents& found) {
  struct Seen {
    uint32_t near = 0, far = 0;
  };
  absl::flat_hash_map<uint32_t, Seen> seen;
  for (LaneRows* lane : lanes) {
    lane->ForEach([&](const TraceRow& row) {
      if (row.left_out || row.correlation == 0) return;
      ++(IsNear(row, found) ? seen[row.correlation].near : seen[row.correlation].far);
    });
  }
  return static_cast<uint64_t>(std::count_if(seen.begin(), seen.end(), [](const auto& entry) {
    return entry.second.far == 1 && entry.second.near > 0;
  }));
}

// From the one to the other; 0 the other way round.
uint64_t Apart(Instant from, Instant to) {
  return to > from ? static_cast<uint64_t>(to.ns) - static_cast<uint64_t>(from.ns) : 0;
}

}  // namespace

size_t TraceBuilder::KernelHash::operator()(const KernelDetail& d) const {
  return absl::HashOf(d.grid, d.block, d.registers_per_thread, d.shared_memory_bytes, d.graph_node,
                      d.collective, d.layer, d.backward);
}
size_t TraceBuilder::CopyHash::operator()(const CopyDetail& d) const {
  return absl::HashOf(d.bytes, d.from, d.to);
}
size_t TraceBuilder::OpHash::operator()(const OpDetail& d) const {
  return absl::HashOf(d.sequence, d.forward_thread, d.shapes, d.types, d.collective);
}
size_t TraceBuilder::CollectiveHash::operator()(const CollectiveDetail& d) const {
  return absl::HashOf(d.name, d.dtype, d.process_group, d.elements_in, d.elements_out,
                      d.group_size);
}
size_t TraceBuilder::SyncHash::operator()(const SyncDetail& d) const {
  return absl::HashOf(d.kind, d.stream, d.wait_on_stream, d.record_correlation, d.event);
}

TraceBuilder::TraceBuilder() = default;

TraceBuilder::Extent TraceBuilder::Wider(Extent a, std::pair<Instant, Instant> b) {
  return {std::min(a.first, b.first), std::max(a.last, b.second)};
}

LaneId TraceBuilder::AddLane(LaneKind kind, int64_t process, int64_t number, int32_t device,
                             int32_t rank) {
  auto key = std::make_tuple(static_cast<uint8_t>(kind), process, number, device, rank);
  auto [it, inserted] = lane_ids_.try_emplace(key, LaneId(trace_.lanes.size()));
  if (inserted) {
    trace_.lanes.push_back({.kind = kind,
                            .name = names().Intern(""),
                            .rank = rank,
                            .device = device,
                            .process = process,
                            .number = number});
    lane_rows_.emplace_back();
  }
  return it->second;
}

void TraceBuilder::NameLane(LaneId lane, std::string_view name) {
  trace_.lanes[lane.index()].name = names().Intern(name);
}

void TraceBuilder::AddEvent(const Event& event) {
  DD_DCHECK(event.duration.ns >= 0);
  if (rows_++ >= kMaxRows) return;  // Build() reports it; the rows beyond are not kept.
  lane_of_.push_back(static_cast<uint16_t>(event.lane.value));
  lane_rows_[event.lane.index()].Add(
      {event.start, event.duration, event.name, event.correlation, event.detail, event.kind},
      heap_left_);
}

uint32_t TraceBuilder::AddKernel(const KernelDetail& d) {
  return kernel_rows_.Add(trace_.kernels, d);
}
uint32_t TraceBuilder::AddCopy(const CopyDetail& d) { return copy_rows_.Add(trace_.copies, d); }
uint32_t TraceBuilder::AddOp(const OpDetail& d) { return op_rows_.Add(trace_.ops, d); }
uint32_t TraceBuilder::AddCollective(const CollectiveDetail& d) {
  return collective_rows_.Add(trace_.collectives, d);
}
uint32_t TraceBuilder::AddSync(const SyncDetail& d) { return sync_rows_.Add(trace_.syncs, d); }

void TraceBuilder::AddDevice(Device device) { trace_.devices.push_back(std::move(device)); }

void TraceBuilder::SetRank(int32_t rank, int32_t world_size) {
  trace_.ranks.assign(1, {.rank = rank, .world_size = world_size});
}

void TraceBuilder::AddSoftware(std::string what, std::string version) {
  trace_.provenance.software.emplace_back(std::move(what), std::move(version));
}

void TraceBuilder::Count(std::string_view what, std::string_view reason, bool loss, uint64_t n,
                         int64_t byte, bool count_as_event) {
  auto [it, inserted] = count_ids_.try_emplace(std::string(what), counts_.size());
  if (inserted) {
    counts_.push_back({.count = {.what = std::string(what),
                                 .loss = loss,
                                 .reason = std::string(reason),
                                 .first_byte = byte,
                                 .repair = !count_as_event},
                       .event = count_as_event});
  }
  ImportCount& count = counts_[it->second].count;
  count.count += n;
  if (count.first_byte < 0) count.first_byte = byte;
}

void TraceBuilder::ReserveColumns() {
  ReserveColumn(trace_.start, rows_);
  ReserveColumn(trace_.duration, rows_);
  ReserveColumn(trace_.lane, rows_);
  ReserveColumn(trace_.name, rows_);
  ReserveColumn(trace_.kind, rows_);
  ReserveColumn(trace_.correlation, rows_);
  ReserveColumn(trace_.detail, rows_);
}

void TraceBuilder::FillLane(LaneId lane, Instant origin, std::span<uint32_t> row_of) {
  constexpr size_t kAtOnce = 1024;  // what is made room for is written while it is in the cache
  size_t to = trace_.rows(), left = lane_rows_[lane.index()].size();
  lane_rows_[lane.index()].HandOutRuns([&](const LaneRows::Run& run) {
    for (uint16_t at : run.order) {
      const TraceRow& row = run.rows[at];
      if (to == trace_.rows()) ResizeColumns(std::min(to + std::min(left, kAtOnce), rows_));
      --left;
      if (row.left_out) continue;
      if (!row_of.empty()) row_of[run.first_place + at] = static_cast<uint32_t>(to);
      trace_.start[to] = Instant{row.start.ns - origin.ns};
      trace_.duration[to] = row.duration;
      trace_.lane[to] = lane;
      trace_.name[to] = row.name;
      trace_.kind[to] = row.kind;
      trace_.correlation[to] = row.correlation;
      trace_.detail[to] = row.detail;
      ++to;
    }
  });
  ResizeColumns(to);
}

void TraceBuilder::ResizeColumns(size_t rows) {
  trace_.start.resize(rows);
  trace_.duration.resize(rows);
  trace_.lane.resize(rows);
  trace_.name.resize(rows);
  trace_.kind.resize(rows);
  trace_.correlation.resize(rows);
  trace_.detail.resize(rows);
}

void TraceBuilder::GroupDependencies(const std::vector<uint32_t>& lane_first) {
  std::vector<uint32_t> next = lane_first, place(lane_of_.size());
  for (size_t event = 0; event < place.size(); ++event) place[event] = next[lane_of_[event]]++;
  std::vector<DataDependency>& all = trace_.dependencies;
  std::erase_if(all, [&](const DataDependency& d) {
    return d.producer >= place.size() || d.consumer >= place.size();
  });
  for (DataDependency& d : all) d = {place[d.producer], place[d.consumer]};
}

void TraceBuilder::FinishDependencies(const std::vector<uint32_t>& row_of) {
  std::vector<DataDependency>& all = trace_.dependencies;
  for (DataDependency& d : all) d = {row_of[d.producer], row_of[d.consumer]};
  std::erase_if(all, [](const DataDependency& d) {
    return d.producer == kLeftOut || d.consumer == kLeftOut || d.producer == d.consumer;
  });
  std::sort(all.begin(), all.end(), [](const DataDependency& a, const DataDependency& b) {
    return std::tie(a.consumer, a.producer) < std::tie(b.consumer, b.producer);
  });
  all.erase(std::unique(all.begin(), all.end()), all.end());
}

void TraceBuilder::AddTableNotRead(std::string name, uint64_t rows) {
  if (rows > 0) trace_.provenance.tables_not_read.emplace_back(std::move(name), rows);
}

void TraceBuilder::FinishProvenance() {
  if (trace_.ranks.empty()) trace_.ranks.push_back({});
  auto& software = trace_.provenance.software;
  std::sort(software.begin(), software.end());
  software.erase(std::unique(software.begin(), software.end()), software.end());
  auto& tables = trace_.provenance.tables_not_read;
  std::sort(tables.begin(), tables.end());
  std::sort(trace_.devices.begin(), trace_.devices.end(),
            [](const Device& a, const Device& b) { return a.id < b.id; });
  for (CountState& state : counts_) {
    if (state.count.count > 0) trace_.provenance.counts.push_back(std::move(state.count));
  }
}

absl::Status TraceBuilder::LeaveOutFarEvents() {
  std::map<int32_t, std::vector<LaneRows*>> by_rank;
  for (size_t l = 0; l < lane_rows_.size(); ++l) {
    by_rank[trace_.lanes[l].rank].push_back(&lane_rows_[l]);
  }
  for (const auto& [rank, lanes] : by_rank) DD_RETURN_IF_ERROR(LeaveOutFarEventsOf(lanes));
  return absl::OkStatus();
}

absl::Status TraceBuilder::LeaveOutFarEventsOf(std::span<LaneRows* const> lanes) {
  Extent all{Instant{INT64_MAX}, Instant{INT64_MIN}};
  for (const LaneRows* lane : lanes) all = Wider(all, lane->Extent());
  if (all.first <= all.last && Apart(all.first, all.last) < uint64_t(kShortestFarGap.ns)) {
    return absl::OkStatus();  // nothing can be far from anything
  }
  for (;;) {
    const auto found = FindFarEvents([&](const auto& add) {
      for (LaneRows* lane : lanes) {
        lane->ForEach([&](const TraceRow& row) {
          if (!row.left_out) add(row.start, row.start + row.duration);
        });
      }
    });
    if (!found.has_value()) return absl::OkStatus();
    const uint64_t torn = found->few() ? 0 : TornPairs(lanes, *found);
    // One in a hundred may be damage of its own, as in FarEvents::few().
    if (!found->few() && (!found->window() || torn * 100 > found->far)) {
      return TimesApart(*found, torn);
    }
    LeaveOut(lanes, *found);
  }
}

absl::Status TraceBuilder::TimesApart(const FarEvents& found, uint64_t torn) const {
  std::string what = fmt::format("{} of {} events lie at least {} from the others", found.far,
                                 found.all, RoughTime(found.gap));
  if (torn > 0) what += fmt::format(", {} of them from the call or GPU work they belong to", torn);
  return MakeStatus(absl::StatusCode::kDataLoss,
                    {.code = "E0214",
                     .what = std::move(what),
                     .where = trace_.provenance.source,
                     .why = "the file is damaged, or two clocks were mixed in it",
                     .effect = "no step can be that long, so none is predicted",
                     .fix = "record again"});
}

void TraceBuilder::LeaveOut(std::span<LaneRows* const> lanes, const FarEvents& found) {
  std::string named;
  for (LaneRows* lane : lanes) {
    lane->ForEach([&](TraceRow& row) {
      if (row.left_out || IsNear(row, found)) return;
      row.left_out = true;
      any_left_out_ = true;
      --rows_;
      if (named.empty()) named = names().Get(row.name).substr(0, 60);
    });
  }
  if (found.few()) {
    Count("events far from all others",
          fmt::format("'{}' begins or ends at least {} from the rest: its time cannot be", named,
                      RoughTime(found.gap)),
          /*loss=*/true, found.far);
  } else {
    Count(kOtherWindows,
          fmt::format("'{}' and others lie at least {} from the window with most events: other "
                      "windows, or times that cannot be. No step goes on over such a gap, so the "
                      "answers are about that window",
                      named, RoughTime(found.gap)),
          /*loss=*/true, found.far);
  }
}

TraceBuilder::Extent TraceBuilder::Recorded() {
  Extent all{Instant{INT64_MAX}, Instant{INT64_MIN}};
  for (LaneRows& lane : lane_rows_) {
    if (!any_left_out_) {
      all = Wider(all, lane.Extent());
      continue;
    }
    lane.ForEach([&](const TraceRow& row) {
      if (!row.left_out) all = Wider(all, {row.start, row.start + row.duration});
    });
  }
  return all;
}

void TraceBuilder::LeaveOutFarAllocations(Extent recorded) {
  const Instant first = recorded.first, last = recorded.last;
  if (first > last) return;
  const uint64_t whole = Apart(first, last);
  if (whole > UINT64_MAX / kFarGapFactor) return;
  const uint64_t gap =
      std::max(static_cast<uint64_t>(kShortestFarGap.ns), whole * uint64_t{kFarGapFactor});
  const size_t far = std::erase_if(trace_.allocations, [&](const Allocation& a) {
    return Apart(a.at, first) >= gap || Apart(last, a.at) >= gap;
  });
  if (far == 0) return;
  Count("allocations far from all events",
        "their times cannot be, or they are of another window: the peak of memory leaves them out",
        /*loss=*/true, far, /*byte=*/-1, /*count_as_event=*/false);
}

void TraceBuilder::ForgetIndexes() {
  lane_ids_ = {};
  kernel_rows_ = {};
  copy_rows_ = {};
  op_rows_ = {};
  collective_rows_ = {};
  sync_rows_ = {};
}

absl::StatusOr<std::shared_ptr<const Trace>> TraceBuilder::Build() {
  if (rows_ > kMaxRows || trace_.lanes.size() > kMaxLanes) {
    return MakeStatus(absl::StatusCode::kResourceExhausted,
                      {.code = "E0212",
                       .what = fmt::format("this trace is too large: {} events on {} threads and "
                                           "streams",
                                           rows_, trace_.lanes.size()),
                       .where = trace_.provenance.source,
                       .why = fmt::format("at most {} events and {} threads and streams fit",
                                          kMaxRows, kMaxLanes),
                       .fix = "record fewer steps"});
  }
  DD_RETURN_IF_ERROR(LeaveOutFarEvents());
  const Extent recorded = Recorded();
  if (!trace_.allocations.empty()) LeaveOutFarAllocations(recorded);
  const Instant origin = rows_ == 0 ? Instant{} : recorded.first;
  std::vector<uint32_t> lane_first;  // by lane: how many events those before it have
  uint32_t first = 0;
  for (LaneRows& lane : lane_rows_) {
    lane_first.push_back(first);
    first += lane.size();
  }
  ForgetIndexes();
  if (!trace_.dependencies.empty()) GroupDependencies(lane_first);
  lane_of_ = std::vector<uint16_t>();
  std::vector<uint32_t> row_of(trace_.dependencies.empty() ? 0 : first, kLeftOut);
  ReserveColumns();
  for (size_t l = 0; l < trace_.lanes.size(); ++l) {
    trace_.lane_begin.push_back(static_cast<uint32_t>(trace_.rows()));
    FillLane(LaneId(l), origin,
             row_of.empty() ? std::span<uint32_t>() : std::span(row_of).subspan(lane_first[l]));
  }
  trace_.lane_begin.push_back(static_cast<uint32_t>(trace_.rows()));
  FinishDependencies(row_of);
  for (Allocation& a : trace_.allocations) a.at = Instant{a.at.ns - origin.ns};
  const auto earlier = [](const Allocation& a, const Allocation& b) { return a.at < b.at; };
  SortRuns(trace_.allocations, earlier);
  trace_.clock_origin_ns = clock_base_ns_ + origin.ns;
  FinishProvenance();
  if (finish_) finish_(trace_);
  auto trace = std::make_shared<const Trace>(std::move(trace_));
  *this = TraceBuilder();
  return trace;
}

}  // namespace daydream
