// The cost model against measured kernels and whole models of GPUs that its constants were fitted
// to (held-out shapes) and of GPUs that they were not. Writes the tables of docs/cost-model.md
// (DD_UPDATE_DOCS=1); rows above their bar stay in them. Times of the benchmarks hold the host's
// launch: time = max(f, c f + kernel), where f is the shortest time of the operation on the GPU.
// Of MI100 and MI210, whose rows are not halved in the data, the third that was not fitted is
// judged.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "costmodel/roofline.h"
#include "costmodel/tiles.h"
#include "costmodel/transfer.h"
#include "tests/costmodel/cost_page.h"
#include "tests/costmodel/costdata.h"
#include "tests/costmodel/neusight_text.h"
#include "tests/source_tree.h"

namespace daydream {
namespace {

struct Gpu {
  std::string_view label, name;
  bool fitted = false;
  bool shown = true;  // in the page; the others are judged where their rows are at hand
};
constexpr Gpu kGpus[] = {{"P4", "P4", true},
                         {"P100", "P100-PCIE-16GB", true},
                         {"V100", "V100-PCIE-32GB", true},
                         {"T4", "T4", true},
                         {"A100-40", "A100-PCIE-40GB", true},
                         {"A100-80", "A100-PCIE-80GB"},
                         {"MI100", "MI100", true},
                         {"MI210", "MI210", true},
                         {"MI250", "MI250"},
                         {"L4", "L4", false, false},
                         {"H100", "H100-SXM5-80GB", false, false}};

const Gpu* FindGpu(std::string_view label) {
  for (const Gpu& gpu : kGpus) {
    if (gpu.label == label) return &gpu;
  }
  return nullptr;
}
bool IsAmd(std::string_view label) { return label.starts_with("MI"); }
const DeviceSpec& SpecOf(std::string_view label) { return *FindDeviceSpec(FindGpu(label)->name); }

// What the model has to reach: errors in percent.
struct Bar {
  std::string_view what, gpu;
  double most;
};
constexpr Bar kBars[] = {
    {"linear", "A100-80", 7},        {"linear", "H100", 8.5},    {"linear", "L4", 20},
    {"bmm", "A100-80", 7.5},         {"bmm", "H100", 9},         {"bmm", "L4", 24},
    {"elementwise", "A100-80", 3.5}, {"elementwise", "L4", 6},   {"layer norm", "A100-80", 14},
    {"layer norm", "L4", 14},        {"softmax", "A100-80", 16}, {"softmax", "L4", 16},
    {"models", "H100", 4.5},         {"models", "L4", 11},       {"V100 to", "A100-40", 3.5},
    {"V100 to", "H100", 7.5},        {"A100-40 to", "H100", 5},  {"A100-40 to", "L4", 8},
    {"models", "MI250", 10.7},
};
const Bar* FindBar(std::string_view what, std::string_view gpu) {
  for (const Bar& bar : kBars) {
    if (bar.what == what && bar.gpu == gpu) return &bar;
  }
  return nullptr;
}

using Table = std::map<std::pair<std::string, std::string>, CostErrors>;  // what, GPU

std::string RowText(const std::string& what, const std::string& gpu, const CostErrors& e) {
  const Bar* bar = FindBar(what, gpu);
  const std::string verdict = !bar                    ? ""
                              : e.mean() <= bar->most ? fmt::format("{:g}, met", bar->most)
                                                      : fmt::format("{:g}, **missed**", bar->most);
  return fmt::format("| {} | {}{} | {} | {:.1f} | {:.1f} | {} |\n", what, gpu,
                     FindGpu(gpu)->fitted ? "" : ", not fitted", e.n, e.mean(), 100 * e.worst,
                     verdict);
}

constexpr std::string_view kHead =
    "| {} | on | cases | mean error, % | worst, % | bar, % |\n|---|---|---|---|---|---|\n";

// The rows of GPUs that the page shows; prints all of them, and holds each to its bar.
std::string Judge(const std::string& head, const Table& table) {
  const std::string first = fmt::format(fmt::runtime(kHead), head);
  std::string page = first;
  fmt::print("{}", first);
  for (const auto& [key, errors] : table) {
    const auto& [what, gpu] = key;
    const std::string text = RowText(what, gpu, errors);
    fmt::print("{}", text);
    if (FindGpu(gpu)->shown) page += text;
    if (const Bar* bar = FindBar(what, gpu)) {
      EXPECT_LE(errors.mean(), bar->most) << what << ' ' << gpu;
    }
  }
  return page;
}

// --- kernels

double Quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

// Shortest times of operations by GPU, from the training rows; for GPUs without any the median of
// the others.
class Floors {
 public:
  Floors(const std::string& file, double share, double most_bytes) {
    std::map<std::pair<std::string, std::string>, std::vector<double>> times;
    ForEachCostRow(file, [&](const CostRow& row) {
      if (row.at("sp") != "tr" && !IsAmd(row.at("gpu"))) return;
      if (most_bytes > 0 && 8 * row.Number("b") * row.Number("h") >= most_bytes) return;
      times[{row.at("op"), row.at("gpu")}].push_back(row.Number("us"));
    });
    for (auto& [key, all] : times) us_[key] = Quantile(std::move(all), share);
  }
  double Of(const std::string& op, const std::string& gpu) const {
    // All of AMD's single products are long.
    if (op == "linear" && IsAmd(gpu)) return Of("bmm", gpu);
    if (auto it = us_.find({op, gpu}); it != us_.end()) return it->second;
    std::vector<double> others;
    for (const auto& [key, us] : us_) {
      if (key.first == op && FindGpu(key.second) && FindGpu(key.second)->fitted) {
        others.push_back(us);
      }
    }
    return Quantile(std::move(others), 0.5);
  }

 private:
  std::map<std::pair<std::string, std::string>, double> us_;
};

// No constant was fitted to it (costmodel/fit/fit.py, amd.py).
bool IsHeldOut(const CostRow& row) {
  if (!IsAmd(row.at("gpu"))) return row.at("sp") == "te";
  int64_t sum = 0;
  for (const auto& [column, weight] :
       {std::pair{"b", 31}, {"m", 7}, {"k", 5}, {"n", 3}, {"h", 7}}) {
    for (const auto& [name, value] : row) {
      if (name == column) sum += weight * std::stoll(value);
    }
  }
  return sum % 3 == 0;
}

double KernelUs(const DeviceSpec& gpu, const CostRow& row) {
  const std::string& op = row.at("op");
  if (op == "bmm" || op == "linear") {
    const GemmShape shape{row.Whole("b"), row.Whole("m"), row.Whole("n"), row.Whole("k")};
    return GemmNs(gpu, shape, DType::kFp32, op == "bmm") / 1e3;
  }
  const RowShape rows{.op = op == "ln" ? RowOp::kLayerNorm : RowOp::kSoftmax,
                      .rows = row.Whole("b"),
                      .columns = row.Whole("h")};
  if (op == "ln" || op == "softmax") return PredictOp(gpu, WorkOfRows(rows), DType::kFp32).ns / 1e3;
  const double elements = row.Number("b") * row.Number("h") * (IsUnary(op) ? 2 : 3);
  return PredictOp(gpu, WorkOfElements(elements), DType::kFp32).ns / 1e3;
}

TEST(CostModelAccuracy, OfKernels) {
  if (!HasCostdata("gemm.csv.gz")) GTEST_SKIP() << "no measurements at " << CostdataFolder();
  Table table;
  auto judge = [&](const std::string& file, double share, double most_bytes, double added) {
    const Floors floors(file, share, most_bytes);
    ForEachCostRow(file, [&](const CostRow& row) {
      if (!FindGpu(row.at("gpu")) || !IsHeldOut(row)) return;
      const std::string &op = row.at("op"), &gpu = row.at("gpu");
      const double floor = floors.Of(op, gpu);
      const double us = std::max(floor, added * floor + KernelUs(SpecOf(gpu), row));
      const std::string what = op == "ln"                                         ? "layer norm"
                               : op == "bmm" || op == "linear" || op == "softmax" ? op
                                                                                  : "elementwise";
      table[{what, gpu}].Add(us, row.Number("us"));
    });
  };
  judge("gemm.csv.gz", 0.004, 0, 0.6);
  judge("elementwise.csv.gz", 0.3, 3e5, 0.6);
  judge("softmax.csv.gz", 0.3, 3e5, 1);
  judge("layernorm.csv.gz", 0.3, 3e5, 1);
  CheckCostPage("costmodel_accuracy_test kernels", Judge("kernel", table));
}

// Where latencies make a product more than twice as long as its limit, NVIDIA's GPUs in one lot.
TEST(CostModelAccuracy, NineOfTenLatencyBoundProductsAreInsideTheirInterval) {
  if (!HasCostdata("gemm.csv.gz")) GTEST_SKIP() << "no measurements at " << CostdataFolder();
  constexpr double kAdded = 0.6;
  const Floors floors("gemm.csv.gz", 0.004, 0);
  int rows = 0, inside = 0;
  ForEachCostRow("gemm.csv.gz", [&](const CostRow& row) {
    const std::string& gpu = row.at("gpu");
    if (!FindGpu(gpu) || !IsHeldOut(row) || IsAmd(gpu)) return;
    const double floor = floors.Of(row.at("op"), gpu), us = row.Number("us");
    const GemmShape shape{row.Whole("b"), row.Whole("m"), row.Whole("n"), row.Whole("k")};
    const OpTime time = PredictOp(SpecOf(gpu), WorkOfProduct(shape), DType::kFp32);
    // Of shorter ones the host's launch hides how long they are.
    if (us < 2 * kAdded * floor || time.ns < 2 * time.bound_ns) return;
    const double ns = 1e3 * (us - kAdded * floor);
    ++rows;
    inside += ns >= time.low_ns && ns <= time.high_ns ? 1 : 0;
  });
  fmt::print("{} latency-bound products, {:.1f} % inside\n", rows, 100.0 * inside / rows);
  EXPECT_GE(inside, 0.85 * rows);
  EXPECT_LE(inside, 0.95 * rows);
}

// --- convolutions: only ratios

TEST(CostModelAccuracy, OfConvolutionsAsRatios) {
  if (!HasCostdata("conv.csv.gz")) GTEST_SKIP() << "no measurements at " << CostdataFolder();
  struct Sample {
    OpWork work;
    double us = 0;
  };
  std::map<std::string, std::map<std::string, Sample>> by_gpu;
  ForEachCostRow("conv.csv.gz", [&](const CostRow& row) {
    const int64_t b = row.Whole("b"), in = row.Whole("cin"), out = row.Whole("cout"),
                  r = row.Whole("r"), hw = row.Whole("hw");
    std::string key;
    for (const char* c : {"b", "cin", "cout", "r", "hw"}) key += row.at(c) + ' ';
    auto work = WorkOfConvolution({b, in, hw, hw}, {out, in, r, r}, {b, out, hw, hw});
    if (work) by_gpu[row.at("gpu")][key] = {*work, row.Number("us")};
  });
  std::string page =
      "| convolutions | cases | mean error, % | worst, % | by patches, mean, % |\n"
      "|---|---|---|---|---|\n";
  for (const auto& [from, source] : by_gpu) {
    if (!FindGpu(from) || from == "A100-80") continue;
    const DeviceSpec &here = SpecOf(from), &there = SpecOf("A100-80");
    CostErrors ratio, patches;
    for (const auto& [key, recorded] : source) {
      const auto& sample = recorded;
      const auto target = by_gpu["A100-80"].find(key);
      if (target == by_gpu["A100-80"].end()) continue;
      auto by = [&](auto&& ns) { return sample.us * ns(there) / ns(here); };
      ratio.Add(
          by([&](const DeviceSpec& gpu) { return PredictOp(gpu, sample.work, DType::kFp32).ns; }),
          target->second.us);
      patches.Add(
          by([&](const DeviceSpec& gpu) { return FormatNs(gpu, sample.work, DType::kFp32); }),
          target->second.us);
    }
    if (ratio.n == 0) continue;
    page += fmt::format("| {} to A100-80 | {} | {:.1f} | {:.1f} | {:.1f} |\n", from, ratio.n,
                        ratio.mean(), 100 * ratio.worst, patches.mean());
    if (from == "V100" || from == "P100") {
      EXPECT_LE(ratio.mean(), 17) << from;
    }
  }
  fmt::print("{}", page);
  CheckCostPage("costmodel_accuracy_test convolutions", page);
}

// --- whole models

double Count(const Dims& dims) {
  double n = 1;
  for (int64_t d : dims) n *= static_cast<double>(d);
  return n;
}

OpWork WorkOfPrimitive(const Primitive& p) {
  const Dims& s = p.sizes[0];
  if (p.name == "Linear") return WorkOfProduct({.m = s[0], .n = s[2], .k = s[1]});
  if (p.name == "BMM") return WorkOfProduct({s[0], s[1], s[3], s[2]});
  if (p.name == "VECsoftmax" || p.name == "VECln") {
    return WorkOfRows({.op = p.name == "VECln" ? RowOp::kLayerNorm : RowOp::kSoftmax,
                       .rows = s[0],
                       .columns = s[1]});
  }
  if (p.name.starts_with("VEC")) {
    return WorkOfElements(Count(s) * (IsUnary(p.name.substr(3)) ? 2 : 3));
  }
  double elements = 0;
  for (const Dims& dims : p.sizes) elements += Count(dims);
  return WorkOfElements(elements);
}

// Work of one direction of an operator, with what was measured on a GPU.
struct ModelOp {
  std::vector<OpWork> kernels;  // empty: nobody knows what it does
  double repeat = 1;
  std::map<std::string, double> us;  // by GPU
};

class Models {
 public:
  Models() {
    std::map<std::string, std::map<std::string, CostRow>> measured;  // model + row, GPU
    ForEachCostRow("e2e_ops.csv.gz", [&](const CostRow& row) {
      measured[row.at("desc") + ' ' + row.at("i")].emplace(row.at("gpu"), row);
      gpus_[row.at("desc")].insert(row.at("gpu"));
    });
    std::string before;
    ForEachCostRow("e2e_graphs.csv.gz", [&](const CostRow& row) {
      const bool misses = MissesKernel(row.at("name"), row.at("op"), before);
      before = row.at("name");
      if (row.at("op") == "getitem") return;  // a view
      const auto& us = measured[row.at("desc") + ' ' + row.at("i")];
      const bool train = row.at("desc").find("-train-") != std::string::npos;
      AddOp(row, us, "fw", misses ? std::vector{Passes(row, 2)} : WorkOfAll(row.at("fw")));
      if (!train) return;
      AddOp(row, us, "bw", BackwardOf(row));
      AddOp(row, us, "acc", WorkOfAll(row.at("acc")));
    });
  }

  bool Has(const std::string& model, const std::string& gpu) const {
    auto it = gpus_.find(model);
    return it != gpus_.end() && it->second.contains(gpu);
  }
  const std::vector<ModelOp>& Of(const std::string& model) { return ops_[model]; }

 private:
  static std::vector<OpWork> WorkOfAll(const std::string& text) {
    std::vector<OpWork> work;
    for (const Primitive& p : ParsePrimitives(text)) {
      if (!p.sizes.empty()) work.push_back(WorkOfPrimitive(p));
    }
    return work;
  }
  static OpWork Passes(const CostRow& row, double passes) {
    return WorkOfElements(passes * Count(ParseTensors(row.at("out"))[0]));
  }
  static std::vector<OpWork> BackwardOf(const CostRow& row) {
    std::vector<OpWork> listed = WorkOfAll(row.at("bw"));
    const double passes = BackwardPasses(row.at("op"));
    if (listed.empty() || passes < 0) return listed;
    if (passes == 0) return {};
    return {Passes(row, passes)};
  }
  void AddOp(const CostRow& row, const std::map<std::string, CostRow>& measured,
             const std::string& part, std::vector<OpWork> kernels) {
    ModelOp op{.kernels = std::move(kernels), .repeat = row.Number("rep")};
    for (const auto& [gpu, times] : measured) op.us[gpu] = times.Number(part + "_us");
    if (!op.kernels.empty() || row.at("op") == "misc") {
      ops_[row.at("desc")].push_back(std::move(op));
    }
  }

  std::map<std::string, std::vector<ModelOp>> ops_;
  std::map<std::string, std::set<std::string>> gpus_;
};

// From shapes alone.
double PlainMs(const std::vector<ModelOp>& ops, OpTimes& times) {
  double ns = 0;
  for (const ModelOp& op : ops) {
    for (const OpWork& kernel : op.kernels) {
      ns += op.repeat * std::max(times.Of(kernel, DType::kFp32).ns, kLaunchNs);
    }
  }
  return ns / 1e6;
}

// All kernels of an operator as one.
OpTime SumOf(const ModelOp& op, OpTimes& times) {
  OpTime sum;
  for (const OpWork& kernel : op.kernels) {
    const OpTime& one = times.Of(kernel, DType::kFp32);
    if (sum.term_count == 0)
      sum = one;
    else
      sum.ns += one.ns, sum.bound_ns += one.bound_ns;
  }
  return sum;
}

// From the operators' times on `from`.
double TransferredMs(const std::vector<ModelOp>& ops, const std::string& from, OpTimes& here,
                     OpTimes& there) {
  SourceBias bias;
  for (const ModelOp& op : ops) {
    const auto us = op.us.find(from);
    const OpTime model = SumOf(op, here);
    if (us == op.us.end() || model.ns <= 0) continue;
    // Each repetition is as long: the weight counts them all.
    bias.Add(FamilyOf(model), us->second * 1e3, model.ns, op.repeat);
  }
  double ns = 0;
  for (const ModelOp& op : ops) {
    const auto us = op.us.find(from);
    if (us == op.us.end() || us->second <= 0) continue;
    const double measured = us->second * 1e3;
    if (op.kernels.empty()) {
      // Views do nothing on the GPU; their time is the host's. What is longer is moved bytes.
      if (measured < 2 * kLaunchNs) continue;
      ns +=
          op.repeat * measured *
          ClassRatio(here.device(), there.device(), OpFamily::kMemory, DType::kFp32, DType::kFp32);
      continue;
    }
    const OpTime model = SumOf(op, here);
    const Transfer t = TransferOp(measured, model, SumOf(op, there), bias.Of(FamilyOf(model)),
                                  false, {.floor_ns = kLaunchNs});
    ns += op.repeat * t.ns;
  }
  return ns / 1e6;
}

TEST(CostModelAccuracy, OfWholeModels) {
  if (!HasCostdata("e2e_labels.csv")) GTEST_SKIP() << "no measurements at " << CostdataFolder();
  Models models;
  std::map<std::string, OpTimes> times;
  std::map<std::string_view, DeviceSpec> specs;
  for (const Gpu& gpu : kGpus) specs[gpu.label] = SpecOf(gpu.label).InSteps();
  for (const auto& [label, spec] : specs) times.emplace(label, spec);
  Table plain, transferred;
  ForEachCostRow("e2e_labels.csv", [&](const CostRow& row) {
    const std::string &gpu = row.at("gpu"), &model = row.at("desc");
    if (!FindGpu(gpu) || !row.at("opt").empty() || models.Of(model).empty()) return;
    const double ms = row.Number("ms");
    const std::vector<ModelOp>& ops = models.Of(model);
    plain[{"models", gpu}].Add(PlainMs(ops, times.at(gpu)), ms);
    plain[{"models, " + row.at("mode"), gpu}].Add(PlainMs(ops, times.at(gpu)), ms);
    for (const Gpu& from : kGpus) {
      const std::string label(from.label);
      if (label == gpu || !models.Has(model, label)) continue;
      transferred[{label + " to", gpu}].Add(
          TransferredMs(ops, label, times.at(label), times.at(gpu)), ms);
    }
  });
  const std::string alone = Judge("from shapes alone", plain);
  CheckCostPage("costmodel_accuracy_test models",
                alone + "\n" + Judge("from times on another GPU", transferred));
  EXPECT_EQ((transferred[{"V100 to", "A100-40"}].n), 8);
}

}  // namespace
}  // namespace daydream
