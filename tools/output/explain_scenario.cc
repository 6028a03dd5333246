#include "tools/output/explain_scenario.h"

#include <algorithm>
#include <map>

#include "report/text/format.h"
#include "tools/input/inputs.h"
#include "tools/output/prediction_text.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/option_files.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

constexpr size_t kNameWidth = 60;

constexpr size_t kTermsShown = 3;  // of one kernel

// All kernels of one name, as recorded and after the whole scenario.
struct KernelChange {
  std::string name;
  uint64_t kernels = 0;  // recorded
  Duration before, after;
  std::vector<std::string> causes;  // "GEMMs run on tensor cores (amp)"
};

class KernelChanges {
 public:
  // Those that the scenario edits or adds, the longest first.
  static absl::StatusOr<std::vector<KernelChange>> Of(const Graph& recorded,
                                                      std::span<const Application> scenario) {
    KernelChanges changes(recorded);
    Graph after = recorded;
    DD_RETURN_IF_ERROR(ApplyAll(scenario, after, [&](const Application& a, Applied* applied) {
      if (applied != nullptr) changes.Note(after, a.transform->name, *applied);
      return absl::OkStatus();
    }));
    return changes.Take(after);
  }

 private:
  explicit KernelChanges(const Graph& recorded) : recorded_(recorded) {}

  KernelChange& At(const Graph& graph, TaskId t) {
    const std::string_view name = graph.TaskName(t);
    auto [it, fresh] = place_.try_emplace(std::string(name), all_.size());
    if (fresh) all_.push_back({.name = std::string(name), .before = {}, .after = {}, .causes = {}});
    return all_[it->second];
  }

  void Note(const Graph& graph, std::string_view opt, const Applied& applied) {
    for (const Editor::Edit& e : applied.edits) {
      if (graph.task(e.task).kind != TaskKind::kKernel || e.duration == Duration{}) continue;
      std::vector<std::string>& causes = At(graph, e.task).causes;
      std::string cause = fmt::format("{} ({})", applied.causes[e.cause].what, opt);
      if (std::find(causes.begin(), causes.end(), cause) == causes.end())
        causes.push_back(std::move(cause));
    }
  }

  std::vector<KernelChange> Take(const Graph& after) {
    for (size_t i = 0; i < after.size(); ++i) {
      const TaskId t(i);
      const Task& task = after.task(t);
      if (task.kind != TaskKind::kKernel) continue;
      KernelChange& change = At(after, t);
      if (!task.removed) change.after += task.duration;
      if (i >= recorded_.size() || recorded_.task(t).removed) continue;
      ++change.kernels;
      change.before += recorded_.task(t).duration;
    }
    std::erase_if(all_,
                  [](const KernelChange& c) { return c.causes.empty() && c.before == c.after; });
    std::stable_sort(all_.begin(), all_.end(), [](const KernelChange& a, const KernelChange& b) {
      return std::max(a.before, a.after) > std::max(b.before, b.after);
    });
    return std::move(all_);
  }

  const Graph& recorded_;
  std::map<std::string, size_t, std::less<>> place_;
  std::vector<KernelChange> all_;
};

// How a model of kernels found their times, where one did.
std::string TermLines(const std::vector<KernelTerms>& terms, std::string_view kernel) {
  std::string text;
  size_t shown = 0;
  for (const KernelTerms& t : terms) {
    if (t.kernel != kernel || ++shown > kTermsShown) continue;
    text += Wrapped(fmt::format("  {}: {}", Plural(t.kernels, "kernel"), Printable(t.how)));
  }
  if (shown > kTermsShown)
    text += fmt::format("    and {} with other sizes\n", shown - kTermsShown);
  return text;
}

std::string KernelLines(const std::vector<KernelChange>& kernels,
                        const std::vector<KernelTerms>& terms, size_t top, TimeUnit wish) {
  const size_t shown = std::min(top, kernels.size());
  if (shown == 0) return "";
  std::string text = fmt::format(
      "\nkernels with the most time of those that change, all steps together ({} of {})\n", shown,
      kernels.size());
  for (size_t i = 0; i < shown; ++i) {
    const KernelChange& k = kernels[i];
    text += fmt::format("  {}  {} -> {}  ({})\n", CutMiddle(Printable(k.name), kNameWidth),
                        FormatTime(k.before, wish), FormatTime(k.after, wish),
                        k.kernels == 0 ? "new" : Plural(k.kernels, "kernel"));
    for (const std::string& cause : k.causes) text += Wrapped("  " + Printable(cause));
    text += TermLines(terms, k.name);
  }
  return text;
}

}  // namespace

absl::StatusOr<std::string> ExplainScenario(const std::string& spec, const std::string& path,
                                            const Args& args, Session& session) {
  OptionFiles files(OptionFolders());
  DD_ASSIGN_OR_RETURN(std::vector<Application> scenario, ParseScenario(spec, &files));
  DD_ASSIGN_OR_RETURN(uint64_t top, ParseCount("--top", args.Get("--top")));
  DD_ASSIGN_OR_RETURN(Inputs in, LoadInputs(path, args, session));
  WarnAboutReplay(in.replay, session);
  const std::vector<std::vector<Application>> scenarios = {scenario};
  DD_ASSIGN_OR_RETURN(WhatIf result, PredictAll(in.built, in.replay, scenarios,
                                                {.alone = false, .jobs = session.jobs()}));
  const Prediction& p = result.predictions[result.main];
  DD_RETURN_IF_ERROR(p.error);
  const TimeUnit unit = UnitFor(result.predictions[0].step, session.unit());
  std::string text = fmt::format("{}: {} -> {} ({})\n\n{}", p.name,
                                 FormatTime(result.predictions[0].step, session.unit()),
                                 FormatTime(p.step, session.unit()), SpeedupText(p),
                                 CauseTable(p, unit, session.table_style()));
  text += BoundByLine(p);
  if (!text.ends_with('\n')) text += '\n';
  text += WhyNotLines(p);
  for (const std::string& warning : p.changes.warnings) text += Wrapped("weaker: " + warning);
  for (const std::string& needed : p.changes.conditions) text += Wrapped("needs: " + needed);
  for (const std::string& note : p.changes.notes) text += Wrapped("assumed: " + note);
  DD_ASSIGN_OR_RETURN(std::vector<KernelChange> kernels,
                      KernelChanges::Of(in.built.graph, scenario));
  return text + KernelLines(kernels, p.changes.terms, top, session.unit());
}

}  // namespace daydream
