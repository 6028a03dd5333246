#include "tools/explain_scenario.h"

#include "report/format.h"
#include "tools/inputs.h"
#include "tools/prediction_text.h"
#include "transforms/option_files.h"

namespace daydream {
namespace {

constexpr size_t kNameWidth = 60;

std::string TermLines(const std::vector<KernelTerms>& terms, size_t top) {
  std::string text;
  size_t shown = std::min(top, terms.size());
  if (shown > 0) {
    text = fmt::format("\nkernels with the most time, all steps together ({} of {})\n", shown,
                       terms.size());
  }
  for (size_t i = 0; i < shown; ++i) {
    const KernelTerms& t = terms[i];
    text += fmt::format("  {}  {} -> {}  ({})\n", CutMiddle(Printable(t.kernel), kNameWidth),
                        FormatTime(t.before), FormatTime(t.after), Plural(t.kernels, "kernel"));
    text += Wrapped("  " + Printable(t.how));
  }
  return text;
}

}  // namespace

absl::StatusOr<std::string> ExplainScenario(const std::string& spec, const std::string& path,
                                            const Args& args, Session& session) {
  OptionFiles files;
  DD_ASSIGN_OR_RETURN(std::vector<Application> scenario, ParseScenario(spec, &files));
  DD_ASSIGN_OR_RETURN(uint64_t top, ParseCount("--top", args.Get("--top")));
  DD_ASSIGN_OR_RETURN(Inputs in, LoadInputs(path, args, session));
  WarnAboutReplay(in.replay, session);
  const std::vector<std::vector<Application>> scenarios = {scenario};
  DD_ASSIGN_OR_RETURN(WhatIf result, PredictAll(in.built, in.replay, scenarios,
                                                {.alone = false, .jobs = session.jobs()}));
  const Prediction& p = result.predictions[result.main];
  DD_RETURN_IF_ERROR(p.error);
  const TimeUnit unit = UnitFor(result.predictions[0].step);
  std::string text = fmt::format(
      "{}: {} -> {} ({}), confidence {}\n{}\n{}", p.name, FormatTime(result.predictions[0].step),
      FormatTime(p.step), SpeedupText(p), Name(p.confidence), Wrapped(p.why), CauseTable(p, unit));
  text += BoundByLine(p);
  if (!text.ends_with('\n')) text += '\n';
  text += WhyNotLines(p);
  for (const std::string& warning : p.changes.warnings) text += Wrapped("weaker: " + warning);
  for (const std::string& note : p.changes.notes) text += Wrapped("assumed: " + note);
  return text + TermLines(p.changes.terms, top);
}

}  // namespace daydream
