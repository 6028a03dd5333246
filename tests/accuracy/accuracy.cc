// Predicts every pair of manifest.csv and replays every real trace, and writes the table of
// docs/accuracy.md. Rows that are wrong stay in the table, wrong.
//
//   accuracy TRACES MANIFEST             prints the page
//   accuracy TRACES MANIFEST --check F   exit 1 when F differs from the page; 77 without traces
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "graph/repeat.h"
#include "report/what_if.h"
#include "simulator/simulate.h"
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

std::string PairRow(const Pair& pair, const fs::path& traces) {
  auto failed = [&](const absl::Status& status) {
    return fmt::format("| {} | `{}` | | | | | {} |\n", pair.name, pair.scenario, Message(status));
  };
  absl::StatusOr<Loaded> before = Load(traces / pair.before);
  if (!before.ok()) return failed(before.status());
  absl::StatusOr<Loaded> after = Load(traces / pair.after);
  if (!after.ok()) return failed(after.status());
  auto scenario = ParseScenario(pair.scenario);
  if (!scenario.ok()) return failed(scenario.status());
  std::vector<std::vector<Application>> scenarios = {*scenario};
  auto result = PredictAll(before->built, before->replay, scenarios, {.alone = false});
  if (!result.ok()) return failed(result.status());
  const Prediction& p = result->predictions[result->main];
  if (!p.error.ok()) return failed(p.error);
  double measured = after->replay.measured.ms();
  std::string interval =
      p.low && p.high ? fmt::format("{:.1f} - {:.1f}", p.low->ms(), p.high->ms()) : "";
  bool inside =
      p.low && p.high && after->replay.measured >= *p.low && after->replay.measured <= *p.high;
  return fmt::format("| {} | `{}` | {:.1f} | {:.1f} | {} | {:.1f} | {}{} |\n", pair.name,
                     pair.scenario, before->replay.measured.ms(), p.step.ms(), interval, measured,
                     Percent(p.step.ms() / measured - 1), inside ? ", inside" : ", outside");
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

std::string Page(const fs::path& traces, const fs::path& manifest) {
  std::string page =
      "# Accuracy\n\n"
      "Generated by `tests/accuracy/accuracy`; a test compares this page with a fresh run where\n"
      "the traces are at hand. They were recorded and published by others and are not part of\n"
      "this repository. Rows that are wrong stay. The slowdowns that `prefetch` assumes are "
      "rounded\n"
      "from the two loader pairs, and the link rate of `pin-memory` and the smallest graph of "
      "`graphs`\n"
      "were chosen with their pairs in view: none of the four is an independent test.\n\n"
      "## Measured pairs\n\n"
      "Predicted from the recording *before* alone; times in ms per step (median).\n\n"
      "| pair | scenario | before | predicted | 90 % interval | measured after | error |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const Pair& pair : ReadManifest(manifest)) page += PairRow(pair, traces);
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
  page +=
      "\n## Not measured yet\n\n"
      "No before/after recording at hand: `amp`, `fuse`, the bounds, `speedup`, `remove`. Their "
      "pages\n"
      "under [optimizations](optimizations/README.md) say what they rest on instead.\n";
  return page;
}

int Main(int argc, char** argv) {
  if (argc != 3 && argc != 5) {
    std::fputs("usage: accuracy TRACES MANIFEST [--check PAGE]\n", stderr);
    return 2;
  }
  if (!fs::exists(argv[1])) {
    fmt::print("skipped: no real traces at {}\n", argv[1]);
    return 77;
  }
  std::string page = Page(argv[1], argv[2]);
  if (argc == 3) {
    std::fputs(page.c_str(), stdout);
    return 0;
  }
  std::ifstream in(argv[4]);
  std::string kept((std::istreambuf_iterator<char>(in)), {});
  if (kept == page) return 0;
  fmt::print("{} is stale; a fresh run says:\n\n{}", argv[4], page);
  return 1;
}

}  // namespace
}  // namespace daydream

int main(int argc, char** argv) { return daydream::Main(argc, argv); }
