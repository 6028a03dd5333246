#include "tools/output/ranks_page.h"

#include <algorithm>

#include "report/text/format.h"
#include "tools/input/scenarios.h"
#include "tools/output/joint_questions.h"
#include "tools/output/shown_path.h"

namespace daydream {
absl::StatusOr<std::unique_ptr<RanksPart>> PlayRanks(
    const Args& args, const std::vector<std::vector<Application>>& scenarios, Session& session) {
  const std::string& path = args.positional()[0];
  if (!HoldsRanks(path) || args.Has("--rank")) return nullptr;
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
