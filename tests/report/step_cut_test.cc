// A profiler that was on for one step or two of a longer trace would have written what is cut out
// here: the host's events of these steps, all GPU work that runs after their begin and was launched
// before their end. The step must stay what it is in the whole file.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_set.h"
#include "graph/build.h"
#include "report/predict/what_if.h"
#include "report/questions/findings.h"
#include "report/windows.h"
#include "simulator/simulate.h"
#include "tests/real_traces.h"
#include "trace/importer.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

// `trace` with the rows of which `keep` holds.
template <class Keep>
std::shared_ptr<const Trace> Filtered(const Trace& trace, Keep keep) {
  auto out = std::make_shared<Trace>(trace);
  size_t kept = 0;
  for (size_t lane = 0; lane < trace.lanes.size(); ++lane) {
    out->lane_begin[lane] = static_cast<uint32_t>(kept);
    for (size_t row = trace.lane_begin[lane]; row < trace.lane_begin[lane + 1]; ++row) {
      if (!keep(row)) continue;
      out->start[kept] = trace.start[row];
      out->duration[kept] = trace.duration[row];
      out->lane[kept] = trace.lane[row];
      out->name[kept] = trace.name[row];
      out->kind[kept] = trace.kind[row];
      out->correlation[kept] = trace.correlation[row];
      out->detail[kept++] = trace.detail[row];
    }
  }
  out->lane_begin[trace.lanes.size()] = static_cast<uint32_t>(kept);
  out->start.resize(kept);
  out->duration.resize(kept);
  out->lane.resize(kept);
  out->name.resize(kept);
  out->kind.resize(kept);
  out->correlation.resize(kept);
  out->detail.resize(kept);
  return out;
}

// What would have been recorded of the marks `first` to `last` alone; without the marks, where the
// program makes none.
std::shared_ptr<const Trace> Cut(const Trace& trace, const Step& first, const Step& last,
                                 bool marks = true) {
  absl::flat_hash_set<uint32_t> later;  // correlations of calls behind the cut
  for (size_t row = 0; row < trace.rows(); ++row) {
    if (trace.kind[row] == EventKind::kCall && trace.start[row] >= last.end) {
      later.insert(trace.correlation[row]);
    }
  }
  return Filtered(trace, [&](size_t row) {
    if (trace.start[row] < first.begin) return false;
    if (!marks && trace.EventName(row).starts_with("ProfilerStep")) return false;
    if (IsGpuWork(trace.kind[row])) return !later.contains(trace.correlation[row]);
    return trace.End(row) <= last.end;
  });
}

// The baseline and some options, without intervals.
std::vector<Prediction> Ask(BuiltGraph built) {
  auto replay = CheckReplay(built, nullptr);
  EXPECT_TRUE(replay.ok()) << Message(replay.status());
  auto health = MakeSteady(built, *replay);
  EXPECT_TRUE(health.ok()) << Message(health.status());
  std::vector<std::vector<Application>> scenarios;
  for (const char* spec : {"graphs", "free-host", "speedup(kind:kernel,by=2)", "amp"}) {
    scenarios.push_back(*ParseScenario(spec));
  }
  auto result = PredictAll(built, *replay, scenarios, {.intervals = false});
  EXPECT_TRUE(result.ok()) << Message(result.status());
  return result.ok() ? std::move(result->predictions) : std::vector<Prediction>();
}

class CutTrace : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "none") GTEST_SKIP() << "no ../shared/traces beside the repository";
    auto trace = ImportFile((RealTraceFolder() / GetParam()).string());
    ASSERT_TRUE(trace.ok()) << Message(trace.status());
    trace_ = *trace;
    auto built = BuildGraph(trace_);
    if (!built.ok()) GTEST_SKIP() << "no graph without GPU work";
    const StepMethod method = built->report.steps.method;
    if (method != StepMethod::kProfilerStep && method != StepMethod::kMark) {
      GTEST_SKIP() << "its steps are not marked";
    }
    steps_ = built->report.steps.steps;
    for (size_t s : CountedSteps(built->graph)) {
      const GraphStep& step = built->graph.steps()[s];
      auto at = std::find_if(steps_.begin(), steps_.end(),
                             [&](const Step& x) { return x.label == step.label; });
      if (at == steps_.end()) continue;
      counted_.push_back({*at, step.recorded_period});
    }
    whole_ = *std::move(built);
  }

  void CheckCuts(size_t length) {
    for (size_t k = 0; k + length <= counted_.size(); ++k) {
      const Counted &first = counted_[k], &last = counted_[k + length - 1];
      Duration whole;
      for (size_t i = 0; i < length; ++i) whole += counted_[k + i].period;
      auto built = BuildGraph(Cut(*trace_, first.mark, last.mark));
      ASSERT_TRUE(built.ok()) << Message(built.status());
      auto replay = CheckReplay(*built, nullptr);
      ASSERT_TRUE(replay.ok()) << Message(replay.status());
      const double error = replay->measured.ms() / (whole.ms() / static_cast<double>(length)) - 1;
      RecordProperty(first.mark.label, std::to_string(error));
      // A loader that takes its time moves the GPU's begin within a step, by what it differs from
      // step to step: where each step begins is known, where the next one would have is not.
      auto health = MakeSteady(*built, *replay);
      ASSERT_TRUE(health.ok()) << Message(health.status());
      // What is said to happen once in a lone step makes it longer.
      if (length == 1 && !health->stalls.all.empty()) {
        EXPECT_LE(health->steady, replay->measured.Scaled(0.95)) << first.mark.label;
      }
      const auto cut =
          std::find_if(health->findings.begin(), health->findings.end(),
                       [](const Finding& f) { return f.kind == FindingKind::kCutStep; });
      if (cut != health->findings.end()) {
        EXPECT_EQ(cut->about, About::kStep);
        EXPECT_LE(std::fabs(error), cut->share + 0.03) << first.mark.label << ": " << cut->text;
        continue;
      }
      EXPECT_LE(std::fabs(error), 0.03)
          << first.mark.label << " and " << length - 1 << " more: " << replay->measured.ms()
          << " ms for " << whole.ms() / static_cast<double>(length) << " (" << replay->steps
          << " counted)";
      EXPECT_LE(std::fabs(replay->error()), 0.01) << first.mark.label;
    }
  }

  void CheckAnswersOfTwo() {
    if (counted_.size() < 2 || counted_.size() != CountedSteps(whole_.graph).size()) return;
    const std::vector<Prediction> whole = Ask(whole_);
    for (size_t k = 0; k + 1 < counted_.size(); ++k) {
      const std::string& label = counted_[k].mark.label;
      auto built = BuildGraph(Cut(*trace_, counted_[k].mark, counted_[k + 1].mark));
      ASSERT_TRUE(built.ok()) << Message(built.status());
      for (const Prediction& p : Ask(*std::move(built))) {
        const auto same = std::ranges::find(whole, p.name, &Prediction::name);
        ASSERT_NE(same, whole.end()) << label << ": " << p.name;
        EXPECT_EQ(p.error.ok(), same->error.ok()) << label << ": " << p.name << ": " << p.error;
        if (!p.error.ok() || !same->error.ok()) continue;
        const double steps = (same->steps.at(k) + same->steps.at(k + 1)).ms() / 2;
        // Of one pair of steps of a recording 4 %, of all others less than 3.
        EXPECT_NEAR(p.step.ms(), steps, 0.042 * steps) << label << ": " << p.name;
      }
    }
  }

  // As one window of which nobody knows that it is a step: what the GPU did of earlier steps is
  // told, and is no part of it. A step of the host may be shorter than that of the GPU, as its
  // loader goes.
  void CheckUnmarked() {
    for (const Counted& c : counted_) {
      auto built = BuildGraph(Cut(*trace_, c.mark, c.mark, false));
      ASSERT_TRUE(built.ok()) << Message(built.status());
      if (built->graph.steps().size() != 1) continue;  // its work is told apart otherwise
      auto replay = CheckReplay(*built, nullptr);
      ASSERT_TRUE(replay.ok()) << Message(replay.status());
      auto health = MakeSteady(*built, *replay);
      ASSERT_TRUE(health.ok()) << Message(health.status());
      const Duration step = health->steady > Duration{} ? health->steady : replay->measured;
      const double of_gpu = step.ms() / c.period.ms() - 1;
      const double of_host = step.ms() / (c.mark.end - c.mark.begin).ms() - 1;
      RecordProperty(c.mark.label, std::to_string(of_gpu));
      EXPECT_LE(std::min(std::fabs(of_gpu), std::fabs(of_host)), 0.10)
          << c.mark.label << ": " << step.ms() << " ms for " << c.period.ms();
    }
  }

  struct Counted {
    Step mark;
    Duration period;
  };
  std::shared_ptr<const Trace> trace_;
  std::vector<Step> steps_;
  std::vector<Counted> counted_;
  BuiltGraph whole_;
};

TEST_P(CutTrace, OneStepIsAsLongAsInTheWholeFile) { CheckCuts(1); }
TEST_P(CutTrace, TwoStepsAreAsLongAsInTheWholeFile) { CheckCuts(2); }
TEST_P(CutTrace, OptionsOnTwoStepsAreThoseOnTheWholeFile) { CheckAnswersOfTwo(); }
TEST_P(CutTrace, OneStepWithoutItsMarkIsAboutAsLong) { CheckUnmarked(); }

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const std::string& name : RealTraces()) {
    if (!name.starts_with("odd/") && !name.starts_with("batch/")) names.push_back(name);
  }
  if (names.empty()) names.push_back("none");
  return names;
}

// A recorder may miss what was launched before it began, while the GPU is a step behind: its first
// launches wait for work that it has not seen.
TEST(CutStep, AFasterGpuIsThroughWithWhatWasNotRecordedSooner) {
  const auto file = RealTraceFolder() / "gpus/resnet50-bs32.v100-sxm2.json.gz";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no ../shared/traces beside the repository";
  auto trace = ImportFile(file.string());
  ASSERT_TRUE(trace.ok()) << Message(trace.status());
  auto whole = BuildGraph(*trace);
  ASSERT_TRUE(whole.ok()) << Message(whole.status());
  const std::vector<Step>& steps = whole->report.steps.steps;
  for (size_t k = 1; k + 1 < steps.size(); ++k) {
    const Step& step = steps[k];
    absl::flat_hash_set<uint32_t> before;  // correlations of calls that were not recorded
    for (size_t row = 0; row < (*trace)->rows(); ++row) {
      const bool early =
          (*trace)->kind[row] == EventKind::kCall && (*trace)->start[row] < step.begin;
      if (early) before.insert((*trace)->correlation[row]);
    }
    const auto cut = Cut(**trace, step, step);
    auto built = BuildGraph(Filtered(*cut, [&](size_t row) {
      return !IsGpuWork(cut->kind[row]) || !before.contains(cut->correlation[row]);
    }));
    ASSERT_TRUE(built.ok()) << Message(built.status());
    Graph graph = std::move(built->graph);
    const double recorded = StepTime(graph, Simulate(graph).value()).ms();
    EXPECT_NEAR(recorded, 95.6, 0.3) << step.label;
    for (size_t i = 0; i < graph.size(); ++i) {
      Task& task = graph.mutable_task(TaskId(i));
      if (task.kind == TaskKind::kKernel) task.duration = task.duration.Scaled(0.5);
    }
    EXPECT_NEAR(StepTime(graph, Simulate(graph).value()).ms(), 48.8, 0.2) << step.label;
  }
}

INSTANTIATE_TEST_SUITE_P(Shared, CutTrace, testing::ValuesIn(Names()),
                         [](const auto& info) { return TestNameOf(info.param); });

}  // namespace
}  // namespace daydream
