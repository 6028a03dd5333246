// The search for the set of options that is worth most together. Internal to advise.cc.
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "report/questions/advise.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

using OptionSet = uint64_t;  // a bit for each member

// Looks for the best set, from pairs of the first options that are worth something, with all others
// as additions. Keeps references to all that it is given.
class SetSearch {
 public:
  SetSearch(const TriedProgram& program, std::span<const Option> worth,
            std::span<const Option> others, Duration least, const AdviseOptions& advise);

  std::vector<OptionPair> Pairs(Duration baseline);

  // Members of the best set, in the order of application. `first`: the row of what to try first.
  // What saves most alone is a start, too: what goes best with it may save nothing beside its
  // partner in the best pair.
  std::vector<size_t> Best(size_t first);

  // The one that saves least beside the others.
  size_t LeastMissed(std::span<const size_t> members);

  // Those that alone make the step a tenth longer at the low end of their interval.
  std::vector<size_t> MayLose(std::span<const size_t> members) const;

  // The same as places among the options that were given.
  std::vector<size_t> RowsOf(std::span<const size_t> members) const;

  std::vector<Application> ScenarioOf(std::span<const size_t> members) const;

 private:
  using Outcome = TriedProgram::Outcome;

  std::vector<size_t> MembersOf(OptionSet set) const;

  bool WithinBudget(std::span<const size_t> members) const;

  // Why these are not played together, or "".
  std::string WhyNotPlayed(std::span<const size_t> members,
                           std::span<const Application> scenario) const;

  // Plays those of `sets` that are not known yet.
  void Find(const std::vector<OptionSet>& sets);

  // The smaller set, then that of the options that save more, wins a tie. REQUIRES: it has a step.
  std::tuple<Duration, int, OptionSet> RankOf(OptionSet s) const;

  // Of all known sets.
  OptionSet Lowest() const;

  // With what saves beside it, also where one way to a gain makes place for the other, and without
  // what is not worth it any more.
  OptionSet Grown(OptionSet set);

  // `set` with the other way to the gain of a member, where that alone saves; else none.
  OptionSet WithOtherWay(OptionSet set);

  // With what saves beside it, option by option. What was not worth it beside few is asked once
  // more beside all of them.
  OptionSet WithMore(OptionSet set);

  // The option of `asked` that saves most beside `set`, or none that is worth it. Those that are
  // not worth it stay in `asked` no longer: beside more, they seldom save more.
  OptionSet BestAddition(OptionSet set, OptionSet& asked);

  // `set` less the member that is missed least, if that brings less than is worth it beside the
  // others; none when every member does.
  OptionSet Without(OptionSet set);

  const TriedProgram& program_;
  std::vector<const Option*> options_;  // those that are worth something first
  std::vector<size_t> rows_;            // of these, among all that were given
  Duration least_;
  const AdviseOptions& advise_;
  size_t paired_ = 0;
  std::map<OptionSet, Outcome> known_;
  std::mutex counting_;
  size_t sets_played_ = 0;
};

}  // namespace daydream
