#include "tests/accuracy/composed.h"

#include <unistd.h>
#include <cmath>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "costmodel/device_fields.h"
#include "report/predict/what_if.h"
#include "tests/accuracy/dpro_steps.h"
#include "tests/accuracy/neusight_steps.h"

namespace daydream {
namespace {

namespace fs = std::filesystem;

// What the data calls a GPU, and what the project does.
struct Gpu {
  std::string_view label, name;
};
constexpr Gpu kGpus[] = {{"P4", "P4"},
                         {"P100", "P100-PCIE-16GB"},
                         {"V100", "V100-PCIE-32GB"},
                         {"T4", "T4"},
                         {"L4", "L4"},
                         {"A100-40", "A100-PCIE-40GB"},
                         {"A100-80", "A100-PCIE-80GB"},
                         {"H100", "H100-SXM5-80GB"},
                         {"MI100", "MI100"},
                         {"MI210", "MI210"},
                         {"MI250", "MI250"}};
const DeviceSpec* FindSpec(std::string_view label) {
  for (const Gpu& gpu : kGpus) {
    if (gpu.label == label) return FindDeviceSpec(gpu.name);
  }
  return nullptr;
}

// Operators may be slower one by one than in their model by so much: beyond, they are not the same.
constexpr double kMostOff = 1.25;
// Backward of a product is two products of its size. Models that were not disturbed take 1.8 to 2
// times as long as forward; where it is less, memory was allocated in forward (the README of the
// data: labels call empty_cache() each run).
constexpr double kLeastBackward = 1.6;

// Device descriptions for gpu(FILE): what data sheets say, and nothing that was measured.
class DataSheets {
 public:
  DataSheets() : folder_(fs::temp_directory_path() / fmt::format("daydream-sheets-{}", getpid())) {
    fs::create_directories(folder_);
  }
  DataSheets(const DataSheets&) = delete;
  DataSheets& operator=(const DataSheets&) = delete;
  ~DataSheets() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  std::string FileOf(DeviceSpec spec) const {
    spec.measured_fp32_gemm_tflops = spec.measured_fp32_batched_gemm_tflops = 0;
    spec.measured_bandwidth_share = spec.measured_tensor_share = 0;
    spec.measured_source.clear();
    spec.measured_residuals.clear();
    std::string path = (folder_ / (spec.name + ".textproto")).string();
    std::ofstream(path) << DeviceTextproto(spec);
    return path;
  }

 private:
  fs::path folder_;
};

class Judge {
 public:
  Composed Run() {
    for (const ModelLabel& from : steps_.labels()) {
      if (from.option.empty()) From(from);
    }
    Formats();
    return std::move(out_);
  }

 private:
  // Of the whole model. Where memory was allocated in it, of its operators instead: these are
  // within 2 % of the labels of the other training runs on the same GPU.
  struct Total {
    double ms = 0;  // 0: nothing to go by
    bool by_operators = false;
  };
  Total TotalOf(const ModelLabel& label) const {
    const bool disturbed =
        label.mode == "train" && label.backward_ms < kLeastBackward * label.forward_ms;
    if (!disturbed) return {label.ms, false};
    if (!steps_.HasOps(label.gpu, label.model)) return {};
    return {steps_.OpsMs(label.gpu, label.model), true};
  }

  void From(const ModelLabel& from) {
    const std::string at = fmt::format("{} on {}", from.model, from.gpu);
    const DeviceSpec* gpu = FindSpec(from.gpu);
    if (gpu == nullptr) return out_.excluded.push_back(at + ": no description of this GPU");
    if (!steps_.HasOps(from.gpu, from.model)) {
      return out_.excluded.push_back(at + ", as the step before: no operators");
    }
    const Total total = TotalOf(from);
    if (total.by_operators) {
      out_.excluded.push_back(
          fmt::format("{}, as a whole: forward takes {:.0f} ms and backward "
                      "{:.0f}, memory was allocated; its operators count instead",
                      at, from.forward_ms, from.backward_ms));
    }
    for (bool shapes : {true, false}) {
      auto step = steps_.Compose(from.gpu, *gpu, from.model, total.ms, shapes);
      if (!step.ok())
        return out_.excluded.push_back(fmt::format("{}: {}", at, Message(step.status())));
      if (!step->products && step->scaled < 1 / kMostOff) {
        return out_.excluded.push_back(
            fmt::format("{}, as the step before: {:.0f} ms by its operators, {:.0f} ms as a whole",
                        at, step->ops_ms, from.ms));
      }
      for (const ModelLabel& to : steps_.labels()) {
        if (from.gpu == to.gpu) {
          if (shapes) OnSameGpu(step->trace, from, to);
        } else {
          OnOtherGpu(step->trace, from, to, shapes);
        }
      }
    }
  }

  bool SameModel(const ModelLabel& a, const ModelLabel& b) const {
    return &a != &b && a.family == b.family && a.mode == b.mode && a.sequence == b.sequence &&
           TotalOf(b).ms > 0;
  }

  JudgedRow RowOf(const ModelLabel& from, const ModelLabel& to) const {
    JudgedRow row;
    row.measured = TotalOf(to).ms, row.origin = RowOrigin::kComposed;
    row.row = fmt::format("{}: {} to {}", from.model, from.gpu, to.gpu);
    return row;
  }

  void OnSameGpu(const std::shared_ptr<const Trace>& trace, const ModelLabel& from,
                 const ModelLabel& to) {
    if (!SameModel(from, to)) return;
    JudgedRow row = RowOf(from, to);
    row.group = from.family;
    if (from.batch != to.batch && to.option.empty()) {
      row.row = fmt::format("{} on {} to batch {}", from.model, from.gpu, to.batch);
      row.scenario = fmt::format("batch(x{:g})",
                                 static_cast<double>(to.batch) / static_cast<double>(from.batch));
    } else if (from.batch == to.batch && to.option == "fusion") {
      row.row = fmt::format("{} on {}, compiled", from.model, from.gpu);
      row.scenario = "compile";
    } else {
      return;
    }
    Predict(trace, row);
  }

  void OnOtherGpu(const std::shared_ptr<const Trace>& trace, const ModelLabel& from,
                  const ModelLabel& to, bool shapes) {
    if (!SameModel(from, to) || from.batch != to.batch || !to.option.empty()) return;
    const DeviceSpec *here = FindSpec(from.gpu), *there = FindSpec(to.gpu);
    if (there == nullptr) return;  // told where it is the GPU before
    JudgedRow row = RowOf(from, to);
    const bool other = here->vendor != "NVIDIA" || there->vendor != "NVIDIA";
    const bool slot = here->tdp_watts <= 75 || there->tdp_watts <= 75;
    // The card that makes the pair special, else the new one.
    if (other) {
      row.group = there->vendor != "NVIDIA" ? to.gpu : from.gpu;
    } else if (slot) {
      const bool to_slot = there->tdp_watts <= 75 && (here->tdp_watts > 75 || to.gpu < from.gpu);
      row.group = to_slot ? to.gpu : from.gpu;
    } else {
      row.group = "to " + to.gpu;
    }
    if (!shapes) row.row += ", no shapes";
    row.scenario = fmt::format("gpu({},tf32=off)", there->name);
    Predict(trace, row);
    if (other || slot || !(there->measured_fp32_gemm_tflops > 0)) return;
    row.row += ", by data sheet";
    row.scenario = fmt::format("gpu({},tf32=off)", sheets_.FileOf(*there));
    Predict(trace, row);
    out_.rows.back().scenario = fmt::format("gpu({}.textproto,tf32=off)", there->name);
  }

  void Formats() {
    auto steps = ComposeFormats(*FindDeviceSpec("V100-SXM2-32GB"));
    if (!steps.ok()) return out_.excluded.push_back(std::string(Message(steps.status())));
    for (const FormatStep& step : *steps) {
      JudgedRow row;
      row.row = fmt::format("{} convolutions and products of a ResNet-50, batch {}, on V100",
                            step.ops, step.batch);
      row.group = "ResNet-50";
      row.scenario = "amp(fp16)";
      row.measured = step.fp16_ms, row.origin = RowOrigin::kComposed;
      Predict(step.fp32, row);
      if (step.left_out > 0) {
        out_.excluded.push_back(
            fmt::format("{} operators of the ResNet-50 at batch {}: measured in "
                        "one format only",
                        step.left_out, step.batch));
      }
    }
  }

  void Predict(const std::shared_ptr<const Trace>& trace, JudgedRow row) {
    absl::Status status = PredictOn(trace, row);
    if (!status.ok()) row.why = Message(status);
    out_.rows.push_back(std::move(row));
  }

  static absl::Status PredictOn(const std::shared_ptr<const Trace>& trace, JudgedRow& row) {
    DD_ASSIGN_OR_RETURN(BuiltGraph built, BuildGraph(trace));
    DD_ASSIGN_OR_RETURN(ReplayCheck replay, CheckReplay(built, nullptr));
    // Its operators were measured many times, and are one step as they stand.
    replay.steps = 2, replay.window = false;
    return PredictRow(built, replay, row.scenario, row).status();
  }

  NeusightSteps steps_;
  DataSheets sheets_;
  Composed out_;
};

}  // namespace

bool HasComposedData() {
  return HasCostdata("e2e_labels.csv") && HasCostdata("dpro_amp_v100.csv.gz");
}

Composed JudgeComposed() { return Judge().Run(); }

}  // namespace daydream
