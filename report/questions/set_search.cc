#include "report/questions/set_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "transforms/scenario/effort.h"
#include "transforms/scenario/turn.h"

namespace daydream {
namespace {

// Options of which all pairs are played.
constexpr size_t kMostPaired = 10;
// For large graphs fewer, so that all pairs take about a second.
constexpr size_t kPlayedTasks = 2'000'000;
constexpr size_t kLeastPaired = 4;
// Options that may be in a set: sets are kept as bits.
constexpr size_t kMostMembers = 64;
// Chosen: of the step without, at the low end of an interval.
constexpr double kMayLose = 0.9;

// Another machine is nobody's to switch on: it is in no set.
bool CanBeSwitchedOn(const Option& o) {
  const Transform& t = *o.application.transform;
  const bool own = t.file != nullptr || t.own != nullptr;
  return own || !t.advice.how.empty() || std::isfinite(LinesOf(t.advice.effort));
}

// Work for memory, and nothing is taken away that may hold up others: it makes no set shorter.
bool PaysForMemory(const Option& o) {
  return o.prediction.can_save == Duration{} && !o.prediction.changes.memory.empty();
}

bool Has(OptionSet set, size_t member) { return (set >> member & 1) != 0; }

}  // namespace

SetSearch::SetSearch(const TriedProgram& program, std::span<const Option> worth,
                     std::span<const Option> others, Duration least, const AdviseOptions& advise)
    : program_(program), least_(least), advise_(advise) {
  size_t row = 0, in_worth = 0;
  for (std::span<const Option> list : {worth, others}) {
    for (const Option& o : list) {
      if (options_.size() < kMostMembers && CanBeSwitchedOn(o) && !PaysForMemory(o)) {
        options_.push_back(&o);
        rows_.push_back(row);
        in_worth += row < worth.size() ? 1 : 0;
      }
      ++row;
    }
  }
  size_t most = kMostPaired;
  while (most > kLeastPaired && most * most / 2 * program.tasks() > kPlayedTasks) --most;
  paired_ = std::min(most, in_worth);
  for (size_t m = 0; m < paired_; ++m)
    known_[OptionSet{1} << m] = {options_[m]->prediction.step, ""};
}

std::vector<OptionPair> SetSearch::Pairs(Duration baseline) {
  std::vector<OptionPair> pairs;
  std::vector<OptionSet> sets;
  for (size_t a = 0; a < paired_; ++a) {
    for (size_t b = a + 1; b < paired_; ++b) {
      pairs.push_back({.a = rows_[a], .b = rows_[b]});
      sets.push_back(OptionSet{1} << a | OptionSet{1} << b);
    }
  }
  Find(sets);
  for (size_t i = 0; i < pairs.size(); ++i) {
    OptionPair& p = pairs[i];
    const Outcome& together = known_[sets[i]];
    p.step = together.step;
    p.reason = together.reason;
    if (!p.step.has_value()) continue;
    Duration alone;
    for (size_t m : MembersOf(sets[i])) alone += baseline - options_[m]->prediction.step;
    p.extra = baseline - *p.step - alone;
  }
  return pairs;
}

std::vector<size_t> SetSearch::Best(size_t first) {
  if (paired_ == 0) return {};
  const auto at = std::ranges::find(rows_, first);
  const size_t begin = at == rows_.end() ? 0 : static_cast<size_t>(at - rows_.begin());
  OptionSet best = 0;
  for (OptionSet start : {Lowest(), OptionSet{1} << begin, OptionSet{1}}) {
    Find({start});
    if (!known_[start].step.has_value()) continue;
    const OptionSet grown = Grown(start);
    if (best == 0 || RankOf(grown) < RankOf(best)) best = grown;
  }
  return MembersOf(best);
}

size_t SetSearch::LeastMissed(std::span<const size_t> members) {
  std::vector<OptionSet> without;
  OptionSet all = 0;
  for (size_t m : members) all |= OptionSet{1} << m;
  for (size_t m : members) without.push_back(all & ~(OptionSet{1} << m));
  Find(without);
  const auto step = [&](OptionSet s) { return known_[s].step.value_or(Duration::Max()); };
  return members[static_cast<size_t>(std::ranges::min_element(without, {}, step) -
                                     without.begin())];
}

std::vector<size_t> SetSearch::MayLose(std::span<const size_t> members) const {
  std::vector<size_t> found;
  for (size_t m : members) {
    if (options_[m]->prediction.least_as_recorded.value_or(1) < kMayLose) found.push_back(m);
  }
  return found;
}

std::vector<size_t> SetSearch::RowsOf(std::span<const size_t> members) const {
  std::vector<size_t> rows;
  for (size_t m : members) rows.push_back(rows_[m]);
  return rows;
}

std::vector<Application> SetSearch::ScenarioOf(std::span<const size_t> members) const {
  std::vector<Application> scenario;
  for (size_t m : members) scenario.push_back(options_[m]->application);
  PutInTurn(scenario);
  return scenario;
}

std::vector<size_t> SetSearch::MembersOf(OptionSet set) const {
  std::vector<size_t> members;
  for (size_t m = 0; m < options_.size(); ++m) {
    if (Has(set, m)) members.push_back(m);
  }
  std::sort(members.begin(), members.end(),
            [&](size_t a, size_t b) { return options_[a]->place < options_[b]->place; });
  return members;
}

bool SetSearch::WithinBudget(std::span<const size_t> members) const {
  if (!advise_.effort) return true;
  double all = 0;
  for (size_t m : members)
    all += advise_.effort(options_[m]->application, options_[m]->prediction.changes);
  return all <= advise_.budget;
}

std::string SetSearch::WhyNotPlayed(std::span<const size_t> members,
                                    std::span<const Application> scenario) const {
  for (size_t i = 0; i < scenario.size(); ++i) {
    for (size_t j = i + 1; j < scenario.size(); ++j) {
      const std::optional<Conflict> conflict =
          FindConflict(*scenario[i].transform, *scenario[j].transform);
      if (conflict.has_value()) return std::string(conflict->reason);
    }
  }
  return WithinBudget(members) ? "" : "together they take more than the budget";
}

void SetSearch::Find(const std::vector<OptionSet>& sets) {
  std::vector<OptionSet> played;
  std::vector<std::vector<Application>> scenarios;
  for (OptionSet s : sets) {
    if (known_.contains(s)) continue;
    const std::vector<size_t> members = MembersOf(s);
    std::vector<Application> scenario = ScenarioOf(members);
    known_[s].reason = WhyNotPlayed(members, scenario);
    if (!known_[s].reason.empty()) continue;
    played.push_back(s);
    scenarios.push_back(std::move(scenario));
  }
  std::vector<Outcome> found = program_.Play(scenarios, [&] {
    const std::lock_guard lock(counting_);
    ++sets_played_;
    if (advise_.progress) advise_.progress(AdviseStage::kSets, sets_played_, 0);
  });
  for (size_t i = 0; i < played.size(); ++i) known_[played[i]] = std::move(found[i]);
}

std::tuple<Duration, int, OptionSet> SetSearch::RankOf(OptionSet s) const {
  return {*known_.at(s).step, std::popcount(s), s};
}

OptionSet SetSearch::Lowest() const {
  OptionSet lowest = 1;
  for (const auto& [set, outcome] : known_) {
    if (outcome.step.has_value() && RankOf(set) < RankOf(lowest)) lowest = set;
  }
  return lowest;
}

OptionSet SetSearch::Grown(OptionSet set) {
  set = WithMore(set);
  while (const OptionSet other = WithOtherWay(set)) set = WithMore(other);
  while (OptionSet fewer = Without(set)) set = fewer;
  return set;
}

OptionSet SetSearch::WithOtherWay(OptionSet set) {
  std::vector<OptionSet> others;
  for (size_t m = 0; m < options_.size(); ++m) {
    for (size_t o = 0; o < options_.size(); ++o) {
      if (!Has(set, m) || Has(set, o)) continue;
      const bool ways = AreTwoWays(options_[m]->application.transform->name,
                                   options_[o]->application.transform->name);
      if (ways) others.push_back((set & ~(OptionSet{1} << m)) | OptionSet{1} << o);
    }
  }
  Find(others);
  for (OptionSet s : others) {
    const std::optional<Duration> step = known_[s].step;
    if (step.has_value() && *step <= *known_[set].step - least_) return s;
  }
  return 0;
}

OptionSet SetSearch::WithMore(OptionSet set) {
  OptionSet asked = ~OptionSet{0};
  for (bool all = true;;) {
    if (OptionSet more = BestAddition(set, asked)) {
      set |= more;
      all = false;
    } else if (!all) {
      asked = ~OptionSet{0};
      all = true;
    } else {
      return set;
    }
  }
}

OptionSet SetSearch::BestAddition(OptionSet set, OptionSet& asked) {
  std::vector<OptionSet> larger;
  for (size_t m = 0; m < options_.size(); ++m) {
    if (Has(asked, m) && !Has(set, m)) larger.push_back(set | OptionSet{1} << m);
  }
  Find(larger);
  const Duration most = *known_[set].step - least_;
  asked = 0;
  OptionSet best = 0;
  for (OptionSet s : larger) {
    const std::optional<Duration> step = known_[s].step;
    if (!step.has_value() || *step > most) continue;
    asked |= s;
    if (best == 0 || *step < *known_[best].step) best = s;
  }
  return best;
}

OptionSet SetSearch::Without(OptionSet set) {
  if (std::popcount(set) < 2) return 0;
  std::vector<OptionSet> smaller;
  for (size_t m = 0; m < options_.size(); ++m) {
    if (Has(set, m)) smaller.push_back(set & ~(OptionSet{1} << m));
  }
  Find(smaller);
  const Duration most = *known_[set].step + least_;
  OptionSet best = 0;
  for (OptionSet s : smaller) {
    const std::optional<Duration> step = known_[s].step;
    if (!step.has_value() || *step >= most) continue;
    if (best == 0 || *step < *known_[best].step) best = s;
  }
  return best;
}

}  // namespace daydream
