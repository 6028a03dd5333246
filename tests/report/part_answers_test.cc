// Answers of a part of the steps against those of all, on recordings of long runs.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/check.h"
#include "graph/step_windows.h"
#include "report/predict/what_if.h"
#include "report/questions/findings.h"
#include "tests/real_traces.h"
#include "trace/importer.h"
#include "trace/part/part.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

struct Answers {
  Duration measured, baseline, scenario;
};

Answers Answer(BuiltGraph built) {
  auto replay = CheckReplay(built, nullptr);
  DD_CHECK(replay.ok());
  DD_CHECK(MakeSteady(built, *replay).ok());
  const auto scenario = ParseScenario("amp,fuse");
  const std::vector<std::vector<Application>> scenarios = {*scenario};
  const auto answer =
      PredictAll(built, *replay, scenarios, {.alone = false, .intervals = false, .explain = false});
  DD_CHECK(answer.ok());
  return {replay->measured, answer->predictions[0].step, answer->predictions[answer->main].step};
}

BuiltGraph Built(const std::shared_ptr<const Trace>& trace) {
  auto built = BuildGraph(trace);
  DD_CHECK(built.ok());
  return *std::move(built);
}

// The steps of `range` count in a graph of the whole recording.
BuiltGraph WithSteps(BuiltGraph built, const StepRange& range) {
  Graph& graph = built.graph;
  const size_t before = graph.steps()[0].label == kBeforeTheFirstStep ? 1 : 0;
  for (size_t i = 0; i < graph.steps().size(); ++i) {
    graph.mutable_step(i).measured = range.first + before <= i && i <= range.last + before;
  }
  RecordPeriods(graph);
  return built;
}

double Off(Duration part, Duration whole) {
  if (part == whole) return 0;  // 0 where nothing can be fused or have 16 bits
  return std::abs(static_cast<double>(part.ns) / static_cast<double>(whole.ns) - 1);
}

std::string Percents(const Answers& part, const Answers& whole) {
  return fmt::format("recorded {:.3f} %, baseline {:.3f} %, amp,fuse {:.3f} %",
                     100 * Off(part.measured, whole.measured),
                     100 * Off(part.baseline, whole.baseline),
                     100 * Off(part.scenario, whole.scenario));
}

// Two steps or more with those around them, of each real recording, against the same steps of a
// graph of all.
TEST(PartAnswers, OfAPartAreThoseOfTheWholeAboutTheSameSteps) {
  if (RealTraces().empty()) GTEST_SKIP() << "no real traces beside the repository";
  size_t asked = 0;
  for (const std::string& name : RealTraces()) {
    auto trace = ImportFile((RealTraceFolder() / name).string());
    if (!trace.ok() || (*trace)->ranks.size() > 1) continue;
    const Steps steps = FindSteps(**trace);
    const auto times = StepTimes(steps);
    if (steps.steps.size() < 5) continue;
    const size_t last = steps.steps.size() - 2;
    const size_t first = std::max<size_t>(last / 2, 2);
    const auto around = StepsAround(steps, first, last);
    const StepRange range =
        around.value_or(StepRange{.first = first, .last = last, .before = 1, .behind = 1});
    const auto timed = std::span(times).subspan(first, last - first + 1);
    if (!std::ranges::all_of(timed, [](const auto& t) { return t.has_value(); })) continue;
    const auto part = PartOf(**trace, steps, range, PartIs::kNamed);
    const Answers few = Answer(Built(part)), all = Answer(WithSteps(Built(*trace), range));
    ++asked;
    std::printf("%s: %s\n", name.c_str(), Percents(few, all).c_str());
    EXPECT_EQ(few.measured, all.measured) << name;
    EXPECT_LT(Off(few.baseline, all.baseline), 0.01) << name;
    EXPECT_LT(Off(few.scenario, all.scenario), 0.01) << name;
  }
  EXPECT_GE(asked, 5u);
}

// Recordings with ten steps or more, as if they were long. Where steps are uneven, eight are not
// all: what they are off by is told.
TEST(PartAnswers, OfEvenRecordingsAreThoseOfAllSteps) {
  if (RealTraces().empty()) GTEST_SKIP() << "no real traces beside the repository";
  for (const std::string& name : RealTraces()) {
    auto trace = ImportFile((RealTraceFolder() / name).string());
    if (!trace.ok() || (*trace)->ranks.size() > 1) continue;
    const Steps steps = FindSteps(**trace);
    const auto range = ChooseSteps(steps, (*trace)->rows(), 1);
    if (!range.has_value()) continue;
    const auto part = PartOf(**trace, steps, *range, PartIs::kChosen);
    const Answers few = Answer(Built(part)), all = Answer(Built(*trace));
    std::printf("%s: %zu of %zu, mean off by %.2f %%: %s\n", name.c_str(),
                range->last - range->first + 1, steps.steps.size(), 100 * part->part->unlike(),
                Percents(few, all).c_str());
    if (part->part->unlike() > 0.01) continue;
    EXPECT_LT(Off(few.baseline, all.baseline), 0.01) << name;
    EXPECT_LT(Off(few.scenario, all.scenario), 0.01) << name;
  }
}

}  // namespace
}  // namespace daydream
