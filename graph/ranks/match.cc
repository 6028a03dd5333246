#include "graph/ranks/match.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/median.h"

namespace daydream {
namespace {

// Windows of ranks begin, or end, at most so many collectives apart, and of those that two windows
// share so many are alike (the rest may be of another shape in this step).
constexpr int64_t kMostShift = 16;
constexpr double kLeastAlike = 0.9;

// One communicator of the run: which of its own each rank calls so.
struct Joined {
  std::vector<int32_t> members;  // empty = not recorded
  int32_t size = 0;
  std::string name;  // of a process group; of pointers, which differ between ranks, none
  std::vector<std::pair<uint32_t, uint32_t>> of;  // rank, communicator of that rank
};

using Alike = std::tuple<CollectiveKind, uint64_t, uint32_t>;
Alike AlikeOf(const RankCollective& c) {
  const bool any = c.kind == CollectiveKind::kAllToAll || c.kind == CollectiveKind::kSendRecv;
  return {c.kind, any ? 0 : c.bytes, any || c.bytes > 0 ? 0 : c.grid};
}

// "3, 16 to 31"
std::string Listed(const std::set<int32_t>& numbers) {
  std::string text;
  for (auto first = numbers.begin(); first != numbers.end();) {
    auto last = first;
    while (std::next(last) != numbers.end() && *std::next(last) == *last + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", *first);
    if (first != last) text += fmt::format("{}{}", *last == *first + 1 ? ", " : " to ", *last);
    first = std::next(last);
  }
  return text;
}

class Matcher {
 public:
  explicit Matcher(std::span<const RankCollectives> ranks) : ranks_(ranks) {}

  MatchedRanks Run() {
    const std::vector<Joined> joined = JoinCommunicators();
    out_.communicators = static_cast<uint32_t>(joined.size());
    for (uint32_t i = 0; i < joined.size(); ++i) {
      TellMissing(joined[i]);
      Match(i, joined[i]);
    }
    TellOthers();
    size_t matched = 0, all = 0;
    for (const MatchedRow& row : out_.rows) matched += row.members.size();
    for (const RankCollectives& r : ranks_) all += r.all.size();
    out_.unmatched = all - matched;
    return std::move(out_);
  }

 private:
  int32_t Number(uint32_t rank) const {
    const int32_t number = ranks_[rank].rank.rank;
    return number >= 0 ? number : static_cast<int32_t>(rank);
  }
  const RankCollective& Of(RowMember m) const { return ranks_[m.rank].all[m.collective]; }

  void Tell(ProblemKind kind, const std::set<int32_t>& ranks, std::string message,
            std::string communicator = "", int64_t sequence = -1) {
    out_.problems.push_back({.kind = kind,
                             .ranks = {ranks.begin(), ranks.end()},
                             .message = std::move(message),
                             .communicator = std::move(communicator),
                             .sequence = sequence});
  }

  // Those with equal lists of members are one. Without lists: of equal size and kinds, the k-th of
  // its kind in order of first use.
  std::vector<Joined> JoinCommunicators() {
    std::vector<Joined> joined;
    std::map<std::string, uint32_t> by_key;
    for (uint32_t r = 0; r < ranks_.size(); ++r) {
      std::map<std::string, int> seen;
      for (uint32_t c = 0; c < ranks_[r].communicators.size(); ++c) {
        const RankCommunicator& own = ranks_[r].communicators[c];
        std::string key = fmt::format("{} {}", own.size, fmt::join(own.members, ","));
        if (own.members.empty()) {
          std::set<int> kinds;
          for (uint32_t i : own.order) kinds.insert(static_cast<int>(ranks_[r].all[i].kind));
          key = fmt::format("{} of kinds {}", own.size, fmt::join(kinds, ","));
        }
        key += fmt::format(" #{}", seen[key]++);
        const auto [known, fresh] = by_key.try_emplace(key, static_cast<uint32_t>(joined.size()));
        if (fresh) {
          const std::string name = own.members.empty() ? "" : own.name;
          joined.push_back({.members = own.members, .size = own.size, .name = name, .of = {}});
        }
        joined[known->second].of.emplace_back(r, c);
      }
    }
    std::vector<Joined> split;
    for (Joined& j : joined) Split(std::move(j), split);
    return split;
  }

  // Eight ranks that each have a group of four are two groups: neighbours, as nothing else is
  // known.
  void Split(Joined all, std::vector<Joined>& out) {
    const auto size = static_cast<size_t>(std::max(all.size, 1));
    if (all.of.size() <= size || all.size < 2) {
      out.push_back(std::move(all));
      return;
    }
    std::set<int32_t> ranks;
    for (const auto& [rank, c] : all.of) ranks.insert(Number(rank));
    Tell(ProblemKind::kMismatch, ranks,
         fmt::format("{} ranks have a group of {} without a list of its members: neighbours are "
                     "taken to be together",
                     all.of.size(), all.size));
    std::map<int32_t, Joined> groups;
    for (const auto& of : all.of) {
      Joined& group = groups[Number(of.first) / all.size];
      group.size = all.size;
      group.of.push_back(of);
    }
    for (auto& [place, group] : groups) out.push_back(std::move(group));
  }

  void TellMissing(const Joined& joined) {
    if (static_cast<size_t>(joined.size) <= joined.of.size()) return;
    std::set<int32_t> missing;
    std::set<int32_t> here;
    for (const auto& [rank, c] : joined.of) here.insert(Number(rank));
    for (int32_t m : joined.members) {
      if (!here.contains(m)) missing.insert(m);
    }
    if (joined.members.empty() && !ranks_.empty() && joined.size == ranks_[0].rank.world_size) {
      for (int32_t m = 0; m < joined.size && m < 4096; ++m) {
        if (!here.contains(m)) missing.insert(m);
      }
    }
    const size_t count = static_cast<size_t>(joined.size) - joined.of.size();
    Tell(ProblemKind::kNotRecorded, missing,
         missing.empty()
             ? fmt::format("{} of the {} members of a group were not recorded", count, joined.size)
             : fmt::format("{} {} not recorded: {} arrivals are taken from the others' ends and "
                           "stay as they were",
                           missing.size() == 1 ? "rank" : "ranks", Listed(missing),
                           missing.size() == 1 ? "its" : "their"),
         GroupOf(joined));
  }

  // Ranks of the run that share no group with a recorded one.
  void TellOthers() {
    std::set<int32_t> others;
    int32_t world = 0;
    for (const RankCollectives& r : ranks_) world = std::max(world, r.rank.world_size);
    for (int32_t m = 0; m < world && m < 4096; ++m) others.insert(m);
    for (uint32_t r = 0; r < ranks_.size(); ++r) others.erase(Number(r));
    for (const RankProblem& p : out_.problems) {
      if (p.kind != ProblemKind::kNotRecorded) continue;
      if (p.ranks.empty()) return;  // which ones is not known
      for (int32_t m : p.ranks) others.erase(m);
    }
    if (others.empty()) return;
    Tell(ProblemKind::kNotRecorded, others,
         fmt::format("{} {} of {} not recorded: no collective of the others waits for {}",
                     others.size() == 1 ? "rank" : "ranks", Listed(others), world,
                     others.size() == 1 ? "it" : "them"));
  }

  void Match(uint32_t communicator, const Joined& joined) {
    std::map<std::tuple<int64_t, int32_t, int32_t, int64_t>, std::vector<RowMember>> rows;
    // The order of one rank alone needs no numbers.
    const bool one = joined.of.size() == 1;
    const bool numbered =
        !one && std::all_of(joined.of.begin(), joined.of.end(), [&](const auto& of) {
          const std::vector<uint32_t>& order = ranks_[of.first].communicators[of.second].order;
          return std::any_of(order.begin(), order.end(),
                             [&](uint32_t i) { return ranks_[of.first].all[i].sequence >= 0; });
        });
    if (numbered) {
      for (const auto& of : joined.of) AddNumbered(of, rows);
      TellSwapped(joined);
    } else {
      out_.by_order |= joined.of.size() > 1;
      AddByOrder(joined, rows);
    }
    const size_t first = out_.rows.size();
    for (auto& [key, members] : rows) AddRow(communicator, joined, members);
    TellEdges(joined, first);
  }

  // Several collectives may share a number (a coalesced call): the k-th of them on each rank. Of
  // point to point, both ends and the k-th between them. What has no number among those that have
  // stays without counterpart.
  void AddNumbered(std::pair<uint32_t, uint32_t> of, auto& rows) {
    std::map<std::tuple<int64_t, int32_t, int32_t>, int64_t> seen;
    for (uint32_t i : ranks_[of.first].communicators[of.second].order) {
      const RankCollective& c = ranks_[of.first].all[i];
      const bool pair = c.from >= 0 && c.to >= 0;
      if (!pair && c.sequence < 0) continue;
      const auto key =
          std::tuple(pair ? int64_t{-1} : c.sequence, pair ? c.from : -1, pair ? c.to : -1);
      rows[std::tuple_cat(key, std::tuple(seen[key]++))].push_back({of.first, i});
    }
  }

  void AddByOrder(const Joined& joined, auto& rows) {
    if (joined.of.empty()) return;
    auto order = [&](const std::pair<uint32_t, uint32_t>& of) -> const std::vector<uint32_t>& {
      return ranks_[of.first].communicators[of.second].order;
    };
    const auto& longest = *std::max_element(
        joined.of.begin(), joined.of.end(),
        [&](const auto& a, const auto& b) { return order(a).size() < order(b).size(); });
    for (const auto& of : joined.of) {
      const auto shift = &of == &longest
                             ? std::optional<int64_t>(0)
                             : ShiftOf(longest.first, order(longest), of.first, order(of));
      if (!shift) {
        Tell(ProblemKind::kMismatch, {Number(of.first)},
             fmt::format("the collectives of rank {} are not those of rank {}, or its recording "
                         "begins and ends more than {} of them apart: it is left out of a group "
                         "of {}",
                         Number(of.first), Number(longest.first), kMostShift, joined.size),
             GroupOf(joined));
        continue;
      }
      for (size_t i = 0; i < order(of).size(); ++i) {
        rows[{static_cast<int64_t>(i) + *shift, -1, -1, 0}].push_back({of.first, order(of)[i]});
      }
    }
  }

  // Where the list of `rank` stands in that of `with`. Equal collectives fit at any shift: a clock
  // offset is constant, so the shift whose differences of ends vary least is right.
  std::optional<int64_t> ShiftOf(uint32_t with, const std::vector<uint32_t>& longest, uint32_t rank,
                                 const std::vector<uint32_t>& own) const {
    std::optional<int64_t> best;
    int64_t least = 0;
    const int64_t same_end = static_cast<int64_t>(longest.size() - own.size());
    for (int64_t shift = -kMostShift; shift <= same_end + kMostShift; ++shift) {
      if (shift > kMostShift && shift < same_end - kMostShift) continue;
      std::vector<int64_t> differences;
      size_t alike = 0;
      for (size_t i = 0; i < own.size(); ++i) {
        const int64_t at = static_cast<int64_t>(i) + shift;
        if (at < 0 || at >= static_cast<int64_t>(longest.size())) continue;
        const RankCollective& a = ranks_[with].all[longest[static_cast<size_t>(at)]];
        const RankCollective& b = ranks_[rank].all[own[i]];
        alike += AlikeOf(a) == AlikeOf(b);
        differences.push_back((b.end - a.end).ns);
      }
      // A shift that leaves next to nothing in common says nothing.
      const size_t enough = std::max<size_t>(1, own.size() / 2);
      if (differences.size() < enough) continue;
      if (static_cast<double>(alike) < kLeastAlike * static_cast<double>(differences.size()))
        continue;
      const int64_t middle = Median(differences);
      for (int64_t& d : differences) d = std::abs(d - middle);
      const int64_t spread = Median(differences);
      const bool nearer = best && spread == least && std::abs(shift) < std::abs(*best);
      if (!best || spread < least || nearer) best = shift, least = spread;
    }
    return best;
  }

  // A kernel whose size was not recorded has that of another of its kind and grid in the row.
  Alike AlikeIn(const std::vector<RowMember>& row, RowMember m) const {
    const RankCollective& own = Of(m);
    if (own.bytes > 0) return AlikeOf(own);
    for (RowMember other : row) {
      const RankCollective& c = Of(other);
      if (c.kind == own.kind && c.grid == own.grid && c.bytes > 0) return AlikeOf(c);
    }
    return AlikeOf(own);
  }

  // The kind and size that most members have; the others are told and left out.
  void AddRow(uint32_t communicator, const Joined& joined, const std::vector<RowMember>& members) {
    std::map<Alike, size_t> votes;
    for (RowMember m : members) ++votes[AlikeIn(members, m)];
    const auto most = std::max_element(votes.begin(), votes.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
    MatchedRow row{.communicator = communicator, .size = joined.size};
    std::set<int32_t> others, rest;
    std::set<uint32_t> left_out;
    std::string told;
    for (RowMember m : members) {
      const RankCollective& c = Of(m);
      if (AlikeIn(members, m) != most->first) {
        others.insert(Number(m.rank)), left_out.insert(m.rank);
        told = Called(c);
        continue;
      }
      rest.insert(Number(m.rank));
      row.kind = c.kind, row.sequence = c.sequence, row.grid = c.grid;
      row.bytes = std::max(row.bytes, c.bytes);
      if (c.from >= 0 && c.to >= 0) row.size = 2;
      row.members.push_back(m);
    }
    if (row.size == 0 && joined.of.size() > 1) row.size = static_cast<int32_t>(joined.of.size());
    if (!others.empty()) {
      const std::string where = row.sequence >= 0 ? ""
                                                  : fmt::format(", at place {} of the recording",
                                                                PlaceIn(joined, members));
      Tell(ProblemKind::kMismatch, others,
           fmt::format("{} {} where {} {}{}, in {}", Do(others), told, Do(rest),
                       Called(Of(row.members[0])), where, GroupOf(joined)),
           GroupOf(joined), row.sequence);
    }
    out_.rows.push_back(std::move(row));
    left_out_.push_back(std::move(left_out));
  }

  // From 1 on, in the list of the rank that has most before it.
  size_t PlaceIn(const Joined& joined, const std::vector<RowMember>& members) const {
    size_t place = 0;
    for (const auto& [rank, c] : joined.of) {
      const std::vector<uint32_t>& order = ranks_[rank].communicators[c].order;
      for (RowMember m : members) {
        const auto at = std::find(order.begin(), order.end(), m.collective);
        if (m.rank == rank) place = std::max(place, static_cast<size_t>(at - order.begin()) + 1);
      }
    }
    return place;
  }

  static std::string Ranks(const std::set<int32_t>& ranks) {
    return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", Listed(ranks));
  }
  static std::string Do(const std::set<int32_t>& ranks) {
    return fmt::format("{} {}", Ranks(ranks), ranks.size() == 1 ? "does" : "do");
  }
  static std::string GroupOf(const Joined& joined) {
    if (joined.members.empty()) return fmt::format("a group of {}", joined.size);
    const std::set<int32_t> members(joined.members.begin(), joined.members.end());
    return fmt::format("group {} ({})", joined.name, Ranks(members));
  }

  // On a rank that launches a later number first, the others would wait for ever. What has no
  // number says nothing of the order.
  void TellSwapped(const Joined& joined) {
    for (const auto& [rank, c] : joined.of) {
      const std::vector<uint32_t>& order = ranks_[rank].communicators[c].order;
      const RankCollective* before = nullptr;
      for (const uint32_t i : order) {
        const RankCollective& b = ranks_[rank].all[i];
        if (b.from >= 0 || b.sequence < 0) continue;
        const RankCollective* const a = std::exchange(before, &b);
        if (a == nullptr || a->sequence <= b.sequence) continue;
        std::set<int32_t> others;
        for (const auto& [other, ignored] : joined.of) others.insert(Number(other));
        others.erase(Number(rank));
        Tell(ProblemKind::kDeadlock, {Number(rank)},
             fmt::format("{} before {} on {}, after it on rank {}, in {}", Called(b), Called(*a),
                         Ranks(others), Number(rank), GroupOf(joined)),
             GroupOf(joined), b.sequence);
      }
    }
  }

  // Rows that lack a recorded member: at an end of its list its window is shorter, else it is a
  // mismatch.
  void TellEdges(const Joined& joined, size_t first) {
    for (const auto& [rank, c] : joined.of) {
      std::vector<bool> has;
      for (size_t i = first; i < out_.rows.size(); ++i) {
        const auto& members = out_.rows[i].members;
        has.push_back(left_out_[i].contains(rank) ||
                      std::any_of(members.begin(), members.end(),
                                  [own = rank](RowMember m) { return m.rank == own; }));
        if (out_.rows[i].size == 2 && joined.size > 2) has.back() = true;  // a pair of others
      }
      const auto begin = std::find(has.begin(), has.end(), true);
      if (begin == has.end()) continue;
      const auto end = std::find(has.rbegin(), has.rend(), true).base();
      const auto before = begin - has.begin(), after = has.end() - end;
      const auto inside = std::count(begin, end, false);
      if (before + after > 0) {
        Tell(ProblemKind::kWindowEdge, {Number(rank)},
             fmt::format("the recording of rank {} lacks the {} of {} collectives of {}",
                         Number(rank),
                         after == 0    ? fmt::format("first {}", before)
                         : before == 0 ? fmt::format("last {}", after)
                                       : fmt::format("first {} and the last {}", before, after),
                         has.size(), GroupOf(joined)),
             GroupOf(joined));
      }
      if (inside > 0) {
        Tell(ProblemKind::kMismatch, {Number(rank)},
             fmt::format("rank {} lacks {} of the {} collectives of {} in the middle, which "
                         "others have, the first at place {}",
                         Number(rank), inside, has.size(), GroupOf(joined),
                         std::find(begin, end, false) - has.begin() + 1),
             GroupOf(joined));
      }
    }
  }

  std::span<const RankCollectives> ranks_;
  MatchedRanks out_;
  std::vector<std::set<uint32_t>> left_out_;  // by row of out_: who does something else
};

}  // namespace

std::string_view ProblemName(ProblemKind kind) {
  constexpr std::string_view kNames[] = {"mismatch", "window_edge", "not_recorded", "deadlock",
                                         "clock"};
  static_assert(std::size(kNames) == static_cast<size_t>(ProblemKind::kClock) + 1);
  return kNames[static_cast<size_t>(kind)];
}

bool MatchedRanks::joint() const {
  return std::any_of(rows.begin(), rows.end(),
                     [](const MatchedRow& row) { return row.members.size() > 1; });
}

bool MatchedRanks::deadlock() const {
  return std::any_of(problems.begin(), problems.end(),
                     [](const RankProblem& p) { return p.kind == ProblemKind::kDeadlock; });
}

MatchedRanks MatchCollectives(std::span<const RankCollectives> ranks) {
  return Matcher(ranks).Run();
}

}  // namespace daydream
