#include "report/questions/common_steps.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace daydream {
namespace {

int32_t NumberOf(std::span<const RankCollectives> ranks, size_t r) {
  return ranks[r].rank.rank >= 0 ? ranks[r].rank.rank : static_cast<int32_t>(r);
}

// By row: the recorded members of its communicator that are not in it.
std::vector<std::vector<uint32_t>> LackingMembers(const MatchedRanks& matched) {
  std::vector<std::set<uint32_t>> members(matched.communicators);
  for (const MatchedRow& row : matched.rows) {
    for (const RowMember& m : row.members) members[row.communicator].insert(m.rank);
  }
  std::vector<std::vector<uint32_t>> lacking;
  for (const MatchedRow& row : matched.rows) {
    std::vector<uint32_t>& missing = lacking.emplace_back();
    // Of a pair in a larger group nothing says which of the others the second one is.
    if (row.whole() || row.size < static_cast<int32_t>(members[row.communicator].size())) continue;
    for (uint32_t r : members[row.communicator]) {
      const bool in_row = std::any_of(row.members.begin(), row.members.end(),
                                      [r](const RowMember& m) { return m.rank == r; });
      if (!in_row) missing.push_back(r);
    }
  }
  return lacking;
}

// One rank's steps, as its marks cut them.
struct OwnSteps {
  std::vector<size_t> collectives, lacking;  // by step: how many, and how many without a member
  size_t first = 0, last = 0;                // [first, last) is what all recorded
  size_t size() const { return collectives.size(); }
  bool alone(size_t step) const { return collectives[step] == lacking[step]; }
  // It has collectives, and no one of the others has one of them.
  bool unshared(size_t step) const { return alone(step) && lacking[step] > 0; }
};

// The number of the mark in front of the task.
size_t StepOf(const BuiltGraph& built, TaskId task) {
  const size_t marks = built.report.steps.steps.size();
  const size_t all = built.graph.steps().size();
  if (all <= 1) return 0;
  const size_t before = all - 1 - std::min(all - 1, marks);  // steps in front of the first mark
  const size_t step = built.graph.task(task).step;
  return std::min(step - std::min(step, before), marks - 1);
}

// Steps at an end that hold such collectives alone; steps without any go with them.
void Trim(OwnSteps& own) {
  own.last = own.size();
  while (own.first < own.size() && own.alone(own.first)) ++own.first;
  while (own.last > own.first && own.alone(own.last - 1)) --own.last;
  const auto none = [&](size_t from, size_t to) {
    return std::all_of(own.lacking.begin() + static_cast<ptrdiff_t>(from),
                       own.lacking.begin() + static_cast<ptrdiff_t>(to),
                       [](size_t n) { return n == 0; });
  };
  if (none(0, own.first)) own.first = 0;
  if (none(own.last, own.size())) own.last = own.size();
}

// The longest run of the rank's steps in which none is unshared; the first of equal ones.
std::pair<size_t, size_t> LongestRun(const OwnSteps& own) {
  std::pair<size_t, size_t> longest;
  size_t begin = own.first;
  for (size_t step = own.first; step <= own.last; ++step) {
    if (step < own.last && !own.unshared(step)) continue;
    if (step - begin > longest.second - longest.first) longest = {begin, step};
    begin = step + 1;
  }
  return longest;
}

bool AnyIsEmpty(const std::vector<OwnSteps>& steps) {
  return std::any_of(steps.begin(), steps.end(),
                     [](const OwnSteps& own) { return own.first >= own.last; });
}

// REQUIRES: no rank is empty. Where a rank lacks a step between others: all ranks keep what they
// have of the longest run on one side of it. Whether that was so; a rank that has nothing of that
// run is left without steps.
bool KeepLongestRun(std::span<const BuiltGraph> built, std::span<const RankCollectives> ranks,
                    const MatchedRanks& matched, std::vector<OwnSteps>& steps) {
  bool any = false;
  for (size_t r = 0; r < steps.size();) {
    const std::pair<size_t, size_t> run = LongestRun(steps[r]);
    if (run == std::pair(steps[r].first, steps[r].last)) {
      ++r;
      continue;
    }
    any = true;
    struct Extent {
      size_t first = SIZE_MAX, last = 0;
    };
    std::vector<Extent> kept(steps.size());
    for (const MatchedRow& row : matched.rows) {
      const auto step_of = [&](const RowMember& m) {
        return StepOf(built[m.rank], ranks[m.rank].all[m.collective].task);
      };
      const bool in_run = std::any_of(row.members.begin(), row.members.end(), [&](auto& m) {
        return m.rank == r && step_of(m) >= run.first && step_of(m) < run.second;
      });
      if (!in_run) continue;
      for (const RowMember& m : row.members) {
        Extent& of = kept[m.rank];
        of.first = std::min(of.first, step_of(m)), of.last = std::max(of.last, step_of(m) + 1);
      }
    }
    for (size_t q = 0; q < steps.size(); ++q) {
      steps[q].first = std::max(steps[q].first, kept[q].first);
      steps[q].last = std::max(steps[q].first, std::min(steps[q].last, kept[q].last));
    }
    if (AnyIsEmpty(steps)) return true;
    r = 0;  // ranks in front of it may lack others now
  }
  return any;
}

}  // namespace

std::optional<CommonSteps> FindCommonSteps(std::span<const BuiltGraph> built,
                                           std::span<const RankCollectives> ranks,
                                           const MatchedRanks& matched) {
  std::vector<OwnSteps> steps(built.size());
  for (size_t r = 0; r < built.size(); ++r) {
    const size_t marks = std::max<size_t>(1, built[r].report.steps.steps.size());
    steps[r].collectives.resize(marks), steps[r].lacking.resize(marks);
  }
  const std::vector<std::vector<uint32_t>> lacking = LackingMembers(matched);
  std::set<int32_t> short_ranks;
  for (size_t i = 0; i < matched.rows.size(); ++i) {
    for (const RowMember& m : matched.rows[i].members) {
      const size_t step = StepOf(built[m.rank], ranks[m.rank].all[m.collective].task);
      ++steps[m.rank].collectives[step];
      steps[m.rank].lacking[step] += !lacking[i].empty();
    }
  }
  for (OwnSteps& own : steps) Trim(own);
  if (AnyIsEmpty(steps)) return std::nullopt;
  const bool between = KeepLongestRun(built, ranks, matched, steps);
  if (AnyIsEmpty(steps)) return std::nullopt;
  CommonSteps common;
  size_t most = 0, fewest = SIZE_MAX;
  bool cut = false;
  for (size_t r = 0; r < built.size(); ++r) {
    const OwnSteps& own = steps[r];
    CommonPart& part = common.parts.emplace_back();
    const std::vector<Step>& marks = built[r].report.steps.steps;
    if (own.first > 0) part.begin = marks[own.first].begin;
    if (own.last < own.size()) part.end = marks[own.last].begin;
    cut |= !part.whole();
    most = std::max(most, own.size());
    fewest = std::min(fewest, own.last - own.first);
  }
  if (!cut) return std::nullopt;
  for (const std::vector<uint32_t>& missing : lacking) {
    for (uint32_t r : missing) short_ranks.insert(NumberOf(ranks, r));
  }
  common.problem = {
      .kind = ProblemKind::kWindowEdge,
      .ranks = {short_ranks.begin(), short_ranks.end()},
      .message = fmt::format(
          "{} {} did not record all steps that others recorded: {} of {} steps are "
          "played, {}",
          short_ranks.size() == 1 ? "rank" : "ranks", fmt::join(short_ranks, ", "), fewest, most,
          between ? "the longest run of those that all have" : "those that all have")};
  return common;
}

size_t RowsThatLackARecordedRank(const MatchedRanks& matched) {
  const std::vector<std::vector<uint32_t>> lacking = LackingMembers(matched);
  return static_cast<size_t>(std::count_if(lacking.begin(), lacking.end(),
                                           [](const auto& missing) { return !missing.empty(); }));
}

}  // namespace daydream
