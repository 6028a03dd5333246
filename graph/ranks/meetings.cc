#include "graph/ranks/meetings.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/median.h"

namespace daydream {
namespace {

// A Ghost has to be later than the recorded arrivals by this: measured on eight ranks of which one
// was left out (34, 2, 4 and 17 of 84 rows without rank 0, 1, 5 and 6).
constexpr Duration kLeastLate = Duration::Us(20);
constexpr int64_t kLateShare = 4;  // of the transfer

struct Ends {
  std::span<const RankCollectives> ranks;
  std::span<const Duration> shift;
  const RankCollective& Of(RowMember m) const { return ranks[m.rank].all[m.collective]; }
  Instant Start(RowMember m) const { return Of(m).start + shift[m.rank]; }
  Instant End(RowMember m) const { return Of(m).end + shift[m.rank]; }
  Instant MiddleEnd(const MatchedRow& row) const {
    std::vector<int64_t> ends;
    for (RowMember m : row.members) ends.push_back(End(m).ns);
    return Instant{Median(ends)};
  }
};

// Broadcasts and reductions to one rank do not hold all until the last has come.
bool Meets(CollectiveKind kind) {
  return kind != CollectiveKind::kBroadcast && kind != CollectiveKind::kReduce;
}

class MeetingFinder {
 public:
  MeetingFinder(std::span<const RankCollectives> ranks, const MatchedRanks& matched,
                std::span<const Duration> shift)
      : at_{ranks, shift}, matched_(matched) {}

  Meetings Run() {
    for (const MatchedRow& row : matched_.rows) out_.rows.push_back(Plain(row));
    for (size_t i = 0; i < out_.rows.size(); ++i) Classify(i);
    FindLeast();
    FindGhosts();
    SettleTransfers();
    return std::move(out_);
  }

 private:
  Meeting Plain(const MatchedRow& row) const {
    Meeting m;
    for (size_t i = 0; i < row.members.size(); ++i) {
      const Instant start = at_.Start(row.members[i]);
      if (i > 0 && start <= m.last) continue;
      m.last = start;
      m.who = row.members[i].rank;
    }
    return m;
  }

  void Classify(size_t i) {
    const MatchedRow& row = matched_.rows[i];
    const auto key = std::tuple(row.kind, row.bytes, row.bytes > 0 ? 0u : row.grid, row.size);
    const auto [known, fresh] =
        class_of_.try_emplace(key, static_cast<uint32_t>(out_.classes.size()));
    if (fresh) {
      out_.classes.push_back(
          {.kind = row.kind, .bytes = row.bytes, .grid = row.grid, .size = row.size});
    }
    out_.rows[i].class_of = known->second;
    ++out_.classes[known->second].count;
  }

  // Rule N3, over the rows as they stand: the time from the last recorded arrival on is too long
  // where somebody who was not recorded came later.
  void FindLeast() {
    std::vector<Duration> shortest(out_.classes.size(), Duration::Max());
    for (size_t i = 0; i < out_.rows.size(); ++i) {
      const Duration d = at_.MiddleEnd(matched_.rows[i]) - out_.rows[i].last;
      Duration& least = shortest[out_.rows[i].class_of];
      least = std::min(least, std::max(d, Duration{}));
    }
    std::map<std::pair<CollectiveKind, int32_t>, std::vector<size_t>> alike;
    for (size_t c = 0; c < out_.classes.size(); ++c) {
      const TransferClass& own = out_.classes[c];
      out_.classes[c].least = shortest[c];
      if (own.bytes > 0) alike[{own.kind, own.size}].push_back(c);
    }
    for (auto& [key, classes] : alike) BoundByOthers(shortest, classes);
  }

  // No class takes less than a smaller one in proportion to their sizes, nor than a larger one.
  void BoundByOthers(std::span<const Duration> shortest, std::vector<size_t>& classes) {
    const auto bytes = [&](size_t c) { return static_cast<double>(out_.classes[c].bytes); };
    const auto each = [&](size_t c) { return shortest[c].seconds() / bytes(c); };
    std::sort(classes.begin(), classes.end(),
              [&](size_t a, size_t b) { return bytes(a) < bytes(b); });
    std::optional<size_t> quickest;  // a byte, among the smaller ones
    for (size_t c : classes) {
      if (quickest.has_value()) {
        const double grows = bytes(c) / bytes(*quickest);
        out_.classes[c].least = std::min(out_.classes[c].least, shortest[*quickest].Scaled(grows));
      }
      if (!quickest.has_value() || each(c) < each(*quickest)) quickest = c;
    }
    Duration larger = Duration::Max();
    for (size_t i = classes.size(); i-- > 0;) {
      larger = std::min(larger, shortest[classes[i]]);
      out_.classes[classes[i]].least = std::min(out_.classes[classes[i]].least, larger);
    }
  }

  void FindGhosts() {
    for (size_t i = 0; i < out_.rows.size(); ++i) {
      const MatchedRow& row = matched_.rows[i];
      if (row.whole() || row.members.empty()) continue;
      Meeting& m = out_.rows[i];
      const Duration least = out_.classes[m.class_of].least;
      const Instant arrival = at_.MiddleEnd(row) - least;
      const Duration late = arrival - m.last;
      if (late <= kLeastLate || late.ns * kLateShare <= least.ns) continue;
      m.ghost = arrival;
      ++out_.ghosts;
    }
  }

  void SettleTransfers() {
    std::vector<std::vector<int64_t>> of_class(out_.classes.size());
    for (size_t i = 0; i < out_.rows.size(); ++i) {
      const MatchedRow& row = matched_.rows[i];
      Meeting& m = out_.rows[i];
      TransferClass& c = out_.classes[m.class_of];
      std::vector<int64_t> transfers;
      for (RowMember member : row.members) {
        const Duration transfer = at_.End(member) - m.instant();
        out_.early += transfer < Duration{} && Meets(row.kind);
        transfers.push_back(std::max<int64_t>(0, transfer.ns));
        c.waits += std::max(Duration{}, m.instant() - at_.Start(member));
      }
      m.transfer = Duration{Median(transfers)};
      of_class[m.class_of].push_back(m.transfer.ns);
    }
    for (size_t c = 0; c < of_class.size(); ++c) {
      out_.classes[c].transfer = Duration{Median(of_class[c])};
    }
  }

  Ends at_;
  const MatchedRanks& matched_;
  Meetings out_;
  std::map<std::tuple<CollectiveKind, uint64_t, uint32_t, int32_t>, uint32_t> class_of_;
};

}  // namespace

ClockShifts FindClockShifts(std::span<const RankCollectives> ranks, const MatchedRanks& matched,
                            std::span<const Duration> given) {
  ClockShifts out;
  out.shift.assign(given.begin(), given.end());
  std::vector<const MatchedRow*> whole;
  size_t most = 2;
  for (const MatchedRow& row : matched.rows) most = std::max(most, row.members.size());
  for (const MatchedRow& row : matched.rows) {
    if (row.members.size() == most && Meets(row.kind)) whole.push_back(&row);
  }
  out.rows = whole.size();
  // Offsets are constant, so the middle of a row is that of the same rank in every row, whatever
  // the clocks are off by: one round would do but for ranks that are not in every row.
  for (int round = 0; round < 4; ++round) {
    const Ends at{ranks, out.shift};
    std::vector<std::vector<int64_t>> late(ranks.size());
    for (const MatchedRow* row : whole) {
      const Instant middle = at.MiddleEnd(*row);
      for (RowMember m : row->members) late[m.rank].push_back((at.End(m) - middle).ns);
    }
    for (size_t r = 0; r < ranks.size(); ++r) out.shift[r] -= Duration{Median(late[r])};
  }
  std::vector<int64_t> added;
  for (size_t r = 0; r < ranks.size(); ++r) added.push_back((out.shift[r] - given[r]).ns);
  const Duration common{Median(added)};
  for (Duration& d : out.shift) d -= common;
  const Ends at{ranks, out.shift};
  std::vector<int64_t> off;
  for (const MatchedRow* row : whole) {
    const Instant middle = at.MiddleEnd(*row);
    for (RowMember m : row->members) off.push_back(std::abs((at.End(m) - middle).ns));
  }
  if (!off.empty()) {
    out.spread = Duration{Median(off)};
    out.spread95 = Duration{Ranked(off, off.size() * 95 / 100)};
  }
  return out;
}

Meetings FindMeetings(std::span<const RankCollectives> ranks, const MatchedRanks& matched,
                      std::span<const Duration> shift) {
  return MeetingFinder(ranks, matched, shift).Run();
}

}  // namespace daydream
