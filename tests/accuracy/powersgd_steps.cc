#include "tests/accuracy/powersgd_steps.h"

#include <cmath>
#include <string>

#include <fmt/format.h>

#include "tests/accuracy/one_gpu.h"

namespace daydream {
namespace {

const std::string kFabric = DAYDREAM_SOURCE_DIR "/tests/accuracy/ethernet-1g.fabric";

// Published: mark14wu/hipress-overlapping-profile, step_time/*.txt, means without the first 20
// steps, ms; batch 16 a GPU (its scripts). PyTorch's state was made with warm_start=False there.
struct Published {
  const char* row;
  const char* ddp;  // with the path of the fabric
  const char* way;  // with the rank
  double rank_1, rank_64;
};
constexpr Published kPublished[] = {
    {"VGG-19, in PyTorch's hook", "ddp(2,fabric={})", "powersgd({},warm_start=no)", 322.79, 794.01},
    {"VGG-19, beside backward", "ddp(2,fabric={},bucket=1B,bucket_view=yes)",
     "powersgd({},overlap=yes)", 201.65, 273.55},
};

// Layers of VGG-19 (Simonyan and Zisserman 2015, E) at 224 x 224: weights with biases behind them,
// and multiplications for an example.
TrainedModel Vgg19() {
  TrainedModel model{.gpu = "GTX1080Ti",
                     // As where a trace has no example: transforms/analysis/host_calls.cc.
                     .host = {.op = Duration::Us(15), .launch = Duration::Us(6)}};
  auto add = [&](Dims weight, double positions) {
    double elements = positions;
    for (int64_t d : weight) elements *= static_cast<double>(d);
    const int64_t width = weight[0];
    model.parameters.push_back(std::move(weight)), model.work.push_back(elements);
    model.parameters.push_back({width}), model.work.push_back(0);
  };
  int64_t channels = 3, side = 224;
  for (const auto& [width, layers] : {std::pair{64, 2}, {128, 2}, {256, 4}, {512, 4}, {512, 4}}) {
    for (int i = 0; i < layers; ++i) {
      add({width, channels, 3, 3}, static_cast<double>(side * side));
      channels = width;
    }
    side /= 2;
  }
  for (const auto& [in, out] : {std::pair{25088, 4096}, {4096, 4096}, {4096, 1000}}) {
    add({out, in}, 1);
  }
  return model;
}

JudgedRow Step(double compute_ms, const Published& p, int rank, double measured) {
  TrainedModel model = Vgg19();
  // Nobody published the phases: backward takes twice as long as forward.
  model.forward_ms = compute_ms / 3, model.backward_ms = compute_ms * 2 / 3;
  auto scenario = [&](std::string_view fabric) {
    return fmt::format(fmt::runtime(p.ddp), fabric) + "," + fmt::format(fmt::runtime(p.way), rank);
  };
  std::vector<JudgedRow> rows;
  PredictRows(model,
              {{.row = {.row = p.row,
                        .group = "VGG-19 (HiPress)",
                        .scenario = scenario("ethernet-1g"),
                        .measured = measured},
                .scenario = scenario(kFabric),
                .memory_gb = {}}},
              rows);
  return rows[0];
}

}  // namespace

void JudgePowersgd(std::vector<JudgedRow>& rows) {
  for (const Published& p : kPublished) {
    double compute = p.rank_1, off = 1;
    for (int i = 0; i < 50 && std::abs(off) > 1e-3; ++i) {
      off = p.rank_1 - Step(compute, p, 1, p.rank_1).predicted;
      compute += off;
    }
    rows.push_back(Step(compute, p, 64, p.rank_64));
    if (std::abs(off) > 1e-3) rows.back().why = "no time on one GPU gives the step of rank 1";
  }
}

std::string HowPowersgdIsJudged() {
  return fmt::format(
      "*VGG-19 (HiPress)*: two GTX 1080 Ti over\n1 Gbit/s, batch 16 each, PowerSGD of rank 64 in "
      "PyTorch's hook and in HiPress, which does it beside backward.\nThe step on one GPU was not "
      "published: it is the one with which rank 1 comes out as measured ({:.1f} and\n{:.1f} ms), "
      "two thirds of it backward, each layer by its multiplications; an op takes the host {:.0f} "
      "us, as\nwhere a trace has no example.",
      kPublished[0].rank_1, kPublished[1].rank_1, Vgg19().host.op.us());
}

}  // namespace daydream
