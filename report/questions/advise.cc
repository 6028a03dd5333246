#include "report/questions/advise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <mutex>
#include <utility>

#include "report/parallel.h"
#include "report/predict/predict.h"
#include "report/questions/steps_of_one_rank.h"
#include "simulator/simulate.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/effort.h"
#include "transforms/scenario/scenario.h"
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
// Of the saving itself in the score, beside the low end of its interval.
constexpr double kOfPoint = 0.1;
// What is left of a gain by the word for its confidence: a judgement, not measured.
constexpr double kOfMedium = 0.9, kOfLow = 0.7;
// Options that reach one gain in two ways.
constexpr std::pair<std::string_view, std::string_view> kTwoWays[] = {{"graphs", "aot"}};

using Set = uint64_t;

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

bool Has(Set set, size_t member) { return (set >> member & 1) != 0; }

// Looks for the best set, from pairs of the first options that are worth something, with all others
// as additions.
class SetSearch {
 public:
  SetSearch(const TriedProgram& program, std::span<const Option> worth,
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
    for (size_t m = 0; m < paired_; ++m) known_[Set{1} << m] = {options_[m]->prediction.step, ""};
  }

  std::vector<OptionPair> Pairs(Duration baseline) {
    std::vector<OptionPair> pairs;
    std::vector<Set> sets;
    for (size_t a = 0; a < paired_; ++a) {
      for (size_t b = a + 1; b < paired_; ++b) {
        pairs.push_back({.a = rows_[a], .b = rows_[b]});
        sets.push_back(Set{1} << a | Set{1} << b);
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

  // Members of the best set, in the order of application. `first`: the row of what to try first.
  // What saves most alone is a start, too: what goes best with it may save nothing beside its
  // partner in the best pair.
  std::vector<size_t> Best(size_t first) {
    if (paired_ == 0) return {};
    const auto at = std::ranges::find(rows_, first);
    const size_t begin = at == rows_.end() ? 0 : static_cast<size_t>(at - rows_.begin());
    Set best = 0;
    for (Set start : {Lowest(), Set{1} << begin, Set{1}}) {
      Find({start});
      if (!known_[start].step.has_value()) continue;
      const Set grown = Grown(start);
      if (best == 0 || RankOf(grown) < RankOf(best)) best = grown;
    }
    return MembersOf(best);
  }

  // The same as places among the options that were given.
  std::vector<size_t> RowsOf(std::span<const size_t> members) const {
    std::vector<size_t> rows;
    for (size_t m : members) rows.push_back(rows_[m]);
    return rows;
  }

  std::vector<Application> ScenarioOf(std::span<const size_t> members) const {
    std::vector<Application> scenario;
    for (size_t m : members) scenario.push_back(options_[m]->application);
    PutInTurn(scenario);
    return scenario;
  }

 private:
  using Outcome = TriedProgram::Outcome;

  std::vector<size_t> MembersOf(Set set) const {
    std::vector<size_t> members;
    for (size_t m = 0; m < options_.size(); ++m) {
      if (Has(set, m)) members.push_back(m);
    }
    std::sort(members.begin(), members.end(),
              [&](size_t a, size_t b) { return options_[a]->place < options_[b]->place; });
    return members;
  }

  bool WithinBudget(std::span<const size_t> members) const {
    if (!advise_.effort) return true;
    double all = 0;
    for (size_t m : members)
      all += advise_.effort(options_[m]->application, options_[m]->prediction.changes);
    return all <= advise_.budget;
  }

  // Why these are not played together, or "".
  std::string WhyNotPlayed(std::span<const size_t> members,
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

  // Plays those of `sets` that are not known yet.
  void Find(const std::vector<Set>& sets) {
    std::vector<Set> played;
    std::vector<std::vector<Application>> scenarios;
    for (Set s : sets) {
      if (known_.contains(s)) continue;
      const std::vector<size_t> members = MembersOf(s);
      std::vector<Application> scenario = ScenarioOf(members);
      known_[s].reason = WhyNotPlayed(members, scenario);
      if (!known_[s].reason.empty()) continue;
      played.push_back(s);
      scenarios.push_back(std::move(scenario));
    }
    std::vector<Outcome> found = program_.Play(scenarios);
    for (size_t i = 0; i < played.size(); ++i) known_[played[i]] = std::move(found[i]);
  }

  // The smaller set, then that of the options that save more, wins a tie. REQUIRES: it has a step.
  std::tuple<Duration, int, Set> RankOf(Set s) const {
    return {*known_.at(s).step, std::popcount(s), s};
  }

  // Of all known sets.
  Set Lowest() const {
    Set lowest = 1;
    for (const auto& [set, outcome] : known_) {
      if (outcome.step.has_value() && RankOf(set) < RankOf(lowest)) lowest = set;
    }
    return lowest;
  }

  // With what saves beside it, also where one way to a gain makes place for the other, and without
  // what is not worth it any more.
  Set Grown(Set set) {
    set = WithMore(set);
    while (const Set other = WithOtherWay(set)) set = WithMore(other);
    while (Set fewer = Without(set)) set = fewer;
    return set;
  }

  // `set` with the other way to the gain of a member, where that alone saves; else none.
  Set WithOtherWay(Set set) {
    std::vector<Set> others;
    for (size_t m = 0; m < options_.size(); ++m) {
      for (size_t o = 0; o < options_.size(); ++o) {
        if (!Has(set, m) || Has(set, o)) continue;
        const bool ways = AreTwoWays(options_[m]->application.transform->name,
                                     options_[o]->application.transform->name);
        if (ways) others.push_back((set & ~(Set{1} << m)) | Set{1} << o);
      }
    }
    Find(others);
    for (Set s : others) {
      const std::optional<Duration> step = known_[s].step;
      if (step.has_value() && *step <= *known_[set].step - least_) return s;
    }
    return 0;
  }

  // With what saves beside it, option by option. What was not worth it beside few is asked once
  // more beside all of them.
  Set WithMore(Set set) {
    Set asked = ~Set{0};
    for (bool all = true;;) {
      if (Set more = BestAddition(set, asked)) {
        set |= more;
        all = false;
      } else if (!all) {
        asked = ~Set{0};
        all = true;
      } else {
        return set;
      }
    }
  }

  // The option of `asked` that saves most beside `set`, or none that is worth it. Those that are
  // not worth it stay in `asked` no longer: beside more, they seldom save more.
  Set BestAddition(Set set, Set& asked) {
    std::vector<Set> larger;
    for (size_t m = 0; m < options_.size(); ++m) {
      if (Has(asked, m) && !Has(set, m)) larger.push_back(set | Set{1} << m);
    }
    Find(larger);
    const Duration most = *known_[set].step - least_;
    asked = 0;
    Set best = 0;
    for (Set s : larger) {
      const std::optional<Duration> step = known_[s].step;
      if (!step.has_value() || *step > most) continue;
      asked |= s;
      if (best == 0 || *step < *known_[best].step) best = s;
    }
    return best;
  }

  // `set` less the member that is missed least, if that brings less than is worth it beside the
  // others; none when every member does.
  Set Without(Set set) {
    if (std::popcount(set) < 2) return 0;
    std::vector<Set> smaller;
    for (size_t m = 0; m < options_.size(); ++m) {
      if (Has(set, m)) smaller.push_back(set & ~(Set{1} << m));
    }
    Find(smaller);
    const Duration most = *known_[set].step + least_;
    Set best = 0;
    for (Set s : smaller) {
      const std::optional<Duration> step = known_[s].step;
      if (!step.has_value() || *step >= most) continue;
      if (best == 0 || *step < *known_[best].step) best = s;
    }
    return best;
  }

  const TriedProgram& program_;
  std::vector<const Option*> options_;  // those that are worth something first
  std::vector<size_t> rows_;            // of these, among all that were given
  Duration least_;
  const AdviseOptions& advise_;
  size_t paired_ = 0;
  std::map<Set, Outcome> known_;
};

class Adviser {
 public:
  Adviser(const TriedProgram& program, const AdviseOptions& advise, Advised& out)
      : program_(program), base_(program.baseline()), advise_(advise), out_(out) {}

  void Run(std::span<const Application> options, std::span<const Application> limits) {
    least_ = std::max(base_.step.Scaled(advise_.worth), Duration::Ns(1));
    TryEach(options, limits);
    Sort(options.size());
    if (out_.worth.empty()) return;
    FindBest();
    Rank();
    ExplainFirst();
  }

 private:
  void FindBest() {
    SetSearch search(program_, out_.worth, out_.not_worth, least_, advise_);
    out_.pairs = search.Pairs(base_.step);
    const auto first =
        std::ranges::max_element(out_.worth, {}, [&](const Option& o) { return ScoreOf(o); });
    std::vector<size_t> best = search.Best(static_cast<size_t>(first - out_.worth.begin()));
    if (best.size() < 2) return;
    out_.best_list = search.ScenarioOf(best);
    out_.best_members = search.RowsOf(best);
    out_.best = program_.Predict(out_.best_list, std::nullopt, ToldOfRows());
  }

  bool ExplainsAll() const { return advise_.explained == AdviseOptions::kAllRows; }

  TriedProgram::Told ToldOfRows() const {
    return ExplainsAll() ? TriedProgram::Told::kAll : TriedProgram::Told::kInterval;
  }

  // What the others are told without.
  void ExplainFirst() {
    if (ExplainsAll()) return;
    for (size_t i = 0; i < std::min(advise_.explained, out_.worth.size()); ++i) {
      Prediction& p = out_.worth[i].prediction;
      Prediction told =
          program_.Predict({out_.worth[i].application}, std::nullopt, TriedProgram::Told::kCauses);
      p.causes = std::move(told.causes);
      p.path = told.path;
      p.why_not = std::move(told.why_not);
    }
  }

  double ScoreOf(const Option& o) const {
    const Prediction& p = o.prediction;
    const double gain = static_cast<double>((base_.step - p.step).ns);
    double least = 0;
    if (p.least_as_recorded.value_or(0) > 0) {
      least = std::max(static_cast<double>(base_.step.ns) * (1 - 1 / *p.least_as_recorded), 0.0);
    }
    const double trust = p.confidence == Confidence::kHigh     ? 1
                         : p.confidence == Confidence::kMedium ? kOfMedium
                                                               : kOfLow;
    const double ease = advise_.ease ? advise_.ease(o.application, p.changes) : 1;
    return ease * trust * (least + kOfPoint * gain);
  }

  // Puts `worth`, which is by saving, into the order in which to try, two ways to one gain as one
  // row; places of the rows in pairs and in the best set follow.
  void Rank() {
    std::vector<Option> by_saving = std::move(out_.worth);
    std::vector<size_t> order(by_saving.size());
    for (size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
      by_saving[i].score = ScoreOf(by_saving[i]);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return by_saving[a].score > by_saving[b].score; });
    constexpr size_t kGone = SIZE_MAX;
    std::vector<size_t> place(by_saving.size(), kGone);  // of those that head a row
    std::vector<size_t> row_of(by_saving.size());
    std::vector<size_t> rows;
    for (size_t i : order) {
      const auto other = std::find_if(rows.begin(), rows.end(), [&](size_t row) {
        return AreTwoWays(by_saving[row].application.transform->name,
                          by_saving[i].application.transform->name);
      });
      row_of[i] = static_cast<size_t>(other - rows.begin());
      if (other == rows.end()) {
        rows.push_back(i);
      } else {
        by_saving[*other].ways.push_back(std::move(by_saving[i]));
      }
    }
    for (size_t row = 0; row < rows.size(); ++row) {
      place[rows[row]] = row;
      out_.worth.push_back(std::move(by_saving[rows[row]]));
    }
    std::erase_if(out_.pairs,
                  [&](const OptionPair& p) { return place[p.a] == kGone || place[p.b] == kGone; });
    for (OptionPair& p : out_.pairs) {
      p.a = place[p.a], p.b = place[p.b];
      if (p.a > p.b) std::swap(p.a, p.b);
    }
    for (size_t& m : out_.best_members) {
      m = m < row_of.size() ? row_of[m] : m - row_of.size() + rows.size();
    }
  }

  // All that there is to tell about those that are worth a row, the step with each of the others.
  void TryEach(std::span<const Application> options, std::span<const Application> limits) {
    tried_.resize(options.size() + limits.size());
    ForEachParallel(tried_.size(), advise_.jobs, [&](size_t i) {
      const Application& a = i < options.size() ? options[i] : limits[i - options.size()];
      Prediction p = program_.Predict({a}, least_, ToldOfRows());
      std::lock_guard lock(mutex_);
      tried_[i] = {i, a, std::move(p)};
      if (advise_.progress) advise_.progress(++done_, tried_.size());
    });
  }

  void Sort(size_t options) {
    for (size_t i = 0; i < tried_.size(); ++i) {
      Option& o = tried_[i];
      if (!o.prediction.error.ok()) {
        if (i >= options) continue;
        const bool nothing = DiagnosticOf(o.prediction.error).code == "E0601";
        (nothing ? out_.nothing_here : out_.unjudged).push_back(std::move(o));
      } else if (i >= options || o.prediction.bound) {
        out_.limits.push_back(std::move(o));
      } else if (base_.step - o.prediction.step >= least_) {
        out_.worth.push_back(std::move(o));
      } else {
        out_.not_worth.push_back(std::move(o));
      }
    }
    for (auto* list : {&out_.worth, &out_.not_worth, &out_.limits}) {
      std::stable_sort(list->begin(), list->end(), [](const Option& a, const Option& b) {
        return a.prediction.step < b.prediction.step;
      });
    }
  }

  const TriedProgram& program_;
  const Prediction& base_;
  const AdviseOptions& advise_;
  Advised& out_;
  Duration least_;
  std::vector<Option> tried_;
  std::mutex mutex_;
  size_t done_ = 0;
};

}  // namespace

bool AreTwoWays(std::string_view a, std::string_view b) {
  return std::any_of(std::begin(kTwoWays), std::end(kTwoWays), [&](const auto& ways) {
    return ways == std::pair(a, b) || ways == std::pair(b, a);
  });
}

absl::StatusOr<Advised> Advise(const BuiltGraph& built, const ReplayCheck& replay,
                               std::span<const Application> options,
                               std::span<const Application> limits, const AdviseOptions& advise) {
  DD_ASSIGN_OR_RETURN(Timeline timeline, Simulate(built.graph, {.blockers = true}));
  Baseline base = MakeBaseline(built.graph, timeline, {.true_step = advise.true_step});
  base.samples = replay.batch.samples;
  Advised out = Advise(*StepsOfOneRank(base, replay, advise), options, limits, advise);
  out.replay = replay;
  out.path = base.limiters;
  return out;
}

Advised Advise(const TriedProgram& program, std::span<const Application> options,
               std::span<const Application> limits, const AdviseOptions& advise) {
  Advised out;
  out.baseline = program.baseline();
  Adviser(program, advise, out).Run(options, limits);
  return out;
}

}  // namespace daydream
