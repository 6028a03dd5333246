#include "tools/output/joint_questions.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <mutex>
#include <set>

#include "base/text.h"
#include "costmodel/network/fabric.h"
#include "costmodel/surface_lines.h"
#include "report/parallel.h"
#include "report/questions/advise.h"
#include "report/questions/findings.h"
#include "report/questions/op_stalls.h"
#include "simulator/simulate.h"

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

size_t SlowestAlone(const JointReplay& replay) {
  size_t slowest = 0;
  for (size_t r = 1; r < replay.ranks.size(); ++r) {
    if (replay.ranks[r].own_cycle > replay.ranks[slowest].own_cycle) slowest = r;
  }
  return slowest;
}

bool RunsOnAmd(const JointRun& run) {
  const std::vector<Device>& devices = run.traces.front()->devices;
  return !devices.empty() && Contains(devices.front().name, "AMD");
}

// The built-in fabric with the highest measured rate of all-reduce that holds the largest group,
// for GPUs of the same vendor. Empty: there is none.
std::string FasterNetwork(const JointRun& run) {
  int32_t largest = 0;
  for (const MatchedRow& row : run.matched.rows) largest = std::max(largest, row.size);
  const auto amd = [](std::string_view name) { return name.starts_with("xgmi"); };
  const bool of_amd = RunsOnAmd(run);
  const Fabric* best = nullptr;
  double rate = 0;
  for (const Fabric& fabric : Fabrics()) {
    if (amd(fabric.name) != of_amd) continue;
    const bool one_node = fabric.levels.size() == 1;
    if (one_node ? largest > fabric.NodeSize() : largest <= fabric.NodeSize()) continue;
    for (const FabricCurve& curve : fabric.levels.back().all_reduce) {
      if (curve.measured() && curve.bus_gbps > rate) best = &fabric, rate = curve.bus_gbps;
    }
  }
  return best == nullptr ? "" : fmt::format("network({})", best->name);
}

// What only a run of several ranks can ask: the network, what is exchanged and when, all of it
// hidden as a limit, and the slowest rank mended.
absl::StatusOr<std::vector<Application>> JointOptions(const JointRun& run,
                                                      const JointAnswer& baseline) {
  const int32_t rank = run.Number(SlowestAlone(baseline.replay));
  std::vector<Application> options;
  for (const std::string& spec :
       {std::string("bandwidth(x2)"), std::string("latency(x0.5)"), std::string("fp16-compress"),
        std::string("powersgd(4)"), std::string("bucket(1MB)"), std::string("bucket(100MB)"),
        std::string("bucket(25MB,overlap=yes)"), std::string("free-comm"), FasterNetwork(run),
        fmt::format("straggler({},host=0.9)", rank), fmt::format("straggler({},gpu=0.9)", rank)}) {
    if (spec.empty()) continue;
    DD_ASSIGN_OR_RETURN(std::vector<Application> one, ParseScenario(spec));
    options.push_back(std::move(one.front()));
  }
  return options;
}

// The worst of each kind with its rank. Waiting for one another is played, and no finding.
std::vector<Finding> FindingsOfRanks(const JointRun& run, unsigned jobs) {
  std::vector<std::vector<Finding>> of_rank(run.built.size());
  ForEachParallel(run.built.size(), jobs, [&](size_t r) {
    const BuiltGraph& built = run.built[r];
    ReplayCheck recorded;
    recorded.measured_steps = MeasuredSteps(built);
    if (recorded.measured_steps.empty()) return;
    recorded.measured = recorded.simulated = MeanOf(recorded.measured_steps);
    of_rank[r] = FindFindings(built, run.stalls[r], recorded);
  });
  std::map<FindingKind, std::pair<Finding, size_t>> worst;  // and how many ranks have one
  for (size_t r = 0; r < run.built.size(); ++r) {
    std::set<FindingKind> met;
    for (Finding& f : of_rank[r]) {
      if (f.kind == FindingKind::kWaitsForRanks) continue;
      if (f.kind == FindingKind::kOpStalls) f.text += kHeldUpStays;
      f.text = fmt::format("rank {}: {}", run.Number(r), f.text);
      auto [it, fresh] = worst.try_emplace(f.kind, f, 0);
      if (met.insert(f.kind).second) ++it->second.second;
      if (!fresh && f.share > it->second.first.share) it->second.first = std::move(f);
    }
  }
  std::vector<Finding> all;
  for (auto& [kind, found] : worst) {
    auto& [finding, ranks] = found;
    if (ranks > 1) finding.text += fmt::format("; {} ranks have this", ranks);
    all.push_back(std::move(finding));
  }
  SortFindings(all);
  return all;
}

// Two ways to one gain stand below each other, the better one first.
void JoinWays(std::vector<JointPrediction>& predictions) {
  for (size_t i = 0; i < predictions.size(); ++i) {
    for (size_t j = i + 1; j < predictions.size(); ++j) {
      if (!AreTwoWays(predictions[i].name, predictions[j].name)) continue;
      predictions[j].other_way = true;
      const auto at = predictions.begin() + static_cast<ptrdiff_t>(j);
      std::rotate(predictions.begin() + static_cast<ptrdiff_t>(i) + 1, at, at + 1);
      break;
    }
  }
}

}  // namespace

JointProgress ProgressOf(std::string_view what, Session& session) {
  return [what, &session](size_t done, size_t total) {
    session.Progress(what, static_cast<double>(done) / static_cast<double>(total));
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
  for (size_t i = 0; i < all.size(); ++i) {
    const auto same = [&](const auto& later) { return SpecOf(later) == SpecOf(all[i]); };
    const auto next = all.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    if (std::none_of(next, all.end(), same)) once.push_back(all[i]);
  }
  return once;
}

absl::StatusOr<JointReport> PredictOnRanks(const JointInput& in, std::string name,
                                           const std::vector<std::vector<Application>>& scenarios,
                                           std::string_view on, const JointProgress& progress) {
  JointReport report{.in = &in, .name = std::move(name), .baseline = {}, .predictions = {}};
  DD_ASSIGN_OR_RETURN(report.baseline, PlayJoint(in.run, TransferFrom::kClass, {}, in.jobs));
  report.findings = FindingsOfRanks(in.run, in.jobs);
  DD_ASSIGN_OR_RETURN(const std::vector<int32_t> ranks, ParseOn(on, in.run));
  for (const std::vector<Application>& scenario : scenarios) {
    report.predictions.push_back(PredictJoint(in.run, report.baseline, scenario, ranks));
    if (progress) progress(report.predictions.size(), scenarios.size());
  }
  report.main = report.predictions.empty() ? 0 : report.predictions.size() - 1;
  return report;
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

absl::StatusOr<JointReport> AdviseOnRanks(const JointInput& in, std::string name,
                                          const Candidates& candidates, unsigned jobs,
                                          std::vector<std::string>& nothing,
                                          const JointProgress& progress) {
  DD_ASSIGN_OR_RETURN(JointReport report, PredictOnRanks(in, std::move(name), {}, "all"));
  DD_ASSIGN_OR_RETURN(std::vector<Application> options, JointOptions(in.run, report.baseline));
  options.insert(options.end(), candidates.options.begin(), candidates.options.end());
  std::vector<JointPrediction> all(options.size());
  std::mutex one_at_a_time;
  size_t done = 0;
  ForEachParallel(options.size(), jobs, [&](size_t i) {
    all[i] = PredictJoint(in.run, report.baseline, {options[i]});
    std::lock_guard lock(one_at_a_time);
    if (progress) progress(++done, options.size());
  });
  for (JointPrediction& p : all) {
    if (p.error.ok()) {
      report.predictions.push_back(std::move(p));
    } else {
      nothing.push_back(p.name);
    }
  }
  // A limit is nothing to do: it stands behind what is.
  std::stable_sort(report.predictions.begin(), report.predictions.end(),
                   [](const JointPrediction& x, const JointPrediction& y) {
                     return std::pair(x.bound, x.answer.step) < std::pair(y.bound, y.answer.step);
                   });
  JoinWays(report.predictions);
  return report;
}

}  // namespace daydream
