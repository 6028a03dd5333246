#include "trace/step_launches.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/id_table.h"
#include "base/sort_runs.h"

namespace daydream {
namespace {

struct GpuTasks {
  uint32_t count = 0, first_row = 0;
  Instant begin;
};

uint64_t WorkOf(const Trace& trace, size_t row) {
  return uint64_t{trace.name[row].value} << 32 | trace.detail[row];
}

void SortByStart(std::vector<Launch>& launches) {
  SortRuns(launches, [](const Launch& a, const Launch& b) { return a.start < b.start; });
}

std::vector<Launch> Operators(const Trace& trace) {
  std::vector<Launch> launches;
  for (size_t row = 0; row < trace.rows(); ++row) {
    if (trace.kind[row] != EventKind::kOp) continue;
    launches.push_back({trace.start[row], trace.lane[row], 1, trace.name[row].value});
  }
  SortByStart(launches);
  return launches;
}

}  // namespace

std::vector<Launch> FindLaunches(const Trace& trace) {
  std::vector<GpuTasks> tasks;
  constexpr uint32_t kNone = Id<void>::kNoneValue;
  IdTable<uint32_t> of_correlation(kNone);  // into `tasks`
  const std::span<const EventKind> kind = trace.kind;
  tasks.reserve(static_cast<size_t>(std::ranges::count_if(kind, IsGpuWork)));
  for (size_t row = 0; row < kind.size(); ++row) {
    if (!IsGpuWork(kind[row])) continue;
    const uint32_t correlation = trace.correlation[row];
    if (correlation == 0) continue;
    uint32_t at = of_correlation.Get(correlation);
    if (at == kNone) {
      at = static_cast<uint32_t>(tasks.size());
      tasks.push_back({0, static_cast<uint32_t>(row), trace.start[row]});
      of_correlation.Set(correlation, at);
    }
    ++tasks[at].count;
    tasks[at].begin = std::min(tasks[at].begin, trace.start[row]);
  }
  std::vector<Launch> launches;
  launches.reserve(tasks.size());
  for (size_t row = 0; row < kind.size(); ++row) {
    if (kind[row] != EventKind::kCall || trace.correlation[row] == 0) continue;
    const uint32_t at = of_correlation.Get(trace.correlation[row]);
    // A driver call inside it carries the same correlation: the first takes all.
    if (at == kNone || tasks[at].count == 0) continue;
    launches.push_back({trace.start[row], trace.lane[row], std::exchange(tasks[at].count, 0),
                        WorkOf(trace, tasks[at].first_row), tasks[at].begin});
  }
  if (launches.empty()) return Operators(trace);
  SortByStart(launches);
  return launches;
}

namespace {

// Distances at which rare entries come back, most frequent first.
std::vector<size_t> CandidatePeriods(const std::vector<uint64_t>& sequence) {
  constexpr size_t kFewest = 3, kMost = 1000, kCandidates = 24;
  absl::flat_hash_map<uint64_t, std::pair<size_t, size_t>> seen;  // count, last position
  for (uint64_t what : sequence) ++seen[what].first;
  for (auto& [what, entry] : seen) entry.second = SIZE_MAX;
  absl::flat_hash_map<size_t, size_t> votes;
  for (size_t i = 0; i < sequence.size(); ++i) {
    auto& [count, last] = seen[sequence[i]];
    if (count < kFewest || count > kMost) continue;
    if (last != SIZE_MAX) ++votes[i - last];
    last = i;
  }
  std::vector<std::pair<size_t, size_t>> ranked;  // votes, distance
  for (auto [distance, n] : votes) ranked.emplace_back(n, distance);
  std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  if (ranked.size() > kCandidates) ranked.resize(kCandidates);
  std::vector<size_t> periods;
  periods.reserve(ranked.size());
  for (auto [n, distance] : ranked) periods.push_back(distance);
  std::sort(periods.begin(), periods.end());
  return periods;
}

}  // namespace

size_t SlowerAtFirst(std::span<const std::pair<Instant, Instant>> steps,
                     std::span<const Launch> launches) {
  std::vector<double> lengths;
  for (const auto& [begin, end] : steps) {
    const auto next = std::ranges::lower_bound(launches, end, {}, &Launch::start);
    const bool any = next != launches.begin() && std::prev(next)->start >= begin;
    lengths.push_back(any ? static_cast<double>((std::prev(next)->start - begin).ns) : 0);
  }
  std::vector<std::pair<double, double>> longest(lengths.size() + 1);  // two, from each on
  for (size_t i = lengths.size(); i-- > 0;) {
    const auto [first, second] = longest[i + 1];
    longest[i] = {std::max(first, lengths[i]), std::max(second, std::min(first, lengths[i]))};
  }
  size_t slower = 0;
  double low = longest[0].first, high = 0;
  for (size_t first = 1; first <= lengths.size() / 2 && first + 3 <= lengths.size(); ++first) {
    low = std::min(low, lengths[first - 1]), high = std::max(high, lengths[first - 1]);
    const auto [behind, second] = longest[first];
    if (low > kSlowerStep * (behind > kSlowerStep * high ? second : behind)) slower = first;
  }
  return slower;
}

size_t FindPeriod(const std::vector<uint64_t>& sequence) {
  // Layers of a model repeat as well, but what comes before and after them does not: the whole
  // sequence has to repeat, but for one entry in fifty (autotuning, a log line now and then).
  constexpr size_t kOneIn = 50, kRepeats = 3, kShortest = 4;
  size_t n = sequence.size();
  for (size_t period : CandidatePeriods(sequence)) {
    if (period < kShortest || n < kRepeats * period) continue;
    size_t misses = 0, allowed = (n - period) / kOneIn;
    for (size_t i = 0; i + period < n && misses <= allowed; ++i) {
      misses += sequence[i] != sequence[i + period] ? 1 : 0;
    }
    if (misses <= allowed) return period;
  }
  return 0;
}

}  // namespace daydream
