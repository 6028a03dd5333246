// `daydream kernels --lstm` against the LSTMs of a recorded GNMT: the only ones that were measured
// (tests/data/h200). A table of docs/cost-model.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "tests/costmodel/cost_page.h"
#include "tests/costmodel/costdata.h"
#include "tests/tools/cli_fixture.h"

namespace daydream {
namespace {

using testing::HasSubstr;

class CliLstm : public CliFixture {};

// From the first to the last kernel of a layer in a phase, the middle of all steps.
std::map<std::string, double> SpansOfLayers(const std::string& csv) {
  std::map<std::string, std::map<std::string, std::pair<double, double>>> spans;  // by step
  std::istringstream in(csv);
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> head = CsvCells(line);
  const auto at = [&](std::string_view name) {
    return static_cast<size_t>(std::find(head.begin(), head.end(), name) - head.begin());
  };
  const size_t kind = at("kind"), step = at("step"), counted = at("counted"), phase = at("phase"),
               layer = at("layer"), start = at("start_ns"), end = at("end_ns");
  while (std::getline(in, line)) {
    if (line.find(",kernel,") == std::string::npos) continue;
    const std::vector<std::string> cells = CsvCells(line);
    if (cells[kind] != "kernel" || cells[counted] != "1") continue;
    const double from = std::stod(cells[start]), to = std::stod(cells[end]);
    auto [it, is_new] =
        spans[cells[layer] + ", " + cells[phase]].try_emplace(cells[step], from, to);
    it->second = {std::min(it->second.first, from), std::max(it->second.second, to)};
  }
  std::map<std::string, double> middle;
  for (const auto& [name, steps] : spans) {
    std::vector<double> ms;
    for (const auto& [number, span] : steps) ms.push_back((span.second - span.first) * 1e-6);
    std::sort(ms.begin(), ms.end());
    middle[name] = ms[ms.size() / 2];
  }
  return middle;
}

TEST_F(CliLstm, LayersOfARecordedGnmtTakeWhatTheirWorkSays) {
  const CliResult trace =
      Run("export " DAYDREAM_SOURCE_DIR "/tests/data/h200/gnmt.base.ddtrace --to csv");
  ASSERT_EQ(trace.exit, 0) << trace.err;
  const std::map<std::string, double> measured = SpansOfLayers(trace.out);
  const CliResult r =
      Run("kernels --gpu H200 --lstm 4x50x128x1024x1024 --dtype fp32 --format json");
  ASSERT_EQ(r.exit, 0) << r.err;
  const nlohmann::json on = nlohmann::json::parse(r.out)["kernels"][0]["on"][0];
  EXPECT_EQ(on["limiter"], "arithmetic");
  std::string page =
      "| LSTMs of GNMT, fp32, H200 | measured, ms | predicted, ms | off, % | inside |\n"
      "|---|---|---|---|---|\n";
  for (const std::string layer : {"Seq2Seq.enc", "Seq2Seq.dec"}) {
    for (const std::string phase : {"forward", "backward"}) {
      const double times = phase == "forward" ? 1 : 2;  // gradients of both factors
      const double ms = measured.at(layer + ", " + phase);
      const double predicted = times * on["us"].get<double>() * 1e-3;
      const double low = times * on["interval_us"][0].get<double>() * 1e-3;
      const double high = times * on["interval_us"][1].get<double>() * 1e-3;
      page +=
          fmt::format("| {}, {} | {:.1f} | {:.1f} | {:+.0f} | {} |\n", layer, phase, ms, predicted,
                      100 * (predicted / ms - 1), ms >= low && ms <= high ? "yes" : "no");
      EXPECT_NEAR(predicted / ms, 1, 0.2) << layer << phase;
    }
  }
  CheckCostPage("cli_lstm_test gnmt", page);
}

// Twice the steps of one sequence take twice as long, and another layer only its own link.
TEST_F(CliLstm, FewSequencesWaitForTheirSteps) {
  const auto answer = [&](const char* shape) {
    const CliResult r =
        Run(fmt::format("kernels --gpu H100 --lstm {} --dtype bf16 --format json", shape));
    EXPECT_EQ(r.exit, 0) << r.err;
    return nlohmann::json::parse(r.out)["kernels"][0]["on"][0];
  };
  const nlohmann::json one = answer("1x100x1x256x256");
  EXPECT_EQ(one["limiter"], "steps");
  const double us = one["us"];
  EXPECT_NEAR(answer("1x200x1x256x256")["us"].get<double>() / us, 2, 0.01);
  EXPECT_NEAR(answer("2x100x1x256x256")["us"].get<double>() / us, 1.01, 0.001);
  EXPECT_LT(one["interval_us"][0], us);
  EXPECT_GT(one["interval_us"][1], us);
}

TEST_F(CliLstm, ShapesAndFormatsThatNoLstmHasAreRefused) {
  const CliResult r = Run("kernels --gpu H100 --lstm 4x50x128x1024");
  EXPECT_EQ(r.exit, 2);
  EXPECT_THAT(r.err, HasSubstr("is not an LSTM"));
  EXPECT_EQ(Run("kernels --gpu H100 --lstm 1x1x1x1x99999999999").exit, 2);
  const CliResult fp8 = Run("kernels --gpu H100 --lstm 4x50x128x1024x1024 --dtype fp8");
  EXPECT_EQ(fp8.exit, 2);
  EXPECT_THAT(fp8.err, HasSubstr("no LSTM in fp8 is known"));
}

}  // namespace
}  // namespace daydream
