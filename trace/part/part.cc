#include "trace/part/part.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/id_table.h"

namespace daydream {
namespace {

// Collects the rows of a part, with the details that they have.
class Cut {
 public:
  Cut(const Trace& from, Instant begin, Instant end)
      : from_(from), begin_(begin), end_(end), calls_(0), out_(std::make_shared<Trace>()) {}

  std::shared_ptr<Trace> Run() {
    out_->names = from_.names;
    out_->lanes = from_.lanes;
    out_->collectives = from_.collectives;
    out_->devices = from_.devices;
    out_->ranks = from_.ranks;
    out_->clock_origin_ns = from_.clock_origin_ns;
    out_->provenance = from_.provenance;
    std::vector<std::vector<uint32_t>> rows(from_.lanes.size());
    for (const LaneKind kind : {LaneKind::kThread, LaneKind::kStream, LaneKind::kChannel}) {
      for (size_t l = 0; l < rows.size(); ++l) {  // calls first: they tell which GPU work is theirs
        if (from_.lanes[l].kind == kind) rows[l] = RowsOf(LaneId(l));
      }
    }
    size_t count = 0;
    for (const auto& of_lane : rows) count += of_lane.size();
    Reserve(count);
    for (size_t l = 0; l < rows.size(); ++l) {
      out_->lane_begin.push_back(static_cast<uint32_t>(out_->rows()));
      for (const uint32_t row : rows[l]) Add(row);
    }
    out_->lane_begin.push_back(static_cast<uint32_t>(out_->rows()));
    AddDependencies(rows);
    for (const Allocation& a : from_.allocations) {
      if (begin_ <= a.at && a.at < end_) out_->allocations.push_back(a);
    }
    return std::move(out_);
  }

 private:
  bool OnHost(LaneId lane) const { return from_.lanes[lane.index()].kind == LaneKind::kThread; }

  // In the order of a trace: what runs across the begin is cut there, so longer ones come first.
  std::vector<uint32_t> RowsOf(LaneId lane) {
    const auto at = [&](uint32_t row) { return from_.start.begin() + row; };
    const uint32_t first = from_.lane_begin[lane.index()],
                   last = from_.lane_begin[lane.index() + 1];
    const auto row_at = [&](Instant t) {
      return static_cast<uint32_t>(std::lower_bound(at(first), at(last), t) - from_.start.begin());
    };
    const uint32_t from = row_at(begin_), to = row_at(end_);
    std::vector<uint32_t> rows;
    for (uint32_t row = first; row < from; ++row) {
      if (begin_ < from_.End(row)) rows.push_back(row);
    }
    uint32_t row = from;
    for (; row < to && from_.start[row] == begin_; ++row) rows.push_back(row);
    std::ranges::stable_sort(
        rows, [&](uint32_t a, uint32_t b) { return EndOf(lane, b) < EndOf(lane, a); });
    for (; row < to; ++row) rows.push_back(row);
    if (OnHost(lane)) {
      for (const uint32_t r : rows) {
        if (from_.kind[r] == EventKind::kCall && from_.correlation[r] != 0)
          calls_.Set(from_.correlation[r], 1);
      }
      return rows;
    }
    for (; row < last; ++row) {
      if (from_.correlation[row] != 0 && calls_.Get(from_.correlation[row]) != 0)
        rows.push_back(row);
    }
    return rows;
  }

  // GPU work goes on behind the host.
  Instant EndOf(LaneId lane, size_t row) const {
    return OnHost(lane) ? std::min(from_.End(row), end_) : from_.End(row);
  }

  void Reserve(size_t count) {
    out_->start.reserve(count);
    out_->duration.reserve(count);
    out_->lane.reserve(count);
    out_->name.reserve(count);
    out_->kind.reserve(count);
    out_->correlation.reserve(count);
    out_->detail.reserve(count);
    out_->lane_begin.reserve(from_.lanes.size() + 1);
  }

  void Add(uint32_t row) {
    const LaneId lane = from_.lane[row];
    const Instant start = std::max(from_.start[row], begin_);
    out_->start.push_back(start);
    out_->duration.push_back(EndOf(lane, row) - start);
    out_->lane.push_back(lane);
    out_->name.push_back(from_.name[row]);
    out_->kind.push_back(from_.kind[row]);
    out_->correlation.push_back(from_.correlation[row]);
    out_->detail.push_back(DetailOf(row));
  }

  uint32_t DetailOf(uint32_t row) {
    const uint32_t detail = from_.detail[row];
    switch (from_.kind[row]) {
      case EventKind::kOp:
        return Take(detail, from_.ops, op_, out_->ops);
      case EventKind::kKernel:
        return Take(detail, from_.kernels, kernel_, out_->kernels);
      case EventKind::kMemcpy:
      case EventKind::kMemset:
        return Take(detail, from_.copies, copy_, out_->copies);
      case EventKind::kSync:
        return Take(detail, from_.syncs, sync_, out_->syncs);
      case EventKind::kAnnotation:
      case EventKind::kFrame:
      case EventKind::kCall:
        break;
    }
    return detail;
  }

  // Each detail once, numbered as it comes.
  template <class T>
  static uint32_t Take(uint32_t detail, const std::vector<T>& from, std::vector<uint32_t>& place,
                       std::vector<T>& to) {
    if (detail >= from.size()) return detail;
    if (place.empty()) place.resize(from.size(), kNone);
    if (place[detail] == kNone) {
      place[detail] = static_cast<uint32_t>(to.size());
      to.push_back(from[detail]);
    }
    return place[detail];
  }

  void AddDependencies(const std::vector<std::vector<uint32_t>>& rows) {
    if (from_.dependencies.empty()) return;
    std::vector<uint32_t> place(from_.rows(), kNone);
    uint32_t next = 0;
    for (const auto& of_lane : rows) {
      for (const uint32_t row : of_lane) place[row] = next++;
    }
    for (const DataDependency& d : from_.dependencies) {
      if (place[d.producer] == kNone || place[d.consumer] == kNone) continue;
      out_->dependencies.push_back({place[d.producer], place[d.consumer]});
    }
    std::ranges::stable_sort(out_->dependencies, {}, &DataDependency::consumer);
  }

  static constexpr uint32_t kNone = Id<void>::kNoneValue;
  const Trace& from_;
  Instant begin_, end_;
  IdTable<uint8_t> calls_;  // by correlation: 1 where the call is in the part
  std::vector<uint32_t> op_, kernel_, copy_, sync_;  // where a detail went
  std::shared_ptr<Trace> out_;
};

}  // namespace

double Part::unlike() const {
  if (of_all <= Duration{}) return 0;
  return std::abs(static_cast<double>((mean - of_all).ns)) / static_cast<double>(of_all.ns);
}

std::shared_ptr<const Trace> PartOf(const Trace& trace, const Steps& steps, const StepRange& range,
                                    PartIs is) {
  const std::vector<Step>& all = steps.steps;
  const size_t begin = range.begin(), end = range.end();
  const Instant from = begin == 0 ? Instant::Min() : all[begin].begin;
  const Instant to = end == all.size() ? Instant{INT64_MAX} : all[end].begin;
  std::shared_ptr<Trace> out = Cut(trace, from, to).Run();
  auto part = std::make_shared<Part>();
  part->is = is;
  part->range = range;
  part->recorded = all.size();
  part->rows_left_out = trace.rows() - out->rows();
  const std::vector<std::optional<Duration>> times = StepTimes(steps);
  part->of_all = MeanTime(times);
  part->mean = MeanTime(std::span(times).subspan(range.first, range.last + 1 - range.first));
  for (size_t i = 0; i < all.size(); ++i) {
    if (!times[i].has_value() || (range.first <= i && i <= range.last)) continue;
    if (*times[i] <= part->longest_time) continue;
    part->longest = all[i].label;
    part->longest_time = *times[i];
  }
  part->steps = {.method = steps.method,
                 .lane = steps.lane,
                 .steps = {all.begin() + static_cast<ptrdiff_t>(begin),
                           all.begin() + static_cast<ptrdiff_t>(end)},
                 .inside = steps.inside,
                 .behind_marks = steps.behind_marks};
  for (size_t i = begin; i < end; ++i) {
    Step& step = part->steps.steps[i - begin];
    if (is == PartIs::kNamed && i == 0 && range.first == 0 && step.use == StepUse::kWarmUp) {
      step.use = StepUse::kMeasured;
      step.why.clear();
    }
    if ((range.first <= i && i <= range.last) || step.use != StepUse::kMeasured) continue;
    step.use = StepUse::kBeside;
    step.why = "it stands beside those that are asked of a long recording";
  }
  out->provenance.counts.push_back(
      {.what = "events of other steps",
       .count = part->rows_left_out,
       .reason = fmt::format("places {} to {} of {} steps stand for all; --steps all", range.first,
                             range.last, part->recorded)});
  out->part = std::move(part);
  return out;
}

std::shared_ptr<const Trace> StandingForAll(std::shared_ptr<const Trace> trace) {
  if (trace->rows() <= kLongRecording || trace->ranks.size() > 1) return trace;
  const Steps steps = FindSteps(*trace);
  const auto range = ChooseSteps(steps, trace->rows());
  return range.has_value() ? PartOf(*trace, steps, *range, PartIs::kChosen) : trace;
}

}  // namespace daydream
