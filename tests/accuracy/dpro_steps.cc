#include "tests/accuracy/dpro_steps.h"

#include <map>
#include <string>

#include "tests/accuracy/compose.h"
#include "tests/costmodel/costdata.h"

namespace daydream {
namespace {

struct Both {
  std::vector<double> fp32, fp16;  // us
  std::vector<StepComposer::Op> ops;
  std::string_view kernel;
  double weight_bytes = 0;  // in fp32
};

// ResNet-50 has one fully connected layer, 2048 x 1000. Rows with 32 inputs are the gradient of its
// weight (tests/costmodel/costdata_test.cc); its weight is cast once.
Both OpOf(const CostRow& row) {
  const int64_t b = row.Whole("B");
  if (row.at("op") == "Conv2D") {
    const int64_t h = row.Whole("H"), c = row.Whole("C"), k = row.Whole("K"), r = row.Whole("R");
    return {.fp32 = {},
            .fp16 = {},
            .ops = {{"aten::cudnn_convolution", {{b, c, h, h}, {k, c, r, r}}}},
            .kernel = "implicit_convolve_sgemm",
            .weight_bytes = 4.0 * static_cast<double>(k * c * r * r)};
  }
  const int64_t in = row.Whole("C_in"), out = row.Whole("C_out");
  Dims a = {b, in}, w = {in, out};
  if (in == 32) a = {2048, b}, w = {b, out};
  return {.fp32 = {},
          .fp16 = {},
          .ops = {{"aten::mm", {a, w}}},
          .kernel = "sgemm_128x64_nn",
          .weight_bytes = in == 2048 ? 4.0 * 2048 * 1000 : 0};
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

}  // namespace

absl::StatusOr<std::vector<FormatStep>> ComposeFormats(const DeviceSpec& gpu) {
  std::map<int64_t, std::map<std::string, Both>> by_batch;
  std::map<int64_t, std::vector<double>> casts;  // us by bytes
  ForEachCostRow("dpro_amp_v100.csv.gz", [&](const CostRow& row) {
    const double us = row.Number("us");
    if (row.at("op") == "CastToFp16") casts[row.Whole("S_in")].push_back(us);
    if (row.at("op").starts_with("Cast")) return;
    std::string key;
    for (const auto& [name, value] : row) {
      if (name != "us" && name != "fp") key += value + ' ';
    }
    Both& both = by_batch[row.Whole("B")].try_emplace(key, OpOf(row)).first->second;
    (row.at("fp") == "16" ? both.fp16 : both.fp32).push_back(us);
  });
  std::vector<FormatStep> steps;
  for (const auto& [batch, ops] : by_batch) {
    FormatStep step{.batch = batch, .fp32 = nullptr};
    StepComposer composer(gpu);
    for (const auto& [key, op] : ops) {
      const size_t times = std::min(op.fp32.size(), op.fp16.size());
      step.left_out += op.fp32.size() - times;
      if (times == 0) continue;
      const auto cast = casts.find(static_cast<int64_t>(op.weight_bytes));
      for (size_t i = 0; i < times; ++i) {
        composer.Add(op.ops, op.kernel, Mean(op.fp32));
        step.fp16_ms += Mean(op.fp16) / 1e3;
        if (cast != casts.end()) step.fp16_ms += Mean(cast->second) / 1e3;
        ++step.ops;
      }
    }
    DD_ASSIGN_OR_RETURN(step.fp32, composer.Build());
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace daydream
