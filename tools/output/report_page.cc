#include "tools/output/report_page.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include "base/shell_word.h"
#include "report/export/side.h"
#include "report/html/assumptions_block.h"
#include "report/html/cut_groups.h"
#include "report/html/memory_block.h"
#include "report/html/page.h"
#include "report/html/roofline_block.h"
#include "report/html/stalls_block.h"
#include "report/html/timeline_block.h"
#include "report/predict/settings.h"
#include "report/text/json_writer.h"
#include "simulator/simulate.h"
#include "tools/input/joint_input.h"
#include "tools/input/scenarios.h"
#include "tools/output/joint_questions.h"
#include "tools/output/ranks_page.h"
#include "tools/output/score.h"
#include "tools/output/shown_path.h"
#include "tools/output/summary_json.h"
#include "tools/output/sweep_page.h"
#include "tools/running/interrupt.h"
#include "tools/version.h"
#include "transforms/scenario/apply.h"

namespace daydream {
namespace {

using Scenario = std::vector<Application>;
using Blocks = std::vector<PageBlock>;

// Rows of a table of the page; what is below them is summed. A row takes 100 to 250 bytes of the
// file, and there are six tables of two sides.
constexpr size_t kMostTableRows = 150;

constexpr size_t kGroupings = 5;  // by class, op, kernel, layer and phase, as GroupBy has them

// One step by every group.
struct Tables {
  std::array<Summary, kGroupings> by;
  std::vector<HostRow> host;
  MemoryProfile memory;
};

Tables TablesOf(const Graph& graph, const Timeline& timeline) {
  Tables tables{.by = {}, .host = HostTable(graph, timeline), .memory = ProfileMemory(graph)};
  for (size_t by = 0; by < kGroupings; ++by) {
    tables.by[by] = Summarize(graph, timeline, static_cast<GroupBy>(by));
  }
  return tables;
}

// As `summary --by GROUP --format json` has it.
void AddTables(const Tables& tables, const std::vector<Finding>& findings, bool after,
               Blocks& blocks) {
  constexpr std::string_view kIds[] = {"summary-class", "summary-op", "summary-kernel",
                                       "summary-layer", "summary-phase"};
  constexpr std::string_view kAfterIds[] = {"after-class", "after-op", "after-kernel",
                                            "after-layer", "after-phase"};
  for (size_t by = 0; by < kGroupings; ++by) {
    blocks.push_back(
        {after ? kAfterIds[by] : kIds[by],
         SummaryJson(tables.by[by], tables.memory, static_cast<GroupBy>(by), nullptr, findings)});
  }
  blocks.push_back({after ? "after-host" : "summary-host",
                    HostSummaryJson(tables.host, tables.by.back(), nullptr, findings)});
}

// The step after `scenario`, and which of its optimizations edited which task.
absl::StatusOr<Played> PlayWithCauses(const Graph& graph, const Scenario& scenario,
                                      TaskCauses& causes) {
  Played played{graph, {}};
  auto note = [&](const Application& application, const Applied* applied) {
    if (applied == nullptr) return absl::OkStatus();  // nothing to change here
    const size_t first = causes.causes.size();
    for (const Editor::Cause& cause : applied->causes) {
      causes.causes.push_back({cause.what, std::string(application.transform->name)});
    }
    causes.of.resize(played.graph.size());
    for (const Editor::Edit& edit : applied->edits) {
      if (edit.cause >= applied->causes.size()) continue;
      causes.of[edit.task.index()] = static_cast<uint32_t>(1 + first + edit.cause);
    }
    return absl::OkStatus();
  };
  DD_RETURN_IF_ERROR(ApplyAll(scenario, played.graph, note));
  DD_ASSIGN_OR_RETURN(played.timeline, Simulate(played.graph, {.blockers = true}));
  return played;
}

bool IsStopped(const InterruptNote* note) { return note != nullptr && note->stopped(); }

// Tables, roofline and timelines of the step as recorded and after `scenario`, when that could be
// predicted. `note` may end it, or be null: `missing` then has what is left.
absl::Status AddTimelines(uint64_t most, const Inputs& in, const Prediction& main,
                          const Scenario& scenario, const InterruptNote* note, NotDone& missing,
                          Blocks& blocks) {
  const auto leave = [&](std::string_view parts) {
    missing.parts.push_back(parts);
    return absl::OkStatus();
  };
  if (IsStopped(note)) return leave("tables and timelines");
  DD_ASSIGN_OR_RETURN(const Timeline before, Simulate(in.built.graph, {.blockers = true}));
  std::vector<Side> sides = {
      {"before: replayed", "simulated, not measured", &in.built.graph, &before}};
  Played after;
  TaskCauses causes;
  if (!scenario.empty() && main.error.ok()) {
    DD_ASSIGN_OR_RETURN(after, PlayWithCauses(in.built.graph, scenario, causes));
    sides.push_back({fmt::format("after: {}", main.name), "predicted, not measured", &after.graph,
                     &after.timeline});
  }
  if (IsStopped(note)) return leave("tables and timelines");
  Tables tables = TablesOf(in.built.graph, before), tables_after;
  if (sides.size() > 1) tables_after = TablesOf(after.graph, after.timeline);
  for (size_t by = 0; by < kGroupings; ++by) {
    CutGroups(kMostTableRows, tables.by[by].groups, tables_after.by[by].groups);
  }
  CutHostRows(kMostTableRows, tables.host, tables_after.host);
  AddTables(tables, in.findings, false, blocks);
  if (sides.size() > 1) AddTables(tables_after, {}, true, blocks);
  blocks.push_back({"stalls", StallsJson(in.built.graph, in.stalls)});
  blocks.push_back({"roofline", RooflineJson(in.built.graph)});
  blocks.push_back({"memory", MemoryJson(sides, main.changes.memory)});
  if (IsStopped(note)) return leave("timelines");
  blocks.push_back({"timeline", TimelineJson(sides, causes, most)});
  return absl::OkStatus();
}

// As the page has it: files without their folders.
std::string ShownValue(const Flag& flag, const std::string& value) {
  if (flag.value == "FILE" || flag.value == "TRACE") return WithoutFolders(value);
  return flag.value == "SPEC" ? SpecWithoutFolders(value) : value;
}

// Those of `flags` that were given, as a shell takes them, but for `left_out`.
std::string GivenFlags(std::span<const Flag> flags, const Args& args,
                       std::span<const std::string_view> left_out) {
  std::string words;
  for (const Flag& flag : flags) {
    if (!args.Has(flag.name)) continue;
    if (std::find(left_out.begin(), left_out.end(), flag.name) != left_out.end()) continue;
    if (flag.value.empty()) words += fmt::format(" {}", flag.name);
    if (flag.value.empty()) continue;
    for (const std::string& value : args.All(flag.name)) {
      words += fmt::format(" {} {}", flag.name, ShellWord(ShownValue(flag, value)));
    }
  }
  return words;
}

// `report` as `whatif --format json` has it, but for the folders of files.
std::string ShownJson(WhatIfReport report) {
  report.file = WithoutFolders(report.file);
  if (report.score.has_value()) report.score->file = WithoutFolders(report.score->file);
  for (Prediction& p : report.result.predictions) {
    if (p.error.ok()) continue;
    Diagnostic told = DiagnosticOf(p.error);
    told.fix = SpecWithoutFolders(told.fix);
    p.error = MakeStatus(p.error.code(), std::move(told));
  }
  return WhatIfJson(report);
}

// What a page says of itself, beside what is in its blocks.
struct PageHead {
  std::string title, headline;
  std::string next;  // the command that makes the page of the first option; or empty
  int32_t rank = 0;
  std::string not_whole;  // what is missing where it was told to stop; or empty
};

// What was asked, by what program.
std::string AboutJson(const Command& asked, const Args& args, const PageHead& about) {
  constexpr std::string_view kLeftOut[] = {"--output", "--force-overwrite", "--no-open"};
  const std::string file = WithoutFolders(args.positional()[0]);
  std::string version = ShortVersion();
  version.pop_back();
  JsonWriter json;
  json.BeginObject().Key("schema").String("daydream.report/1").Key("title").String(about.title);
  json.Key("headline").String(about.headline).Key("rank").Int(about.rank);
  json.Key("command").String(fmt::format("daydream {} {}{}{}", asked.name, ShellWord(file),
                                         GivenFlags(asked.flags, args, kLeftOut),
                                         GivenFlags(ReadFlags(), args, {})));
  if (!about.next.empty()) json.Key("next").String(about.next);
  if (!about.not_whole.empty()) json.Key("not_whole").String(about.not_whole);
  json.Key("input").String(file).Key("version").String(version).EndObject();
  return json.Take() + "\n";
}

// The page of one option that was found, of the same recording read in the same way.
std::string PageOfOption(const Args& args, const std::string& spec) {
  constexpr std::string_view kLeftOut[] = {"--opt", "--measured", "--title"};
  std::string file;
  for (const char c : spec) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain || (!file.empty() && file.back() != '-')) file += plain ? c : '-';
  }
  while (file.ends_with('-')) file.pop_back();
  return fmt::format("daydream report {}{}{} --opt {} -o {}.html",
                     ShellWord(WithoutFolders(args.positional()[0])),
                     GivenFlags(kPageFlags, args, kLeftOut), GivenFlags(ReadFlags(), args, {}),
                     ShellWord(spec), file);
}

// `note` may be null. `counts`: it hears how much is done.
WhatIfOptions PredictOptions(const WhatIfReport& report, Session& session, InterruptNote* note,
                             bool counts) {
  return {.true_step = report.true_step,
          .jobs = session.jobs(),
          .progress = ProgressOf("predicting", session, counts ? note : nullptr),
          .stopped = [note] { return IsStopped(note); }};
}

std::string TitleOf(const Args& args, const WhatIfReport& report) {
  if (args.Has("--title")) return std::string(args.Get("--title"));
  return WithoutFolders(report.file);
}

// With every rank on the page, the late one need not be looked for.
void PointToRanks(std::vector<Finding>& findings) {
  for (Finding& f : findings) {
    if (f.kind == FindingKind::kWaitsForRanks) {
      f.text = f.text.substr(0, f.text.find(": one of them is late"));
      f.fix =
          "look at the ranks together, below: who came late in the recorded window need not be "
          "the one that bounds a step that repeats";
    }
  }
}

// `asked` without what no prediction could take in: that assumes nothing.
template <class Predictions>
std::vector<Scenario> TakenIn(std::vector<Scenario> asked, const Predictions& predictions) {
  std::set<std::string> taken, left;
  for (const auto& p : predictions) {
    if (!p.error.ok()) continue;
    taken.insert(p.opts.begin(), p.opts.end());
    left.insert(p.left_out.begin(), p.left_out.end());
  }
  for (Scenario& scenario : asked) {
    std::erase_if(scenario, [&](const Application& a) {
      const std::string name = SpelledAs(a);
      return !taken.contains(name) || left.contains(name);
    });
  }
  return asked;
}

// What is said, and ended with, once the page is made: of all ranks, where they answer.
absl::StatusOr<Exit> EndOf(const Inputs& in, const WhatIfReport& report, const RanksPart* ranks,
                           Session& session) {
  WarnAboutReplay(in.replay, session);
  if (ranks != nullptr) return EndOfRanks(*ranks, session);
  DD_RETURN_IF_ERROR(in.replay.no_step);
  for (const Prediction& p : report.result.predictions) {
    if (!p.error.ok()) session.Error(p.error);
    if (!p.error.ok() || !p.left_out.empty()) return Exit::kCannotAnswer;
  }
  return Exit::kOk;
}

// Options that are worth a row, with the best set, as `advise --format json` has them.
void AddAdvice(const Args& args, AdviseReport report, PageHead& about, Blocks& blocks) {
  std::vector<Scenario> scenarios;
  for (const Option& o : report.advised.worth) scenarios.push_back({o.application});
  report.folders = false;
  if (report.advised.interrupted) about.not_whole = MissingOf(report.advised);
  blocks.push_back({"advise", AdviseJson(report)});
  blocks.push_back({"assumptions", AssumptionsJson(scenarios)});
  if (!report.advised.worth.empty()) {
    about.next = PageOfOption(args, report.advised.worth[0].prediction.name);
  }
}

PageHead HeadOf(const Args& args, const WhatIfReport& report) {
  return {.title = TitleOf(args, report),
          .headline = report.headline,
          .next = {},
          .rank = report.trace->ranks[0].rank,
          .not_whole = {}};
}

// What the page has where nothing is asked: what could be. Returns what the command ends with.
absl::StatusOr<Exit> AddOptions(const Args& args, const Inputs& in, RanksPart* ranks,
                                Session& session, InterruptNote* note, PageHead& about,
                                Blocks& blocks) {
  const Budget any;
  DD_ASSIGN_OR_RETURN(const Candidates candidates, FindCandidates(args, any, session));
  if (ranks != nullptr) {
    DD_ASSIGN_OR_RETURN(AdviseReport report, AdviseOnRanks(args.positional()[0], ranks->report,
                                                           candidates, any, session, note));
    const Exit exit = EndOf(report.advised, session);
    AddAdvice(args, std::move(report), about, blocks);
    return exit;
  }
  DD_ASSIGN_OR_RETURN(AdviseReport report, AdviseOn(args.positional()[0], in, candidates, any,
                                                    false, session, AdviseOptions::kAllRows, note));
  const Exit exit = EndOf(report.advised, session);
  AddAdvice(args, std::move(report), about, blocks);
  return exit;
}

// Predicts, and where `compares` says so compares with --measured. `note` may end it, or be null:
// report.missing then has what is left. `answers`: of several ranks the answer is another one.
absl::Status PredictOnPage(const Args& args, Session& session, const Inputs& in,
                           const std::vector<Scenario>& scenarios, bool compares, bool answers,
                           InterruptNote* note, WhatIfReport& report) {
  WhatIf& result = report.result;
  DD_ASSIGN_OR_RETURN(result, PredictAll(in.built, in.replay, scenarios,
                                         PredictOptions(report, session, note, answers)));
  const size_t done = result.predictions.size() - 1;
  report.missing.scenarios = result.not_done;
  report.missing.asked = done + result.not_done.size();
  if (note != nullptr && answers) note->Done(done, report.missing.asked);
  const Prediction& main = result.predictions[result.main];
  if (!compares || !main.error.ok()) return absl::OkStatus();
  if (!result.main_done || IsStopped(note)) {
    report.missing.parts.emplace_back("--measured");
    return absl::OkStatus();
  }
  DD_ASSIGN_OR_RETURN(report.score,
                      ScoreAgainst(std::string(args.Get("--measured")), args, session, in,
                                   scenarios.empty() ? Scenario() : scenarios.back(), main));
  return absl::OkStatus();
}

// The answers, of all ranks and of one.
void AddAnswers(const std::vector<Scenario>& asked, const RanksPart* ranks,
                const WhatIfReport& report, Blocks& blocks) {
  if (ranks != nullptr) blocks.push_back({"ranks", JointWhatIfJson(ranks->report)});
  blocks.push_back({"whatif", ShownJson(report)});
  if (asked.empty()) return;
  blocks.push_back({"assumptions",
                    AssumptionsJson(ranks != nullptr ? TakenIn(asked, ranks->report.predictions)
                                                     : TakenIn(asked, report.result.predictions))});
}

}  // namespace

absl::StatusOr<ReportPage> MakeReportPage(const Command& command, const Args& args,
                                          Session& session, WhenInterrupted then) {
  if (IsSavedSweep(args.positional()[0])) {
    DD_ASSIGN_OR_RETURN(std::string html, MakeSweepPage(command, args));
    return ReportPage{.html = std::move(html), .exit = Exit::kOk};
  }
  const std::string& path = args.positional()[0];
  if (HoldsRanks(path) && !args.Has("--rank")) {
    constexpr std::string_view kOfOneRank[] = {"--measured", "--true-step", "--samples", "--steps"};
    DD_RETURN_IF_ERROR(CheckAboutAllRanks(args, kOfOneRank));
  }
  DD_ASSIGN_OR_RETURN(const double limit,
                      ParsePercent("--max-replay-error", args.Get("--max-replay-error")));
  DD_ASSIGN_OR_RETURN(const uint64_t most, ParseCount("--max-slices", args.Get("--max-slices")));
  DD_ASSIGN_OR_RETURN(const std::vector<Scenario> asked, ParseScenarios(args));
  DD_ASSIGN_OR_RETURN(const Inputs in, LoadInputs(path, args, session));
  const bool failed = in.replay.worst().error > limit;
  const std::vector<Scenario> scenarios = failed ? std::vector<Scenario>() : asked;

  std::optional<InterruptNote> kept;
  if (then == WhenInterrupted::kLeavesWhatIsDone) {
    kept.emplace(session.KeepsDone(asked.empty() ? "options" : "scenarios"));
  }
  InterruptNote* const note = kept.has_value() ? &*kept : nullptr;
  DD_ASSIGN_OR_RETURN(const std::unique_ptr<RanksPart> ranks,
                      PlayRanks(args, asked, session, note));
  WhatIfReport report = ReportOf(in);
  DD_RETURN_IF_ERROR(PredictOnPage(args, session, in, scenarios, args.Has("--measured") && !failed,
                                   ranks == nullptr, note, report));
  PageHead about = HeadOf(args, report);
  NotDone missing = report.missing;
  if (ranks != nullptr) {
    missing = ranks->report.missing;
    if (report.missing.any()) missing.parts.emplace_back("what one rank alone would do");
    PointToRanks(report.findings);
    about.headline = HeadlineOfRanks(*ranks, about.title, DeviceName(in.built.graph));
  }
  Blocks blocks;
  AddAnswers(asked, ranks.get(), report, blocks);
  session.Progress("drawing the timelines");
  DD_RETURN_IF_ERROR(AddTimelines(most, in, report.result.predictions[report.result.main],
                                  scenarios.empty() ? Scenario() : scenarios.back(), note, missing,
                                  blocks));
  const bool advises = ranks != nullptr ? ranks->off.ok() : !failed && in.replay.no_step.ok();
  Exit end = Exit::kOk;
  if (asked.empty() && advises) {
    DD_ASSIGN_OR_RETURN(end, AddOptions(args, in, ranks.get(), session, note, about, blocks));
  }
  if (missing.any()) about.not_whole = NotDoneNames(missing);
  blocks.insert(blocks.begin(), {"about", AboutJson(command, args, about)});
  session.Progress("making the page");
  ReportPage page{.html = HtmlPage(about.title, blocks)};
  page.exit = failed && ranks == nullptr ? ReplayFailed(in.replay, limit, path)
                                         : EndOf(in, report, ranks.get(), session);
  if (page.exit.ok() && missing.any()) end = EndNotDone(missing, session);
  if (page.exit.ok() && end != Exit::kOk) page.exit = end;
  return page;
}

absl::StatusOr<std::string> MakeAdvicePage(const Command& command, const Args& args,
                                           const Inputs& in, const AdviseReport& advice,
                                           Session& session) {
  WhatIfReport report = ReportOf(in);
  DD_ASSIGN_OR_RETURN(report.result, PredictAll(in.built, in.replay, {},
                                                PredictOptions(report, session, nullptr, false)));
  PageHead about = HeadOf(args, report);
  Blocks blocks = {{"whatif", ShownJson(report)}};
  DD_ASSIGN_OR_RETURN(const uint64_t most, ParseCount("--max-slices", kMaxSlicesFlag.fallback));
  session.Progress("drawing the timelines");
  NotDone whole;  // nothing of it is
  DD_RETURN_IF_ERROR(
      AddTimelines(most, in, report.result.predictions[0], {}, nullptr, whole, blocks));
  AddAdvice(args, advice, about, blocks);
  blocks.insert(blocks.begin(), {"about", AboutJson(command, args, about)});
  return HtmlPage(about.title, blocks);
}

}  // namespace daydream
