#include "trace/join/ranks.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "base/median.h"
#include "trace/range_names.h"
#include "trace/trace_builder.h"

namespace daydream {
namespace {

// Fewer collectives than these say nothing about a clock.
constexpr size_t kFewestCollectives = 4;

// Clocks that count from different instants are no common clock. Chosen: no wall clock is off by a
// day, and no two ranks of a run begin a day apart.
constexpr Duration kLongestShift = Duration::Ms(24 * 3600 * 1000);

// Between recordings of one run by clocks that nobody set. Chosen: NTP keeps them within a second,
// and a run that was recorded again begins later than this, mostly.
// Two short traces may well agree by chance, as in examples.
constexpr size_t kRowsToCompare = 100;
constexpr Duration kLongestSkew = Duration::Ms(3600 * 1000);

// Copies events of one trace after the other into a builder.
class Copier {
 public:
  explicit Copier(TraceBuilder& builder) : builder_(builder) {}

  // The lanes for which `wanted` holds; their times get `shift`, their ranks `first_rank`.
  template <class Wanted>
  void Copy(const Trace& from, int32_t first_rank, Duration shift, const Wanted& wanted) {
    Copy(from, first_rank, shift, wanted, [](size_t) { return true; });
  }
  // Of these the rows for which `kept` holds.
  template <class Wanted, class Kept>
  void Copy(const Trace& from, int32_t first_rank, Duration shift, const Wanted& wanted,
            const Kept& kept) {
    from_ = &from;
    correlations_.clear();
    std::vector<uint32_t> place;  // by row of `from`; only where there are dependencies
    if (!from.dependencies.empty()) place.assign(from.rows(), Id<void>::kNoneValue);
    names_.assign(from.names->size(), NameId());
    std::vector<LaneId> lanes(from.lanes.size());
    for (size_t l = 0; l < from.lanes.size(); ++l) {
      if (wanted(from.lanes[l])) lanes[l] = AddLane(from.lanes[l], first_rank);
    }
    for (size_t row = 0; row < from.rows(); ++row) {
      const LaneId lane = lanes[from.lane[row].index()];
      if (!lane.valid() || !kept(row)) {
        ++left_out_;
        continue;
      }
      if (!place.empty()) place[row] = static_cast<uint32_t>(builder_.events());
      builder_.AddEvent({.start = from.start[row] + shift,
                         .duration = from.duration[row],
                         .lane = lane,
                         .name = Name(from.name[row]),
                         .kind = from.kind[row],
                         .correlation = Correlation(from.correlation[row]),
                         .detail = Detail(row)});
    }
    for (const DataDependency& d : from.dependencies) {
      const uint32_t producer = place[d.producer], consumer = place[d.consumer];
      if (EventId(producer).valid() && EventId(consumer).valid()) {
        builder_.AddDependency(producer, consumer);
      }
    }
  }
  uint64_t left_out() const { return left_out_; }

 private:
  NameId Name(NameId name) {
    if (!name.valid()) return name;
    NameId& known = names_[name.index()];
    if (!known.valid()) known = builder_.names().Intern(from_->names->Get(name));
    return known;
  }

  // Processes count their calls from 1, each.
  uint32_t Correlation(uint32_t id) {
    if (id == 0) return 0;
    const auto [known, fresh] = correlations_.try_emplace(id, next_correlation_);
    if (fresh) ++next_correlation_;
    return known->second;
  }

  // Two ranks that call their GPU 0 have two GPUs.
  int32_t Device(int32_t id, int32_t rank) {
    if (id < 0) return id;
    const auto [known, fresh] = devices_.try_emplace({rank, id}, id);
    if (!fresh) return known->second;
    while (!taken_.insert(known->second).second) ++known->second;
    if (const struct Device* device = from_->FindDevice(id)) {
      struct Device copy = *device;
      copy.id = known->second;
      builder_.AddDevice(std::move(copy));
    }
    return known->second;
  }

  LaneId AddLane(const Lane& lane, int32_t first_rank) {
    const int32_t rank = first_rank + lane.rank;
    const LaneId id =
        builder_.AddLane(lane.kind, lane.process, lane.number, Device(lane.device, rank), rank);
    builder_.NameLane(id, from_->Name(lane.name));
    builder_.SetStreamType(id, lane.stream);
    return id;
  }

  uint32_t Collective(uint32_t row) {
    if (row == Id<void>::kNoneValue) return Id<void>::kNoneValue;
    CollectiveDetail d = from_->collectives[row];
    d.name = Name(d.name);
    d.dtype = Name(d.dtype);
    d.process_group = Name(d.process_group);
    return builder_.AddCollective(d);
  }

  uint32_t Detail(size_t row) {
    const uint32_t detail = from_->detail[row];
    if (detail == Id<void>::kNoneValue) return Id<void>::kNoneValue;
    switch (from_->kind[row]) {
      case EventKind::kKernel: {
        KernelDetail d = from_->kernels[detail];
        d.collective = Collective(d.collective);
        d.layer = Name(d.layer);
        return builder_.AddKernel(d);
      }
      case EventKind::kMemcpy:
      case EventKind::kMemset:
        return builder_.AddCopy(from_->copies[detail]);
      case EventKind::kOp: {
        OpDetail d = from_->ops[detail];
        d.shapes = Name(d.shapes);
        d.types = Name(d.types);
        d.collective = Collective(d.collective);
        return builder_.AddOp(d);
      }
      case EventKind::kSync: {
        SyncDetail d = from_->syncs[detail];
        d.record_correlation = Correlation(d.record_correlation);
        return builder_.AddSync(d);
      }
      default:
        return Id<void>::kNoneValue;
    }
  }

  TraceBuilder& builder_;
  const Trace* from_ = nullptr;
  std::vector<NameId> names_;
  absl::flat_hash_map<uint32_t, uint32_t> correlations_;
  uint32_t next_correlation_ = 1;
  std::map<std::pair<int32_t, int32_t>, int32_t> devices_;
  std::set<int32_t> taken_;
  uint64_t left_out_ = 0;
};

// Adds where `from` came from, and what is missing of it; not what recording cost.
void AddProvenance(const Provenance& from, TraceBuilder& builder) {
  Provenance& to = builder.provenance();
  if (to.importer.empty()) {
    to.importer = from.importer;
    to.format = from.format;
  }
  to.synthetic = to.synthetic || from.synthetic;
  to.input_events += from.input_events;
  to.no_waits = to.no_waits || from.no_waits;
  to.planned = to.planned || from.planned;
  for (const auto& [name, rows] : from.tables_not_read) builder.AddTableNotRead(name, rows);
  for (const auto& [what, version] : from.software) builder.AddSoftware(what, version);
  for (const ImportCount& c : from.counts) {
    builder.Count(c.what, c.reason, c.loss, c.count, -1, !c.repair);
  }
}

absl::Status NotOneRun(std::string what, std::string where, std::string why) {
  return MakeStatus(absl::StatusCode::kInvalidArgument, {.code = "E0431",
                                                         .what = std::move(what),
                                                         .where = std::move(where),
                                                         .why = std::move(why),
                                                         .fix = "name the files of one run"});
}

std::string Both(const RankTrace& a, const RankTrace& b) { return a.file + ", " + b.file; }

bool SameSession(const RankTrace& a, const RankTrace& b) {
  return !a.process.session.empty() && a.process.session == b.process.session;
}
bool SameClock(const RankTrace& a, const RankTrace& b) {
  return !a.process.boot.empty() && a.process.boot == b.process.boot;
}

Instant LastEnd(const Trace& t) {
  Instant end;
  for (size_t row = 0; row < t.rows(); ++row) end = std::max(end, t.End(row));
  return end;
}

// [begin, end) on the clock of the machine.
std::pair<int64_t, int64_t> TimeOf(const RankTrace& r) {
  return {r.trace->clock_origin_ns, r.trace->clock_origin_ns + LastEnd(*r.trace).ns};
}

// The same in ns since 1970; nothing where the clock counts from something else.
std::optional<std::pair<int64_t, int64_t>> WallTimeOf(const RankTrace& r) {
  // In 2001. No machine has been up for so long.
  constexpr int64_t kSince1970 = 1'000'000'000'000'000'000;
  const auto [begin, end] = TimeOf(r);
  const int64_t offset = r.process.wall_offset_ns.value_or(0);
  if (begin + offset < kSince1970) return std::nullopt;
  return std::pair(begin + offset, end + offset);
}

// From the end of the earlier one to the beginning of the later one; below 0 where they overlap.
Duration Between(std::pair<int64_t, int64_t> a, std::pair<int64_t, int64_t> b) {
  return Duration{std::max(a.first - b.second, b.first - a.second)};
}

absl::Status CheckCopy(const RankTrace& a, const RankTrace& b) {
  if (!SameEvents(*a.trace, *b.trace)) return absl::OkStatus();
  return NotOneRun("these traces hold the same events", Both(a, b),
                   "one rank's file is there twice, under two ranks");
}

absl::Status CheckTimes(const RankTrace& a, const RankTrace& b) {
  if (SameSession(a, b)) return absl::OkStatus();
  if (SameClock(a, b)) {
    if (Between(TimeOf(a), TimeOf(b)) <= Duration{}) return absl::OkStatus();
    return NotOneRun("these traces were recorded one after the other", Both(a, b),
                     "ranks of one run run at the same time");
  }
  const auto wall_a = WallTimeOf(a), wall_b = WallTimeOf(b);
  if (!wall_a || !wall_b) return absl::OkStatus();
  const Duration between = Between(*wall_a, *wall_b);
  if (between <= kLongestSkew) return absl::OkStatus();
  return NotOneRun("these traces were recorded one after the other", Both(a, b),
                   fmt::format("{:.1f} hours lie between them, and ranks of one run run at the "
                               "same time",
                               between.ms() / 3'600'000));
}

absl::Status CheckRankNumbers(const RankTrace& a, const RankTrace& b) {
  const int32_t x = a.trace->ranks[0].rank, y = b.trace->ranks[0].rank;
  if (SameSession(a, b) && x < 0) return absl::OkStatus();  // processes, not ranks
  if (x == y) {
    return NotOneRun("two of these traces are of " +
                         (x < 0 ? "processes without a rank" : fmt::format("rank {}", x)),
                     Both(a, b), "a run has one trace of each rank");
  }
  if (x >= 0) return absl::OkStatus();
  return NotOneRun("one of these traces does not say its rank", Both(a, b),
                   fmt::format("{} has none, the other is of rank {}", a.file, y));
}

// Ends of collectives in the order of their starts, by name.
std::map<std::string_view, std::vector<Instant>> CollectiveEnds(const Trace& t) {
  std::vector<size_t> rows;
  for (size_t row = 0; row < t.rows(); ++row) {
    if (t.kind[row] == EventKind::kKernel && IsCollectiveKernel(t.EventName(row))) {
      rows.push_back(row);
    }
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [&](size_t a, size_t b) { return t.start[a] < t.start[b]; });
  std::map<std::string_view, std::vector<Instant>> ends;
  for (size_t row : rows) ends[t.EventName(row)].push_back(t.End(row));
  return ends;
}

// No rank leaves a collective before all are there, and all leave it within some 10 us (30 us in a
// tensor-parallel step of eight ranks): so the ends tell how clocks differ. `shift` is what is
// added to times of `other` so far.
void AlignByCollectives(const Trace& first, const Trace& other, Duration& shift, RankClock& clock) {
  const auto a = CollectiveEnds(first), b = CollectiveEnds(other);
  std::vector<int64_t> differences;
  for (const auto& [name, ends] : a) {
    const auto same = b.find(name);
    // Where a window cut some off, nobody knows which belong together.
    if (same == b.end() || same->second.size() != ends.size()) continue;
    for (size_t i = 0; i < ends.size(); ++i) {
      differences.push_back((ends[i] - (same->second[i] + shift)).ns);
    }
  }
  if (differences.size() < kFewestCollectives) return;
  clock.basis = ClockBasis::kCollectives;
  clock.collectives = differences.size();
  clock.shift = Duration{Median(differences)};
  for (int64_t& d : differences) d = std::abs(d - clock.shift.ns);
  clock.spread = Duration{Median(differences)};
  shift += clock.shift;
}

// What to add to times of `r` for them to count from where those of `first` do.
Duration ShiftOf(const RankTrace& first, const RankTrace& r, RankClock& clock) {
  clock.file = r.file;
  clock.rank = r.trace->ranks[0];
  // Readings are within 73 years of 0 each, so nothing here overflows.
  const int64_t origins = r.trace->clock_origin_ns - first.trace->clock_origin_ns;
  if (&first == &r || SameClock(first, r)) return Duration{origins};
  // Plans have no clocks: all begin at 0.
  if (first.trace->provenance.planned && r.trace->provenance.planned) return Duration{};
  // Converted traces count from the wall clock, if from any.
  const bool recorded = first.process.wall_offset_ns && r.process.wall_offset_ns;
  const bool neither = !first.process.wall_offset_ns && !r.process.wall_offset_ns;
  const bool known = first.trace->clock_origin_ns != 0 && r.trace->clock_origin_ns != 0;
  Duration shift;
  clock.basis = ClockBasis::kNone;
  if (recorded) {
    shift = Duration{origins + (*r.process.wall_offset_ns - *first.process.wall_offset_ns)};
    clock.basis = ClockBasis::kWall;
  } else if (neither && known) {
    shift = Duration{origins};
    clock.basis = ClockBasis::kWall;
  }
  if (std::abs(shift.ns) > kLongestShift.ns) {
    shift = Duration{};
    clock.basis = ClockBasis::kNone;
  }
  AlignByCollectives(*first.trace, *r.trace, shift, clock);
  return shift;
}

}  // namespace

bool SameEvents(const Trace& a, const Trace& b) {
  return a.rows() >= kRowsToCompare && a.start == b.start && a.duration == b.duration;
}

absl::Status CheckCopies(const std::vector<RankTrace>& ranks) {
  for (size_t i = 0; i < ranks.size(); ++i) {
    for (size_t k = 0; k < i; ++k) DD_RETURN_IF_ERROR(CheckCopy(ranks[k], ranks[i]));
  }
  return absl::OkStatus();
}

absl::Status CheckOneRun(const std::vector<RankTrace>& ranks) {
  const RankTrace& first = ranks[0];
  for (size_t i = 1; i < ranks.size(); ++i) {
    DD_RETURN_IF_ERROR(CheckRankNumbers(ranks[i - 1], ranks[i]));
    const int32_t size = first.trace->ranks[0].world_size;
    const int32_t other = ranks[i].trace->ranks[0].world_size;
    if (size > 0 && other > 0 && size != other) {
      return NotOneRun("these traces are of runs of different size", Both(first, ranks[i]),
                       fmt::format("{} ranks and {} ranks", size, other));
    }
    DD_RETURN_IF_ERROR(CheckTimes(first, ranks[i]));
  }
  return CheckCopies(ranks);
}

absl::StatusOr<MergedRanks> MergeRanks(std::vector<RankTrace> ranks, std::string name) {
  std::stable_sort(ranks.begin(), ranks.end(), [](const RankTrace& a, const RankTrace& b) {
    return a.trace->ranks[0].rank < b.trace->ranks[0].rank;
  });
  DD_RETURN_IF_ERROR(CheckOneRun(ranks));
  TraceBuilder builder;
  Copier copier(builder);
  MergedRanks merged;
  builder.SetClockBase(ranks[0].trace->clock_origin_ns);
  std::vector<RecordingCost> costs;  // calls of another rank may cost more: each keeps its own
  bool told = false;
  int32_t first_rank = 0;
  for (const RankTrace& r : ranks) {
    RankClock& clock = merged.clocks.emplace_back();
    const Duration shift = ShiftOf(ranks[0], r, clock);
    copier.Copy(*r.trace, first_rank, shift, [](const Lane&) { return true; });
    AddProvenance(r.trace->provenance, builder);
    for (const Rank& rank : r.trace->ranks) {
      builder.AddRank(rank.rank, rank.world_size);
      ++first_rank;
    }
    for (size_t i = 0; i < r.trace->ranks.size(); ++i) {
      costs.push_back(r.trace->provenance.CostOfRank(i));
      told |= costs.back() != RecordingCost();
    }
    builder.Count("ranks whose clock could not be aligned",
                  "no common clock, and fewer than four equal collectives", false,
                  clock.basis == ClockBasis::kNone, -1, false);
  }
  if (told) builder.provenance().rank_costs = std::move(costs);
  builder.provenance().source = std::move(name);
  DD_ASSIGN_OR_RETURN(merged.trace, builder.Build());
  return merged;
}

absl::StatusOr<std::shared_ptr<const Trace>> TakeRank(const Trace& trace, size_t index) {
  TraceBuilder builder;
  Copier copier(builder);
  const auto rank = static_cast<int32_t>(index);
  AddProvenance(trace.provenance, builder);
  builder.provenance().source = trace.provenance.source;
  builder.provenance().cost = trace.provenance.CostOfRank(index);
  builder.SetRank(trace.ranks[index].rank, trace.ranks[index].world_size);
  builder.SetClockBase(trace.clock_origin_ns);
  copier.Copy(trace, -rank, Duration{}, [&](const Lane& lane) { return lane.rank == rank; });
  builder.Count("events of other ranks", "one rank is looked at", false, copier.left_out());
  return builder.Build();
}

absl::StatusOr<std::shared_ptr<const Trace>> TakeTime(const Trace& trace, Instant begin,
                                                      Instant end, std::string_view why) {
  const auto on_host = [&](size_t row) {
    return trace.lanes[trace.lane[row].index()].kind == LaneKind::kThread;
  };
  const auto inside = [&](size_t row) {
    return trace.start[row] >= begin && trace.start[row] < end;
  };
  absl::flat_hash_map<uint32_t, bool> launched;  // by correlation: whether the call is taken
  for (size_t row = 0; row < trace.rows(); ++row) {
    if (on_host(row) && trace.correlation[row] != 0) {
      launched.try_emplace(trace.correlation[row], inside(row));
    }
  }
  TraceBuilder builder;
  Copier copier(builder);
  AddProvenance(trace.provenance, builder);
  builder.provenance().source = trace.provenance.source;
  builder.provenance().cost = trace.provenance.cost;
  builder.provenance().rank_costs = trace.provenance.rank_costs;
  for (const Rank& rank : trace.ranks) builder.SetRank(rank.rank, rank.world_size);
  builder.SetClockBase(trace.clock_origin_ns);
  copier.Copy(
      trace, 0, Duration{}, [](const Lane&) { return true; },
      [&](size_t row) {
        const auto call = on_host(row) ? launched.end() : launched.find(trace.correlation[row]);
        return call == launched.end() ? inside(row) : call->second;
      });
  builder.Count("events of other steps", why, false, copier.left_out());
  return builder.Build();
}

std::vector<RankWork> WorkOfRanks(const Trace& trace) {
  std::vector<RankWork> work(trace.ranks.size());
  for (size_t row = 0; row < trace.rows(); ++row) {
    if (!IsGpuWork(trace.kind[row])) continue;
    RankWork& of = work[static_cast<size_t>(trace.lanes[trace.lane[row].index()].rank)];
    of.gpu += trace.duration[row];
    if (IsCollectiveKernel(trace.EventName(row))) of.collectives += trace.duration[row];
  }
  return work;
}

size_t LastToArrive(const Trace& trace) {
  const std::vector<RankWork> work = WorkOfRanks(trace);
  const auto least = std::min_element(
      work.begin(), work.end(),
      [](const RankWork& a, const RankWork& b) { return a.collectives < b.collectives; });
  return static_cast<size_t>(least - work.begin());
}

}  // namespace daydream
