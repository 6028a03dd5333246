// `daydream ranks` and joint what-ifs as users type them.
#include <regex>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "costmodel/network/fabric.h"
#include "tests/real_traces.h"
#include "tests/tools/cli_fixture.h"
#include "tests/tools/on_terminal.h"

namespace daydream {
namespace {

using testing::HasSubstr;

// A rank as the PyTorch profiler of 2024 writes it: compute for `compute` us, then an all-reduce of
// 4 MB that ends at 610 us everywhere.
std::string RankFile(int rank, int compute, int first_sequence = 1, std::string_view gpu = "") {
  std::string events;
  auto add = [&](const std::string& event) { events += (events.empty() ? "" : ",\n") + event; };
  int correlation = 0, at = 0;
  for (int i = 0; i < 2; ++i) {
    const int sequence = first_sequence + (first_sequence == 1 ? i : -i);
    for (const bool comm : {false, true}) {
      ++correlation;
      const int start = at + 10 + (comm ? compute : 0);
      add("{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":"
          "1,"
          "\"ts\":" +
          std::to_string(at + (comm ? 6 : 0)) +
          ",\"dur\":5,\"args\":{\"correlation\":" + std::to_string(correlation) + "}}");
      const std::string args =
          comm ? ",\"Collective name\":\"allreduce\",\"In msg nelems\":1000000,\"Out msg nelems\":"
                 "1000000,\"dtype\":\"Float\",\"Group size\":2,\"Process Group Name\":\"0\","
                 "\"Process Group Ranks\":\"[0, 1]\",\"Seq\":" +
                     std::to_string(sequence)
               : "";
      add(std::string("{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"") +
          (comm ? "ncclDevKernel_AllReduce_Sum_f32_RING_LL" : "gemm") +
          "\",\"pid\":0,\"tid\":7,\"ts\":" + std::to_string(start) +
          ",\"dur\":" + std::to_string(comm ? 600 - compute : compute) +
          ",\"args\":{\"device\":0,\"stream\":7,\"correlation\":" + std::to_string(correlation) +
          args + "}}");
    }
    at += 610;
  }
  const std::string devices =
      gpu.empty()
          ? ""
          : fmt::format(R"("deviceProperties":[{{"id":0,"name":"{}","numSms":100}}],)", gpu);
  return "{" + devices + R"("distributedInfo":{"backend":"nccl","rank":)" + std::to_string(rank) +
         R"(,"world_size":2},"traceEvents":[)" + events + "]}";
}

// Steps with marks of the slow rank 1 of three: compute, an all-reduce of 100 MB that takes 300 us
// from the last arrival on, and a wait of the host. Of `rank` steps [first, last) are recorded.
// `without`: a step that is not.
std::string RankOfSteps(int rank, int first, int last, int without = -1) {
  constexpr int kStep = 1000, kSlow = 500, kFast = 400, kTransfer = 300;
  std::string events;
  int correlation = 0;
  const auto add = [&](std::string_view cat, std::string_view name, int ts, int dur,
                       const std::string& args) {
    events += fmt::format(
        R"({}{{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":7,"ts":{},"dur":{},"args":{{{}}}}})",
        events.empty() ? "" : ",\n", cat, name, cat == "kernel" ? 0 : 1, ts, dur, args);
  };
  for (int step = first; step < last; ++step) {
    if (step == without) continue;
    const int at = step * kStep, compute = rank == 1 ? kSlow : kFast;
    const int arrives = at + 20 + compute, ends = at + 20 + kSlow + kTransfer;
    const auto call = [&] { return fmt::format(R"("correlation":{})", ++correlation); };
    const auto gpu = [&] {
      return fmt::format(R"("device":0,"stream":7,"correlation":{})", correlation);
    };
    add("user_annotation", fmt::format("ProfilerStep#{}", step), at, kStep, "");
    add("cuda_runtime", "cudaLaunchKernel", at + 4, 5, call());
    add("kernel", "gemm", at + 20, compute, gpu());
    add("cuda_runtime", "cudaLaunchKernel", at + 12, 5, call());
    add("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", arrives, ends - arrives,
        gpu() +
            fmt::format(R"(,"Collective name":"allreduce","In msg nelems":25000000,)"
                        R"("Out msg nelems":25000000,"dtype":"Float","Group size":3,)"
                        R"("Process Group Name":"0","Process Group Ranks":"[0, 1, 2]","Seq":{})",
                        step + 1));
    add("cuda_runtime", "cudaDeviceSynchronize", at + 30, ends + 10 - (at + 30), call());
  }
  return fmt::format(
      R"({{"distributedInfo":{{"backend":"nccl","rank":{},"world_size":3}},"traceEvents":[{}]}})",
      rank, events);
}

const std::string kExample = DAYDREAM_SOURCE_DIR "/examples/two-ranks-synthetic";

class CliRanks : public CliFixture {
 protected:
  void SetUp() override {
    CliFixture::SetUp();
    if (folder_.empty()) return;
    std::filesystem::create_directory(Path("run"));
    Write("run/rank0.json", RankFile(0, 100));
    Write("run/rank1.json", RankFile(1, 500));
  }
};

TEST_F(CliRanks, SaysWhoWaitsForWhom) {
  const CliResult r = Run("ranks " + Path("run") + " --format json");
  ASSERT_EQ(r.exit, 0) << r.err;
  const nlohmann::json json = nlohmann::json::parse(r.out);
  ASSERT_EQ(json["per_rank"].size(), 2u);
  EXPECT_EQ(json["per_rank"][1]["last"], 2);
  EXPECT_NEAR(json["per_rank"][0]["wait_ms"].get<double>(), 0.8, 0.02);
  EXPECT_NEAR(json["per_rank"][1]["wait_ms"].get<double>(), 0, 1e-9);
  EXPECT_NEAR(json["per_rank"][0]["transfer_ms"].get<double>(), 0.2, 0.01);
  EXPECT_EQ(json["classes"][0]["bytes"], 4000000);
  EXPECT_LE(json["check"]["duration_error_pct"].get<double>(), 1);
  EXPECT_EQ(json["check"]["clock_shift_us"].size(), 2u);
  EXPECT_TRUE(json["problems"].empty());
  EXPECT_GT(json["step_ms"].get<double>(), 0);
  EXPECT_GE(json["window_ms"].get<double>(), json["step_ms"].get<double>() * 0.5);
  ASSERT_EQ(json["waits"].size(), 1u);
  EXPECT_EQ(json["waits"][0]["who"], 0);
  EXPECT_EQ(json["waits"][0]["for"], 1);
  EXPECT_EQ(json["waits"][0]["ms"], json["per_rank"][0]["wait_ms"]);
  const std::string text = Run("ranks " + Path("run")).out;
  EXPECT_THAT(text, HasSubstr("own cycle of rank 1"));
  const nlohmann::json& late = json["per_rank"][1];
  EXPECT_LE(late["own_step_ms"].get<double>(), late["own_cycle_ms"].get<double>());
  EXPECT_THAT(text, HasSubstr("rank 0 waits 800"));
  EXPECT_THAT(text, HasSubstr("for rank 1"));
}

TEST_F(CliRanks, AWhatIfOverAFolderPlaysAllRanks) {
  const CliResult r = Run("whatif " + Path("run") +
                          " --opt 'straggler(1, gpu=0.5)' --opt 'straggler(0, gpu=0.5)' "
                          "--opt 'bandwidth(x2)' --format json");
  ASSERT_EQ(r.exit, 0) << r.err;
  const nlohmann::json json = nlohmann::json::parse(r.out);
  const auto& p = json["scenarios"];
  ASSERT_EQ(p.size(), 4u);
  const double base = p[0]["window_ms"];
  // The host launches the second round at 610 us, whatever the GPU does: that round counts.
  EXPECT_NEAR(p[1]["window_ms"].get<double>(), base - 0.25, 0.005);
  EXPECT_NEAR(p[2]["window_ms"].get<double>(), base, 1e-6);  // it waits longer instead
  // 20 us of 100 are latency: a transfer takes 40 us less.
  EXPECT_NEAR(p[3]["window_ms"].get<double>(), base - 0.04, 0.005);
  EXPECT_EQ(p[1]["ranks_changed"], 1);
  EXPECT_THAT(
      Run("whatif " + Path("run") + " --opt 'straggler(9, gpu=0.5)'").err,
      HasSubstr("it changes none of the 2 recorded ranks; on rank 0: this is rank 0, not 9"));
}

// The step changes by what the slowest rank does otherwise, by who is the slowest then, and by
// waits; the parts sum to the difference.
TEST_F(CliRanks, CausesOfAJointWhatIfSumToItsDifference) {
  const auto sums = [](int64_t base, const nlohmann::json& prediction) {
    int64_t sum = 0;
    for (const auto& cause : prediction["causes"]) sum += cause["delta_ns"].get<int64_t>();
    EXPECT_EQ(sum, prediction["step_ns"].get<int64_t>() - base) << prediction["name"];
  };
  const CliResult asked =
      Run("whatif " + Path("run") +
          " --opt 'straggler(1, gpu=0.5)' --opt 'straggler(1, gpu=0.1),bandwidth(x2)' "
          "--format json");
  ASSERT_EQ(asked.exit, 0) << asked.err;
  const auto scenarios = nlohmann::json::parse(asked.out)["scenarios"];
  for (size_t i : {1, 2}) sums(scenarios[0]["step_ns"], scenarios[i]);
  const CliResult advised = Run("advise " + Path("run") + " --format json");
  ASSERT_EQ(advised.exit, 0) << advised.err;
  const auto advice = nlohmann::json::parse(advised.out);
  ASSERT_GE(advice["options"].size(), 2u);
  for (const auto& o : advice["options"]) sums(advice["step_ns"], o["prediction"]);
  const CliResult r = Run("whatif " + Path("run") + " --opt 'straggler(1, gpu=0.1)'");
  EXPECT_THAT(r.out, HasSubstr("GPU work on the longest path of rank 1, the slowest"));
  EXPECT_THAT(r.out, HasSubstr("rank 0 is the slowest then"));
}

// Rank 1 bounds the step however ranks are drawn; one draw with 5 % is often 4 % off.
// What one rank did not record is left out of the others: they would go on in it without that rank,
// or wait for it as the recording did.
TEST_F(CliRanks, RanksWithFewerStepsAreAnsweredFromTheStepsOfAll) {
  const std::string question = " --opt 'bandwidth(x2)' --opt 'straggler(1, gpu=0.8)' --format json";
  const auto ask = [&](int rank, int first, int last) {
    for (int r = 0; r < 3; ++r) {
      Write(fmt::format("run/rank{}.json", r),
            r == rank ? RankOfSteps(r, first, last) : RankOfSteps(r, 0, 4));
    }
    return Run("whatif " + Path("run") + question);
  };
  const nlohmann::json all = nlohmann::json::parse(ask(0, 0, 4).out);
  ASSERT_GT(all["scenarios"][1]["speedup"].get<double>(), 1.15);
  ASSERT_GT(all["scenarios"][2]["speedup"].get<double>(), 1.1);
  for (int rank : {1, 2}) {  // the slow one, which all wait for, and another one
    for (const auto& [first, last] : {std::pair(0, 3), {1, 4}, {0, 2}, {1, 3}}) {
      const CliResult r = ask(rank, first, last);
      ASSERT_EQ(r.exit, 0) << r.err;
      const nlohmann::json some = nlohmann::json::parse(r.out);
      for (size_t i = 0; i < 3; ++i) {
        EXPECT_NEAR(some["scenarios"][i]["step_ms"].get<double>(),
                    all["scenarios"][i]["step_ms"].get<double>(), 1e-3)
            << "rank " << rank << ", steps " << first << " to " << last << ", scenario " << i;
        EXPECT_EQ(some["scenarios"][i]["step_bound_by"], all["scenarios"][i]["step_bound_by"]);
      }
      const std::string told = fmt::format(
          "rank {} did not record all steps that others recorded: {} of 4 steps are played", rank,
          last - first);
      EXPECT_THAT(OneLine(Run("ranks " + Path("run")).out), HasSubstr(told));
      const auto ranks = nlohmann::json::parse(Run("ranks " + Path("run") + " --format json").out);
      ASSERT_EQ(ranks["problems"].size(), 1u);
      EXPECT_EQ(ranks["problems"][0]["kind"], "window_edge");
      EXPECT_EQ(ranks["problems"][0]["ranks"], nlohmann::json::array({rank}));
    }
  }
}

TEST_F(CliRanks, MarkdownSaysWhatTheTextSays) {
  for (int r = 0; r < 3; ++r) Write(fmt::format("run/rank{}.json", r), RankOfSteps(r, 0, 7));
  const std::string ranks = Run("ranks --format md " + Path("run")).out;
  EXPECT_THAT(ranks, HasSubstr("3 ranks recorded, "));
  EXPECT_THAT(ranks, HasSubstr("\\\nbound by "));
  EXPECT_THAT(ranks, HasSubstr("| collective |"));
  EXPECT_THAT(ranks, HasSubstr("own step: a step of the rank alone"));
  EXPECT_THAT(Run("whatif --format md " + Path("run") + " --opt 'bandwidth(x2)'").out,
              HasSubstr("3 ranks played together, "));
}

// ... and between steps that it recorded, too.
TEST_F(CliRanks, AStepThatOneRankLacksBetweenOthersSplitsTheRun) {
  const std::string question = " --opt 'bandwidth(x2)' --opt 'straggler(1, gpu=0.8)' --format json";
  const auto ask = [&](int rank, int without) {
    for (int r = 0; r < 3; ++r) {
      Write(fmt::format("run/rank{}.json", r), RankOfSteps(r, 0, 7, r == rank ? without : -1));
    }
    return nlohmann::json::parse(Run("whatif " + Path("run") + question).out);
  };
  const nlohmann::json all = ask(0, -1);
  ASSERT_GT(all["scenarios"][2]["speedup"].get<double>(), 1.1);
  for (int rank : {1, 2}) {  // the slow one, which all wait for, and another one
    for (const auto& [without, left] : {std::pair(1, 5), {2, 4}, {3, 3}, {4, 4}, {5, 5}}) {
      const nlohmann::json some = ask(rank, without);
      for (size_t i = 0; i < 3; ++i) {
        EXPECT_NEAR(some["scenarios"][i]["step_ms"].get<double>(),
                    all["scenarios"][i]["step_ms"].get<double>(), 1e-3)
            << "rank " << rank << " without step " << without << ", scenario " << i;
      }
      EXPECT_THAT(OneLine(Run("ranks " + Path("run")).out),
                  HasSubstr(fmt::format("rank {} did not record all steps that others recorded: {} "
                                        "of 7 steps are played, the longest run",
                                        rank, left)));
    }
  }
}

TEST_F(CliRanks, JitterIsTheMiddleOfManyDraws) {
  std::set<double> steps;
  for (int seed = 0; seed < 6; ++seed) {
    const CliResult r =
        Run(fmt::format("whatif {} --opt 'jitter(5%,seed={})' --format json", kExample, seed));
    ASSERT_EQ(r.exit, 0) << r.err;
    const auto scenarios = nlohmann::json::parse(r.out)["scenarios"];
    const double before = scenarios[0]["step_ms"], after = scenarios[1]["step_ms"];
    EXPECT_NEAR(after / before, 1, 0.02) << seed;
    // 90 % of draws.
    EXPECT_GT(scenarios[1]["interval_ms"][1].get<double>() / after, 1.04) << seed;
    EXPECT_EQ(scenarios[1]["name"], fmt::format("jitter(sd=5%,seed={})", seed));
    steps.insert(after);
  }
  EXPECT_GT(steps.size(), 3u);
}

TEST_F(CliRanks, OnChangesSomeOfTheRanks) {
  const std::string opt = " --opt 'speedup(select=kernel:gemm,by=x2)' --format json";
  auto scenario = [&](const std::string& on) {
    const CliResult r = Run("whatif " + Path("run") + on + opt);
    EXPECT_EQ(r.exit, 0) << r.err;
    return nlohmann::json::parse(r.out)["scenarios"].back();
  };
  const auto all = scenario(""), first = scenario(" --on 'ranks 0'"), both = scenario(" --on 0-1");
  EXPECT_EQ(all["ranks_changed"], 2);
  EXPECT_EQ(both["window_ms"], all["window_ms"]);
  EXPECT_EQ(first["ranks_changed"], 1);
  EXPECT_GT(first["window_ms"].get<double>(), all["window_ms"].get<double>());
  for (const char* none : {"7", "'ranks 0-99'", "'ranks 1-7'", "'ranks 3-9'", "'ranks 1-0'"}) {
    EXPECT_THAT(Run("whatif " + Path("run") + " --on " + none + " --opt amp").err,
                HasSubstr("E0104"))
        << none;
  }
}

// As of one trace: nothing is built on a replay that is far off.
TEST_F(CliRanks, AReplayThatIsFarOffPredictsNothing) {
  auto last = [](std::string file, const std::string& was, const std::string& is) {
    return file.replace(file.rfind(was), was.size(), is);
  };
  // The second of two alike transfers takes five times as long as the first.
  Write("run/rank0.json", last(RankFile(0, 100), "\"dur\":500,", "\"dur\":900,"));
  Write("run/rank1.json", last(RankFile(1, 500), "\"dur\":100,", "\"dur\":500,"));
  for (const std::string ask : {"whatif --opt 'bandwidth(x2)' ", "advise ", "sweep --opt p3 "}) {
    const CliResult r = Run(ask + Path("run") + " --format json");
    EXPECT_EQ(r.exit, 4) << ask << r.out;
    EXPECT_THAT(r.out, testing::AllOf(HasSubstr("\"findings\": ["), HasSubstr("E0602"))) << r.err;
    EXPECT_EQ(Run(ask + Path("run") + " --max-replay-error 60%").exit, 0) << ask;
  }
  EXPECT_EQ(Run("whatif " + Path("run")).exit, 0);  // what was recorded can be looked at
}

// What is said of a prediction of several ranks holds it; what the user says is no model.
TEST_F(CliRanks, JointPredictionsHaveIntervals) {
  const CliResult r =
      Run("whatif " + Path("run") + " --opt 'bandwidth(x2)' --opt free-comm --format json");
  ASSERT_EQ(r.exit, 0) << r.err;
  const auto scenarios = nlohmann::json::parse(r.out)["scenarios"];
  const auto interval = scenarios[1]["interval_ms"];
  const double step = scenarios[1]["step_ms"];
  EXPECT_LT(interval[0].get<double>(), step);
  EXPECT_GT(interval[1].get<double>(), step);
  EXPECT_LT(interval[1].get<double>(), step * 1.1);
  EXPECT_EQ(scenarios[1]["confidence"], "medium");
  EXPECT_TRUE(scenarios[2]["interval_ms"].is_null());  // a limit
  EXPECT_EQ(scenarios[2]["confidence"], "low");
  EXPECT_EQ(scenarios[2]["confidence_why"], "a limit, not a prediction");
  const CliResult plain =
      Run("whatif " + Path("run") + " --opt 'bandwidth(x2)' --no-interval --format json");
  EXPECT_TRUE(nlohmann::json::parse(plain.out)["scenarios"][1]["interval_ms"].is_null());
}

TEST_F(CliRanks, AdviseAsksForTheFastestMeasuredNetworkOfTheVendor) {
  const auto rate = [](const Fabric& fabric) {
    double best = 0;
    for (const FabricCurve& curve : fabric.levels.back().all_reduce) {
      if (curve.measured()) best = std::max(best, curve.bus_gbps);
    }
    return best;
  };
  const std::pair<std::string, std::string> vendors[] = {{"NVIDIA H100 80GB HBM3", "nvlink"},
                                                         {"AMD Instinct MI300X", "xgmi"}};
  for (const auto& [gpu, link] : vendors) {
    Write("run/rank0.json", RankFile(0, 100, 1, gpu));
    Write("run/rank1.json", RankFile(1, 500, 1, gpu));
    const auto told = nlohmann::json::parse(Run("advise " + Path("run") + " --format json").out);
    std::vector<std::string> networks;
    for (const char* list : {"options", "not_worth"}) {
      for (const auto& o : told[list]) {
        const std::string name = o["prediction"]["name"];
        if (name.starts_with("network(")) networks.push_back(name);
      }
    }
    ASSERT_EQ(networks.size(), 1u) << gpu;
    double of_row = 0, fastest = 0;
    for (const Fabric& fabric : Fabrics()) {
      if (fabric.levels.size() > 1 || !fabric.name.starts_with(link)) continue;
      fastest = std::max(fastest, rate(fabric));
      if (networks[0] == fmt::format("network(fabric={})", fabric.name)) of_row = rate(fabric);
    }
    EXPECT_GT(fastest, 0) << gpu;
    EXPECT_EQ(of_row, fastest) << networks[0];
  }
}

TEST_F(CliRanks, AdviseAsksAllRanksTogether) {
  const CliResult r = Run("advise " + Path("run") + " --format json");
  ASSERT_EQ(r.exit, 0) << r.err;
  const auto json = nlohmann::json::parse(r.out);
  EXPECT_EQ(json["ranks"]["recorded"].size(), 2u);
  EXPECT_EQ(json["schema"], "daydream.advise/1");
  std::string names;
  for (const auto& o : json["options"]) {
    const auto& p = o["prediction"];
    names += p["name"].get<std::string>() + " ";
    // As of one GPU: what it takes, what it may break, and how sure it is.
    EXPECT_GE(o["saved_ns"].get<int64_t>(), json["step_ns"].get<int64_t>() / 200) << p["name"];
    EXPECT_TRUE(o.contains("effort") && o.contains("risk")) << p["name"];
    EXPECT_EQ(p["interval_ms"].size(), 2u) << p["name"];
    EXPECT_EQ(p["speedup_interval"].size(), 2u) << p["name"];
    EXPECT_FALSE(p["confidence_why"].get<std::string>().empty()) << p["name"];
  }
  for (const char* name : {"bandwidth", "network("}) EXPECT_THAT(names, HasSubstr(name));
  EXPECT_THAT(names, testing::Not(HasSubstr("straggler")));
  EXPECT_THAT(json["slowest_rank_mended"].dump(), HasSubstr("straggler(rank=1,"));
  EXPECT_THAT(names, testing::Not(HasSubstr("free-comm")));
  EXPECT_THAT(json["limits"].dump(), HasSubstr("free-comm"));
  EXPECT_THAT(json["best"].dump(), testing::Not(HasSubstr("bandwidth")))
      << "nobody can switch it on";
  const std::string text = Run("advise " + Path("run")).out;
  EXPECT_THAT(text, HasSubstr("another network"));
  EXPECT_THAT(text, HasSubstr("ceilings, of one kind of work each:"));
  EXPECT_THAT(text, HasSubstr("  first: what keeps rank 1, whose own cycle decides; with --opt"));
  for (const std::string flag : {"--true-step 1ms", "--objective cost", "--samples 8"}) {
    const CliResult refused = Run("advise " + Path("run") + " " + flag);
    EXPECT_EQ(refused.exit, 2) << flag;
    EXPECT_THAT(refused.err, HasSubstr(flag.substr(0, flag.find(' ')) + " is about one rank"));
  }
  EXPECT_EQ(Run("advise " + Path("run") + " --objective step --details 2").exit, 0);
}

// The only step of one rank is all that was recorded of it, played again and again, as for several;
// that of a program which is alone lies between the ends of GPU work.
TEST_F(CliRanks, TheOnlyStepOfARankIsItsWholeRecording) {
  std::string file = RankFile(1, 500);
  file.insert(file.find("\"traceEvents\":[") + 15,
              R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#3","pid":1,"tid":1,)"
              R"("ts":605,"dur":700,"args":{}},)");
  const auto step = [&](const std::string& command) {
    const std::string out = Run(command + " " + Path("alone.json") + " --format json").out;
    return nlohmann::json::parse(out)["scenarios"][0]["step_ms"].get<double>();
  };
  Write("alone.json", file);
  EXPECT_NEAR(step("whatif"), 1.305, 1e-6);
  EXPECT_NEAR(step("whatif --peers recorded"), 1.305, 1e-6);
  file.replace(file.find("\"world_size\":2"), 14, "\"world_size\":1");
  Write("alone.json", file);
  EXPECT_NEAR(step("whatif"), 0.61, 1e-6);
}

// Lesson 10: one of four ranks has more to do on its GPU, and the others wait for it.
TEST_F(CliRanks, WhatIsSuggestedNextChangesTheRankThatBounds) {
  ASSERT_EQ(Run("tour 10 --save " + Path("saved")).exit, 0);
  const std::string ask = fmt::format("{} ranks {}", DAYDREAM_BINARY, Path("saved/lesson10"));
  const std::string shown = std::regex_replace(  // which a shell reads as one line
      OnTerminal(ask, /*messages=*/true), std::regex(R"(\\\r?\n *)"), "");
  const std::string begin = "next: daydream ";
  ASSERT_THAT(shown, HasSubstr(begin));
  const size_t from = shown.find(begin) + begin.size();
  const std::string next = shown.substr(from, shown.find_first_of("\r\n", from) - from);
  EXPECT_THAT(next, HasSubstr("'straggler(1, gpu="));
  const nlohmann::json asked = nlohmann::json::parse(Run(next + " --format json").out);
  EXPECT_LT(asked["scenarios"][1]["step_ms"].get<double>(),
            0.95 * asked["scenarios"][0]["step_ms"].get<double>())
      << next;
}

TEST_F(CliRanks, OneRankAloneIsAskedForByNumber) {
  const CliResult r = Run("whatif " + Path("run") + " --rank 0 --opt free-comm --format json");
  ASSERT_EQ(r.exit, 0) << r.err;
  const auto json = nlohmann::json::parse(r.out);
  EXPECT_FALSE(json.contains("ranks"));
  for (const auto& s : json["scenarios"]) EXPECT_EQ(s["window_ms"], s["step_ms"]) << s["name"];
  const auto steps =
      nlohmann::json::parse(Run("whatif " + kExample + " --rank 1 --format json").out);
  EXPECT_NEAR(steps["scenarios"][0]["window_ms"].get<double>(), 26.12, 0.01);  // of three of 9 ms
}

TEST_F(CliRanks, NotesNameTheScenarioAndATraceAloneIsToldSo) {
  const std::string err =
      Run("whatif " + Path("run") + " --opt 'bandwidth(x2)' --opt 'network(nvlink4)'").err;
  EXPECT_THAT(err, HasSubstr("note: network(fabric=nvlink4): nvlink4: all_reduce"));
  const CliResult alone =
      Run("ranks " + std::string(DAYDREAM_SOURCE_DIR) + "/examples/resnet50-synthetic.ddtrace");
  EXPECT_THAT(alone.err, HasSubstr("E0435"));
  EXPECT_THAT(alone.err, HasSubstr("no collective in this trace waits for another rank"));
}

TEST_F(CliRanks, AnOppositeOrderIsAnError) {
  Write("run/rank1.json", RankFile(1, 500, 2));
  const CliResult r = Run("ranks " + Path("run"));
  EXPECT_EQ(r.exit, 3) << r.err;
  EXPECT_THAT(r.err, HasSubstr("E0434"));
  EXPECT_THAT(r.err, HasSubstr("#1 before"));
  EXPECT_THAT(r.err, HasSubstr("after it on rank 1"));
}

TEST_F(CliRanks, TwoFilesOfOneRankAreNoRun) {
  Write("run/rank1.json", RankFile(0, 500));
  EXPECT_THAT(Run("ranks " + Path("run")).err, HasSubstr("E0431"));
}

TEST_F(CliRanks, ATraceWithoutARankIsNotOneOfThem) {
  std::string copy = RankFile(1, 500);
  copy.replace(copy.find("distributedInfo"), 15, "somethingElse00");
  Write("run/copy.json", copy);
  for (const char* command : {"ranks ", "whatif ", "summary "}) {
    const CliResult r = Run(command + Path("run"));
    EXPECT_EQ(r.exit, 3) << command << r.err;
    EXPECT_THAT(r.err, HasSubstr("error[E0431]: one of these traces does not say its rank"));
  }
}

TEST_F(CliRanks, OneThatWasImportedStaysOneOfThem) {
  const std::string ask = "ranks " + Path("run") + " --format csv";
  const std::string before = Run(ask).out;
  ASSERT_EQ(Run("import " + Path("run/rank0.json")).exit, 0);
  EXPECT_EQ(Run(ask).out, before);
  std::filesystem::rename(Path("run/rank1.json"), Path("run/rank1.JSON"));
  EXPECT_EQ(Run(ask).out, before);
  ASSERT_EQ(Run("import " + Path("run/rank1.JSON")).exit, 0);
  EXPECT_EQ(Run(ask).out, before);
}

TEST_F(CliRanks, WhatIsNotReadOfAFolderIsSaid) {
  ASSERT_EQ(Run("import " + Path("run/rank0.json") + " -o " + Path("run/first.ddtrace")).exit, 0);
  EXPECT_THAT(OneLine(Run("summary " + Path("run")).err),
              HasSubstr("not read beside 1 trace: 2 files of another kind, the first rank0.json"));
}

}  // namespace
}  // namespace daydream
