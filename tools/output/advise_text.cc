#include <algorithm>
#include <cmath>

#include "base/shell_word.h"
#include "base/status.h"
#include "report/text/escape.h"
#include "report/text/format.h"
#include "tools/budget.h"
#include "tools/output/advise_output.h"
#include "tools/output/describe.h"
#include "tools/output/findings_text.h"
#include "tools/output/markdown.h"
#include "tools/output/prediction_text.h"
#include "tools/output/shown_path.h"
#include "transforms/scenario/option_file.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

// Pairs whose gains differ by this share of the step from the sum of both alone are shown.
constexpr double kOverlapShown = 0.01;
constexpr size_t kPairsShown = 3;
constexpr double kMuchWaiting = 0.2;  // of the critical path, for batches

std::string OrDash(std::string_view text) { return text.empty() ? "-" : std::string(text); }

std::string MemoryText(const Prediction& p) {
  if (p.changes.memory.empty()) return "";
  if (!p.memory_change.has_value()) return "?";
  const bool at_most = p.peak.has_value() && p.peak->at_most;
  return (at_most ? "<= " : "") + SignedBytes(*p.memory_change);
}

Table OptionTable(const Advised& a, TimeUnit wish) {
  bool memory = false;
  for (const Option& o : a.worth) {
    memory |= o.prediction.memory_change.value_or(0) != 0;
  }
  std::vector<Column> columns = {{"#"},
                                 {"try", Align::kLeft, 0, /*whole=*/true},
                                 {"step time", Align::kRight, 5},
                                 {"saves", Align::kRight, 6},
                                 {"speed-up"},
                                 {"", Align::kLeft, 0, /*whole=*/true},
                                 {"effort", Align::kLeft},
                                 {"risk", Align::kLeft}};
  if (memory) columns.push_back({"memory", Align::kRight, 4});
  columns.push_back({"confidence", Align::kLeft, 3});
  Table table(std::move(columns));
  const Duration step = a.baseline.step;
  const TimeUnit unit = UnitFor(step, wish);
  auto add = [&](std::string number, std::string name, const Prediction& p, const Advice& advice) {
    std::vector<std::string> cells = {std::move(number),
                                      std::move(name),
                                      FormatTime(p.step, unit),
                                      FormatTime(step - p.step, unit),
                                      SpeedupText(p),
                                      SpeedupRange(p),
                                      std::string(advice.effort),
                                      std::string(advice.risk)};
    if (memory) cells.push_back(MemoryText(p));
    cells.emplace_back(Name(p.confidence));
    table.AddRow(std::move(cells));
  };
  for (size_t i = 0; i < a.worth.size(); ++i) {
    const Option& o = a.worth[i];
    Advice advice = AdviceFor(o.application.transform->advice, o.prediction.changes);
    const std::string effort = OrDash(EffortOf(advice, o.prediction.changes)),
                      risk = OrDash(advice.risk);
    advice.effort = effort, advice.risk = risk;
    add(fmt::format("{}", i + 1), o.prediction.name, o.prediction, advice);
    for (const Option& way : o.ways) {
      Advice other = AdviceFor(way.application.transform->advice, way.prediction.changes);
      const std::string lines = OrDash(EffortOf(other, way.prediction.changes)),
                        dangers = OrDash(other.risk);
      other.effort = lines, other.risk = dangers;
      add("or", way.prediction.name, way.prediction, other);
    }
  }
  if (!a.best.has_value()) return table;
  table.AddRule();
  add("", "best set", *a.best, {});
  return table;
}

std::string PathLine(const Advised& a, TimeUnit wish) {
  const BoundBy& p = a.baseline.path;
  const Duration sum = p.gpu + p.cpu + p.comm + p.data;
  if (sum.ns <= 0 || a.path.empty()) return "";
  auto share = [&](Duration d) {
    return FormatPercent(static_cast<double>(d.ns) / static_cast<double>(sum.ns), 0);
  };
  const Limiter& most = a.path.front();
  std::string where = most.lane.empty() ? "" : fmt::format(" on {}", Printable(most.lane));
  return Wrapped(fmt::format(
      "{} per step{}, most of it {}{}: {} of the step", FormatTime(a.baseline.step, wish),
      BoundByText(a.baseline, ", bound by "), Printable(most.what), where, share(most.time)));
}

// The same of ranks together.
std::string RanksLine(const JointReport& ranks, const Advised& a, TimeUnit wish) {
  const int32_t slowest = ranks.in->run.Number(SlowestAlone(ranks.baseline.replay));
  return Wrapped(fmt::format("{} per step, bound by {}{}", FormatTime(a.baseline.step, wish),
                             ranks.baseline.bound_by,
                             BoundByText(a.baseline, fmt::format("; rank {} alone: ", slowest))));
}

// What no option does, and a finding tells how to: calls that give memory back in every step, and a
// host that stands still.
std::string FindingLine(const AdviseReport& report, TimeUnit wish) {
  const ReplayCheck& replay = report.advised.replay;
  const bool churns = std::ranges::any_of(report.findings, [](const Finding& f) {
    return f.kind == FindingKind::kAllocator && f.about == About::kStep;
  });
  Duration now, without;
  std::string_view what;
  if (report.ranks != nullptr && report.ranks->in->run.not_held_up) {
    now = report.advised.baseline.step, without = *report.ranks->in->run.not_held_up;
    what = "free the host that was held up";
  } else if (report.ranks == nullptr && churns && replay.steady) {
    now = replay.measured, without = *replay.steady;
    what = "leave the allocator its memory";
  }
  if (without <= Duration{} || now <= without) return "";
  return Wrapped(
      fmt::format("first: {}, as a finding above says; the steady step takes {} instead of {}",
                  what, FormatTime(without, wish), FormatTime(now, wish)));
}

// Nobody can switch on that a rank is faster: it says where to look.
std::string SlowestRankLine(const AdviseReport& report, TimeUnit wish) {
  const Advised& a = report.advised;
  const Option* best = nullptr;
  for (const Option& o : a.mended) {
    if (a.baseline.step - o.prediction.step < a.baseline.step.Scaled(AdviseOptions().worth)) {
      continue;
    }
    if (best == nullptr || o.prediction.step < best->prediction.step) best = &o;
  }
  if (best == nullptr) return "";
  const int32_t rank = report.ranks->in->run.Number(SlowestAlone(report.ranks->baseline.replay));
  return Wrapped(fmt::format(
      "{}: what keeps rank {}, whose own cycle decides; with --opt '{}' the step takes {} ({}): "
      "daydream ranks {}",
      report.ranks->in->run.not_held_up ? "then" : "first", rank, best->prediction.name,
      FormatTime(best->prediction.step, wish), SpeedupText(best->prediction),
      ShellWord(report.path)));
}

// What is to be known about the recorded step itself.
std::string NoteLines(const Advised& a) {
  std::string out;
  for (const std::string& note : a.baseline.changes.notes) out += Wrapped(Printable(note));
  return out;
}

// Where the step waits for loader workers of unknown number, more of them are what to try first,
// and no row can say what they bring.
std::string LoaderLine(const Advised& a, TimeUnit wish) {
  const BoundBy& p = a.baseline.path;
  const Duration sum = p.gpu + p.cpu + p.comm + p.data;
  const bool waits = p.data >= sum.Scaled(kMuchWaiting);
  const auto named = [](std::string_view name) {
    return [name](const Option& o) { return o.application.transform->name == name; };
  };
  const auto prefetch = std::find_if(a.unjudged.begin(), a.unjudged.end(), named("prefetch"));
  const auto limit = std::find_if(a.limits.begin(), a.limits.end(), named("no-data-wait"));
  if (!waits || prefetch == a.unjudged.end() || limit == a.limits.end()) return "";
  const std::string fix = DiagnosticOf(prefetch->prediction.error).fix;
  const bool few = !fix.starts_with("--opt");
  return Wrapped(fmt::format(
      "first: {}; the step waits for batches, and without that it takes {} ({}). {}",
      few ? fix : "more loader workers", FormatTime(limit->prediction.step, wish),
      SpeedupText(limit->prediction),
      few ? "Whether more loader workers bring that, so few waits do not tell"
          : "How many there are is not recorded: --opt 'prefetch(workers=8,recorded=N)' tells what "
            "8 bring"));
}

constexpr double kLeastGain = 1.005;  // less reads 1.00x

// What the set of options can be counted on for: its models are wrong together, too.
std::string BestLine(const Advised& a) {
  if (!a.best.has_value()) return "";
  std::string line = "best set: " + a.best->name;
  if (const double least = a.best->least_speedup.value_or(0); least >= kLeastGain) {
    line += fmt::format("; count on {}, the low end of its interval", FormatSpeedup(least));
  } else if (least > 0) {
    line += "; it may gain nothing, by the low end of its interval";
  }
  return Wrapped(line);
}

// At the low end of its interval, where that can be relied on.
bool SurelyGains(const Option& o) {
  return o.prediction.confidence != Confidence::kLow &&
         o.prediction.least_speedup.value_or(0) >= kLeastGain;
}

// What the order alone does not say of the first row: that it, or every row, may bring nothing.
// Where all do, a recording that says more comes before any of them.
std::string NotSureLine(const AdviseReport& report) {
  const std::vector<Option>& rows = report.advised.worth;
  const double least = rows.front().prediction.least_speedup.value_or(2);
  if (least >= kLeastGain) return "";
  std::string sure;
  for (const Option& o : rows) {
    if (SurelyGains(o)) sure += (sure.empty() ? "" : ", ") + o.prediction.name;
  }
  if (!sure.empty()) {
    return Wrapped(fmt::format("{} comes first for being easy and may be {:.2f}x; sure to gain: {}",
                               rows.front().prediction.name, least, sure));
  }
  const bool told = std::ranges::any_of(report.findings, [](const Finding& f) {
    return f.about != About::kProgram && !f.fix.empty();
  });
  return Wrapped(fmt::format("none of these is sure to gain: even the first may be {:.2f}x{}",
                             least,
                             told ? "; do what the findings above say before any of them" : ""));
}

std::string LimitLine(const Advised& a, TimeUnit wish) {
  std::string text;
  for (const Option& o : a.limits) {
    const Prediction& p = o.prediction;
    if (a.baseline.step - p.step < a.baseline.step.Scaled(0.005)) continue;
    text += fmt::format("{}{} {} ({})", text.empty() ? "" : "; ", p.name,
                        FormatTime(p.step, UnitFor(a.baseline.step, wish)), SpeedupText(p));
  }
  return text.empty() ? "" : Wrapped("ceilings, of one kind of work each: " + text);
}

std::string PairLines(const Advised& a, TimeUnit wish) {
  std::vector<const OptionPair*> shown;
  const Duration least = a.baseline.step.Scaled(kOverlapShown);
  for (const OptionPair& p : a.pairs) {
    if (!p.step.has_value() || p.extra >= least || -p.extra >= least) shown.push_back(&p);
  }
  std::stable_sort(shown.begin(), shown.end(), [](const OptionPair* x, const OptionPair* y) {
    return std::llabs(x->extra.ns) > std::llabs(y->extra.ns);
  });
  std::string out;
  for (size_t i = 0; i < std::min(shown.size(), kPairsShown); ++i) {
    const OptionPair& p = *shown[i];
    const std::string both =
        fmt::format("{} and {}", a.worth[p.a].prediction.name, a.worth[p.b].prediction.name);
    if (!p.step.has_value()) {
      out += Wrapped(fmt::format("{} do not go together: {}", both, p.reason));
    } else {
      const TimeUnit unit = UnitFor(a.baseline.step, wish);
      const Duration saved = a.baseline.step - *p.step;
      out += Wrapped(fmt::format("{} together save {}, {} {} than in sum", both,
                                 FormatTime(saved, unit),
                                 FormatTime(p.extra < Duration{} ? -p.extra : p.extra, unit),
                                 p.extra < Duration{} ? "less" : "more"));
    }
  }
  return out;
}

std::string NotWorthLine(const Advised& a, TimeUnit wish) {
  std::string text;
  for (const Option& o : a.not_worth) {
    const Duration saved = a.baseline.step - o.prediction.step;
    std::string how = saved > Duration{}    ? "<0.5 %"
                      : saved == Duration{} ? "no gain"
                                            : FormatChange(-saved, UnitFor(a.baseline.step, wish));
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", o.prediction.name, how);
  }
  std::string out = text.empty() ? "" : Wrapped("not worth it alone: " + text);
  text.clear();
  for (const Option& o : a.nothing_here) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", o.prediction.name);
  }
  return out + (text.empty() ? "" : Wrapped("nothing to change here: " + text));
}

// Whether it takes less memory by as large a share of the peak as is worth a row of a step.
bool TakesLessMemory(const Prediction& p) {
  const double less = -static_cast<double>(p.memory_change.value_or(0));
  if (less <= 0 || !p.peak.has_value()) return less > 0;
  return less >= AdviseOptions().worth * (p.peak->peak + less);
}

// What takes less memory, most first, with what it costs or saves of the step.
std::string LessMemoryLine(const Advised& a, TimeUnit wish) {
  std::vector<const Prediction*> less;
  for (const auto* options : {&a.worth, &a.not_worth}) {
    for (const Option& o : *options) {
      if (TakesLessMemory(o.prediction)) less.push_back(&o.prediction);
    }
  }
  std::stable_sort(less.begin(), less.end(), [](const Prediction* x, const Prediction* y) {
    return *x->memory_change < *y->memory_change;
  });
  std::string text;
  for (const Prediction* p : less) {
    const Duration more = p->step - a.baseline.step;
    text += fmt::format(
        "{}{} {} ({})", text.empty() ? "" : ", ", p->name, MemoryText(*p),
        more == Duration{} ? "no gain" : FormatChange(more, UnitFor(a.baseline.step, wish)));
  }
  return text.empty() ? "" : Wrapped("less memory: " + text);
}

bool IsOfAnotherFramework(const Trace* trace) {
  return trace != nullptr && trace->provenance.importer == "xplane";
}

// Is this said in words of PyTorch?
bool IsOfPyTorch(std::string_view text) {
  const auto has = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
  return has("torch") || has("DataLoader") || has("profile(") || has("record_shapes");
}

std::string UnjudgedLines(const AdviseReport& report) {
  std::string out;
  // What one reason keeps from being judged stands in one sentence.
  std::vector<std::pair<std::string, std::string>> names_by_reason;
  for (const Option& o : report.advised.unjudged) {
    const Diagnostic d = DiagnosticOf(o.prediction.error);
    std::string what = Printable(d.what), fix = Printable(d.fix);
    const std::string name = o.prediction.name + ": ";
    if (what.starts_with(name)) what = what.substr(name.size());
    const bool others = IsOfAnotherFramework(report.trace) && IsOfPyTorch(fix);
    if (others) what += ", which recordings of JAX and TensorFlow do not tell";
    if (!fix.empty() && !others) what += "; to judge it: " + fix;
    const auto same =
        std::ranges::find_if(names_by_reason, [&](const auto& row) { return row.first == what; });
    if (same == names_by_reason.end()) {
      names_by_reason.emplace_back(what, o.prediction.name);
    } else {
      same->second += ", " + o.prediction.name;
    }
  }
  for (const auto& [reason, names] : names_by_reason) {
    out += Wrapped(fmt::format("could not judge {}: {}", names, reason));
  }
  auto listed = [](std::string_view what, const std::vector<std::string>& names) {
    return names.empty() ? "" : Wrapped(fmt::format("{}: {}", what, fmt::join(names, ", ")));
  };
  return out + listed("over the budget", report.over_budget) +
         listed("needs a value of yours (--opt)", report.open);
}

// On one line however long it is: it is there to be copied.
std::string CheckLine(const AdviseReport& report, std::span<const Application> scenario) {
  return fmt::format("{:<13}{}\n", "  check", CheckCommand(report, scenario));
}

// `said`: a line before it says what the doubt is.
std::string TrustLine(const AdviseReport& report, const Prediction& p, bool said) {
  const bool found =
      std::ranges::find(report.findings, p.why, &Finding::text) != report.findings.end();
  const std::string why = said    ? "because of the doubt" + RaiseText(p)
                          : found ? "because of what the finding above says"
                                  : Printable(p.why) + RaiseText(p);
  return Paragraph("  trust", fmt::format("{}: {}", Name(p.confidence), why));
}

std::string Card(const AdviseReport& report, size_t i, TimeUnit wish) {
  const Advised& a = report.advised;
  const Option& o = a.worth[i];
  const Prediction& p = o.prediction;
  std::string out =
      fmt::format("\n{}. {} saves {}\n", i + 1, p.name,
                  FormatTime(a.baseline.step - p.step, UnitFor(a.baseline.step, wish)));
  const Transform& t = *o.application.transform;
  const Advice advice = AdviceFor(t.advice, p.changes);
  out += Paragraph("  what", t.summary);
  if (p.why_not.has_value()) out += Paragraph("  why", Printable(p.why_not->text));
  for (const std::string& warning : p.changes.warnings) {
    out += Paragraph("  doubt", Printable(warning));
  }
  for (const std::string& needed : p.changes.conditions) {
    out += Paragraph("  needs", Printable(needed));
  }
  const std::vector<std::string>& doubts = p.changes.warnings;
  out += TrustLine(report, p, std::ranges::find(doubts, p.why) != doubts.end());
  out += Paragraph("  risk", advice.risk);
  out += Paragraph("  how", HowOf(advice, report.trace));
  out += CheckLine(report, {&o.application, 1});
  return out;
}

}  // namespace

std::string HowOf(const Advice& advice, const Trace* trace) {
  if (!IsOfAnotherFramework(trace) || !IsOfPyTorch(advice.how)) return std::string(advice.how);
  return fmt::format("JAX and TensorFlow have their own way; in PyTorch: {}", advice.how);
}

std::string CheckCommand(const AdviseReport& report, std::span<const Application> scenario) {
  // Recorded again, ranks are compared by eye.
  if (report.ranks != nullptr) return "daydream ranks AFTER";
  const auto file = [&](const std::string& path) {
    return ShellWord(report.folders ? path : WithoutFolders(path));
  };
  std::string files, specs;
  for (const Application& a : scenario) {
    const std::string spec =
        a.params.spelled().empty() ? std::string(a.transform->name) : a.params.spelled();
    specs += (specs.empty() ? "" : ",") + spec;
    if (a.file != nullptr) files += " --opt-file " + file(a.file->path());
  }
  return fmt::format("daydream whatif {}{} --opt {} --measured AFTER.ddtrace", file(report.path),
                     files, ShellWord(specs));
}

std::string MissingOf(const Advised& a) {
  constexpr std::string_view kNoSet = "the best set is not looked for";
  if (a.untried == 0) return std::string(kNoSet);
  return fmt::format("{} of {} are not tried, and {}", FormatCount(a.untried),
                     Plural(a.asked, "option"), kNoSet);
}

std::string AdviseText(const AdviseReport& report, const Session& session) {
  const Advised& a = report.advised;
  const TimeUnit wish = session.unit();
  std::string out = report.ranks != nullptr ? RanksHeadline(*report.ranks)
                                            : ReplayLine(report.headline, a.replay, wish,
                                                         session.table_style().max_width);
  if (!report.findings.empty()) out += "\n" + FindingsText(report.findings);
  if (!a.replay.no_step.ok()) return out;
  out += report.ranks != nullptr ? RanksLine(*report.ranks, a, wish) : PathLine(a, wish);
  out += NoteLines(a) + FindingLine(report, wish) + LoaderLine(a, wish);
  if (report.ranks != nullptr) out += SlowestRankLine(report, wish);
  if (report.per_example)
    out += "ranked by the time for as many examples as a recorded step handles\n";
  if (a.interrupted) out += Wrapped(fmt::format("interrupted: {}", MissingOf(a)));
  out += "\n";
  if (a.worth.empty()) {
    out += "  nothing that can be tried saves 0.5 % of the step\n";
  } else {
    out += OptionTable(a, wish).Text(session.table_style()) + BestLine(a) + NotSureLine(report);
  }
  out += PairLines(a, wish) + LimitLine(a, wish) + "\n" + NotWorthLine(a, wish) +
         LessMemoryLine(a, wish) + UnjudgedLines(report);
  for (size_t i = 0; i < std::min(report.details, a.worth.size()); ++i)
    out += Card(report, i, wish);
  if (a.best.has_value() && report.details > 0) {
    const Prediction& p = *a.best;
    out += fmt::format("\nbest set saves {}\n",
                       FormatTime(a.baseline.step - p.step, UnitFor(a.baseline.step, wish)));
    out += TrustLine(report, p, false);
    out += CheckLine(report, a.best_list);
  }
  if (report.ranks != nullptr) out += "\n" + RanksBasis(*report.ranks);
  return out;
}

std::string AdviseMarkdown(const AdviseReport& report, const Session& session) {
  const std::string head =
      report.ranks != nullptr
          ? PlainMarkdown(RanksHeadline(*report.ranks))
          : ReplayLine(MarkdownText(report.headline), report.advised.replay, session.unit());
  return head + "\n" + FindingsMarkdown(report.findings) +
         OptionTable(report.advised, session.unit()).Markdown() + "\n" + BestLine(report.advised) +
         (report.advised.interrupted
              ? PlainMarkdown(fmt::format("interrupted: {}\n", MissingOf(report.advised)))
              : "");
}

}  // namespace daydream
