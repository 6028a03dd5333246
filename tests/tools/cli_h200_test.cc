// Predictions from our own recordings of an H200 against steps measured on it (tests/data/h200).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "tests/tools/cli_fixture.h"

namespace daydream {
namespace {

const std::string kFolder = DAYDREAM_SOURCE_DIR "/tests/data/h200/";

class CliH200 : public CliFixture {
 protected:
  void SetUp() override {
    CliFixture::SetUp();
    const std::string csv = ReadAll(kFolder + "measured.csv");
    for (size_t at = csv.find('\n') + 1; at < csv.size();) {
      const size_t end = csv.find('\n', at);
      AddRow(csv.substr(at, end - at));
      at = end + 1;
    }
    ASSERT_GT(measured_.size(), 40u);
  }

  // The scenario of `options`, or the baseline where they are empty.
  nlohmann::json Predicted(const std::string& file, const std::string& options) const {
    const std::string opt = options.empty() ? "" : " --opt '" + options + "'";
    const CliResult r = Run("whatif " + kFolder + file + opt + " --format json");
    EXPECT_EQ(r.exit, 0) << file << " " << options << ": " << r.err;
    if (r.exit != 0) return {};
    return nlohmann::json::parse(r.out)["scenarios"].back();
  }

  struct Row {
    double step_ms = 0;
    bool clean = false;
  };
  std::map<std::string, Row> measured_;  // by "model,variant"

 private:
  // model,variant,"options",step_ms,sync_ms,batch,peak_mb,clean,why
  void AddRow(const std::string& line) {
    const size_t begin = line.find('"'), end = line.find('"', begin + 1);
    ASSERT_NE(end, std::string::npos) << line;
    const std::string key = line.substr(0, begin - 1);
    const Row row{.step_ms = std::stod(line.substr(end + 2)),
                  .clean = line.find(",yes,") != std::string::npos};
    measured_[key] = row;
  }
};

// What recording cost is left out: the step is the one that nobody recorded.
TEST_F(CliH200, TheStepIsTheOneThatWasMeasuredWithoutARecorder) {
  // The second column: the step as docs/recorder.md tells it.
  const std::map<std::string, double> told{{"mlp", 15.5},          {"bert_base", 72.8},
                                           {"gpt2_medium", 271.1}, {"resnet50", 71.2},
                                           {"vgg19", 68.0},        {"gnmt", 120.8}};
  for (const auto& [model, ms] : told) {
    const double step = Predicted(model + ".base.ddtrace", "")["step_ms"];
    EXPECT_NEAR(step, ms, 0.06) << model;
    EXPECT_NEAR(step / measured_.at(model + ",base").step_ms, 1, 0.02) << model;
  }
  // Runs of one program differ: 16.7 ms in the table, 14.0 in the process that was recorded.
  const double dlrm = Predicted("dlrm.base.ddtrace", "")["step_ms"];
  EXPECT_GT(dlrm, 14.0);
  EXPECT_LT(dlrm, 16.7);
}

// The compiler leaves the optimizer as it is. docs/accuracy.md tells this gain beside a published
// one of 1.77x (12 layers of the same width in fp32 on an H800), which a forward pass puts
// at 2.38x.
TEST_F(CliH200, ACompiledTrainingStepGainsLessThanItsForwardPass) {
  const std::string file = "bert_base.base.json.zst";
  const auto gain = [&](const std::string& before) {
    const double step = Predicted(file, before)["step_ms"];
    return step / Predicted(file, before + ",compile")["step_ms"].get<double>();
  };
  EXPECT_NEAR(gain("batch(x0.125)"), 1.86, 0.005);
  EXPECT_GT(gain("batch(x0.125),remove(phase:backward),remove(phase:optimizer)"), 2.5);
}

// Whatever the GPU takes, no step is shorter than where it takes nothing.
TEST_F(CliH200, AFasterGpuNeverBeatsOneThatTakesNoTime) {
  for (const char* model : {"vgg19", "gnmt", "gpt2_medium"}) {
    const std::string file = std::string(model) + ".base.ddtrace";
    const double limit = Predicted(file, "free-gpu")["step_ms"];
    double last = Predicted(file, "")["step_ms"];
    for (const char* by : {"1.5", "2", "3", "5", "1000"}) {
      const double step = Predicted(file, fmt::format("speedup(.,by={})", by))["step_ms"];
      EXPECT_GE(step, limit) << model << ", " << by << " times as fast";
      EXPECT_LE(step, last) << model << ", " << by << " times as fast";
      last = step;
    }
  }
}

struct Claim {
  const char *model, *variant, *options;
  double ms;     // predicted; docs/recorder.md tells some
  double error;  // at most, as a share of what was measured
};

TEST_F(CliH200, PredictionsOfCleanRowsAreNearAndInsideTheirIntervals) {
  constexpr Claim kClaims[] = {
      {"bert_base", "fused_adam", "fuse(what=optimizer)", 69.1, 0.01},
      {"bert_base", "batch_x2", "batch(size=x2)", 139.2, 0.05},
      {"bert_base", "checkpoint", "checkpointing", 92.5, 0.08},
      {"gpt2_medium", "checkpoint", "checkpointing", 348.6, 0.03},
      {"resnet50", "channels_last", "channels-last", 70.8, 0.03},
      {"vgg19", "channels_last", "channels-last", 68.1, 0.08},
      {"gnmt", "fused_adam", "fuse(what=optimizer)", 117.9, 0.01},
  };
  for (const Claim& c : kClaims) {
    const Row row = measured_.at(fmt::format("{},{}", c.model, c.variant));
    EXPECT_TRUE(row.clean) << c.model << " " << c.variant;
    const nlohmann::json s = Predicted(fmt::format("{}.base.ddtrace", c.model), c.options);
    if (s.is_null()) continue;
    const std::string what = fmt::format("{} {}", c.model, c.options);
    EXPECT_NEAR(s["step_ms"].get<double>() / c.ms, 1, 0.005) << what;
    EXPECT_NEAR(s["step_ms"].get<double>() / row.step_ms, 1, c.error) << what;
    EXPECT_LE(s["interval_ms"][0].get<double>(), row.step_ms) << what;
    EXPECT_GE(s["interval_ms"][1].get<double>(), row.step_ms) << what;
  }
}

// The backward thread is idle between two passes: what the main thread saves reaches the step.
TEST_F(CliH200, OptimizationsOfTheMainThreadReachTheStep) {
  const nlohmann::json s = Predicted("mlp.base.ddtrace", "fuse(what=optimizer)");
  EXPECT_NEAR(s["step_ms"].get<double>(), 9.2, 0.06);
}

// A graph takes Adam with capturable=True, whose loop launches 12 more kernels for each of the 98
// parameters; without them 2.8 ms would be predicted. Measured: 4.9 ms.
TEST_F(CliH200, AGraphWithALoopOfAdamHasTheKernelsThatCountItsSteps) {
  const CliResult r = Run("whatif " + kFolder + "mlp.base.ddtrace --opt graphs --format json");
  ASSERT_EQ(r.exit, 0) << r.err;
  EXPECT_NE(r.out.find("12 more kernels for each parameter, 1176 a step"), std::string::npos);
  const nlohmann::json s = nlohmann::json::parse(r.out)["scenarios"].back();
  const double measured = measured_.at("mlp,cuda_graph").step_ms;
  EXPECT_NEAR(s["step_ms"].get<double>() / measured, 1, 0.07);
  EXPECT_LE(s["interval_ms"][0].get<double>(), measured);
  EXPECT_GE(s["interval_ms"][1].get<double>(), measured);
}

// Launches that waited for a queue which three streams share, and kernels that waited for room, get
// shorter with the GPU's work: docs/recorder.md. The measured row, 42 ms, is not clean.
TEST_F(CliH200, StreamsThatShareAQueueWaitForItTogether) {
  const nlohmann::json s = Predicted("gnmt.base.ddtrace", "amp");
  EXPECT_NEAR(s["step_ms"].get<double>(), 49.9, 0.3);
  EXPECT_NEAR(s["interval_ms"][0].get<double>(), 34.8, 0.5);
  EXPECT_NEAR(s["interval_ms"][1].get<double>(), 74.4, 1);
}

// 1.9 times as fast was measured: the profiler had made host work twice as long.
TEST_F(CliH200, IntervalsHoldThatAProfilerMayHaveStretchedHostWork) {
  const nlohmann::json s = Predicted("bert_base.base.json.zst", "amp");
  EXPECT_LT(s["speedup"].get<double>(), 1);
  EXPECT_EQ(s["confidence"], "low");
  EXPECT_LT(s["interval_ms"][0].get<double>(), 0.55 * s["step_ms"].get<double>());
  EXPECT_NEAR(s["speedup_interval"][1].get<double>(), 1.77, 0.02);
  // Where the baseline has that host, too, the step is as unsure and its gain is not.
  const nlohmann::json m = Predicted("mlp.base.json.zst", "amp");
  EXPECT_LT(m["interval_ms"][0].get<double>(), 0.55 * m["step_ms"].get<double>());
  EXPECT_LT(m["speedup_interval"][1].get<double>(), 1.1 * m["speedup"].get<double>());
  // The note says 106 %.
  const double mlp = Predicted("mlp.base.json.zst", "")["step_ms"];
  EXPECT_NEAR(mlp / measured_.at("mlp,base").step_ms, 2.06, 0.005);
}

// What amp's tensor_exponent rests on: of 20 products the middle is 2.0 times as fast in bf16 as in
// TF32, and 18 are 1.7 times as fast or more.
TEST_F(CliH200, ProductsInTf32GainAllOfTheRatioTo16Bit) {
  std::map<std::string, std::pair<double, double>> us;  // by shape: in TF32 and in bf16
  const std::string csv = ReadAll(kFolder + "kernels.csv");
  for (absl::string_view line : absl::StrSplit(csv, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> cell = absl::StrSplit(line, ',');
    if (cell[1] != "\"gemm\"") continue;
    auto& [tf32, bf16] = us[fmt::format("{} {} {}", cell[2], cell[3], cell[4])];
    if (cell[5] == "\"tf32\"") tf32 = std::stod(cell[0]);
    if (cell[5] == "\"bf16\"") bf16 = std::stod(cell[0]);
  }
  std::vector<double> gains;
  for (const auto& [shape, t] : us) {
    if (t.first > 0 && t.second > 0) gains.push_back(t.first / t.second);
  }
  std::ranges::sort(gains);
  ASSERT_EQ(gains.size(), 20u);
  EXPECT_NEAR(gains[10], 2.0, 0.05);
  EXPECT_GE(gains[2], 1.7);
}

// What `daydream kernels` says of kernels that were timed there: tests/data/h200/README.md.
TEST_F(CliH200, KernelsAreAsFarOffAsTheReadmeSays) {
  struct Sum {
    double error = 0;
    int rows = 0, inside = 0;
  };
  std::map<std::string, Sum> sums;
  const std::string csv = ReadAll(kFolder + "kernels.csv");
  for (size_t at = csv.find('\n') + 1; at < csv.size();) {
    const size_t end = csv.find('\n', at);
    std::string line = csv.substr(at, end - at);
    at = end + 1;
    std::erase(line, '"');
    std::vector<std::string> cell;  // us,op,m,n,k,dtype,pass,backend,batch,heads,kv,seq,dim,causal
    for (absl::string_view c : absl::StrSplit(line, ',')) cell.emplace_back(c);
    std::string kind, query;
    if (cell[1] == "gemm") {
      kind = cell[5];
      query = fmt::format("--gemm {}x{}x{} --dtype {}", cell[2], cell[3], cell[4], cell[5]);
    } else if (cell[1] == "attention" && cell[6] == "forward" && cell[7] == "flash") {
      kind = "attention";
      query = fmt::format("--attention {}x{}x{}x{}{}", cell[8], cell[9], cell[11], cell[12],
                          cell[13] == "True" ? " --causal" : "");
    } else if (cell[1] == "attention" && cell[6] == "backward") {
      kind = "attention backward, " + cell[7];
      query = fmt::format("--attention {}x{}x{}x{}{} --backward", cell[8], cell[9], cell[11],
                          cell[12], cell[13] == "True" ? " --causal" : "");
    } else if (cell[1] == "layernorm" || cell[1] == "add" || cell[1] == "neg" ||
               cell[1] == "gelu") {
      const bool norm = cell[1] == "layernorm";
      const std::string type = cell[5].empty() ? cell[4] : cell[5];
      kind = fmt::format("{}, {}", norm ? "layer norm" : "elementwise",
                         type == "float32" ? "fp32" : "16 bit");
      const int64_t elements = std::stoll(cell[3]);
      query = norm
                  ? fmt::format("--layer-norm {}x1024", elements / 1024)
                  // Two tensors in and one out.
                  : fmt::format("--elementwise {}", cell[1] == "add" ? elements / 2 * 3 : elements);
      query += type == "float32" ? " --dtype fp32" : "";
    } else {
      continue;
    }
    const CliResult r = Run("kernels --gpu H200 --format json " + query);
    ASSERT_EQ(r.exit, 0) << query << ": " << r.err;
    nlohmann::json on = nlohmann::json::parse(r.out)["kernels"][0]["on"][0];
    if (kind == "fp8") on = on["without_cast"];  // the product alone was timed
    const double us = std::stod(cell[0]);
    Sum& sum = sums[kind];
    sum.error += std::abs(on["us"].get<double>() / us - 1);
    ++sum.rows;
    sum.inside +=
        on["interval_us"][0].get<double>() <= us && us <= on["interval_us"][1].get<double>();
  }
  std::string table;
  for (const auto& [kind, sum] : sums) {
    table += fmt::format("| {} | {} | {:.1f} % | {} |\n", kind, sum.rows,
                         100 * sum.error / sum.rows, sum.inside);
  }
  EXPECT_NE(ReadAll(kFolder + "README.md").find(table), std::string::npos) << table;
}

}  // namespace
}  // namespace daydream
