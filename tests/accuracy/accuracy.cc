// Predicts every pair of manifest.csv and replays every real trace, and writes the table of
// docs/accuracy.md. Rows that are wrong stay in the table, wrong.
//
//   accuracy TRACES MANIFEST             prints the page
//   accuracy TRACES MANIFEST --check F   exit 1 when F differs from the page, or less than 80 or
//                                        more than 97 % of what was measured is inside of the
//                                        intervals; 77 without traces and measurements
//   accuracy TRACES MANIFEST --residuals prints the lines of report/predict/residuals.def
//   accuracy TRACES MANIFEST --rows      prints every row, comma-separated
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "graph/repeat.h"
#include "report/predict/error_kind.h"
#include "report/predict/kernel_time.h"
#include "simulator/simulate.h"
#include "tests/accuracy/composed.h"
#include "tests/accuracy/loaded.h"
#include "tests/accuracy/own_recordings.h"
#include "tests/accuracy/published.h"
#include "tests/accuracy/scaling.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

namespace fs = std::filesystem;

struct Pair {
  std::string name, before, scenario, after, group, source;
};

std::vector<Pair> ReadManifest(const fs::path& path) {
  std::vector<Pair> pairs;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    Pair p;
    for (std::string Pair::*field :
         {&Pair::name, &Pair::before, &Pair::scenario, &Pair::after, &Pair::group}) {
      std::getline(fields, p.*field, ',');
    }
    std::getline(fields, p.source);
    pairs.push_back(p);
  }
  return pairs;
}

std::string Percent(double share) { return fmt::format("{:+.2f} %", 100 * share); }

// Rows whose name begins so compare kernels, collectives excluded: two recordings of the same
// kernels, but of other hosts and other numbers of ranks, so that their steps say nothing.
constexpr std::string_view kKernelTime = "kernel time: ";

// A pair as predicted from the recording before alone, what is known of errors of its group left
// out.
absl::Status Judge(const Pair& pair, const fs::path& traces, JudgedRow& row) {
  DD_ASSIGN_OR_RETURN(Loaded before, Load(traces / pair.before));
  DD_ASSIGN_OR_RETURN(std::vector<Application> scenario, ParseScenario(pair.scenario));
  const bool kernels = pair.name.starts_with(kKernelTime);
  const ReplayCheck was = kernels ? MeasuredKernelTimes(before.built.graph) : before.replay;
  const bool recorded = !absl::SimpleAtod(pair.after, &row.measured);
  if (recorded) {
    DD_ASSIGN_OR_RETURN(Loaded after, Load(traces / pair.after));
    row.measured = (kernels ? MeasuredKernelTimes(after.built.graph) : after.replay).measured.ms();
  }
  std::vector<std::vector<Application>> scenarios = {scenario};
  DD_ASSIGN_OR_RETURN(WhatIf result, PredictAll(before.built, was, scenarios,
                                                {.alone = false,
                                                 .explain = false,
                                                 .kernel_time = kernels,
                                                 .profiled_alike = recorded,
                                                 .left_out = {pair.group}}));
  const Prediction& p = result.predictions[result.main];
  DD_RETURN_IF_ERROR(p.error);
  row.kind = ErrorKindOf(scenario[0], before.built.graph, p.changes.terms).main();
  row.before = was.measured.ms(), row.predicted = p.step.ms();
  row.word = Name(p.confidence);
  if (p.low && p.high) row.low = p.low->ms(), row.high = p.high->ms();
  return absl::OkStatus();
}

std::vector<JudgedRow> JudgeRecorded(const fs::path& traces, const fs::path& manifest) {
  std::vector<JudgedRow> rows;
  for (const Pair& pair : ReadManifest(manifest)) {
    JudgedRow row;
    row.row = pair.name, row.group = pair.group, row.scenario = pair.scenario;
    absl::Status status = Judge(pair, traces, row);
    if (!status.ok()) row.why = Message(status);
    rows.push_back(std::move(row));
  }
  return rows;
}

struct Everything {
  std::vector<JudgedRow> recorded, own;
  Composed composed;
  ScalingRows scaling;
  std::vector<PublishedResult> published;
  std::vector<JudgedRow> All() const {
    std::vector<JudgedRow> all = recorded;
    all.insert(all.end(), own.begin(), own.end());
    all.insert(all.end(), composed.rows.begin(), composed.rows.end());
    all.insert(all.end(), scaling.rows.begin(), scaling.rows.end());
    const std::vector<JudgedRow> gains = JudgedRows(published);
    all.insert(all.end(), gains.begin(), gains.end());
    return all;
  }
};

// Short times need more digits.
std::string Ms(double ms) { return fmt::format(fmt::runtime(ms < 10 ? "{:.3f}" : "{:.1f}"), ms); }

std::string PairRow(const JudgedRow& r) {
  if (!r.why.empty()) return fmt::format("| {} | `{}` | | | | | {} |\n", r.row, r.scenario, r.why);
  std::string interval = r.low ? fmt::format("{} - {}", Ms(*r.low), Ms(*r.high)) : "";
  return fmt::format("| {} | `{}` | {} | {} | {} | {} | {}{} |\n", r.row, r.scenario, Ms(r.before),
                     Ms(r.predicted), interval, Ms(r.measured), Percent(r.error()),
                     !r.low       ? ""
                     : r.inside() ? ", inside"
                                  : ", outside");
}

std::string OwnSection(const Everything& rows) {
  std::string text =
      "\n## Our own recordings\n\n"
      "Programs on an H200 as `daydream trace` recorded them, and steps of the changed programs as "
      "a clock\nmeasured them (`tests/data/h200`, where it says which rows are clean; others are "
      "not here). What recording\ncost is left out of *before*. These rows were in view while "
      "models were written and defects mended;\nno constant was fitted to them.\n\n"
      "| program and change | scenario | before | predicted | 90 % interval | measured after | "
      "error |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const JudgedRow& row : rows.own) text += PairRow(row);
  return text;
}

std::string ComposedSection(const Everything& rows) {
  std::string text =
      "\n## Composed steps\n\n"
      "Recordings of the same program before and after a change are rare. NeuSight (ASPLOS 2025) "
      "and\ndPRO (MLSys 2022) published times of single operators with their shapes, and of the "
      "whole models:\nthe operators, launched ahead and run back to back on one stream, make a "
      "step, from which the same\n`whatif` predicts the whole model as it was measured elsewhere, "
      "at another batch size, compiled, or in\nfp16. Operator times are scaled so that the step "
      "before takes what the whole model took; those of BERT\nand GPT-2 on the A100-40 by their "
      "products alone (these are 1.2 to 1.5 times too slow in the data).\nViews are left out. No "
      "host, no copies, no layers, one GPU: this shows models of kernels, nothing else.\n*No "
      "shapes*: the same without recorded shapes. *By data sheet*: the new GPU from a file without "
      "measured\nrates. Constants of the cost model are fitted to other rows of the same data "
      "(P4, P100, V100, T4,\nA100-40; MI100, MI210, not MI250); nothing is fitted to these totals. "
      "All rows:\n`tests/accuracy/accuracy TRACES MANIFEST --rows`.\n\n";
  text += GroupTable(rows.composed.rows);
  for (const JudgedRow& r : rows.composed.rows) {
    if (!r.why.empty())
      text += fmt::format("\nNot predicted: {} `{}`: {}\n", r.row, r.scenario, r.why);
  }
  text += "\nLeft out:\n\n";
  for (const std::string& what : rows.composed.excluded) text += fmt::format("* {}\n", what);
  return text;
}

std::string CoverageSection(const Everything& rows) {
  const std::vector<JudgedRow> all = rows.All();
  const Coverage c = CoverageOf(all), recorded = CoverageOf(rows.recorded);
  const Coverage published = CoverageOf(JudgedRows(rows.published));
  return fmt::format(
             "\n## By kind\n\n"
             "{} of {} measured values ({:.0f} %) are inside of the 90 % intervals, {} below and "
             "{} "
             "above; of\nthe recorded pairs {} of {}, of the published gains {} of {}. The "
             "interval "
             "of a row uses no row of its\ngroup: not the same program, the same network, or the "
             "same GPU (`report/predict/residuals.def`). Errors\nare those of the step's time. "
             "*Rows*: recorded pairs, our own recordings, composed steps and runs on many\nGPUs; "
             "*published*: gains of programs whose traces nobody has, predicted from another trace "
             "(below). The\nworst is first: the smallest share inside, then the largest error. "
             "Cards "
             "that clock down with heat\nhave a line each beside that of their kind: the P4, fed "
             "by its slot, ran at about half of its\nclock, which no data sheet says.\n\n{}",
             c.inside, c.intervals,
             100.0 * static_cast<double>(c.inside) /
                 std::max<double>(1, static_cast<double>(c.intervals)),
             c.below, c.above, recorded.inside, recorded.intervals, published.inside,
             published.intervals, CoverageTable(all) + OutsideOfBars(all)) +
         "\nThe words of confidence (`report/predict/intervals.h` has the rule) over the same "
         "rows, "
         "none of which\nknew its group:\n\n" +
         WordTable(all);
}

// Median error of predicting each step's period from the step before it, where steps repeat: where
// the median difference of two measured steps in a row is at most 5 %.
std::optional<double> StepTransfer(const Graph& graph) {
  std::vector<double> errors, changes;
  for (size_t k = 1; k + 1 < graph.steps().size(); ++k) {
    const GraphStep &here = graph.steps()[k], &next = graph.steps()[k + 1];
    if (!here.measured || !next.measured || next.recorded_period <= Duration{}) continue;
    double own = here.recorded_period.seconds() / next.recorded_period.seconds() - 1;
    changes.push_back(std::abs(own));
    auto repeated = RepeatStep(graph, static_cast<uint16_t>(k), 4);
    if (!repeated.ok()) continue;
    auto timeline = Simulate(*repeated);
    if (!timeline.ok()) continue;
    double period = StepPeriods(*repeated, *timeline).back().seconds();
    errors.push_back(std::abs(period / next.recorded_period.seconds() - 1));
  }
  if (errors.empty()) return std::nullopt;
  std::sort(errors.begin(), errors.end());
  std::sort(changes.begin(), changes.end());
  if (changes[changes.size() / 2] > 0.05) return std::nullopt;
  return errors[errors.size() / 2];
}

std::string_view MethodName(StepMethod method) {
  switch (method) {
    case StepMethod::kMark:
      return "mark";
    case StepMethod::kProfilerStep:
      return "ProfilerStep";
    case StepMethod::kAnnotation:
      return "annotation";
    case StepMethod::kPeriod:
      return "period";
    case StepMethod::kWindow:
      return "one window";
  }
  return "";
}

std::string ReplayRow(const std::string& name, const fs::path& path) {
  absl::StatusOr<Loaded> loaded = Load(path);
  if (!loaded.ok()) {
    return fmt::format("| {} | | | | | | | {} |\n", name, Message(loaded.status()));
  }
  const BuildReport& report = loaded->built.report;
  std::optional<double> transfer = StepTransfer(loaded->built.graph);
  return fmt::format("| {} | {} | {} | {:.3f} | {} | {} | {} | {:.2f} % |\n", name,
                     MethodName(report.steps.method), std::max<size_t>(loaded->replay.steps, 1),
                     loaded->replay.measured.ms(), Percent(loaded->replay.error()),
                     Percent(loaded->replay.typical_error().value_or(0)),
                     transfer ? fmt::format("{:.2f} %", 100 * *transfer) : "-",
                     report.window.ns == 0
                         ? 0
                         : 100 * report.unexplained_time.seconds() / report.window.seconds());
}

std::vector<std::string> TraceNames(const fs::path& traces) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(traces)) {
    std::string name = fs::relative(entry.path(), traces).string();
    bool other = name.starts_with("nsys/") || name.starts_with("chakra/");
    if (!other && name.ends_with(".json.gz")) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Optimizations without a row, or with composed steps alone, as a list.
std::string NotMeasured(const Everything& rows, bool composed) {
  auto has = [](const std::vector<JudgedRow>& all, std::string_view name) {
    return std::any_of(all.begin(), all.end(), [&](const JudgedRow& r) {
      return r.why.empty() &&
             (r.kind == name || r.scenario.substr(0, r.scenario.find('(')) == name);
    });
  };
  std::vector<std::string> names;
  for (const Transform* t : Transforms()) {
    const bool by_steps = has(rows.composed.rows, t->name) || has(rows.scaling.rows, t->name);
    if (has(rows.recorded, t->name) || has(rows.own, t->name) || by_steps != composed) continue;
    names.push_back(fmt::format("`{}`", t->name));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// What the page comes to, for those who read no further.
std::string Verdict(const Everything& rows) {
  std::vector<JudgedRow> pairs = rows.recorded;
  pairs.insert(pairs.end(), rows.own.begin(), rows.own.end());
  double sum = 0;
  size_t predicted = 0;
  const JudgedRow* worst = nullptr;
  for (const JudgedRow& r : pairs) {
    if (!r.why.empty()) continue;
    sum += std::abs(r.error());
    ++predicted;
    if (worst == nullptr || std::abs(r.error()) > std::abs(worst->error())) worst = &r;
  }
  const Coverage c = CoverageOf(pairs), all = CoverageOf(rows.All());
  const Coverage published = CoverageOf(JudgedRows(rows.published));
  std::string text = fmt::format(
      "**In short.** Of {} changes that were measured before and after, {} are inside of the 90 % "
      "interval; the\nmean error is {:.1f} %",
      predicted, c.inside, 100 * sum / std::max<double>(1, static_cast<double>(predicted)));
  if (worst != nullptr)
    text += fmt::format(", the worst {} ({})", Percent(worst->error()), worst->row);
  return text +
         fmt::format(
             ". Of {} gains\nthat others published, of programs whose traces nobody has, {} are "
             "inside. With steps composed of\nmeasured operators and runs on many GPUs it is {} of "
             "{}. [By kind](#by-kind), the worst first; what nothing\nwas compared with is "
             "[listed](#not-measured-yet).\n\n",
             published.intervals, published.inside, all.inside, all.intervals);
}

std::string Page(const fs::path& traces, const Everything& rows) {
  std::string page = "# Accuracy\n\n" + Verdict(rows);
  page +=
      "Generated by `tests/accuracy/accuracy`; a test compares this page with a fresh run where\n"
      "the traces are at hand. They were recorded and published by others and are not part of\n"
      "this repository. Rows that are wrong stay. The link rate of `pin-memory` was chosen with "
      "its pair in view:\nthat is no independent test. No default of `prefetch` comes from the "
      "loader pairs.\nFive training steps of `compile` are predicted from a forward pass. That "
      "they count as rows of another\nprogram, whose intervals are wide, was decided with their "
      "errors in view (decision 006); as rows of\ntheir own program two of them were inside.\n";
  page += CoverageSection(rows);
  page +=
      "\n## Measured pairs\n\n"
      "Predicted from the recording *before* alone; times in ms per step (mean). *Kernel time* "
      "rows\ncompare kernels, collectives excluded, where the two recordings have other hosts or "
      "other numbers\nof ranks: their steps say nothing about the GPU. Where both sides were "
      "recorded by a profiler,\nand of published gains, intervals leave out what it may have cost "
      "the host.\n\n"
      "| pair | scenario | before | predicted | 90 % interval | measured after | error |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const JudgedRow& pair : rows.recorded) page += PairRow(pair);
  page += OwnSection(rows);
  page += ComposedSection(rows);
  page += ScalingSection(rows.scaling);
  page += PublishedSection(rows.published);
  page +=
      "\n## Replay of every trace\n\n"
      "Replay: the unchanged graph against the measured step. Typical: the same with every "
      "measured\n"
      "lag replaced by the trace's typical one. Next step: one step, repeated, against the "
      "measured\n"
      "period of the step after it (median; - where recorded steps differ by themselves). "
      "Unexplained: share of the\n"
      "window that no rule explains.\n\n"
      "| trace | steps by | steps | measured ms | replay | typical | next step | unexplained |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const std::string& name : TraceNames(traces)) page += ReplayRow(name, traces / name);
  page += fmt::format(
      "\n## Not measured yet\n\n"
      "Composed steps alone, no recording before and after: {}.\n\nNeither: {}.\nTheir pages under "
      "[optimizations](optimizations/README.md) say what they rest on instead.\n",
      NotMeasured(rows, true), NotMeasured(rows, false));
  return page;
}

int Main(int argc, char** argv) {
  const std::string option = argc > 3 ? argv[3] : "";
  const bool prints = argc == 4 && (option == "--residuals" || option == "--rows");
  if (argc != 3 && !prints && !(argc == 5 && option == "--check")) {
    std::fputs("usage: accuracy TRACES MANIFEST [--check PAGE | --residuals | --rows]\n", stderr);
    return 2;
  }
  if (!fs::exists(argv[1]) || !HasComposedData() || !HasScalingData()) {
    fmt::print("skipped: no real traces at {}, or no published measurements beside them\n",
               argv[1]);
    return 77;
  }
  auto published = JudgePublished(argv[1], fs::path(argv[2]).parent_path() / "published.csv");
  if (!published.ok()) {
    fmt::print(stderr, "{}\n", std::string(published.status().message()));
    return 2;
  }
  Everything rows = {
      JudgeRecorded(argv[1], argv[2]), {}, JudgeComposed(), JudgeScaling(), *std::move(published)};
  rows.own = JudgeOwnRecordings(DAYDREAM_SOURCE_DIR "/tests/data/h200");
  const std::string residuals = ResidualLines(rows.All());
  if (prints) {
    std::fputs(option == "--rows" ? RowsAsCsv(rows.All()).c_str() : residuals.c_str(), stdout);
    return 0;
  }
  std::string page = Page(argv[1], rows);
  if (argc == 3) {
    std::fputs(page.c_str(), stdout);
    return 0;
  }
  std::ifstream in(argv[4]);
  std::string kept((std::istreambuf_iterator<char>(in)), {});
  const bool stale = residuals != KeptResidualLines();
  const Coverage c = CoverageOf(rows.All());
  const bool covered = c.share() >= kLeastInside && c.share() <= kMostInside;
  if (!covered)
    fmt::print("{} of {} values are inside of the 90 % intervals\n", c.inside, c.intervals);
  if (kept == page && !stale && covered) return 0;
  if (stale)
    fmt::print("report/predict/residuals.def is stale; a fresh run says:\n\n{}\n", residuals);
  if (kept != page) fmt::print("{} is stale; a fresh run says:\n\n{}", argv[4], page);
  return 1;
}

}  // namespace
}  // namespace daydream

int main(int argc, char** argv) { return daydream::Main(argc, argv); }
