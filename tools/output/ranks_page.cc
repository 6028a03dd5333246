#include "tools/output/ranks_page.h"

#include <algorithm>

#include "report/text/format.h"
#include "tools/input/scenarios.h"
#include "tools/output/joint_questions.h"
#include "tools/output/shown_path.h"

namespace daydream {
namespace {

std::string SpecOf(const std::vector<Application>& scenario) {
  std::string name;
  for (const Application& a : scenario) name += a.params.spelled() + ",";
  return name;
}

// As PredictAll() has them; of those that are asked twice the last, as the last answers.
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

}  // namespace

absl::StatusOr<std::unique_ptr<RanksPart>> PlayRanks(
    const Args& args, const std::vector<std::vector<Application>>& scenarios, Session& session) {
  const std::string& path = args.positional()[0];
  if (!HoldsRanks(path)) return nullptr;
  for (std::string_view flag : {"--rank", "--measured", "--true-step", "--steps"}) {
    if (args.Has(flag)) return nullptr;
  }
  absl::StatusOr<JointInput> in = LoadJoint(path, args, session);
  if (!in.ok() && DiagnosticOf(in.status()).code == "E0435") return nullptr;
  if (!in.ok()) return in.status();
  DD_ASSIGN_OR_RETURN(const double limit,
                      ParsePercent("--max-replay-error", args.Get("--max-replay-error")));
  auto part = std::make_unique<RanksPart>(RanksPart{.in = *std::move(in), .report = {}, .off = {}});
  DD_ASSIGN_OR_RETURN(part->report,
                      PredictOnRanks(part->in, WithoutFolders(path), WithParts(scenarios), "all",
                                     ProgressOf("predicting", session)));
  part->off = CheckJointReplay(part->report, limit);
  if (!part->off.ok()) part->report.predictions.clear();
  return part;
}

std::string HeadlineOfRanks(const RanksPart& part, std::string_view title,
                            std::string_view device) {
  return fmt::format("{}, {} of one run{}{}", title, Plural(part.in.run.built.size(), "rank"),
                     device.empty() ? "" : ", ", device);
}

absl::StatusOr<Exit> EndOfRanks(const RanksPart& part, Session& session) {
  DD_RETURN_IF_ERROR(part.off);
  Exit exit = Exit::kOk;
  for (const JointPrediction& p : part.report.predictions) {
    if (p.error.ok()) continue;
    session.Error(p.error);
    exit = Exit::kCannotAnswer;
  }
  return exit;
}

absl::StatusOr<RanksAdvice> AdviceOfRanks(const RanksPart& part, const Args& args,
                                          const Candidates& candidates, Session& session) {
  std::vector<std::string> nothing;
  DD_ASSIGN_OR_RETURN(const JointReport report,
                      AdviseOnRanks(part.in, WithoutFolders(args.positional()[0]), candidates,
                                    session.jobs(), nothing, ProgressOf("trying", session)));
  RanksAdvice out{.json = JointAdviceJson(report, nothing), .first = {}, .worth = {}};
  for (const JointPrediction& p : report.predictions) {
    if (p.bound || p.answer.step >= report.baseline.step) continue;
    if (out.first.empty()) out.first = p.name;
    for (const Application& a : candidates.options) {
      if (a.params.spelled() == p.name || a.transform->name == p.name) out.worth.push_back({a});
    }
  }
  return out;
}

}  // namespace daydream
