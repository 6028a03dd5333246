#include "tools/output/joint_output.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "costmodel/network/collective_time.h"
#include "report/questions/joint_advise.h"
#include "report/questions/joint_unrecorded.h"
#include "report/text/escape.h"
#include "report/text/format.h"
#include "report/text/json_writer.h"
#include "report/text/table.h"
#include "tools/output/describe.h"
#include "tools/output/findings_text.h"
#include "tools/output/markdown.h"
#include "tools/output/prediction_text.h"
#include "tools/output/whatif_output.h"

namespace daydream {
namespace {

// Milliseconds, unless the reader wishes for something else.
TimeUnit MsUnless(TimeUnit wish) { return UnitFor(Duration::Ms(1), wish); }

std::string ClassName(const TransferClass& c) {
  if (c.bytes > 0) return fmt::format("{} {}", CollectiveName(c.kind), FormatBytes(c.bytes));
  return fmt::format("{} of {}", CollectiveName(c.kind), Plural(c.grid, "block"));
}

double BusRateOf(const TransferClass& c) {
  if (c.transfer <= Duration{}) return 0;
  return static_cast<double>(c.bytes) * BusFactor(c.kind, c.size) /
         static_cast<double>(c.transfer.ns);
}

Table ClassTable(const JointRun& run, TimeUnit wish) {
  const TimeUnit waits = MsUnless(wish), transfer = UnitFor(Duration::Us(1), wish);
  Table table({{"collective", Align::kLeft},
               {"ranks"},
               {"count"},
               {fmt::format("transfer {}", UnitName(transfer))},
               {"bus GB/s"},
               {fmt::format("waits {}", UnitName(waits))}});
  for (const TransferClass& c : run.meetings.classes) {
    const bool rate = c.bytes > 0 && c.size > 1 && c.transfer > Duration{};
    table.AddRow({ClassName(c), c.size > 0 ? std::to_string(c.size) : "-", std::to_string(c.count),
                  TimeIn(c.transfer, transfer), rate ? fmt::format("{:.1f}", BusRateOf(c)) : "-",
                  TimeIn(c.waits, waits)});
  }
  return table;
}

// Ranks that wait, for whom, and how long; longest first.
struct Waits {
  size_t who, whom;  // behind the last rank: one that was not recorded
  Duration time;
};
std::vector<Waits> LongestWaits(const JointReplay& replay) {
  std::vector<Waits> all;
  for (size_t who = 0; who < replay.waits.size(); ++who) {
    for (size_t whom = 0; whom < replay.waits[who].size(); ++whom) {
      const Duration time = replay.waits[who][whom];
      if (time > Duration{}) all.push_back({who, whom, time});
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Waits& a, const Waits& b) { return a.time > b.time; });
  return all;
}

std::string WaitsText(const JointRun& run, const JointReplay& replay, TimeUnit wish) {
  constexpr size_t kShown = 5;
  const std::vector<Waits> all = LongestWaits(replay);
  std::string text;
  for (size_t i = 0; i < std::min(all.size(), kShown); ++i) {
    text += fmt::format(
        "  rank {} waits {} for {}\n", run.Number(all[i].who), FormatTime(all[i].time, wish),
        all[i].whom < run.built.size() ? fmt::format("rank {}", run.Number(all[i].whom))
                                       : "arrivals that were not recorded");
  }
  if (all.size() > kShown) text += fmt::format("  [{} others]\n", all.size() - kShown);
  return text.empty() ? text : text + "\n";
}

}  // namespace

std::string RanksBasis(const JointReport& report) {
  const JointRun& run = report.in->run;
  std::string text = Wrapped(report.in->clock);
  text += Wrapped(fmt::format(
      "replay with one transfer for each kind and size: collectives {:.2f} % off, lengths {:.3f} "
      "%",
      100 * report.baseline.check.duration_error, 100 * report.baseline.check.span_error));
  if (run.unrecorded) text += Wrapped(UnrecordedText(run));
  if (run.meetings.ghosts > 0) {
    text += Wrapped(fmt::format("{} of {} collectives wait for arrivals that were not recorded{}",
                                run.meetings.ghosts, run.meetings.rows.size(),
                                report.baseline.repeated && run.ranks.size() > 1
                                    ? ": in the window, not in the step that repeats"
                                    : ""));
  }
  if (run.matched.unmatched > 0) {
    const bool one = run.matched.unmatched == 1;
    text += Wrapped(fmt::format("{} without counterpart: {} take{} what {} took",
                                Plural(run.matched.unmatched, "collective"), one ? "it" : "they",
                                one ? "s" : "", one ? "it" : "they"));
  }
  for (const RankProblem& p : run.matched.problems) {
    text += Wrapped(fmt::format("{}: {}", ProblemName(p.kind), p.message));
  }
  return text;
}

namespace {

void WriteRank(JsonWriter& json, const JointRun& run, size_t r, const RankAccount& a) {
  json.BeginInlineObject().Key("rank").Int(run.Number(r));
  json.Key("own_step_ms").Rounded(a.own_step.ms(), 6);
  json.Key("own_cycle_ms").Rounded(a.own_cycle.ms(), 6).Key("wait_ms").Rounded(a.wait.ms(), 6);
  json.Key("transfer_ms").Rounded(a.transfer.ms(), 6);
  json.Key("exposed_comm_ms").Rounded(a.exposed.ms(), 6);
  json.Key("compute_ms").Rounded(a.compute.ms(), 6).Key("host_ms").Rounded(a.host.ms(), 6);
  json.Key("span_ms").Rounded(a.span.ms(), 6).Key("last").UInt(a.last).EndObject();
}

void WriteStep(JsonWriter& json, const JointAnswer& a, std::string_view bound) {
  json.Key("step_ms").Rounded(a.step.ms(), 6).Key("window_ms").Rounded(a.window.ms(), 6);
  json.Key("step_is").String(a.repeated ? "the repeated window" : "the recorded steps");
  json.Key("step_ns").Int(a.step.ns).Key(bound).String(a.bound_by);
}

void WriteAnswer(JsonWriter& json, const JointRun& run, const JointAnswer& a,
                 std::string_view bound = "bound_by") {
  WriteStep(json, a, bound);
  json.Key("per_rank").BeginArray();
  for (size_t r = 0; r < a.replay.ranks.size(); ++r) WriteRank(json, run, r, a.replay.ranks[r]);
  json.EndArray().Key("waits").BeginArray();
  for (const Waits& w : LongestWaits(a.replay)) {
    json.BeginInlineObject().Key("who").Int(run.Number(w.who)).Key("for");
    if (w.whom < run.built.size()) {
      json.Int(run.Number(w.whom));
    } else {
      json.Null();  // ranks that were not recorded
    }
    json.Key("ms").Rounded(w.time.ms(), 6).EndObject();
  }
  json.EndArray();
}

void WriteUnrecorded(const JointRun& run, JsonWriter& json) {
  const JointUnrecorded& u = *run.unrecorded;
  json.Key("recording_cost").BeginObject().Key("text").String(UnrecordedText(run));
  json.Key("step_ms").Double(u.step.ms()).Key("shortest_ms").Double(u.shortest.ms());
  json.Key("longest_ms").Double(u.longest.ms()).Key("recorded_ms").Double(u.recorded.ms());
  json.Key("not_recorded_ms");
  u.measured ? json.Double(u.measured->ms()) : json.Null();
  json.Key("per_rank").BeginArray();
  for (size_t r = 0; r < u.taken.size(); ++r) {
    const CostTaken& t = u.taken[r];
    json.BeginInlineObject().Key("rank").Int(run.Number(r)).Key("host_ns_per_step");
    json.Int(t.in_step.ns).Key("call_ns").Double(t.each.call).Key("gpu_work_ns");
    json.Double(t.each.work).Key("layer_mark_ns").Double(t.each.layer_mark).EndObject();
  }
  json.EndArray().EndObject();
}

void WriteRun(JsonWriter& json, const JointReport& report) {
  const JointRun& run = report.in->run;
  json.Key("classes").BeginArray();
  for (const TransferClass& c : run.meetings.classes) {
    json.BeginInlineObject().Key("kind").String(CollectiveName(c.kind)).Key("bytes");
    json.UInt(c.bytes).Key("group").Int(c.size).Key("count").UInt(c.count).Key("transfer_us");
    json.Rounded(c.transfer.us(), 3).Key("bus_GBps").Rounded(BusRateOf(c), 3);
    json.Key("wait_ms").Rounded(c.waits.ms(), 6).Key("source").String("trace").EndObject();
  }
  json.EndArray().Key("problems").BeginArray();
  for (const RankProblem& p : run.matched.problems) {
    json.BeginInlineObject().Key("kind").String(ProblemName(p.kind)).Key("ranks");
    json.BeginInlineArray();
    for (int32_t r : p.ranks) json.Int(r);
    json.EndArray();
    if (!p.communicator.empty()) json.Key("communicator").String(p.communicator);
    if (p.sequence >= 0) json.Key("seq").Int(p.sequence);
    json.Key("message").String(p.message).EndObject();
  }
  json.EndArray().Key("check").BeginObject();
  json.Key("duration_error_pct").Rounded(100 * report.baseline.check.duration_error, 6);
  json.Key("span_error_pct").Rounded(100 * report.baseline.check.span_error, 6);
  json.Key("clock_shift_us").BeginInlineArray();
  for (Duration d : run.added) json.Rounded(d.us(), 3);
  json.EndArray().Key("end_spread_us").BeginInlineObject();
  json.Key("p50").Rounded(run.clocks.spread.us(), 3).Key("p95");
  json.Rounded(run.clocks.spread95.us(), 3).EndObject().Key("ghosts");
  json.UInt(run.meetings.ghosts).EndObject();
  json.Key("steady");
  if (run.steady) {
    json.BeginInlineObject().Key("recorded_ms").Rounded(run.steady->recorded.ms(), 6);
    json.Key("step_ms").Rounded(run.steady->step.ms(), 6).EndObject();
  } else {
    json.Null();
  }
  if (run.unrecorded) WriteUnrecorded(run, json);
}

// A reason that the findings say is not said again.
std::string WhyOf(const JointReport& report, const JointPrediction& p) {
  const bool found = std::any_of(report.findings.begin(), report.findings.end(),
                                 [&](const Finding& f) { return f.text == p.why; });
  if (found) return "because of what the finding above says";
  return Printable(p.why) + (p.raise.empty() ? "" : "; to raise it: " + p.raise);
}

// Why the step of the prediction that matters most is another one.
std::string CausesText(const JointReport& report, const Session& session) {
  if (report.main >= report.predictions.size()) return "";
  const JointPrediction& p = report.predictions[report.main];
  if (!p.error.ok() || p.causes.empty()) return "";
  Prediction shown;
  shown.name = p.name;
  shown.causes = p.causes;
  shown.step = p.answer.step;
  const TimeUnit unit = MsUnless(session.unit());
  return CauseTable(shown, unit, session.table_style()) +
         (p.bound || p.why.empty()
              ? ""
              : Wrapped(fmt::format("confidence {}: {}", Name(p.confidence), WhyOf(report, p)))) +
         "\n";
}

void WriteJointCauses(JsonWriter& json, const JointPrediction& p) {
  json.Key("causes").BeginArray();
  for (const CauseShare& c : p.causes) {
    json.BeginInlineObject().Key("what").String(c.what).Key("opt").String(OptOf(c));
    json.Key("delta_ms").Rounded(c.delta.ms(), 6).Key("delta_ns").Int(c.delta.ns).EndObject();
  }
  json.EndArray();
}

void WriteScenarios(JsonWriter& json, const JointReport& report) {
  auto answer = [&](const JointAnswer& a) {
    WriteAnswer(json, report.in->run, a, "step_bound_by");
  };
  json.Key("scenarios").BeginArray();
  json.BeginObject().Key("name").String("baseline").Key("opts").BeginInlineArray().EndArray();
  answer(report.baseline);
  json.Key("speedup").Double(1).Key("interval_ms").Null().Key("bound").Bool(false).EndObject();
  for (const JointPrediction& p : report.predictions) {
    json.BeginObject().Key("name").String(p.name).Key("opts").BeginInlineArray();
    for (const std::string& o : p.opts) json.String(o);
    json.EndArray();
    if (!p.error.ok()) {
      const Diagnostic d = DiagnosticOf(p.error);
      json.Key("error").BeginObject().Key("code").String(d.code).Key("what").String(d.what);
      if (!d.why.empty()) json.Key("why").String(d.why);
      if (!d.fix.empty()) json.Key("fix").String(d.fix);
      json.EndObject().Key("step_ms").Null().Key("interval_ms").Null().Key("speedup").Null();
      json.Key("bound").Bool(false).EndObject();
      continue;
    }
    answer(p.answer);
    json.Key("speedup").Rounded(p.speedup, 9).Key("interval_ms");
    if (p.low) {
      json.BeginInlineArray().Rounded(p.low->ms(), 6).Rounded(p.high->ms(), 6).EndArray();
    } else {
      json.Null();
    }
    const Prediction one = AsPrediction(report.baseline, p);
    json.Key("speedup_interval");
    if (one.least_speedup) {
      json.BeginInlineArray().Rounded(*one.least_speedup, 6).Rounded(*one.most_speedup, 6);
      json.EndArray();
    } else {
      json.Null();
    }
    json.Key("throughput_gain").Rounded(one.throughput_gain, 6);
    json.Key("bound").Bool(p.bound).Key("confidence").String(Name(p.confidence));
    json.Key("confidence_why").String(p.why).Key("confidence_raise").String(p.raise);
    WriteTexts("notes", p.changes.notes, json);
    WriteTexts("warnings", p.changes.warnings, json);
    WriteTexts("conditions", p.changes.conditions, json);
    WriteTexts("left_out", p.left_out, json);
    WriteJointCauses(json, p);
    json.Key("ranks_changed").UInt(p.edited.size()).EndObject();
  }
  json.EndArray().Key("main");
  if (report.missing.any()) {
    json.Null();
  } else {
    json.UInt(report.predictions.empty() ? 0 : report.main + 1);
  }
}

void WriteHead(JsonWriter& json, const JointReport& report) {
  const JointRun& run = report.in->run;
  json.Key("trace").BeginObject();
  json.Key("file").String(report.name).EndObject().Key("ranks").BeginObject();
  json.Key("recorded").BeginInlineArray();
  for (size_t r = 0; r < run.built.size(); ++r) json.Int(run.Number(r));
  json.EndArray();
  WriteRun(json, report);
  json.EndObject();
  WriteFindings(report.findings, json);
}

}  // namespace

Table RanksTable(const JointReport& report, TimeUnit wish) {
  const TimeUnit unit = MsUnless(wish);
  const auto in_unit = [unit](Duration d) { return TimeIn(d, unit, 2); };
  Table table({{"rank"},
               {fmt::format("own step {}", UnitName(unit))},
               {"own cycle"},
               {"waits"},
               {"transfers"},
               {"exposed"},
               {"compute"},
               {"host"},
               {"last"}});
  const JointReplay& replay = report.baseline.replay;
  for (size_t r = 0; r < replay.ranks.size(); ++r) {
    const RankAccount& a = replay.ranks[r];
    table.AddRow({std::to_string(report.in->run.Number(r)), in_unit(a.own_step),
                  in_unit(a.own_cycle), in_unit(a.wait), in_unit(a.transfer), in_unit(a.exposed),
                  in_unit(a.compute), in_unit(a.host), std::to_string(a.last)});
  }
  return table;
}

namespace {

// "84 collectives in common", which two ranks or more have.
std::string CollectivesText(const MatchedRanks& matched) {
  const auto several = std::count_if(matched.rows.begin(), matched.rows.end(),
                                     [](const MatchedRow& r) { return r.members.size() > 1; });
  if (several == 0) return Plural(matched.rows.size(), "collective");
  return Plural(static_cast<size_t>(several), "collective") + " in common";
}

}  // namespace

namespace {

std::string RanksHead(const JointReport& report, TimeUnit wish) {
  const JointRun& run = report.in->run;
  const JointAnswer& a = report.baseline;
  return fmt::format("{}: {} recorded, {}\n\n  step    {} ({})\n  window  {}\n  bound by {}\n",
                     report.name, Plural(run.built.size(), "rank"), CollectivesText(run.matched),
                     FormatTime(a.step, wish),
                     a.repeated ? "the window, repeated" : "mean of the recorded steps",
                     FormatTime(a.window, wish), a.bound_by);
}

// What the columns of RanksTable() are.
std::string RanksRemarks(const JointReport& report) {
  return Wrapped(
             "own step: a step of the rank alone, waiting for nobody; last: how often the others "
             "waited for it") +
         Wrapped(report.baseline.repeated
                     ? "own cycle: the whole window of the rank alone"
                     : "own cycle and all to the right of it: sums over the recorded window");
}

// What the gates were asked of.
std::string JudgedMarkdown(const JointReport& report, TimeUnit wish) {
  if (report.missing.any()) return std::string(kLastNotDone);
  if (report.predictions.empty()) {
    return fmt::format("baseline: {}", FormatTime(report.baseline.step, wish));
  }
  const JointPrediction& p = report.predictions.back();
  const std::string name = MarkdownText(p.name);
  if (!p.error.ok()) return fmt::format("{}: {}", name, MarkdownText(DiagnosticOf(p.error).what));
  return fmt::format("{}: {}, {}", name, FormatTime(p.answer.step, wish), FormatSpeedup(p.speedup));
}

}  // namespace

std::string RanksHeadline(const JointReport& report) {
  // The name, which has no end to be cut at, and the rest in lines of a terminal.
  return Paragraph(
      report.name + ": ",
      fmt::format(
          "{} played together, step is {}", Plural(report.in->run.built.size(), "rank"),
          report.baseline.repeated ? "the window, repeated" : "the mean of the recorded steps"),
      2);
}

std::string RanksText(const JointReport& report, const Session& session) {
  const JointRun& run = report.in->run;
  const TimeUnit wish = session.unit();
  return RanksHead(report, wish) + "\n" + FindingsText(report.findings) +
         RanksTable(report, wish).Text(session.table_style()) + "\n" + RanksRemarks(report) + "\n" +
         WaitsText(run, report.baseline.replay, wish) +
         ClassTable(run, wish).Text(session.table_style()) + "\n" + RanksBasis(report);
}

std::string RanksMarkdown(const JointReport& report, const Session& session) {
  const JointRun& run = report.in->run;
  const TimeUnit wish = session.unit();
  return PlainMarkdown(RanksHead(report, wish)) + "\n" + FindingsMarkdown(report.findings) +
         RanksTable(report, wish).Markdown() + "\n" +
         PlainMarkdown(RanksRemarks(report) + WaitsText(run, report.baseline.replay, wish)) + "\n" +
         ClassTable(run, wish).Markdown() + "\n" + PlainMarkdown(RanksBasis(report));
}

std::string RanksJson(const JointReport& report) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("daydream.ranks/1");
  WriteAnswer(json, report.in->run, report.baseline);
  WriteRun(json, report);
  WriteFindings(report.findings, json);
  return json.EndObject().Take() + "\n";
}

Table JointWhatIfTable(const JointReport& report, TimeUnit wish, bool headed) {
  const TimeUnit unit = MsUnless(wish);
  const auto in_unit = [unit](Duration d) { return TimeIn(d, unit, 2); };
  const auto header = [unit](std::string_view what) {
    return fmt::format("{} {}", what, UnitName(unit));
  };
  Table table({{"scenario", Align::kLeft, 0, /*whole=*/true},
               {header("step")},
               {header("90 %"), Align::kLeft, 0, /*whole=*/true},
               {header("window"), Align::kRight, 4},
               {"speed-up"},
               {headed ? "90 % of it" : "", Align::kLeft, 1},
               {"ranks changed", Align::kRight, 3},
               {"confidence", Align::kLeft},
               {"bound by", Align::kLeft, 2}});
  table.AddRow({"baseline", in_unit(report.baseline.step), "", in_unit(report.baseline.window),
                "1.00x", "", "", "", report.baseline.bound_by});
  for (const JointPrediction& p : report.predictions) {
    if (!p.error.ok()) {
      table.AddRow({p.name, "-", "", "", "-", "", "", "none"});
      continue;
    }
    table.AddRow({p.name, in_unit(p.answer.step),
                  p.low ? fmt::format("{} to {}", in_unit(*p.low), in_unit(*p.high)) : "",
                  in_unit(p.answer.window), (p.bound ? "<= " : "") + FormatSpeedup(p.speedup),
                  SpeedupRange(AsPrediction(report.baseline, p)), std::to_string(p.edited.size()),
                  std::string(p.bound ? "a limit" : Name(p.confidence)), p.answer.bound_by});
  }
  return table;
}

std::string JointWhatIfCsv(const JointReport& report, TimeUnit wish) {
  Table table = JointWhatIfTable(report, wish, true);
  for (const std::string& name : report.missing.scenarios) {
    table.AddRow({name, "-", "", "", "-", "", "", "not done"});
  }
  return table.Csv();
}

std::string JointWhatIfText(const JointReport& report, const Session& session) {
  const JointRun& run = report.in->run;
  std::string text = RanksHeadline(report) + "\n" + FindingsText(report.findings);
  text += JointWhatIfTable(report, session.unit(), false).Text(session.table_style());
  text += NotDoneLines(report.missing) + "\n";
  text += CausesText(report, session);
  const size_t slowest = SlowestAlone(report.baseline.replay);
  text += fmt::format("  the longest cycle of its own has rank {}: {}{}\n", run.Number(slowest),
                      FormatTime(report.baseline.replay.ranks[slowest].own_cycle, session.unit()),
                      report.baseline.repeated ? "" : " for all recorded steps");
  return text + RanksBasis(report);
}

std::string JointWhatIfMarkdown(const JointReport& report, const Session& session) {
  return VerdictMarkdown(report.gates, JudgedMarkdown(report, session.unit())) +
         PlainMarkdown(RanksHeadline(report)) + "\n" + FindingsMarkdown(report.findings) +
         JointWhatIfTable(report, session.unit(), true).Markdown() +
         NotDoneMarkdown(report.missing) + "\n" + PlainMarkdown(RanksBasis(report));
}

void WriteRanks(JsonWriter& json, const JointReport& report) {
  WriteHead(json, report);
  WriteAnswer(json, report.in->run, report.baseline, "step_bound_by");
}

std::string JointWhatIfJson(const JointReport& report) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("daydream.whatif/1");
  WriteNotDone(report.missing, json);
  WriteRanks(json, report);
  WriteScenarios(json, report);
  WriteGates(report.gates, json);
  return json.EndObject().Take() + "\n";
}

}  // namespace daydream
