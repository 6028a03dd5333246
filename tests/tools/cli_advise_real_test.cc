// What advise and its neighbours say of recordings that nobody prepared.
#include <map>

#include <fmt/format.h>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/real_traces.h"
#include "tests/tools/cli_fixture.h"

namespace daydream {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class AdvisingOnRecordings : public CliFixture {};

// 1088 hipFree in four steps.
TEST_F(AdvisingOnRecordings, TheAllocatorIsNoneOfTheSavings) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  CliResult r = Run("advise --format json " +
                    (RealTraceFolder() / "training/resnet18-ddp-mi300x.json.gz").string());
  ASSERT_EQ(r.exit, 0) << r.err;
  const json all = json::parse(r.out);
  EXPECT_EQ(all["findings"][0]["kind"], "allocator");
  EXPECT_EQ(all["findings"][0]["about"], "step");
  EXPECT_NEAR(all["replay"]["measured_ms"], 818.7, 0.1);
  EXPECT_NEAR(all["baseline"]["step_ms"], 77, 1) << "71.8 ms of GPU work";
  for (const json& option : all["options"]) {
    EXPECT_LT(option["prediction"]["speedup"], 1.5) << option["prediction"]["name"];
  }
  // One number for what is predicted, in all commands.
  const std::string trace = (RealTraceFolder() / "training/resnet18-ddp-mi300x.json.gz").string();
  for (const char* command : {"info", "advise"}) {
    const std::string out = OneLine(Run(fmt::format("{} {}", command, trace)).out);
    EXPECT_THAT(out, HasSubstr("steady step")) << command;
    EXPECT_THAT(out, HasSubstr("77.1 ms")) << command;
    EXPECT_THAT(out, Not(HasSubstr("predictions are of the mean"))) << command;
  }
  EXPECT_THAT(OneLine(Run("advise " + trace).out), HasSubstr("low: because of what the finding"));
}

// A cast that is not kept takes 0.9 of 2,088 MB: no way to need less.
TEST_F(AdvisingOnRecordings, LessMemoryIsSaidWhereItIsAShareOfThePeak) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  const auto text = [&](const char* trace) {
    return Run("advise " + (RealTraceFolder() / trace).string()).out;
  };
  EXPECT_THAT(text("gpus/qwen1.5-0.5b.h100.json.gz"), Not(HasSubstr("less memory")));
  const std::string much = OneLine(text("loader/resnet50-v100.workers4.b.json.gz"));
  EXPECT_THAT(much, HasSubstr("less memory: checkpointing -2.3 GB"));
  EXPECT_THAT(much, Not(HasSubstr("compile -6.7 MB ("))) << "0.24 % of 2.8 GB";
}

// What goes is the wait for a loader: neither work of the host nor of the GPU.
TEST_F(AdvisingOnRecordings, EveryFirstRowHasAReason) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  const std::string out = OneLine(
      Run("advise " + (RealTraceFolder() / "training/resnet18-bs128-2080ti.json.gz").string()).out);
  EXPECT_THAT(out, HasSubstr("why batches are read from memory: the step shrinks by 163.9 ms, all "
                             "of it waiting"));
}

// The GPU was busy with the step before for 7.8 of the 19.1 ms recorded.
TEST_F(AdvisingOnRecordings, EarlierWorkOfTheGpuIsNoPartOfTheOnlyStep) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  CliResult r = Run("advise --format json " +
                    (RealTraceFolder() / "graphs/vllm-decode-fullgraph-mi300x.json.gz").string());
  ASSERT_EQ(r.exit, 0) << r.err;
  const json all = json::parse(r.out);
  EXPECT_NEAR(all["replay"]["measured_ms"], 19.1, 0.1);
  EXPECT_NEAR(all["baseline"]["step_ms"], 10.74, 0.05) << "its GPU work has no gaps";
  EXPECT_EQ(all["findings"][0]["kind"], "cut_step");
}

// What the host does behind the last mark is no step: it made 76.5 ms of 95.6.
TEST_F(AdvisingOnRecordings, AllStepsAreThoseWithAMark) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  const std::string trace = (RealTraceFolder() / "gpus/resnet50-bs32.v100-sxm2.json.gz").string();
  const json all = json::parse(Run("whatif --steps all --format json " + trace).out);
  EXPECT_EQ(all["steps"], 4);
  EXPECT_NEAR(all["scenarios"][0]["step_ms"], 95.6, 0.1);
  const CliResult behind = Run("whatif --steps 5 " + trace);
  EXPECT_EQ(behind.exit, 4);
  EXPECT_THAT(behind.err, HasSubstr("this trace has steps 0 to 4"));
}

// Something else had the core: the step of one rank is that of all, who wait meanwhile.
TEST_F(AdvisingOnRecordings, OperatorsThatWereHeldUpStayInTheStepOfARank) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  CliResult r = Run("advise --format json " +
                    (RealTraceFolder() / "ranks/megatron-tp8/rank4.json.gz").string());
  ASSERT_EQ(r.exit, 0) << r.err;
  const json all = json::parse(r.out);
  EXPECT_EQ(all["findings"][0]["kind"], "op_stalls");
  const double step = all["baseline"]["step_ms"];
  EXPECT_NEAR(step, all["replay"]["measured_ms"].get<double>(), 1);
  EXPECT_EQ(all["baseline"]["confidence"], "low");
  for (const char* list : {"options", "not_worth"}) {
    for (const json& option : all[list]) {
      EXPECT_GT(option["prediction"]["step_ms"].get<double>(), 0.98 * step)
          << option["prediction"]["name"];
    }
  }
}

// The GPU of rank 6 has work for 427 ms, behind which 287 ms of a host that stands still would
// hide.
TEST_F(AdvisingOnRecordings, LaunchingAheadHidesNoOperatorThatWasHeldUp) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  const CliResult r = Run("whatif --opt aot --format json " +
                          (RealTraceFolder() / "ranks/megatron-tp8/rank6.json.gz").string());
  ASSERT_EQ(r.exit, 0) << r.err;
  const json all = json::parse(r.out);
  EXPECT_NEAR(all["scenarios"][0]["step_ms"], 634.2, 0.5);
  EXPECT_GT(all["scenarios"][1]["step_ms"].get<double>(), 570) << "with the host's usual work gone";
}

// More than any option brings.
TEST_F(AdvisingOnRecordings, WhatAFindingTellsOfIsToBeDoneFirst) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  for (const auto& [trace, steps] :
       {std::pair{"training/resnet18-ddp-mi300x.json.gz", "77.1 ms instead of 818.7 ms"},
        std::pair{"ranks/megatron-tp8", "423.5 ms instead of 632.5 ms"}}) {
    const std::string out = Run("advise " + (RealTraceFolder() / trace).string()).out;
    EXPECT_THAT(OneLine(out),
                HasSubstr("finding above says; the steady step takes " + std::string(steps)));
    EXPECT_LT(out.find("first: "), out.find("step time"));
  }
}

// What loading a batch takes differs by 20 ms from one step to the next: each is time of its step.
TEST_F(AdvisingOnRecordings, StepsThatDifferByTheirBatchesHoldByThemselves) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  const std::string trace =
      (RealTraceFolder() / "loader/resnet50-v100.workers0.a.json.gz").string();
  const CliResult r = Run("whatif --opt 'ddp(2,fabric=nvlink2)' " + trace);
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(OneLine(r.out), HasSubstr("checks hold: each step by itself 0.0 %; with the lags"));
  EXPECT_THAT(r.err, testing::Not(HasSubstr("W0602")));
}

// One line for each place at which a value is read.
TEST_F(AdvisingOnRecordings, WhatIsChangedInManyPlacesTakesAsManyLines) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  CliResult r = Run("advise --format json " +
                    (RealTraceFolder() / "graphs/sam-a100.compile-default.json.gz").string());
  ASSERT_EQ(r.exit, 0) << r.err;
  const json all = json::parse(r.out);
  size_t found = 0;
  for (const char* list : {"options", "not_worth"}) {
    for (const json& option : all[list]) {
      if (option["prediction"]["name"] != "no-sync") continue;
      ++found;
      EXPECT_THAT(option["effort"].get<std::string>(), testing::MatchesRegex("~1[01][0-9] lines"));
    }
  }
  EXPECT_EQ(found, 1u);
}

// aot beside amp, which alone costs 10 ms, takes 26.2 ms, with channels-last 24.3; what saves
// beside graphs ends at 31.9.
TEST_F(AdvisingOnRecordings, TheBestSetMayHoldWhatCostsAlone) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  const std::string trace = (RealTraceFolder() / "gpus/resnet50-bs32.a100-ddp2.json.gz").string();
  const json advice = json::parse(Run("advise --format json " + trace).out);
  const json amp = json::parse(Run("whatif --format json --opt amp,aot " + trace).out);
  const double best = advice["best"]["prediction"]["step_ms"];
  EXPECT_LE(best, amp["scenarios"].back()["step_ms"].get<double>());
  EXPECT_NEAR(best, 24.3, 1);
  EXPECT_THAT(Run("advise " + trace).out, HasSubstr("count on 3."));
}

// What a program has to keep to is no reason to doubt a number; what its model cannot see is one.
TEST_F(AdvisingOnRecordings, TheWordForConfidenceTellsRowsApart) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  std::map<std::string, json> of;
  for (const char* trace : {"graphs/sam-a100.compile-default", "gpus/qwen1.5-0.5b.h100"}) {
    const json all = json::parse(
        Run("advise --format json " + (RealTraceFolder() / trace).string() + ".json.gz").out);
    for (const json& option : all["options"]) {
      const json& p = option["prediction"];
      of[p["name"]] = p;
    }
  }
  for (const char* name : {"compile", "graphs"}) {
    EXPECT_EQ(of[name]["confidence"], "medium") << name;
    EXPECT_LT(of[name]["expected_error"], 0.15) << name;
  }
  EXPECT_FALSE(of["graphs"]["conditions"].empty());
  // Of a recording without marked steps nothing is known well, however small its change.
  EXPECT_LT(of["pin-memory"]["expected_error"], 0.05);
  EXPECT_EQ(of["pin-memory"]["confidence"], "low");
  EXPECT_THAT(of["pin-memory"]["confidence_raise"].get<std::string>(), HasSubstr("marks"));
}

// Waits and collectives leave 140 graphs in a step, each with inputs of its own.
TEST_F(AdvisingOnRecordings, EachGraphOfAStepIsCaptured) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  const std::string trace =
      (RealTraceFolder() / "graphs/sam-a100.compile-default.json.gz").string();
  const std::string out = OneLine(Run("advise " + trace).out);
  EXPECT_THAT(out, testing::ContainsRegex("aot .* ~50 lines x 1[0-9][0-9] "));
  // A profile's host work may be longer than the program's own, so that less of it may be saved.
  EXPECT_THAT(out, HasSubstr("none of these is sure to gain: even the first may be 0.99x"));
}

TEST_F(AdvisingOnRecordings, WhereTheGpuWorkIsGuessedAnotherRecordingComesFirst) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  const std::string out = OneLine(
      Run("advise " +
          (RealTraceFolder() / "training/recsys-a100-compiled-graphs-rank0of16.json.gz").string())
          .out);
  EXPECT_THAT(out, HasSubstr("none of these is sure to gain: even the first may be 1.00x; do what "
                             "the findings above say before any of them"));
}

// What linear layers read begins with prompts or tokens as often as with examples: images tell, and
// losses of single examples. The same number is asked for by a scenario.
TEST_F(AdvisingOnRecordings, ExamplesASecondAreSaidWhereImagesOrLossesTellTheirNumber) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  for (const auto& [trace, samples] :
       {std::pair("graphs/sam-a100.compile-max-autotune-graphs", 0),
        std::pair("inference/prefill-b200-eager", 0),
        std::pair("training/recsys-a100-rank3of8", 1024),
        std::pair("training/recsys-a100-compiled-graphs-rank0of16", 4096),
        std::pair("batch/particle-transformer.bs64", 64),
        std::pair("training/resnet18-ddp-mi300x", 512)}) {
    const auto path = RealTraceFolder() / fmt::format("{}.json.gz", trace);
    const json answer =
        json::parse(Run("whatif --format json --opt 'batch(8192)' " + path.string()).out);
    const json &replay = answer["replay"], &asked = answer["scenarios"].back();
    EXPECT_THAT(
        samples == 0 ? asked["error"]["code"] : asked["notes"][0],
        testing::ResultOf([](const json& j) { return j.get<std::string>(); },
                          testing::StartsWith(
                              samples == 0 ? "E0615" : fmt::format("batch {} to 8192", samples))));
    EXPECT_EQ(replay["samples_per_step"], samples == 0 ? json() : json(samples)) << trace;
  }
}

// Only the baseline is measured; what saves too little was never judged.
TEST_F(AdvisingOnRecordings, WhatIsNotJudgedHasNoWordOfConfidence) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  const std::string trace = (RealTraceFolder() / "training/sharded-v100-rank1of2.json.gz").string();
  const json answer = json::parse(Run("advise --format json " + trace).out);
  EXPECT_TRUE(answer["baseline"]["confidence"].is_string());
  EXPECT_FALSE(answer["not_worth"].empty());
  for (const json& o : answer["not_worth"]) {
    EXPECT_NE(o["prediction"]["confidence"], "measured") << o["prediction"]["name"];
  }
  EXPECT_THAT(answer["replay"]["checks"]["worst"].get<std::string>(), Not(HasSubstr("-0.0 %")));
  const json asked = json::parse(Run("whatif --opt no-sync --format json " + trace).out);
  EXPECT_THAT(asked.dump(), Not(HasSubstr("these keep waiting: \"")));
}

// Where there is no step, none was replayed.
TEST_F(AdvisingOnRecordings, WithoutAStepNoCheckIsClaimed) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  const std::string trace = (RealTraceFolder() / "odd/triton-a100.json.gz").string();
  EXPECT_THAT(Run("advise " + trace).out,
              AllOf(Not(HasSubstr("replay check:")), HasSubstr("no replay can be checked")));
  EXPECT_TRUE(
      json::parse(Run("advise --format json " + trace).out)["replay"]["error_pct"].is_null());
}

// Steps whose loads differ, too: each has its own.
TEST_F(AdvisingOnRecordings, ChecksThatHoldForEachStepSaySo) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  const auto head = [&](const char* trace) {
    return Run("whatif " + (RealTraceFolder() / trace).string()).out;
  };
  EXPECT_THAT(head("loader/resnet50-v100.workers0.a.json.gz"), HasSubstr("checks hold: "));
  EXPECT_THAT(head("gpus/resnet50-bs32.v100-sxm2.json.gz"), HasSubstr("checks hold: "));
}

// Ranks of one run: what is wrong with one of them is said, and two ways to one gain are
// neighbours.
TEST_F(AdvisingOnRecordings, AFolderOfRanksHasFindingsAndOneRowForTwoWays) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  const std::string folder = (RealTraceFolder() / "ranks/megatron-tp8").string();
  const json all = json::parse(Run("advise --format json " + folder).out);
  ASSERT_FALSE(all["findings"].empty());
  EXPECT_EQ(all["findings"][0]["kind"], "op_stalls");
  EXPECT_THAT(all["findings"][0]["text"].get<std::string>(), testing::StartsWith("rank 3: "));
  EXPECT_THAT(all["findings"][0]["text"].get<std::string>(),
              HasSubstr("Other ranks wait meanwhile"));
  ASSERT_EQ(all["options"].size(), 1u);
  EXPECT_EQ(all["options"][0]["other_ways"].size(), 1u);
  for (const json& o : all["options"]) {
    EXPECT_LT(o["prediction"]["speedup"].get<double>(), 1.6) << "2.9 with what held ranks up";
    EXPECT_EQ(o["prediction"]["confidence"], "low");
  }
  EXPECT_GT(all["not_worth"].size(), 3u);
  const std::string out = Run("advise " + folder).out;
  EXPECT_THAT(out, HasSubstr("not worth it alone: "));
  EXPECT_THAT(out, testing::ContainsRegex("\n +or +(aot|graphs) "));
  EXPECT_THAT(out.substr(0, out.find("needs a value")), Not(HasSubstr("...")))
      << "numbers and names are whole";
}

}  // namespace
}  // namespace daydream
