#include "tests/accuracy/neusight_steps.h"

#include <algorithm>
#include <array>

#include "tests/costmodel/neusight_text.h"

namespace daydream {
namespace {

using Op = StepComposer::Op;

constexpr std::string_view kPointwise = "elementwise_kernel";
// Of products, in fp32 on vector units: what NVIDIA's and AMD's libraries call them.
std::string_view ProductKernel(const std::string& gpu) {
  return gpu.starts_with("MI") ? "Cijk_Ailk_Bljk_SB_MT128x64" : "sgemm_128x64_nn";
}

// README of the data: products of these are 1.2 to 1.5 times slower than the whole models allow.
bool ProductsTooSlow(const std::string& gpu, const std::string& model) {
  return gpu == "A100-40" && (model.starts_with("bert") || model.starts_with("gpt2"));
}

// Rows, inputs and outputs of a linear layer.
Dims LinearOf(const CostRow& row) { return ParsePrimitives(row.at("fw"))[0].sizes[0]; }

// What PyTorch runs for a row of the graph in forward; no op for views.
struct Forward {
  std::vector<Op> ops;
  std::string_view kernel = kPointwise;
};

Forward ForwardOf(const CostRow& row, const std::vector<Dims>& in, const Dims& out,
                  std::string_view product) {
  const std::string& op = row.at("op");
  if (op == "Linear") {
    const Dims mkn = LinearOf(row);
    const Op addmm = {"aten::addmm", {{mkn[2]}, {mkn[0], mkn[1]}, {mkn[1], mkn[2]}}};
    if (in.size() > 1) return {{addmm}, product};  // called as such
    return {{{"aten::linear", {in[0], {mkn[2], mkn[1]}, {mkn[2]}}}, addmm}, product};
  }
  if (op == "BMM") {
    const Dims s = ParsePrimitives(row.at("fw"))[0].sizes[0];
    return {{{"aten::matmul", in}, {"aten::bmm", {{s[0], s[1], s[2]}, {s[0], s[2], s[3]}}}},
            product};
  }
  if (op == "VECsoftmax") return {{{"aten::_softmax", {in[0]}}}, "softmax_warp_forward"};
  if (op == "VECln") {
    const int64_t h = out.back();
    return {{{"aten::native_layer_norm", {in[0], {h}, {h}}}}, "vectorized_layer_norm_kernel"};
  }
  if (op.starts_with("VEC")) {
    static const std::map<std::string, std::string> names = {
        {"addu", "add"}, {"mulu", "mul"}, {"divu", "div"}, {"powu", "pow"}};
    const std::string name = op.substr(3);
    const auto it = names.find(name);
    std::vector<Dims> inputs = in;
    if (IsUnary(name)) inputs = {in[0], {}};
    // Two tensors: the graph may name one of them only.
    if (!IsUnary(name) && inputs.size() == 1) inputs.push_back(in[0]);
    return {{{"aten::" + (it == names.end() ? name : it->second), inputs}}, kPointwise};
  }
  if (op == "EMBEDDING") return {{{"aten::embedding", {}}}, "indexSelectLargeIndex"};
  if (op == "contiguous") {
    return {{{"aten::contiguous", {in[0]}}, {"aten::copy_", {in[0], in[0]}}}, kPointwise};
  }
  if (op == "where") return {{{"aten::where", in}}, kPointwise};
  if (op == "dropout") return {{{"aten::native_dropout", {in[0]}}}, kPointwise};
  return {{{"aten::" + op, {}}}, kPointwise};
}

// Views take host time only; what is not known and takes longer is moved bytes.
bool OnGpu(bool known, double us) { return known ? us > 0 : us >= 2e-3 * kLaunchNs; }

std::vector<ComposedKernel> ForwardKernels(const CostRow& row, const OpTimesOfRow& us, bool misses,
                                           std::string_view product) {
  if (!OnGpu(row.at("op") != "misc" || misses, us.forward)) return {};
  const std::vector<Dims> in = ParseTensors(row.at("ins"));
  auto kernel_of = [&]() -> Forward {
    if (!misses) return ForwardOf(row, in, ParseTensors(row.at("out"))[0], product);
    return {{{"aten::clone", {in[0]}}, {"aten::copy_", {in[0], in[0]}}}, kPointwise};
  };
  const Forward f = kernel_of();
  return {{f.ops, std::string(f.kernel), us.forward, f.kernel == product}};
}

// The gradients of the inputs, and adding up those of the weights.
std::vector<ComposedKernel> BackwardKernels(const CostRow& row, const OpTimesOfRow& us,
                                            std::string_view product) {
  std::vector<ComposedKernel> kernels;
  auto add = [&](std::string_view scope, const Op& op, std::string_view kernel, double time) {
    kernels.push_back(
        {{{std::string(scope), {}}, op}, std::string(kernel), time, kernel == product});
  };
  constexpr std::string_view kNode = "autograd::engine::evaluate_function: Backward0";
  const std::string& op = row.at("op");
  const double passes = BackwardPasses(op);
  const bool linear = op == "Linear";
  const Dims mkn = linear ? LinearOf(row) : Dims{0, 0, 0};
  if (us.backward > 0 && linear) {
    add(kNode, {"aten::mm", {{mkn[0], mkn[2]}, {mkn[2], mkn[1]}}}, product, us.backward / 2);
    add(kNode, {"aten::mm", {{mkn[2], mkn[0]}, {mkn[0], mkn[1]}}}, product, us.backward / 2);
  } else if (us.backward > 0 && op == "BMM") {
    for (const Primitive& p : ParsePrimitives(row.at("bw"))) {
      const Dims& s = p.sizes[0];
      add(kNode, {"aten::bmm", {{s[0], s[1], s[2]}, {s[0], s[2], s[3]}}}, product, us.backward / 2);
    }
  } else if (us.backward > 0 && passes > 1) {
    // An op that reads and writes as much.
    const Dims out = ParseTensors(row.at("out"))[0];
    add(kNode, {"aten::add", std::vector<Dims>(static_cast<size_t>(passes) - 1, out)}, kPointwise,
        us.backward);
  } else if (passes != 0 && OnGpu(false, us.backward)) {
    add(kNode, {"aten::copy_", {}}, kPointwise, us.backward);
  }
  if (us.update > 0) {
    const Dims weight = {mkn[2], mkn[1]};
    add("torch::autograd::AccumulateGrad",
        {"aten::add_", linear ? std::vector<Dims>{weight, weight} : std::vector<Dims>{}},
        kPointwise, us.update);
  }
  return kernels;
}

}  // namespace

NeusightSteps::NeusightSteps() {
  ForEachCostRow("e2e_labels.csv", [&](const CostRow& row) {
    labels_.push_back({.gpu = row.at("gpu"),
                       .model = row.at("desc"),
                       .family = row.at("model"),
                       .mode = row.at("mode"),
                       .option = row.at("opt"),
                       .sequence = row.Whole("seq"),
                       .batch = row.Whole("batch"),
                       .ms = row.Number("ms"),
                       .forward_ms = row.Number("fw_ms"),
                       .backward_ms = row.Number("bw_ms")});
  });
  ForEachCostRow("e2e_graphs.csv.gz",
                 [&](const CostRow& row) { graphs_[row.at("desc")].push_back(row); });
  ForEachCostRow("e2e_ops.csv.gz", [&](const CostRow& row) {
    times_[{row.at("gpu"), row.at("desc")}][row.at("i")] = {
        row.Number("fw_us"), row.Number("bw_us"), row.Number("acc_us")};
  });
}

std::vector<ComposedKernel> NeusightSteps::KernelsOf(const std::string& gpu,
                                                     const std::string& model) const {
  const std::map<std::string, OpTimesOfRow>& times = times_.at({gpu, model});
  const std::string_view product = ProductKernel(gpu);
  using Kernels = std::vector<ComposedKernel>;
  Kernels all, forward;
  std::vector<Kernels> backward, backward_all;  // of each row
  double repeat = 1;
  // Rows that repeat are one layer; all of its rows follow each other.
  auto close = [&] {
    for (int i = 0; i < static_cast<int>(repeat); ++i) {
      all.insert(all.end(), forward.begin(), forward.end());
      backward_all.insert(backward_all.end(), backward.begin(), backward.end());
    }
    forward.clear(), backward.clear();
  };
  std::string before;
  for (const CostRow& row : graphs_.at(model)) {
    const bool misses = MissesKernel(row.at("name"), row.at("op"), before);
    before = row.at("name");
    const auto time = times.find(row.at("i"));
    if (row.at("op") == "getitem" || time == times.end()) continue;  // views, what is given
    if (row.Number("rep") != repeat) close();
    repeat = row.Number("rep");
    if (ParseTensors(row.at("ins")).empty()) continue;
    const Kernels kernels = ForwardKernels(row, time->second, misses, product);
    forward.insert(forward.end(), kernels.begin(), kernels.end());
    backward.push_back(BackwardKernels(row, time->second, product));
  }
  close();
  std::reverse(backward_all.begin(), backward_all.end());
  for (const Kernels& row : backward_all) all.insert(all.end(), row.begin(), row.end());
  return all;
}

double NeusightSteps::OpsMs(const std::string& gpu, const std::string& model) const {
  double us = 0;
  for (const ComposedKernel& k : KernelsOf(gpu, model)) us += k.us;
  return us / 1e3;
}

absl::StatusOr<ModelStep> NeusightSteps::Compose(const std::string& gpu, const DeviceSpec& spec,
                                                 const std::string& model, double ms,
                                                 bool shapes) const {
  std::vector<ComposedKernel> kernels = KernelsOf(gpu, model);
  double products = 0, others = 0;  // us
  for (const ComposedKernel& k : kernels) (k.product ? products : others) += k.us;
  ModelStep step{.trace = nullptr,
                 .ops_ms = (products + others) / 1e3,
                 .scaled = ms * 1e3 / (products + others),
                 .products = ProductsTooSlow(gpu, model)};
  if (step.products) step.scaled = (ms * 1e3 - others) / products;
  StepComposer composer(spec);
  for (ComposedKernel& k : kernels) {
    for (Op& op : k.ops) {
      if (!shapes) op.inputs.clear();
    }
    composer.Add(k.ops, k.kernel, k.us * (step.products && !k.product ? 1 : step.scaled));
  }
  DD_ASSIGN_OR_RETURN(step.trace, composer.Build());
  return step;
}

}  // namespace daydream
