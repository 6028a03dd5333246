// Whole networks by batch and GPU against what the Zeus project measured (NSDI'23, Apache-2.0):
// a table of docs/cost-model.md. Skipped, visibly, where its rows are not beside the repository.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>

#include <fmt/format.h>

#include "tests/costmodel/cost_page.h"
#include "tests/costmodel/costdata.h"
#include "tests/tools/cli_fixture.h"

namespace daydream {
namespace {

class CliZeus : public CliFixture {};

constexpr double kImages = 1281167;  // of an epoch of ImageNet

// Milliseconds a step of ResNet-50 by batch, at the most power that was allowed.
std::map<int, double> StepsOn(const std::string& file) {
  std::map<int, std::pair<double, double>> longest;  // power and time
  ForEachCostRow("zeus/" + file, [&](const CostRow& row) {
    if (row.at("network") != "resnet50") return;
    auto& [power, ms] = longest[static_cast<int>(row.Whole("batch_size"))];
    if (row.Number("power_limit") < power) return;
    power = row.Number("power_limit");
    ms = row.Number("time_per_epoch") * row.Number("batch_size") / kImages * 1e3;
  });
  std::map<int, double> steps;
  for (const auto& [batch, row] : longest) steps[batch] = row.second;
  return steps;
}

struct Recording {
  std::string path, title, gpu;
  int batch;
};

TEST_F(CliZeus, Resnet50ByBatchAndGpu) {
  const std::string traces = DAYDREAM_DATA_DIR "/traces/";
  const Recording recordings[] = {
      {traces + "gpus/resnet50-bs32.v100-sxm2.json.gz", "V100, without shapes", "V100", 32},
      {DAYDREAM_SOURCE_DIR "/tests/data/h200/resnet50.base.json.zst", "H200, with shapes", "", 64}};
  if (!HasCostdata("zeus/v100.csv") || !std::filesystem::exists(recordings[0].path)) {
    GTEST_SKIP() << "no measurements beside this folder";
  }
  const std::map<std::string, std::map<int, double>> measured = {{"V100", StepsOn("v100.csv")},
                                                                 {"P100", StepsOn("p100.csv")}};
  std::string page =
      "| recorded on | GPU | batch | Zeus, ms | predicted, ms | off, % | interval, ms | |\n"
      "|---|---|---|---|---|---|---|---|\n";
  const auto predict = [&](const Recording& from, const std::string& gpu, int batch) {
    const std::string grow =
        batch == from.batch ? "" : fmt::format("batch(x{})", 1.0 * batch / from.batch);
    const std::string move = gpu == from.gpu ? "" : fmt::format("gpu({})", gpu);
    const CliResult r = Run(fmt::format("whatif {} --opt '{}{}{}' --format json", from.path, move,
                                        move.empty() || grow.empty() ? "" : ",", grow));
    EXPECT_EQ(r.exit, 0) << r.err;
    return nlohmann::json::parse(r.out)["scenarios"];
  };
  int inside = 0, rows = 0;
  for (const Recording& from : recordings) {
    for (const auto& [gpu, steps] : measured) {
      for (const auto& [batch, zeus_ms] : steps) {
        const bool recorded = gpu == from.gpu && batch == from.batch;
        // Another batch of the program on an H200 is another question: not asked again for it.
        if (recorded || (from.gpu.empty() && batch != from.batch)) continue;
        const nlohmann::json scenarios = predict(from, gpu, batch);
        // Loader and host are not those of the recording: the batch that both have is made equal.
        const double here = scenarios[0]["step_ms"];
        const double ms =
            zeus_ms * (from.gpu.empty() ? 1 : here / measured.at(from.gpu).at(from.batch));
        const nlohmann::json& answer = scenarios.back();
        const double step = answer["step_ms"], low = answer["interval_ms"][0],
                     high = answer["interval_ms"][1];
        const bool holds = ms >= low && ms <= high;
        ++rows, inside += holds ? 1 : 0;
        page += fmt::format(
            "| {} | {} | {} | {:.1f} | {:.1f} | {:+.0f} | {:.0f} to {:.0f} | {} |\n", from.title,
            gpu, batch, ms, step, 100 * (step / ms - 1), low, high, holds ? "inside" : "outside");
      }
    }
  }
  page += fmt::format("\n{} of {} are inside of their interval.\n", inside, rows);
  CheckCostPage("cli_zeus_test resnet50", page);
}

}  // namespace
}  // namespace daydream
