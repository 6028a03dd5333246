#include <algorithm>

#include "report/predict/what_if.h"
#include "report/questions/diff.h"
#include "report/questions/findings.h"
#include "report/stalls.h"
#include "report/text/format.h"
#include "report/text/json_writer.h"
#include "report/text/table.h"
#include "tools/command.h"
#include "tools/gate.h"
#include "tools/input/inputs.h"
#include "tools/input/scenarios.h"
#include "tools/output/answer_diff.h"
#include "tools/output/findings_text.h"
#include "tools/output/markdown.h"
#include "tools/output/refused.h"
#include "tools/output/whatif_output.h"

namespace daydream {
namespace {

// Differences less likely than this without a change get the three stars.
constexpr double kSignificant = 0.001;

constexpr std::string_view kDiffGroupings[] = {"class", "op", "kernel", "layer", "phase", "stream"};
constexpr Flag kDiffFlags[] = {
    {.name = "--by",
     .value = "GROUP",
     .help = "class, op, kernel, layer, phase or stream",
     .fallback = "class",
     .choices = kDiffGroupings},
    {.name = "--top",
     .value = "N",
     .help = "rows before the rest is summed up as [N others]",
     .fallback = "15"},
    {.name = "--opt",
     .value = "SPEC",
     .help = "with one trace, twice: what the second scenario brings beside the first",
     .repeats = true},
    kOptFileFlag,
    kSetFlag,
    kKeepRecordingCostFlag,
    kMaxReplayErrorFlag,
    {.name = "--fail-if",
     .value = "EXPR",
     .help = "exit 5 when it holds: 'step > +3%', 'step > 120ms', or a group of the table",
     .repeats = true},
};

std::vector<std::string> Row(const DiffRow& r, TimeUnit unit) {
  std::string name = Printable(r.name) + (r.added ? " (new)" : r.gone ? " (gone)" : "");
  double share = r.before.ns > 0 ? static_cast<double>((r.after - r.before).ns) /
                                       static_cast<double>(r.before.ns)
                                 : 0;
  return {name,
          r.added ? "-" : FormatTime(r.before, unit),
          r.gone ? "-" : FormatTime(r.after, unit),
          FormatChange(r.after - r.before, unit),
          r.before.ns > 0 ? FormatSignedPercent(share) : "",
          r.p < kSignificant ? "***" : ""};
}

bool AnyDiffers(const Diff& diff) {
  return diff.step.p < kSignificant ||
         std::ranges::any_of(diff.rows, [](const DiffRow& r) { return r.p < kSignificant; });
}

Tone ToneOf(const DiffRow& r) {
  if (r.p >= kSignificant || r.before == r.after) return Tone::kPlain;
  return r.after < r.before ? Tone::kBetter : Tone::kWorse;
}

Table MakeDiffTable(const Diff& diff, size_t top, TimeUnit wish) {
  Table table({{"", Align::kLeft}, {"before"}, {"after"}, {"change"}, {""}, {"", Align::kLeft}});
  TimeUnit unit = UnitFor(std::max(diff.step.before, diff.step.after), wish);
  table.AddRow(Row(diff.step, unit));
  table.SetTone(ToneOf(diff.step));
  table.AddRule();
  size_t shown = diff.rows.size() <= top + 1 ? diff.rows.size() : top;
  DiffRow rest{
      .name = fmt::format("[{} others]", diff.rows.size() - shown), .before = {}, .after = {}};
  DiffRow all{.name = "all GPU work", .before = {}, .after = {}};
  for (size_t i = 0; i < diff.rows.size(); ++i) {
    const DiffRow& r = diff.rows[i];
    if (i < shown) {
      table.AddRow(Row(r, unit));
      table.SetTone(ToneOf(r));
    } else {
      rest.before += r.before;
      rest.after += r.after;
    }
    all.before += r.before;
    all.after += r.after;
  }
  if (shown < diff.rows.size()) table.AddRow(Row(rest, unit));
  table.AddRule();
  table.AddRow(Row(all, unit));
  return table;
}

void WriteRow(JsonWriter& json, const DiffRow& r) {
  json.BeginInlineObject().Key("name").String(r.name).Key("before_ns").Int(r.before.ns);
  json.Key("after_ns").Int(r.after.ns).Key("p").Double(r.p).EndObject();
}

// A recording and its steady step.
struct Recording : Inputs {
  std::string file;
  std::string gpu;              // name of the first; empty when it was not recorded
  std::vector<Duration> steps;  // that are compared
};

void WriteRecording(const Recording& recording, JsonWriter& json) {
  json.BeginObject().Key("file").String(recording.file).Key("device").String(recording.gpu);
  WriteFindings(recording.findings, json);
  json.Key("measured_ms").Double(recording.replay.measured.ms());
  WriteStep(MeanOf(recording.steps), recording.steps, json);
  if (recording.replay.unrecorded) WriteUnrecorded(*recording.replay.unrecorded, json);
  json.EndObject();
}

// Those of one recording alone, or of both.
struct FoundWhere {
  std::vector<Finding> both, before, after;
};
FoundWhere WhereFound(const Recording& before, const Recording& after) {
  const auto said = [](const Recording& r, const Finding& f) {
    return std::ranges::find(r.findings, f) != r.findings.end();
  };
  FoundWhere found;
  for (const Finding& f : before.findings) {
    (said(after, f) ? found.both : found.before).push_back(f);
  }
  for (const Finding& f : after.findings) {
    if (!said(before, f)) found.after.push_back(f);
  }
  return found;
}

// Worst first.
std::vector<Finding> FindingsOfBoth(const Recording& before, const Recording& after) {
  std::vector<Finding> all;
  const auto add = [&](std::string_view which, std::vector<Finding> findings) {
    for (Finding& f : findings) {
      f.text = fmt::format("{}: {}", which, f.text);
      all.push_back(std::move(f));
    }
  };
  FoundWhere found = WhereFound(before, after);
  add("both", std::move(found.both));
  add("before", std::move(found.before));
  add("after", std::move(found.after));
  SortFindings(all);
  return all;
}

std::string DiffAsJson(const Diff& diff, std::string_view by, const Recording& before,
                       const Recording& after) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("daydream.diff/1");
  json.Key("steps_before").UInt(diff.steps_before).Key("steps_after").UInt(diff.steps_after);
  WriteFindings(FindingsOfBoth(before, after), json);
  json.Key("before");
  WriteRecording(before, json);
  json.Key("after");
  WriteRecording(after, json);
  json.Key("step");
  WriteRow(json, diff.step);
  json.Key("by").String(by).Key("groups").BeginArray();
  for (const DiffRow& r : diff.rows) WriteRow(json, r);
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

std::string DiffAsCsv(const Diff& diff) {
  Table table({{"name", Align::kLeft}, {"before_ns"}, {"after_ns"}, {"p"}});
  auto add = [&](const DiffRow& r) {
    table.AddRow({r.name, fmt::format("{}", r.before.ns), fmt::format("{}", r.after.ns),
                  fmt::format("{:.6g}", r.p)});
  };
  add(diff.step);
  for (const DiffRow& r : diff.rows) add(r);
  return table.Csv();
}

absl::StatusOr<Recording> Load(const std::string& path, const Args& args, Session& session) {
  Recording out;
  out.file = path;
  DD_ASSIGN_OR_RETURN(out.trace, ReadAsked(path, args, session));
  if (!out.trace->devices.empty()) out.gpu = out.trace->devices.front().name;
  DD_RETURN_IF_ERROR(BuildAndJudge(out, path, args, session));
  return out;
}

bool TellsCost(const Recording& r) {
  return r.built.graph.tables().trace->provenance.cost.call.has_value();
}

// Out of both steps or of none: else what recording cost would be part of the difference.
absl::Status LeaveOutOfBoth(const Args& args, Recording& before, Recording& after) {
  if (!TellsCost(before) || !TellsCost(after)) return absl::OkStatus();
  DD_RETURN_IF_ERROR(LeaveOutRecording(args, before.built, before.replay));
  return LeaveOutRecording(args, after.built, after.replay);
}

// What became of it in the first row.
std::string AboutCost(const Args& args, const Recording& before, const Recording& after) {
  std::string text;
  const auto add = [&](std::string_view which, const Recording& r) {
    if (r.replay.unrecorded)
      text += fmt::format("  {}: {}\n", which, UnrecordedText(*r.replay.unrecorded));
  };
  add("before", before);
  add("after", after);
  if (TellsCost(before) != TellsCost(after) && !args.Has("--keep-recording-cost")) {
    text += fmt::format("  what recording cost is in both steps: only {} tells it\n",
                        TellsCost(before) ? "BEFORE" : "AFTER");
  }
  return text;
}

// Which is which, and on what each ran.
std::string Heading(const Recording& before, const Recording& after) {
  auto line = [](std::string_view which, const Recording& r) {
    return fmt::format("{:<8}{} ({})\n", which, Printable(r.file),
                       r.gpu.empty() ? "GPU not recorded" : Printable(r.gpu));
  };
  std::string text = line("before", before) + line("after", after);
  if (before.gpu != after.gpu && !before.gpu.empty() && !after.gpu.empty())
    text += "the GPUs differ: part of every change below is the GPU's\n";
  return text + "\n";
}

// What was recorded, where that is not what the first row compares.
std::string AboutSteady(const Recording& before, const Recording& after, TimeUnit wish) {
  std::string text;
  const auto add = [&](std::string_view which, const Recording& r) {
    if (r.replay.step_name() != "steady step" || !r.replay.no_step.ok()) return;
    text += fmt::format("  {}: the steady step; {} were recorded\n", which,
                        FormatTime(r.replay.measured, wish));
  };
  add("before", before);
  add("after", after);
  return text;
}

std::string FoundIn(std::string_view which, const std::vector<Finding>& findings) {
  if (findings.empty()) return "";
  return fmt::format("found in {}:\n", which) + FindingsText(findings);
}

std::string FoundText(const Recording& before, const Recording& after) {
  const FoundWhere found = WhereFound(before, after);
  return FoundIn("both", found.both) + FoundIn("BEFORE", found.before) +
         FoundIn("AFTER", found.after);
}

std::string FoundInMarkdown(std::string_view which, const std::vector<Finding>& findings) {
  if (findings.empty()) return "";
  return fmt::format("Found in {}:\n\n", which) + FindingsMarkdown(findings);
}

std::string FoundMarkdown(const Recording& before, const Recording& after) {
  const FoundWhere found = WhereFound(before, after);
  return FoundInMarkdown("both", found.both) + FoundInMarkdown("before", found.before) +
         FoundInMarkdown("after", found.after);
}

Exit TellGates(const std::vector<Verdict>& gates, Session& session) {
  for (const Verdict& v : gates) {
    if (!v.holds.value_or(false)) continue;
    session.Error(
        MakeStatus(absl::StatusCode::kAborted,
                   {.code = "E0604", .what = fmt::format("--fail-if '{}' holds", v.text)}));
    return Exit::kGateFailed;
  }
  return Exit::kOk;
}

GateValue TimeOf(Duration before, Duration after) {
  return {static_cast<double>(after.ns), true, static_cast<double>(before.ns)};
}

// What gates were asked of.
std::string Judged(Duration before, Duration after, const Session& session) {
  const TimeUnit wish = session.unit();
  return fmt::format("step: {} before, {} after", FormatTime(before, wish),
                     FormatTime(after, wish));
}

absl::Status Misused(std::string what, std::string fix) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0104", .what = std::move(what), .fix = std::move(fix)});
}

// Both scenarios of one trace, over one replay.
absl::StatusOr<AnswerDiff> AskBoth(const Args& args, Session& session) {
  DD_ASSIGN_OR_RETURN(const double limit,
                      ParsePercent("--max-replay-error", args.Get("--max-replay-error")));
  DD_ASSIGN_OR_RETURN(const auto scenarios, ParseScenarios(args));
  if (scenarios.size() != 2) {
    return Misused(
        fmt::format("diff of one trace compares two scenarios, not {}", scenarios.size()),
        "diff TRACE --opt amp --opt amp,fuse, or diff BEFORE AFTER");
  }
  const std::string& path = args.positional()[0];
  DD_ASSIGN_OR_RETURN(const Inputs in, LoadInputs(path, args, session));
  if (const absl::Status off = NoAnswer(in.replay, limit, path); !off.ok()) {
    return Refuse(off, "daydream.diff/1", &in.replay, in.findings, args, session);
  }
  std::vector<SavedAnswer> answers;
  for (const auto& scenario : scenarios) {
    const WhatIfOptions options{.alone = false, .jobs = session.jobs()};
    DD_ASSIGN_OR_RETURN(const WhatIf result,
                        PredictAll(in.built, in.replay, std::span(&scenario, 1), options));
    const Prediction& main = result.predictions[result.main];
    DD_RETURN_IF_ERROR(main.error);
    answers.push_back(AnswerOf(path, result, main));
  }
  WarnAboutReplay(in.replay, session);
  return CompareAnswers(std::move(answers[0]), std::move(answers[1]));
}

absl::StatusOr<AnswerDiff> ReadBoth(const Args& args) {
  DD_ASSIGN_OR_RETURN(SavedAnswer a, ReadAnswer(args.positional()[0]));
  DD_ASSIGN_OR_RETURN(SavedAnswer b, ReadAnswer(args.positional()[1]));
  return CompareAnswers(std::move(a), std::move(b));
}

absl::StatusOr<Exit> RunAnswers(const AnswerDiff& diff, const Args& args, size_t top,
                                Session& session) {
  if (args.Has("--by") && !args.IsDefault("--by")) {
    return Misused("--by is for two recordings", "predictions differ by their causes");
  }
  DD_ASSIGN_OR_RETURN(const std::vector<Verdict> gates,
                      JudgeGates(args.All("--fail-if"), {{"step", TimeOf(diff.a.step, diff.b.step)},
                                                         {"speedup", {diff.b.speedup}}}));
  auto markdown = [&] {
    return VerdictMarkdown(gates, Judged(diff.a.step, diff.b.step, session)) +
           AnswerDiffMarkdown(diff, top, session);
  };
  DD_RETURN_IF_ERROR(
      session.WriteResult(args, {.table = [&] { return AnswerDiffText(diff, top, session); },
                                 .json = [&] { return AnswerDiffJson(diff); },
                                 .csv = [&] { return AnswerDiffCsv(diff); },
                                 .markdown = markdown}));
  return TellGates(gates, session);
}

absl::StatusOr<Exit> RunDiff(const Args& args, Session& session) {
  for (const std::string& text : args.All("--fail-if")) {
    DD_RETURN_IF_ERROR(ParseGate(text).status());
  }
  DD_ASSIGN_OR_RETURN(uint64_t top, ParseCount("--top", args.Get("--top")));
  const std::vector<std::string>& files = args.positional();
  if (files.size() == 1) {
    DD_ASSIGN_OR_RETURN(const AnswerDiff diff, AskBoth(args, session));
    return RunAnswers(diff, args, top, session);
  }
  if (args.Has("--opt") || args.Has("--opt-file")) {
    return Misused("--opt is for one trace", "diff TRACE --opt amp --opt amp,fuse");
  }
  const bool a_saved = IsSavedAnswer(files[0]), b_saved = IsSavedAnswer(files[1]);
  if (a_saved != b_saved) {
    return Misused(fmt::format("{} is an answer, {} a recording", files[a_saved ? 0 : 1],
                               files[a_saved ? 1 : 0]),
                   "whatif --measured compares a prediction with a recording");
  }
  if (a_saved) {
    DD_ASSIGN_OR_RETURN(const AnswerDiff diff, ReadBoth(args));
    return RunAnswers(diff, args, top, session);
  }
  DD_ASSIGN_OR_RETURN(Recording before, Load(args.positional()[0], args, session));
  DD_ASSIGN_OR_RETURN(Recording after, Load(args.positional()[1], args, session));
  for (const Recording* r : {&before, &after}) {
    if (r->replay.no_step.ok()) continue;
    return Refuse(r->replay.no_step, "daydream.diff/1", nullptr, FindingsOfBoth(before, after),
                  args, session);
  }
  DD_RETURN_IF_ERROR(LeaveOutOfBoth(args, before, after));
  DD_ASSIGN_OR_RETURN(const Compared was, AsSteady(before.built, before.replay));
  DD_ASSIGN_OR_RETURN(const Compared is, AsSteady(after.built, after.replay));
  before.steps = was.periods, after.steps = is.periods;
  GroupBy by = ParseGroupBy(args.Get("--by")).value_or(GroupBy::kClass);
  Diff diff = Compare(was, is, by);
  GateValues values = {{"step", TimeOf(diff.step.before, diff.step.after)}};
  for (const DiffRow& r : diff.rows) values.insert({r.name, TimeOf(r.before, r.after)});
  DD_ASSIGN_OR_RETURN(const std::vector<Verdict> gates, JudgeGates(args.All("--fail-if"), values));
  const std::string remarks =
      fmt::format(
          R"(  {} more than the noise of the steps (p < {}, {} against {} steps)
  groups: GPU time per step, as recorded
)",
          AnyDiffers(diff) ? "*** differs by" : "nothing differs by", kSignificant,
          diff.steps_before, diff.steps_after) +
      AboutSteady(before, after, session.unit()) + AboutCost(args, before, after);
  auto text = [&] {
    return Heading(before, after) + FoundText(before, after) +
           MakeDiffTable(diff, top, session.unit()).Text(session.table_style()) + remarks;
  };
  auto markdown = [&] {
    return VerdictMarkdown(gates, Judged(diff.step.before, diff.step.after, session)) +
           PlainMarkdown(Heading(before, after)) + "\n" + FoundMarkdown(before, after) +
           MakeDiffTable(diff, top, session.unit()).Markdown() + "\n" + PlainMarkdown(remarks);
  };
  DD_RETURN_IF_ERROR(
      session.WriteResult(args, {.table = text,
                                 .json = [&] { return DiffAsJson(diff, Name(by), before, after); },
                                 .csv = [&] { return DiffAsCsv(diff); },
                                 .markdown = markdown}));
  return TellGates(gates, session);
}

}  // namespace

const Command kDiffCommand = {
    .name = "diff",
    .summary = "two recordings, or two predictions, compared",
    .usage = "BEFORE AFTER | A.json B.json | TRACE --opt A --opt B",
    .details =
        R"(Two recordings: recorded times; nothing is predicted, so that no check of a replay can
refuse it. The step is the steady one, without what happens once, and where both tell what
recording cost, without that. Findings about both recordings stand above the table. The first
row is the step, the others the GPU time of each group per step. Three stars mark differences
that the spread of the steps and the error of those costs do not explain (Welch's t-test,
p < 0.001).

Two answers of whatif --format json, or two scenarios of one trace: the predicted steps, and
what each cause adds to them or takes from them. The differences of the causes and of the
baselines sum to that of the steps. Of an answer its last scenario counts.)",
    .examples =
        "daydream diff before.ddtrace after.ddtrace\n"
        "daydream diff main.ddtrace branch.ddtrace --fail-if 'step > +3%'\n"
        "daydream diff run.ddtrace --opt amp --opt amp,fuse\n"
        "daydream diff monday.json friday.json",
    .flags = kDiffFlags,
    .takes = {.traces = true, .result = true, .least = 1, .most = 2},
    .run = RunDiff,
};

}  // namespace daydream
