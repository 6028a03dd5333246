#include "tools/output/ranks_page.h"

#include <algorithm>

#include "report/text/format.h"
#include "tools/input/scenarios.h"
#include "tools/output/joint_questions.h"
#include "tools/output/shown_path.h"

namespace daydream {
absl::StatusOr<std::unique_ptr<RanksPart>> PlayRanks(
    const Args& args, const std::vector<std::vector<Application>>& scenarios, Session& session,
    InterruptNote* note) {
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
                                     ProgressOf("predicting", session, note)));
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

}  // namespace daydream
