// The step as the commands tell it: one definition in text and JSON, rates, and the step without
// the profiler.
#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/real_traces.h"
#include "tests/tools/cli_fixture.h"
#include "tests/tools/small_trace.h"

namespace daydream {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class CliStep : public CliFixture {
 protected:
  nlohmann::json Json(const std::string& args) const {
    CliResult r = Run(args + " --format json");
    EXPECT_EQ(r.exit, 0) << r.err;
    return r.exit == 0 ? nlohmann::json::parse(r.out) : nlohmann::json();
  }
  const std::string trace_ = kExampleTrace;
};

TEST_F(CliStep, IsTheMeanOfItsStepsForEveryScenario) {
  const nlohmann::json json = Json("whatif " + trace_ + " --opt prefetch,graphs");
  const double base = json["scenarios"][0]["step_ms"];
  for (const auto& s : json["scenarios"]) {
    double sum = 0;
    for (const auto& step : s["steps_ms"]) sum += step.get<double>();
    EXPECT_EQ(s["steps_ms"].size(), json["steps"]);
    const double step = s["step_ms"];
    EXPECT_NEAR(sum / static_cast<double>(s["steps_ms"].size()), step, 1e-5) << s["name"];
    EXPECT_NEAR(s["speedup"].get<double>(), base / step, 1e-5) << s["name"];
    EXPECT_NEAR(s["throughput_gain"].get<double>(), base / step, 1e-5) << s["name"];
    EXPECT_NEAR(s["steps_per_s"].get<double>(), 1e3 / step, 1e-3) << s["name"];
    EXPECT_GT(s["median_ms"].get<double>(), 0) << s["name"];
  }
}

// Nobody knows whether a window without marks is one step: its length is not called that of a step.
TEST_F(CliStep, AWindowWithoutMarksIsNotCalledAStep) {
  Write("marked.json", SmallTrace(1));
  Write("window.json", WithoutMarks(SmallTrace(1)));
  const std::string marked = Path("marked.json"), window = Path("window.json");
  const std::string out = Run("whatif " + window + " --samples 64").out;
  EXPECT_THAT(out, HasSubstr("window.json, a window without marked steps, NVIDIA A100"));
  EXPECT_THAT(out, HasSubstr("no marks say where a step begins: times are of the whole window"));
  EXPECT_THAT(out, HasSubstr("one step, 13,333 steps/s, 853,333 samples/s (64 a step)"));
  EXPECT_THAT(Run("info " + window).out, HasSubstr("measured (all that was recorded)"));
  EXPECT_THAT(Run("summary " + window).out, HasSubstr("one window "));
  EXPECT_THAT(Run("whatif " + marked).out, AllOf(HasSubstr(", 1 step,"), Not(HasSubstr("window"))));
  EXPECT_THAT(Run("info " + marked).out, HasSubstr("measured (one step)"));
  EXPECT_THAT(Run("summary " + marked).out, HasSubstr("one step "));
  EXPECT_THAT(Run("whatif --true-step 90us " + window).out, Not(HasSubstr("if it holds one step")));
}

TEST_F(CliStep, SamplesMakeARate) {
  const nlohmann::json json = Json("whatif " + trace_ + " --samples 64");
  EXPECT_EQ(json["replay"]["samples_per_step"], 64);
  const auto& base = json["scenarios"][0];
  EXPECT_NEAR(base["samples_per_s"].get<double>(), 64e3 / base["step_ms"].get<double>(), 0.01);
  EXPECT_THAT(Run("whatif " + trace_ + " --samples 64").out, HasSubstr("samples/s (64 a step)"));
  EXPECT_EQ(Run("whatif " + trace_ + " --samples none").exit, 2);
}

TEST_F(CliStep, SamplesTellTheBatchToAScenario) {
  const std::string asked = "whatif " + trace_ + " --opt 'batch(256)'";
  EXPECT_THAT(Run(asked).err, AllOf(HasSubstr("E0615"), HasSubstr("--samples 8, if that is")));
  EXPECT_THAT(Run(asked + " --samples 64").err, HasSubstr("batch 64 to 256 (as given)"));
  EXPECT_THAT(Run(asked + " --samples 64 --opt 'batch(128,32)' --opt 'batch(x2)'").out,
              AllOf(HasSubstr("batch(size=128,recorded=32)"), HasSubstr("batch(size=x2)")));
}

TEST_F(CliStep, ChecksThatCanFailStandBesideTheReplay) {
  const nlohmann::json checks = Json("whatif " + trace_)["replay"]["checks"];
  for (const char* key : {"unexplained_pct", "worst_pct"}) {
    EXPECT_TRUE(checks[key].is_number()) << key;
  }
  for (const char* key : {"repeated", "crossed"}) {
    EXPECT_TRUE(checks[key]["error_pct"].is_number()) << key;
    EXPECT_TRUE(checks[key]["worst_step"].is_string()) << key;
  }
  EXPECT_THAT(Run("whatif " + trace_).out, HasSubstr("each step by itself"));
}

TEST_F(CliStep, TheGateActsOnTheWorstCheck) {
  CliResult r = Run("whatif " + trace_ + " --max-replay-error 0%");
  EXPECT_EQ(r.exit, 4);
  EXPECT_THAT(r.err, HasSubstr("E0602"));
}

// What was asked stays, each with why it has no answer.
TEST_F(CliStep, WhatIsRefusedIsNamed) {
  const auto ask = [&](const std::string& what) {
    const CliResult r = Run(what + " --max-replay-error 0% --format json");
    EXPECT_EQ(r.exit, 4) << what;
    return nlohmann::json::parse(r.out);
  };
  const auto refused = [](const nlohmann::json& row) {
    return row.contains("step_ms") && row["step_ms"].is_null() && row["error"]["code"] == "E0602";
  };
  const nlohmann::json scenarios = ask("whatif " + trace_ + " --opt amp,fuse")["scenarios"];
  ASSERT_EQ(scenarios.size(), 4);
  EXPECT_TRUE(scenarios[0]["step_ms"].is_number()) << "the baseline was measured";
  const std::vector<std::string> names = {"amp", "fuse", "amp + fuse"};
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(scenarios[i + 1]["name"], names[i]);
    EXPECT_TRUE(refused(scenarios[i + 1])) << scenarios[i + 1];
  }
  const nlohmann::json refused_advice = ask("advise " + trace_);
  EXPECT_EQ(refused_advice["error"]["code"], "E0602");
  EXPECT_EQ(refused_advice["options"], nlohmann::json::array());
  const nlohmann::json& advice = refused_advice["not_judged"];
  ASSERT_FALSE(advice.empty());
  for (const nlohmann::json& option : advice) EXPECT_TRUE(refused(option["prediction"])) << option;
  const nlohmann::json rows = ask("sweep " + trace_ + " --opt 'speedup(kernel:.,by=1..3)'")["rows"];
  ASSERT_EQ(rows.size(), 3);
  EXPECT_EQ(rows[2]["values"]["speedup.by"], "3");
  for (const nlohmann::json& row : rows) {
    EXPECT_TRUE(row["step_ms"].is_null());
    EXPECT_EQ(row["error"], "E0602");
  }
}

// What whatif refuses to predict from, summary does not show as where the time goes.
TEST_F(CliStep, TheGateActsOnSummariesToo) {
  for (const char* flags : {"", " --by host", " --format csv", " --knee"}) {
    const CliResult r = Run("summary " + trace_ + " --max-replay-error 0%" + flags);
    EXPECT_EQ(r.exit, 4) << flags;
    EXPECT_EQ(r.out, "") << flags << ", and nothing was found";
    EXPECT_THAT(r.err, HasSubstr("E0602")) << flags;
    EXPECT_EQ(Run("summary " + trace_ + flags).exit, 0) << flags;
  }
  EXPECT_EQ(Run("summary " + trace_ + " --per-step").exit, 0) << "measured beside replayed";
}

TEST_F(CliStep, WithoutTheProfilerIsWhatItWasSaidToBe) {
  const double recorded = Json("whatif " + trace_)["scenarios"][0]["step_ms"];
  const double wanted = 0.9 * recorded;
  const nlohmann::json json =
      Json("whatif " + trace_ + " --opt graphs --true-step " + std::to_string(wanted) + "ms");
  EXPECT_NEAR(json["scenarios"][0]["step_ms"].get<double>(), wanted, 0.002 * wanted);
  EXPECT_NEAR(json["true_step"]["recorded_ms"].get<double>(), recorded, 1e-3);
  EXPECT_GT(json["true_step"]["per_event_ns"].get<int64_t>(), 0);
  EXPECT_EQ(json["true_step"]["step_ms"], json["scenarios"][0]["step_ms"]);
  EXPECT_NEAR(json["replay"]["measured_ms"].get<double>(), recorded, 0.02 * recorded)
      << "the check is of what was recorded";
  EXPECT_EQ(Run("whatif " + trace_ + " --true-step 10000ms").exit, 4);
  EXPECT_EQ(Run("whatif " + trace_ + " --true-step soon").exit, 2);
}

TEST_F(CliStep, WithoutTheProfilerNoStepIsLongerThanRecorded) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  const std::string trace = (RealTraceFolder() / "gpus/resnet50-bs32.v100-sxm2.json.gz").string();
  const CliResult r = Run("whatif " + trace + " --true-step 90ms");
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr("so that it takes 95.6 ms instead of the recorded 95.6 ms"));
  EXPECT_THAT(OneLine(r.out), HasSubstr("true step 95.6 ms: 10.46 steps/s not the 90.0 ms of "
                                        "--true-step: with a host that takes no time the GPU's "
                                        "part takes about as long"));
  EXPECT_THAT(Run("whatif " + trace + " --true-step 95.6ms").out, Not(HasSubstr("not the")));
  const nlohmann::json told = Json("whatif " + trace + " --true-step 90ms")["true_step"];
  EXPECT_EQ(told["asked_ms"], 90.0);
}

TEST_F(CliStep, TheHeadOfAdviceIsOfTheStepWithoutTheProfiler) {
  const double wanted = 0.9 * Json("whatif " + trace_)["scenarios"][0]["step_ms"].get<double>();
  const CliResult r = Run(fmt::format("advise {} --true-step {}ms", trace_, wanted));
  ASSERT_EQ(r.exit, 0) << r.err;
  const size_t end = r.out.find(" steps/s");
  ASSERT_NE(end, std::string::npos);
  const size_t begin = r.out.rfind(' ', end - 1);
  EXPECT_NEAR(std::stod(r.out.substr(begin)), 1000 / wanted, 0.003 * 1000 / wanted);
}

TEST_F(CliStep, TheProfilersPartIsToldUntilItIsTakenOff) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  const std::string trace = (RealTraceFolder() / "gpus/bert-small.h100.json.gz").string();
  const std::string told = "PyTorch profiler makes it longer";
  EXPECT_THAT(OneLine(Run("info " + trace).out), HasSubstr(told));
  EXPECT_THAT(OneLine(Run("advise " + trace).out), HasSubstr(told));
  const double wanted = 0.9 * Json("whatif " + trace)["scenarios"][0]["step_ms"].get<double>();
  const CliResult r = Run(fmt::format("advise {} --true-step {}ms", trace, wanted));
  ASSERT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(OneLine(r.out), Not(HasSubstr(told)));
}

TEST_F(CliStep, WhatAFindingSaysNoErrorRepeats) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  const std::string trace = (RealTraceFolder() / "training/alexnet-a100-syncs.json.gz").string();
  for (const char* command : {"advise ", "whatif "}) {
    const CliResult r = Run(command + trace);
    EXPECT_EQ(r.exit, 4);
    EXPECT_THAT(OneLine(r.out), HasSubstr("recorded happens once")) << command;
    EXPECT_THAT(r.err, AllOf(HasSubstr("E0607"), HasSubstr("a finding of the result says it"),
                             Not(HasSubstr("happens once"))))
        << command;
  }
}

// A refusal leaves out the table, not what is wrong with the recording.
TEST_F(CliStep, ARefusalHasTheFindings) {
  const CliResult r = Run("summary " + trace_ + " --max-replay-error 0% --format json");
  EXPECT_EQ(r.exit, 4);
  const auto refused = nlohmann::json::parse(r.out);
  EXPECT_EQ(refused["schema"], "daydream.summary/1");
  EXPECT_EQ(refused["error"]["code"], "E0602");
  EXPECT_TRUE(refused["findings"].is_array());
  EXPECT_TRUE(refused["replay"].is_object());
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  const std::string trace = (RealTraceFolder() / "training/alexnet-a100-syncs.json.gz").string();
  const nlohmann::json found =
      nlohmann::json::parse(Run("whatif " + trace + " --format json").out)["findings"];
  ASSERT_FALSE(found.empty());
  for (const std::string& ask :
       {"summary " + trace, "summary --by host " + trace, "causal " + trace,
        "sweep " + trace + " --opt 'speedup(kernel:.,by=1..2)'",
        "diff " + trace + " --opt amp --opt fuse"}) {
    const CliResult text = Run(ask);
    EXPECT_EQ(text.exit, 4) << ask;
    EXPECT_THAT(OneLine(text.out), HasSubstr("recorded happens once")) << ask;
    EXPECT_THAT(text.err, HasSubstr("a finding of the result says it")) << ask;
    const CliResult json = Run(ask + " --format json");
    EXPECT_EQ(json.exit, 4) << ask;
    EXPECT_EQ(nlohmann::json::parse(json.out)["findings"], found) << ask;
    EXPECT_EQ(nlohmann::json::parse(json.out)["error"]["code"], "E0607") << ask;
  }
  const CliResult both = Run("diff " + trace + " " + trace);
  EXPECT_EQ(both.exit, 4);
  EXPECT_THAT(OneLine(both.out), HasSubstr("recorded happens once"));
}

// 0.58 to 1.85 ms are 2.4 to 7.6 times as fast as 4.43 ms; the row says 1.37 to 4.98.
TEST_F(CliStep, TwoIntervalsOfARowAreExplained) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  const std::string told = "a speed-up has an interval of its own";
  const auto of = [](const char* name) { return (RealTraceFolder() / name).string(); };
  EXPECT_THAT(
      OneLine(Run("whatif --opt graphs " + of("gpus/bert-small.h100.json.gz")).out),
      AllOf(HasSubstr(told), HasSubstr("without the most that it may have added the baseline "
                                       "takes 1.")));
  EXPECT_THAT(Run("whatif --opt amp " + of("gpus/resnet50-bs32.v100-sxm2.json.gz")).out,
              Not(HasSubstr(told)))
      << "95.6 ms over 33.0 to 65.0 are 1.47 to 2.90";
}

// Its steps are 150 to 829 ms long.
TEST_F(CliStep, AnIntervalFarBeyondTheExpectedErrorIsSaidBesideIt) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  const std::string trace = (RealTraceFolder() / "training/resnet18-bs128-2080ti.json.gz").string();
  EXPECT_THAT(OneLine(Run("whatif --opt 'batch(x2)' " + trace).out),
              testing::ContainsRegex("expected to be off by [0-9] % of the step, and nine times in "
                                     "ten by less than 2[0-9] %"));
}

TEST_F(CliStep, QuietLeavesTheErrorsOnly) {
  const std::string ask = "whatif " + trace_ + " --opt graphs --max-replay-error ";
  EXPECT_THAT(Run(ask + "10%").err, HasSubstr("warning["));
  EXPECT_EQ(Run(ask + "10% -q").err, "");
  EXPECT_THAT(Run(ask + "0% -q").err, HasSubstr("error[E0602]"));
}

TEST_F(CliStep, CallsOfRocmAreNotCalledCuda) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  const std::string trace = (RealTraceFolder() / "odd/mi250-rocm.json.gz").string();
  EXPECT_THAT(Run("info " + trace).out, AllOf(HasSubstr("21 HIP calls"), Not(HasSubstr("CUDA"))));
}

TEST_F(CliStep, SummaryHasOneAnswerForDataWaits) {
  const nlohmann::json by_phase = Json("summary " + trace_ + " --by phase");
  int64_t data = 0;
  for (const auto& group : by_phase["groups"]) {
    if (group["name"] == "data") data = group["critical_path_ns"];
  }
  EXPECT_NEAR(static_cast<double>(Json("summary " + trace_)["critical_path"]["data_ns"]),
              static_cast<double>(data), 10);
}

// What happens once is in no command's step, and each begins with the finding that says so.
TEST_F(CliStep, EveryCommandSpeaksOfTheSameSteadyStep) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  const auto of_batch = [](int size) {
    return (RealTraceFolder() / fmt::format("batch/particle-transformer.bs{}.json.gz", size))
        .string();
  };
  const std::string trace = of_batch(64), other = of_batch(16);
  const nlohmann::json whatif = Json("whatif " + trace + " --opt free-gpu");
  const double step = whatif["scenarios"][0]["step_ms"];
  EXPECT_LT(step, 40) << "of 328 ms that were recorded";
  const nlohmann::json& found = whatif["findings"];
  ASSERT_FALSE(found.empty());
  for (const char* command : {"summary", "summary --by host", "info", "causal",
                              "sweep --opt 'speedup(kernel:.,by=1..2)'"}) {
    const nlohmann::json json = Json(std::string(command) + " " + trace);
    EXPECT_EQ(json["findings"], found) << command;
    EXPECT_EQ(json["step_ms"], step) << command;
    EXPECT_EQ(json["median_ms"], step) << command;
    EXPECT_EQ(json["steps_ms"], nlohmann::json::array({step})) << command;
    const std::string text = Run(std::string(command) + " " + trace).out;
    EXPECT_THAT(text, HasSubstr("without what happens once")) << command;
    EXPECT_LT(text.find("!  "), text.find("---")) << command << ": before its table";
  }
  const nlohmann::json diff = Json("diff " + trace + " " + other);
  EXPECT_EQ(diff["before"]["step_ms"], step);
  EXPECT_EQ(diff["before"]["findings"], found);
  EXPECT_EQ(diff["findings"][0]["kind"], found[0]["kind"]);
  EXPECT_EQ(diff["step"]["before_ns"], std::llround(step * 1e6));
  EXPECT_THAT(Run("diff " + trace + " " + other).out, HasSubstr("before: the steady step; "));
}

}  // namespace
}  // namespace daydream
