#include "report/questions/joint_steady.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "report/parallel.h"
#include "report/questions/findings.h"
#include "report/questions/op_stalls.h"
#include "report/stalls.h"
#include "report/text/format.h"
#include "simulator/simulate.h"

namespace daydream {
namespace {

// Chosen: of the step, as for one rank.
constexpr double kLeastTaken = 0.05;

// The ranks without their stalls. False, and as they were, where the step is hardly shorter.
absl::StatusOr<bool> TakeStalls(JointRun& run, unsigned jobs) {
  DD_ASSIGN_OR_RETURN(const JointAnswer recorded, PlayJoint(run, TransferFrom::kClass, {}, jobs));
  std::vector<Graph> as_recorded;
  for (size_t r = 0; r < run.built.size(); ++r) {
    Graph& graph = run.built[r].graph;
    as_recorded.push_back(graph);
    TakeOut(run.stalls[r].all, graph);
  }
  run.steady = JointSteady{.check = recorded.check, .recorded = recorded.step, .step = {}};
  DD_ASSIGN_OR_RETURN(const JointAnswer without, PlayJoint(run, TransferFrom::kClass, {}, jobs));
  run.steady->step = without.step;
  if (without.step <= recorded.step.Scaled(1 - kLeastTaken)) return true;
  run.steady.reset();
  for (size_t r = 0; r < run.built.size(); ++r) run.built[r].graph = std::move(as_recorded[r]);
  return false;
}

// The step without what holds operators up; none: nothing does.
absl::StatusOr<std::optional<Duration>> StepWithoutWaits(const JointRun& run, unsigned jobs) {
  const auto held_up = [](const Stalls& s) { return s.holds_operators(); };
  if (run.built.size() < 2 || std::ranges::none_of(run.stalls, held_up)) return std::nullopt;
  std::vector<Graph> without;
  std::vector<const Graph*> graphs;
  without.reserve(run.built.size());
  for (size_t r = 0; r < run.built.size(); ++r) {
    without.push_back(run.built[r].graph);
    std::vector<Stall> operators = run.stalls[r].waits;
    std::erase_if(operators, [](const Stall& s) { return !s.is_operator() || s.far; });
    TakeOut(operators, without.back());
    graphs.push_back(&without.back());
  }
  DD_ASSIGN_OR_RETURN(const JointAnswer answer, PlayJoint(run, TransferFrom::kClass, graphs, jobs));
  return answer.step;
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

bool IsKnownThroughout(const JointRun& run) {
  const auto no_step = [](const Stalls& s) { return s.no_step; };
  return run.built.size() > 1 && run.meetings.ghosts == 0 &&
         std::ranges::none_of(run.stalls, no_step);
}

}  // namespace

absl::Status MakeRanksSteady(JointRun& run, unsigned jobs) {
  run.findings = FindingsOfRanks(run, jobs);
  const auto happens_once = [](const Stalls& s) { return !s.all.empty(); };
  if (std::ranges::any_of(run.stalls, happens_once) && IsKnownThroughout(run)) {
    DD_ASSIGN_OR_RETURN(const bool taken, TakeStalls(run, jobs));
    const auto first = std::ranges::find_if(run.findings, TellsOfOneTime);
    if (taken && first != run.findings.end()) {
      first->text = WithBoth(*first, run.steady->recorded, run.steady->step);
    }
  }
  const auto held_up = std::ranges::find_if(run.findings, [](const Finding& f) {
    return f.kind == FindingKind::kOpStalls && f.about == About::kStep;
  });
  if (held_up != run.findings.end()) {
    held_up->text += kHeldUpStays;
    DD_ASSIGN_OR_RETURN(run.not_held_up, StepWithoutWaits(run, jobs));
    if (run.not_held_up) {
      held_up->text +=
          fmt::format("; without it the ranks would take {} a step", FormatTime(*run.not_held_up));
    }
  }
  for (size_t r = 0; r < run.built.size(); ++r) {
    KeepAsWaits(run.stalls[r].waits, run.built[r].graph);
  }
  return absl::OkStatus();
}

}  // namespace daydream
