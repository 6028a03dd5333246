#include "tools/output/joint_questions.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_set>

#include "costmodel/surface_lines.h"
#include "report/predict/settings.h"

namespace daydream {
namespace {

std::string SpecOf(const std::vector<Application>& scenario) {
  std::string name;
  for (const Application& a : scenario) name += a.params.spelled() + ",";
  return name;
}

bool ReadRank(std::string_view text, int32_t& rank) {
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, rank);
  return read.ec == std::errc() && read.ptr == end && rank >= 0;
}

// "ranks 0-3,6", with or without the word: numbers of the run; none for "all".
absl::StatusOr<std::vector<int32_t>> ParseOn(std::string_view text, const JointRun& run) {
  std::vector<int32_t> ranks;
  if (text == "all") return ranks;
  std::string_view rest = text;
  if (rest.starts_with("rank")) rest.remove_prefix(std::min(rest.find(' '), rest.size()));
  for (std::string_view item : SplitAt(rest, ',')) {
    while (item.starts_with(' ')) item.remove_prefix(1);
    const size_t dash = item.find('-');
    int32_t first = 0, last = 0;
    const bool number = ReadRank(item.substr(0, dash), first);
    last = first;
    const bool range = dash == item.npos || ReadRank(item.substr(dash + 1), last);
    std::vector<int32_t> found;
    bool ends = false, begins = false;  // both ends of a range were recorded
    for (size_t r = 0; r < run.built.size(); ++r) {
      const int32_t rank = run.Number(r);
      begins |= rank == first, ends |= rank == last;
      if (rank >= first && rank <= last) found.push_back(rank);
    }
    if (!number || !range || !begins || !ends || found.empty()) {
      return MakeStatus(absl::StatusCode::kInvalidArgument,
                        {.code = "E0104",
                         .what = fmt::format("--on {}: '{}' names {} of this run", text, item,
                                             found.empty() ? "no rank" : "a rank that is none"),
                         .fix = "numbers of recorded ranks, like 'ranks 0-3,6', or all"});
    }
    ranks.insert(ranks.end(), found.begin(), found.end());
  }
  return ranks;
}

// The last that was asked answers; where that is missing, none.
void FindMain(JointReport& report) {
  const size_t done = report.predictions.size();
  report.main = done > 0 && report.missing.scenarios.empty() ? done - 1 : done;
}

}  // namespace

JointProgress ProgressOf(std::string_view what, Session& session, InterruptNote* note) {
  return [what, &session, note](size_t done, size_t total) {
    if (note != nullptr && total > 1) note->Done(done, total);  // one is done or not
    session.Progress(what, done, total);
    return note == nullptr || !note->stopped();
  };
}

std::vector<std::vector<Application>> WithParts(
    const std::vector<std::vector<Application>>& scenarios) {
  std::vector<std::vector<Application>> all;
  for (const std::vector<Application>& scenario : scenarios) {
    for (const Application& a : scenario) all.push_back({a});
    all.push_back(scenario);
  }
  std::vector<std::vector<Application>> once;
  std::unordered_set<std::string> later;
  for (size_t i = all.size(); i-- > 0;) {
    if (later.insert(SpecOf(all[i])).second) once.push_back(std::move(all[i]));
  }
  std::ranges::reverse(once);
  return once;
}

absl::StatusOr<JointReport> PredictOnRanks(const JointInput& in, std::string name,
                                           const std::vector<std::vector<Application>>& scenarios,
                                           std::string_view on, const JointProgress& progress) {
  JointReport report{.in = &in, .name = std::move(name), .baseline = {}, .predictions = {}};
  DD_ASSIGN_OR_RETURN(report.baseline, PlayJoint(in.run, TransferFrom::kClass, {}, in.jobs));
  report.findings = in.run.findings;
  DD_ASSIGN_OR_RETURN(const std::vector<int32_t> ranks, ParseOn(on, in.run));
  const size_t all = scenarios.size();
  const auto goes_on = [&] { return !progress || progress(report.predictions.size(), all); };
  while (all > 0 && goes_on() && report.predictions.size() < all) {
    const std::vector<Application>& scenario = scenarios[report.predictions.size()];
    report.predictions.push_back(PredictJoint(in.run, report.baseline, scenario, ranks));
  }
  for (size_t i = report.predictions.size(); i < all; ++i) {
    report.missing.scenarios.push_back(NameOf(scenarios[i]));
  }
  report.missing.asked = all;
  FindMain(report);
  return report;
}

void DropPartsOnlyTogether(const std::vector<std::vector<Application>>& asked,
                           JointReport& report) {
  std::vector<std::string> names;
  for (const std::vector<Application>& scenario : asked) {
    if (scenario.size() == 1) names.push_back(SpelledAs(scenario.front()));
  }
  const auto holds = [](const std::vector<std::string>& list, const std::string& opt) {
    return std::ranges::find(list, opt) != list.end();
  };
  std::erase_if(report.predictions, [&](const JointPrediction& part) {
    if (part.opts.size() != 1 || part.error.ok() || holds(names, part.name)) return false;
    return std::ranges::any_of(report.predictions, [&](const JointPrediction& whole) {
      return whole.opts.size() > 1 && whole.error.ok() && holds(whole.opts, part.name) &&
             !holds(whole.left_out, part.name);
    });
  });
  FindMain(report);
}

std::string OptionOfBound(const JointReport& report) {
  const JointReplay& replay = report.baseline.replay;
  const size_t slowest = SlowestAlone(replay);
  const RankAccount& rank = replay.ranks[slowest];
  const BoundBy& path = rank.own_path;
  const Duration host = path.cpu + path.data;
  if (path.comm >= path.gpu && path.comm >= host) return "bandwidth(x2)";
  return fmt::format("straggler({}, {}=0.9)", report.in->run.Number(slowest),
                     path.gpu >= host ? "gpu" : "host");
}

void DropIntervals(JointReport& report) {
  for (JointPrediction& p : report.predictions) p.low = p.high = std::nullopt;
}

absl::Status CheckJointReplay(const JointReport& report, double limit) {
  const double error = report.baseline.check.span_error;
  if (error <= limit) return absl::OkStatus();
  return MakeStatus(
      absl::StatusCode::kFailedPrecondition,
      {.code = "E0602",
       .what = fmt::format("the replay of the ranks together: the length of one is {:.2f} % off",
                           100 * error),
       .where = report.name,
       .why = "one transfer for each kind and size does not explain these recordings",
       .effect = "predictions would be off by as much, so none is made",
       .fix = fmt::format("accept it with --max-replay-error {:.0f}%, or look at one: --rank R",
                          std::ceil(100 * error))});
}

}  // namespace daydream
