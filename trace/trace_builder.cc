#include "trace/trace_builder.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "absl/hash/hash.h"
#include "base/check.h"
#include "trace/far_events.h"

namespace daydream {
namespace {

constexpr size_t kMaxRows = size_t{1} << 31;
constexpr size_t kMaxLanes = size_t{1} << 16;
constexpr size_t kHugePage = size_t{2} << 20;

// First touch of fresh memory is several times faster in huge pages, where the system grants them.
void AdviseHugePages(void* memory, size_t bytes) {
  auto begin = (reinterpret_cast<uintptr_t>(memory) + kHugePage - 1) & ~(kHugePage - 1);
  auto end = (reinterpret_cast<uintptr_t>(memory) + bytes) & ~(kHugePage - 1);
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

template <class T>
void SizeColumn(std::vector<T>& column, size_t rows) {
  column.reserve(rows);
  AdviseHugePages(column.data(), rows * sizeof(T));
  column.resize(rows);
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
  }
  return it->second;
}

void TraceBuilder::NameLane(LaneId lane, std::string_view name) {
  trace_.lanes[lane.index()].name = names().Intern(name);
}

void TraceBuilder::AddBlock() {
  size_t rows = size_t{1} << kBlockBits;
  void* memory = std::malloc(rows * sizeof(Row));
  if (memory == nullptr) throw std::bad_alloc();  // as a vector would
  // The first block of a small trace is barely touched; small pages keep it small.
  if (!blocks_.empty()) AdviseHugePages(memory, rows * sizeof(Row));
  blocks_.emplace_back(static_cast<Row*>(memory));
  next_ = blocks_.back().get();
  block_end_ = next_ + rows;
}

void TraceBuilder::AddEvent(const Event& event) {
  DD_DCHECK(event.duration.ns >= 0);
  if (next_ == block_end_) {
    if (rows_ >= kMaxRows) {  // Build() reports it; the rows beyond are not kept.
      ++rows_;
      return;
    }
    AddBlock();
  }
  new (next_++) Row{event.start,       event.duration, event.lane.value, event.name.value,
                    event.correlation, event.detail,   event.kind};
  ++rows_;
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

void TraceBuilder::SizeColumns() {
  SizeColumn(trace_.start, rows_);
  SizeColumn(trace_.duration, rows_);
  SizeColumn(trace_.lane, rows_);
  SizeColumn(trace_.name, rows_);
  SizeColumn(trace_.kind, rows_);
  SizeColumn(trace_.correlation, rows_);
  SizeColumn(trace_.detail, rows_);
}

std::vector<uint32_t> TraceBuilder::GroupByLane() {
  std::vector<uint32_t>& begin = trace_.lane_begin;
  begin.assign(trace_.lanes.size() + 1, 0);
  for (uint32_t i = 0; i < rows_; ++i) ++begin[RowAt(i).lane + 1];
  for (size_t l = 0; l < trace_.lanes.size(); ++l) begin[l + 1] += begin[l];
  std::vector<uint32_t> next(begin.begin(), begin.end() - 1);
  std::vector<uint32_t> grouped(rows_);
  for (uint32_t i = 0; i < rows_; ++i) grouped[next[RowAt(i).lane]++] = i;
  return grouped;
}

bool TraceBuilder::Before(const SortKey& a, const SortKey& b) const {
  if (a.start != b.start) return a.start < b.start;
  Duration x = RowAt(a.row).duration, y = RowAt(b.row).duration;
  return x != y ? x > y : a.row < b.row;
}

// A profiler writes a lane as a few sequences (operators, calls, ...), each of them in order but
// for ranges that come after what they contain. So: short moves inside a sequence, then merges.
void TraceBuilder::SortKeys() {
  constexpr size_t kShortMove = 16;
  auto before = [this](const SortKey& a, const SortKey& b) { return Before(a, b); };
  std::vector<size_t> runs = {0};
  for (size_t i = 1; i < keys_.size(); ++i) {
    if (!Before(keys_[i], keys_[i - 1])) continue;
    SortKey key = keys_[i];
    size_t first = i - std::min(i - runs.back(), kShortMove);
    if (first > runs.back() && Before(key, keys_[first])) {
      runs.push_back(i);
      continue;
    }
    size_t j = i;
    for (; j > first && Before(key, keys_[j - 1]); --j) keys_[j] = keys_[j - 1];
    keys_[j] = key;
  }
  runs.push_back(keys_.size());
  while (runs.size() > 2) {
    merged_.resize(keys_.size());
    std::vector<size_t> longer = {0};
    auto at = [&](size_t i) { return keys_.begin() + static_cast<ptrdiff_t>(runs[i]); };
    for (size_t r = 0; r + 1 < runs.size(); r += 2) {
      size_t end = std::min(r + 2, runs.size() - 1);
      std::merge(at(r), at(r + 1), at(r + 1), at(end),
                 merged_.begin() + static_cast<ptrdiff_t>(runs[r]), before);
      longer.push_back(runs[end]);
    }
    keys_.swap(merged_);
    runs = std::move(longer);
  }
}

void TraceBuilder::FillLane(std::span<const uint32_t> rows, size_t first, Instant origin) {
  keys_.clear();
  for (uint32_t i : rows) keys_.push_back({RowAt(i).start.ns, i});
  SortKeys();
  for (size_t k = 0; k < keys_.size(); ++k) {
    const Row& row = RowAt(keys_[k].row);
    size_t to = first + k;
    if (!place_.empty()) place_[keys_[k].row] = static_cast<uint32_t>(to);
    trace_.start[to] = Instant{row.start.ns - origin.ns};
    trace_.duration[to] = row.duration;
    trace_.lane[to] = LaneId(row.lane);
    trace_.name[to] = NameId(row.name);
    trace_.kind[to] = row.kind;
    trace_.correlation[to] = row.correlation;
    trace_.detail[to] = row.detail;
  }
}

void TraceBuilder::FinishDependencies() {
  std::vector<DataDependency>& all = trace_.dependencies;
  std::erase_if(all, [&](const DataDependency& d) {
    return d.producer >= rows_ || d.consumer >= rows_ || d.producer == d.consumer;
  });
  for (DataDependency& d : all) d = {place_[d.producer], place_[d.consumer]};
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
  for (;;) {
    Instant first{INT64_MAX}, last{INT64_MIN};
    for (uint32_t i = 0; i < rows_; ++i) {
      const Row& row = RowAt(i);
      first = std::min(first, row.start);
      last = std::max(last, row.start + row.duration);
    }
    const auto found =
        FindFarEvents(rows_, first, last, [&](uint64_t i, Instant* begin, Instant* end) {
          const Row& row = RowAt(static_cast<uint32_t>(i));
          *begin = row.start;
          *end = row.start + row.duration;
        });
    if (!found.has_value()) return absl::OkStatus();
    if (!found->few()) return found->gap < kLongestPause ? absl::OkStatus() : TimesApart(*found);
    DropFar(*found);
  }
}

absl::Status TraceBuilder::TimesApart(const FarEvents& found) const {
  return MakeStatus(absl::StatusCode::kDataLoss,
                    {.code = "E0214",
                     .what = fmt::format("{} of {} events lie at least {} from the others",
                                         found.far, found.all, RoughTime(found.gap)),
                     .where = trace_.provenance.source,
                     .why = "the file is damaged, or two clocks were mixed in it",
                     .effect = "no step can be that long, so none is predicted",
                     .fix = "record again"});
}

void TraceBuilder::DropFar(const FarEvents& found) {
  uint32_t kept = 0;
  std::string named;
  constexpr uint32_t kGone = UINT32_MAX;
  std::vector<uint32_t> moved(trace_.dependencies.empty() ? 0 : rows_, kGone);
  auto within = [&](Instant t) { return t >= found.begin && t < found.end; };
  for (uint32_t i = 0; i < rows_; ++i) {
    const Row& row = RowAt(i);
    if (within(row.start) && within(row.start + row.duration)) {
      blocks_[kept >> kBlockBits].get()[kept & ((1u << kBlockBits) - 1)] = row;
      if (!moved.empty()) moved[i] = kept;
      ++kept;
    } else if (named.empty()) {
      named = names().Get(NameId(row.name)).substr(0, 60);
    }
  }
  for (DataDependency& d : trace_.dependencies) {
    d.producer = d.producer < moved.size() ? moved[d.producer] : kGone;
    d.consumer = d.consumer < moved.size() ? moved[d.consumer] : kGone;
  }
  rows_ = kept;  // FinishDependencies() drops those of rows that are gone
  Count("events far from all others",
        fmt::format("'{}' begins or ends at least {} from the rest: its time cannot be", named,
                    RoughTime(found.gap)),
        /*loss=*/true, found.far);
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
  Instant origin{rows_ == 0 ? 0 : RowAt(0).start.ns};
  for (uint32_t i = 1; i < rows_; ++i) origin = std::min(origin, RowAt(i).start);
  std::vector<uint32_t> grouped = GroupByLane();
  SizeColumns();
  if (!trace_.dependencies.empty()) place_.resize(rows_);
  for (size_t l = 0; l < trace_.lanes.size(); ++l) {
    size_t begin = trace_.lane_begin[l], end = trace_.lane_begin[l + 1];
    FillLane(std::span(grouped).subspan(begin, end - begin), begin, origin);
  }
  FinishDependencies();
  for (Allocation& a : trace_.allocations) a.at = Instant{a.at.ns - origin.ns};
  std::stable_sort(trace_.allocations.begin(), trace_.allocations.end(),
                   [](const Allocation& a, const Allocation& b) { return a.at < b.at; });
  trace_.clock_origin_ns = clock_base_ns_ + origin.ns;
  FinishProvenance();
  if (finish_) finish_(trace_);
  auto trace = std::make_shared<const Trace>(std::move(trace_));
  *this = TraceBuilder();
  return trace;
}

}  // namespace daydream
