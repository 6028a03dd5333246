// What a command about ranks together cannot do, or finds nothing to do for, is said.
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/real_traces.h"
#include "tests/tools/cli_fixture.h"

namespace daydream {
namespace {

using testing::HasSubstr;

const std::string kExample = DAYDREAM_SOURCE_DIR "/examples/two-ranks-synthetic";

using CliRanksParts = CliFixture;

// Not ignored, as if these were the steps that were asked for.
TEST_F(CliRanksParts, StepsAreNotChosenForRanksTogether) {
  for (const char* command : {"ranks ", "whatif ", "advise ", "scale --fabric nvlink4 "}) {
    const CliResult r = Run(command + kExample + " --steps 1");
    EXPECT_EQ(r.exit, 2) << command;
    EXPECT_THAT(r.err, HasSubstr("--steps is about one rank")) << command;
  }
}

// The answer stays that of all ranks, or there is none: no flag has one rank answer in their place.
TEST_F(CliRanksParts, AFlagOfOneRankIsRefusedForAFolder) {
  const std::string all = "whatif " + kExample + " --opt amp ", one = " --rank 1 ";
  for (const std::string flag : {"--by layer", "--timeline x.json", "--true-step 8ms", "--steps 0",
                                 "--samples 8", "--measured x.json", "--learned x.txt"}) {
    const CliResult r = Run(all + flag);
    EXPECT_EQ(r.exit, 2) << flag << r.out;
    EXPECT_THAT(
        r.err, HasSubstr("error[E0104]: " + flag.substr(0, flag.find(' ')) + " is about one rank"));
    EXPECT_THAT(r.err, HasSubstr("--rank R"));
  }
  for (const std::string flag : {"--by layer", "--true-step 8ms", "--steps 1", "--samples 8"}) {
    EXPECT_EQ(Run(fmt::format("whatif {}{}{}", kExample, one, flag)).exit, 0) << flag;
  }
  for (const std::string flag : {"--true-step 8ms", "--steps 0", "--samples 8"}) {
    EXPECT_EQ(Run(fmt::format("sweep {} --opt 'bandwidth({{x2,x4}})' {}", kExample, flag)).exit, 2)
        << flag;
  }
  for (const std::string flag :
       {"--true-step 8ms", "--steps 0", "--samples 8", "--measured x.json"}) {
    const CliResult r = Run(fmt::format("report {} {} -o {}", kExample, flag, Path("page.html")));
    EXPECT_EQ(r.exit, 2) << flag;
    EXPECT_THAT(r.err, HasSubstr(" is about one rank")) << flag;
  }
  EXPECT_THAT(Run(all + "--peers recorded").err, HasSubstr("--peers recorded is about one rank"));
  for (const std::string asked : {"--peers joint", "--on 'rank 1'"}) {
    EXPECT_EQ(Run(all + asked).exit, 0) << asked;
    for (const std::string other : {"--rank 1", "--by layer", "--steps 0"}) {
      EXPECT_THAT(Run(fmt::format("{}{} {}", all, asked, other)).err, HasSubstr("E0104"))
          << asked << other;
    }
    EXPECT_THAT(Run(fmt::format("whatif {}/rank1.json --opt amp {}", kExample, asked)).err,
                HasSubstr("is about ranks that are played together"));
  }
  EXPECT_THAT(Run(all + "--on 'rank 1' --peers none").err,
              HasSubstr("--on does not go with --peers none"));
}

// The same ranks in one file: the one that answers says so, and how all are asked.
TEST_F(CliRanksParts, AFileOfSeveralRanksIsPlayedTogetherWhereThatIsAsked) {
  const std::string file = Path("both.ddtrace"), ask = "whatif " + file + " --opt amp";
  ASSERT_EQ(Run("import " + kExample + " -o " + file).exit, 0);
  const CliResult one = Run(ask);
  EXPECT_THAT(one.err, HasSubstr(" of 2 is looked at, which waits least"));
  EXPECT_THAT(one.err, HasSubstr("whatif --peers joint plays all together"));
  const auto joint = nlohmann::json::parse(Run(ask + " --peers joint --format json").out);
  EXPECT_TRUE(joint.contains("ranks"));
}

TEST_F(CliRanksParts, EachOfAListIsPredictedAloneUnlessThatIsNotWanted) {
  const auto names = [&](const std::string& flag) {
    const std::string ask = "whatif " + kExample + " --opt 'amp,bandwidth(x2)' --format json ";
    std::vector<std::string> all;
    const auto told = nlohmann::json::parse(Run(ask + flag).out);
    for (const auto& s : told["scenarios"]) all.push_back(s["name"]);
    return all;
  };
  const auto few = names("--no-alone"), many = names("");
  ASSERT_EQ(many.size(), few.size() + 2);
  EXPECT_EQ(many.back(), few.back());
  EXPECT_EQ(many[many.size() - 3], "amp");
}

TEST_F(CliRanksParts, SpeedupsHaveAnIntervalAndSayHowSureTheyAre) {
  const std::string ask = "whatif " + kExample + " --opt fuse --opt 'straggler(1,gpu=0.8)' ";
  const auto told = nlohmann::json::parse(Run(ask + "--format json").out);
  const auto& row = told["scenarios"].back();
  ASSERT_EQ(row["speedup_interval"].size(), 2u) << row;
  EXPECT_NEAR(row["speedup_interval"][0].get<double>(),
              told["scenarios"][0]["step_ms"].get<double>() / row["interval_ms"][1].get<double>(),
              1e-5);
  const CliResult text = Run(ask);
  EXPECT_THAT(text.out, HasSubstr("1.15x  (1.1"));
  EXPECT_THAT(text.out, HasSubstr("  confidence medium: "));
}

TEST_F(CliRanksParts, EveryLineAboutRanksFitsATerminal) {
  for (const std::string ask :
       {"advise two-ranks-synthetic", "ranks two-ranks-synthetic",
        "whatif two-ranks-synthetic --opt 'fuse,straggler(1,gpu=0.8)' --opt 'bandwidth(x2)'"}) {
    const CliResult r =
        Shell("cd " DAYDREAM_SOURCE_DIR "/examples && COLUMNS=80 " DAYDREAM_BINARY " " + ask);
    ASSERT_FALSE(r.out.empty()) << r.err;
    std::istringstream lines(r.out);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("  check")) {
        EXPECT_LE(line.size(), 80u) << line;
      }
    }
    if (ask.starts_with("whatif")) {
      EXPECT_THAT(r.out, HasSubstr("  confidence")) << ask;
    }
  }
}

// What looks at one rank of a folder says so first: its step is not that of the run.
TEST_F(CliRanksParts, WhatLooksAtOneRankSaysSoFirst) {
  const std::string folder = DAYDREAM_SOURCE_DIR "/examples/two-ranks-synthetic";
  for (const std::string command :
       {"info ", "summary ", "summary --per-step ", "summary --by host ", "causal "}) {
    const CliResult text = Run(command + folder);
    EXPECT_EQ(text.exit, 0) << text.err;
    EXPECT_THAT(OneLine(text.out.substr(0, 400)),
                testing::ContainsRegex("! +played together, the ranks take 9.00 ms a step; this is "
                                       "rank [01] of a folder of ranks, alone"))
        << command;
    const auto json = nlohmann::json::parse(Run(command + folder + " --format json").out);
    EXPECT_EQ(json["findings"][0]["kind"], "one_rank") << command;
    EXPECT_EQ(json["findings"][0]["about"], "step") << command;
    EXPECT_THAT(Run(command + folder + " --rank 1").out, testing::Not(HasSubstr("alone: ")))
        << "it was asked for";
  }
  for (const std::string command : {"whatif ", "advise ", "ranks "}) {
    EXPECT_THAT(Run(command + folder).out, testing::Not(HasSubstr("of a folder of ranks")));
  }
}

TEST_F(CliRanksParts, SummaryTellsHowMuchCommunicationIsHidden) {
  const std::string folder = DAYDREAM_SOURCE_DIR "/examples/";
  const std::string ask = "summary " + folder + "two-ranks-synthetic --rank 1";
  const auto json = nlohmann::json::parse(Run(ask + " --format json").out);
  EXPECT_GT(json["comm_ns"], 0);
  EXPECT_LE(json["exposed_comm_ns"], json["comm_ns"]);
  EXPECT_THAT(
      OneLine(Run(ask).out),
      testing::ContainsRegex("communication +[0-9.]+ ms in collectives; [0-9.]+ ms of it is "
                             "not hidden by other GPU work"));
  EXPECT_THAT(Run("summary " + folder + "resnet50-synthetic.ddtrace").out,
              testing::Not(HasSubstr("communication")));
}

TEST_F(CliRanksParts, AGateIsAboutTheRanksTogether) {
  const std::string ask = "whatif " + kExample + " --opt 'straggler(1,gpu=0.8)' ";
  const auto json = nlohmann::json::parse(
      Run(ask + "--format json --fail-if 'step > 7.7ms' --fail-if 'step > 7.9ms'").out);
  EXPECT_NEAR(json["scenarios"][1]["step_ms"].get<double>(), 7.8, 0.01);
  ASSERT_EQ(json["gates"].size(), 2u);
  EXPECT_EQ(json["gates"][0]["holds"], true);
  EXPECT_EQ(json["gates"][1]["holds"], false);
  for (const std::string gate :
       {"step > 7.7ms", "speedup < 1.2", "saved < 1.3ms", "step > -15%", "replay_error < 1%"}) {
    const CliResult r = Run(fmt::format("{}--fail-if '{}'", ask, gate));
    EXPECT_EQ(r.exit, 5) << gate << r.err;
    EXPECT_THAT(r.err, HasSubstr("error[E0604]: --fail-if '" + gate + "' holds for straggler"));
  }
  for (const std::string gate : {"step > 7.9ms", "speedup < 1.1", "saved < 1.1ms"}) {
    EXPECT_EQ(Run(fmt::format("{}--fail-if '{}'", ask, gate)).exit, 0) << gate;
  }
  EXPECT_EQ(Run("whatif " + kExample + " --fail-if 'step > 8.9ms'").exit, 5);
  EXPECT_THAT(Run(ask + "--fail-if 'steps > 1'").err, HasSubstr("E0108"));
  EXPECT_THAT(Run(ask + "--format md --fail-if 'step > 7.7ms'").out,
              HasSubstr("straggler(rank=1,gpu=0.8x): 7.80 ms, 1.15x"));
  // Of what cannot be predicted nothing is told.
  const CliResult none = Run("whatif " + kExample +
                             " --opt 'straggler(9,gpu=0.5)' --format json --fail-if 'step > 1ms'");
  EXPECT_EQ(none.exit, 4);
  EXPECT_TRUE(nlohmann::json::parse(none.out)["gates"][0]["holds"].is_null());
}

// As for one rank: what a part of a combination finds nothing to do is said, and exits with 4.
TEST_F(CliRanksParts, PartsThatDoNothingAndOtherBatchesAreSaid) {
  const CliResult r =
      Run("whatif " + kExample + " --opt 'batch(x2),straggler(7,host=0.5)' --format json");
  EXPECT_EQ(r.exit, 4);
  EXPECT_THAT(r.err, HasSubstr("straggler(rank=7,host=0.5x) finds nothing to change here"));
  EXPECT_THAT(r.err, HasSubstr("a step handles 2 times the examples"));
  const auto left = nlohmann::json::parse(r.out)["scenarios"].back()["left_out"];
  EXPECT_THAT(left, testing::ElementsAre("straggler(rank=7,host=0.5x)"));
  EXPECT_EQ(Run("whatif " + kExample + " --opt 'batch(x2),straggler(0,host=0.5)'").exit, 0);
}

// Slices of gradients that are chosen by priority, on ranks that wait for one another.
TEST_F(CliRanksParts, P3PlaysRanksTogether) {
  const auto file = RealTraceFolder() / "gpus" / "resnet50-bs32.a100-ddp2.json.gz";
  std::error_code error;
  if (!std::filesystem::exists(file, error)) GTEST_SKIP() << "no " << file;
  std::filesystem::create_directory(Path("two"));
  // The other rank is the same program; no two record the same times.
  const std::string other = R"(sed -E 's/"rank": *0/"rank": 1/; s/("dur": *[0-9]*)3\b/\12/')";
  for (const auto& [rank, edit] : {std::pair("0", std::string("cat")), {"1", other}}) {
    ASSERT_EQ(Shell("gzip -dc " + file.string() + " | " + edit + " | gzip -1 > '" +
                    Path("two/rank") + rank + ".json.gz' #")
                  .exit,
              0);
  }
  const auto step = [&](const std::string& of, const std::string& opt) {
    const CliResult r = Run("whatif " + of + " --opt '" + opt + "' --format json");
    EXPECT_EQ(r.exit, 0) << opt << r.err;
    if (r.exit != 0) return 0.0;
    return nlohmann::json::parse(r.out)["scenarios"].back()["step_ms"].get<double>();
  };
  for (const std::string opt : {"p3", "ddp(8,fabric=efa100),p3"}) {
    const double both = step(Path("two"), opt);
    // Alike, they wait for nobody.
    const double one = step(Path("two/rank0.json.gz") + " --peers none", opt);
    EXPECT_NEAR(both / one, 1, 0.02) << opt;
  }
  // A slice is there when the slower rank has come: both take what that one takes.
  const std::string late = "p3,straggler(1,host=1.5)";
  const double alone = step(Path("two/rank1.json.gz") + " --peers none", late);
  EXPECT_GT(alone, 1.2 * step(Path("two"), "p3"));
  EXPECT_NEAR(step(Path("two"), late) / alone, 1, 0.02);
}

TEST_F(CliRanksParts, EightRecordedRanksGiveTheNumbersOfTheStudy) {
  const auto folder = RealTraceFolder() / "ranks" / "megatron-tp8";
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) GTEST_SKIP() << "no " << folder;
  const CliResult r = Run("whatif " + folder.string() +
                          " --opt 'straggler(0, host=0.9)' --opt 'straggler(5, host=0.9)' "
                          "--format json");
  ASSERT_EQ(r.exit, 0) << r.err;
  const nlohmann::json json = nlohmann::json::parse(r.out);
  EXPECT_NEAR(json["step_ms"].get<double>(), 632.53, 0.6);
  EXPECT_LE(json["ranks"]["check"]["duration_error_pct"].get<double>(), 1);
  EXPECT_LE(json["ranks"]["check"]["span_error_pct"].get<double>(), 0.1);
  EXPECT_NEAR(json["scenarios"][1]["window_ms"].get<double>(), 645.00, 0.6);
  EXPECT_NEAR(json["scenarios"][1]["step_ms"].get<double>(), 632.53, 0.6);
  EXPECT_NEAR(json["scenarios"][2]["step_ms"].get<double>(), 627.19, 0.1);
  EXPECT_EQ(json["step_bound_by"], "own cycle of rank 5");
  EXPECT_EQ(json["scenarios"][2]["confidence"], "low");
  EXPECT_THAT(json["findings"][0]["text"], HasSubstr("Other ranks wait meanwhile"));
  // One of them alone: with its waits, all that was recorded of it.
  const CliResult one = Run("whatif " + folder.string() + "/rank5.json.gz --format json");
  ASSERT_EQ(one.exit, 0) << one.err;
  const auto alone = nlohmann::json::parse(one.out)["scenarios"][0];
  EXPECT_NEAR(alone["step_ms"].get<double>(), 649.74, 0.1);
  EXPECT_EQ(alone["window_ms"], alone["step_ms"]);
}

// What others do is a choice where one rank is all that was recorded.
TEST_F(CliRanksParts, PeersOfOneRankArriveAsRecordedOrAreAlike) {
  const auto file = RealTraceFolder() / "ranks" / "megatron-tp8" / "rank3.json.gz";
  std::error_code error;
  if (!std::filesystem::exists(file, error)) GTEST_SKIP() << "no " << file;
  auto gain = [&](const std::string& peers) {
    const CliResult r = Run("whatif " + file.string() + " --peers " + peers +
                            " --opt 'bandwidth(x0.5)' --format json");
    EXPECT_EQ(r.exit, 0) << peers << ": " << r.err;
    const auto json = nlohmann::json::parse(r.out);
    const auto& s = json["scenarios"];
    EXPECT_EQ(json.contains("ranks"), peers == "recorded") << peers;
    return s.back()["step_ms"].get<double>() / s[0]["step_ms"].get<double>() - 1;
  };
  // Others arrive when they did and hide it; where waits are kept as they were, all of it shows.
  EXPECT_LT(gain("recorded"), 0.001);
  EXPECT_GT(gain("waits"), 0.03);
  EXPECT_EQ(gain("alone"), gain("waits"));
  EXPECT_GT(gain("alike"), 0);
  EXPECT_EQ(gain("alike"), gain("none"));
  // Who waits for nobody takes its own cycle, as `ranks` says, out of one file or of all.
  const std::string all = file.parent_path().string();
  const auto ranks = nlohmann::json::parse(Run("ranks " + all + " --format json").out);
  for (int rank : {0, 3, 5, 6, 7}) {
    const double cycle = ranks["per_rank"][rank]["own_cycle_ms"];
    for (const std::string& of :
         {fmt::format("{} --rank {}", all, rank), fmt::format("{}/rank{}.json.gz", all, rank)}) {
      const std::string out = Run("whatif " + of + " --peers none --format json").out;
      const double step = nlohmann::json::parse(out)["scenarios"][0]["step_ms"];
      EXPECT_NEAR(step / cycle, 1, 0.001) << of;
    }
  }
  // The same of that rank out of the folder of all.
  const std::string folder = file.parent_path().string() + " --rank 3 --peers recorded ";
  const CliResult r = Run("whatif " + folder + "--opt 'bandwidth(x0.5)' --format json");
  ASSERT_EQ(r.exit, 0) << r.err;
  const auto scenarios = nlohmann::json::parse(r.out)["scenarios"];
  EXPECT_NEAR(scenarios[1]["step_ms"].get<double>() / scenarios[0]["step_ms"].get<double>(), 1,
              0.001);
  EXPECT_THAT(Run("whatif " + folder + "--by kernel").err, HasSubstr("--peers recorded has no"));
  EXPECT_THAT(Run("ranks " + file.parent_path().string() + " --rank 3").out,
              HasSubstr("1 rank recorded"));
}

}  // namespace
}  // namespace daydream
