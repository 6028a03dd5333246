// Predicts every pair of manifest.csv and replays every real trace, and writes the table of
// docs/accuracy.md. Rows that are wrong stay in the table, wrong.
//
//   accuracy TRACES MANIFEST             prints the page
//   accuracy TRACES MANIFEST --check F   exit 1 when F differs from the page; 77 without traces
//   accuracy TRACES MANIFEST --residuals prints the lines of report/residuals.def
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "graph/repeat.h"
#include "report/residuals.h"
#include "report/what_if.h"
#include "simulator/simulate.h"
#include "tests/accuracy/published.h"
#include "trace/importer.h"

namespace daydream {
namespace {

namespace fs = std::filesystem;

struct Pair {
  std::string name, before, scenario, after, source;
};

std::vector<Pair> ReadManifest(const fs::path& path) {
  std::vector<Pair> pairs;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    Pair p;
    for (std::string Pair::*field : {&Pair::name, &Pair::before, &Pair::scenario, &Pair::after}) {
      std::getline(fields, p.*field, ',');
    }
    std::getline(fields, p.source);
    pairs.push_back(p);
  }
  return pairs;
}

struct Loaded {
  std::shared_ptr<const Trace> trace;
  BuiltGraph built;
  ReplayCheck replay;
};

absl::StatusOr<Loaded> Load(const fs::path& path) {
  Loaded loaded;
  DD_ASSIGN_OR_RETURN(loaded.trace, ImportFile(path.string()));
  DD_ASSIGN_OR_RETURN(loaded.built, BuildGraph(loaded.trace));
  DD_ASSIGN_OR_RETURN(BuiltGraph typical, BuildGraph(loaded.trace, {.lags = Lags::kTypical}));
  DD_ASSIGN_OR_RETURN(loaded.replay, CheckReplay(loaded.built, &typical));
  return loaded;
}

std::string Percent(double share) { return fmt::format("{:+.2f} %", 100 * share); }

// A pair as predicted from the recording before alone, its own row left out of what is known about
// errors.
struct Outcome {
  std::string transform;  // the only one of the scenario, or empty
  Duration before, predicted, measured;
  std::optional<Duration> low, high;
  bool inside() const { return low && high && *low <= measured && measured <= *high; }
};

// Rows whose name begins so compare kernels, collectives excluded: two recordings of the same
// kernels, but of other hosts and other numbers of ranks, so that their steps say nothing.
constexpr std::string_view kKernelTime = "kernel time: ";

// Per step that counts.
Duration KernelTime(const Graph& graph) {
  Duration sum;
  int64_t steps = 0;
  for (const GraphStep& step : graph.steps()) steps += step.measured ? 1 : 0;
  for (const Task& task : graph.tasks()) {
    const bool counts = steps == 0 || graph.steps()[task.step].measured;
    if (counts && !task.removed && task.kind == TaskKind::kKernel) sum += task.duration;
  }
  return sum / std::max<int64_t>(steps, 1);
}

absl::StatusOr<Outcome> JudgeKernels(const Graph& before, const Graph& after,
                                     const std::vector<Application>& scenario) {
  DD_ASSIGN_OR_RETURN(Played predicted, Play(before, scenario));
  return Outcome{.transform = scenario.size() == 1 ? std::string(scenario[0].transform->name) : "",
                 .before = KernelTime(before),
                 .predicted = KernelTime(predicted.graph),
                 .measured = KernelTime(after),
                 .low = {},
                 .high = {}};
}

absl::StatusOr<Outcome> Judge(const Pair& pair, const fs::path& traces) {
  DD_ASSIGN_OR_RETURN(Loaded before, Load(traces / pair.before));
  DD_ASSIGN_OR_RETURN(Loaded after, Load(traces / pair.after));
  DD_ASSIGN_OR_RETURN(std::vector<Application> scenario, ParseScenario(pair.scenario));
  if (pair.name.starts_with(kKernelTime)) {
    return JudgeKernels(before.built.graph, after.built.graph, scenario);
  }
  std::vector<std::vector<Application>> scenarios = {scenario};
  DD_ASSIGN_OR_RETURN(WhatIf result,
                      PredictAll(before.built, before.replay, scenarios,
                                 {.alone = false, .explain = false, .left_out = pair.name}));
  const Prediction& p = result.predictions[result.main];
  DD_RETURN_IF_ERROR(p.error);
  return Outcome{.transform = scenario.size() == 1 ? std::string(scenario[0].transform->name) : "",
                 .before = before.replay.measured,
                 .predicted = p.step,
                 .measured = after.replay.measured,
                 .low = p.low,
                 .high = p.high};
}

struct Judged {
  Pair pair;
  absl::StatusOr<Outcome> outcome;
};

std::vector<Judged> JudgeAll(const fs::path& traces, const fs::path& manifest) {
  std::vector<Judged> all;
  for (const Pair& pair : ReadManifest(manifest)) all.push_back({pair, Judge(pair, traces)});
  return all;
}

// Short times need more digits.
std::string Ms(Duration d) {
  return d < Duration::Ms(10) ? fmt::format("{:.3f}", d.ms()) : fmt::format("{:.1f}", d.ms());
}

std::string PairRow(const Judged& judged) {
  const Pair& pair = judged.pair;
  if (!judged.outcome.ok()) {
    return fmt::format("| {} | `{}` | | | | | {} |\n", pair.name, pair.scenario,
                       Message(judged.outcome.status()));
  }
  const Outcome& o = *judged.outcome;
  std::string interval = o.low && o.high ? fmt::format("{} - {}", Ms(*o.low), Ms(*o.high)) : "";
  return fmt::format("| {} | `{}` | {} | {} | {} | {} | {}{} |\n", pair.name, pair.scenario,
                     Ms(o.before), Ms(o.predicted), interval, Ms(o.measured),
                     Percent(o.predicted.ms() / o.measured.ms() - 1),
                     !o.low       ? ""
                     : o.inside() ? ", inside"
                                  : ", outside");
}

std::string Coverage(const std::vector<Judged>& all) {
  size_t intervals = 0, inside = 0;
  for (const Judged& j : all) {
    if (!j.outcome.ok() || !j.outcome->low) continue;
    ++intervals;
    inside += j.outcome->inside();
  }
  return fmt::format(
      "\n{} of {} measured values are inside of the 90 % intervals. So few say little: of {} "
      "intervals\nthat are right nine times in ten, all hold the value with a probability of "
      "{:.0f} %. The interval of a\nrow does not use that row (`report/residuals.h`).\n",
      inside, intervals, intervals, 100 * std::pow(0.9, static_cast<double>(intervals)));
}

std::string ResidualLine(const Judged& j) {
  if (!j.outcome.ok() || j.outcome->transform.empty()) return "";
  const Outcome& o = *j.outcome;
  return fmt::format("RESIDUAL(\"{}\", \"{}\", {:.4g}, {:.4g}, {:.4g})\n", o.transform, j.pair.name,
                     o.before.ms(), o.predicted.ms(), o.measured.ms());
}

// What report/residuals.def should hold and does not.
std::string StaleResiduals(const std::vector<Judged>& all) {
  std::string fresh, kept;
  for (const Judged& j : all) fresh += ResidualLine(j);
  for (const Residual& r : Residuals()) {
    kept += fmt::format("RESIDUAL(\"{}\", \"{}\", {:.4g}, {:.4g}, {:.4g})\n", r.transform, r.row,
                        r.before, r.predicted, r.measured);
  }
  return fresh == kept ? "" : fresh;
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

// Optimizations without a row of their own, as a list.
std::string NotMeasured(const std::vector<Judged>& pairs) {
  std::set<std::string> measured;
  for (const Judged& j : pairs) {
    if (j.outcome.ok()) measured.insert(j.outcome->transform);
  }
  std::vector<std::string> names;
  for (const Transform* t : Transforms()) {
    if (!measured.contains(std::string(t->name))) names.push_back(fmt::format("`{}`", t->name));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string Page(const fs::path& traces, const fs::path& manifest,
                 const std::vector<Judged>& pairs) {
  std::string page =
      "# Accuracy\n\n"
      "Generated by `tests/accuracy/accuracy`; a test compares this page with a fresh run where\n"
      "the traces are at hand. They were recorded and published by others and are not part of\n"
      "this repository. Rows that are wrong stay. The link rate of `pin-memory` and the smallest "
      "graph\nof `graphs` were chosen with their pairs in view: these two are no independent "
      "tests. No default\nof `prefetch` comes from the loader pairs.\n\n"
      "## Measured pairs\n\n"
      "Predicted from the recording *before* alone; times in ms per step (median). *Kernel time* "
      "rows\ncompare kernels, collectives excluded, where the two recordings have other hosts or "
      "other numbers\nof ranks: their steps say nothing about the GPU.\n\n"
      "| pair | scenario | before | predicted | 90 % interval | measured after | error |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const Judged& pair : pairs) page += PairRow(pair);
  page += Coverage(pairs);
  page += PublishedSection(traces, manifest.parent_path() / "published.csv");
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
      "No before/after recording at hand: {}.\nTheir pages under "
      "[optimizations](optimizations/README.md) say what they rest on instead.\n",
      NotMeasured(pairs));
  return page;
}

int Main(int argc, char** argv) {
  const bool residuals = argc == 4 && std::string(argv[3]) == "--residuals";
  if (argc != 3 && argc != 5 && !residuals) {
    std::fputs("usage: accuracy TRACES MANIFEST [--check PAGE | --residuals]\n", stderr);
    return 2;
  }
  if (!fs::exists(argv[1])) {
    fmt::print("skipped: no real traces at {}\n", argv[1]);
    return 77;
  }
  const std::vector<Judged> pairs = JudgeAll(argv[1], argv[2]);
  if (residuals) {
    for (const Judged& j : pairs) std::fputs(ResidualLine(j).c_str(), stdout);
    return 0;
  }
  std::string page = Page(argv[1], argv[2], pairs);
  if (argc == 3) {
    std::fputs(page.c_str(), stdout);
    return 0;
  }
  std::ifstream in(argv[4]);
  std::string kept((std::istreambuf_iterator<char>(in)), {});
  std::string stale = StaleResiduals(pairs);
  if (kept == page && stale.empty()) return 0;
  if (!stale.empty()) fmt::print("report/residuals.def is stale; a fresh run says:\n\n{}\n", stale);
  if (kept != page) fmt::print("{} is stale; a fresh run says:\n\n{}", argv[4], page);
  return 1;
}

}  // namespace
}  // namespace daydream

int main(int argc, char** argv) { return daydream::Main(argc, argv); }
