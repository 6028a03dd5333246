// The cost model against measurements that others published: mixed precision (dPRO, MLSys 2022) and
// fusion (NeuSight, ASPLOS 2025). Skipped, visibly, where the data is not beside the repository.
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "costmodel/attention.h"
#include "costmodel/fusion.h"
#include "costmodel/roofline.h"
#include "costmodel/tiles.h"
#include "tests/costmodel/costdata.h"

namespace daydream {
namespace {

using Row = CostRow;

// --- mixed precision

struct Measured {
  std::vector<double> fp32, fp16;  // us
  OpWork work;
  bool conv = false;
};

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

// ResNet-50 has one fully connected layer, 2048 x 1000. Rows with 32 inputs are the gradient of its
// weight, 2048 x B x 1000: their fp32 times are 10 TFLOPS for this product, 0.2 for the other.
OpWork WorkOfRow(const Row& row) {
  const int64_t b = row.Whole("B");
  if (row.at("op") == "Conv2D") {
    const int64_t h = row.Whole("H"), c = row.Whole("C"), k = row.Whole("K"), r = row.Whole("R"),
                  p = row.Whole("P");
    return *WorkOfConvolution({b, c, h, h}, {k, c, r, r}, {b, k, p, p});
  }
  const int64_t in = row.Whole("C_in"), out = row.Whole("C_out");
  const GemmShape shape = in == 32 ? GemmShape{1, 2048, out, b} : GemmShape{1, b, out, in};
  OpWork work;
  work.kind = OpWork::Kind::kGemm;
  work.products = {shape};
  return work;
}

struct Errors : CostErrors {
  std::string Text() const {
    return fmt::format("{:5.1f} % mean, {:+5.1f} % in total", mean(),
                       100 * (total_predicted / total - 1));
  }
};

TEST(Costdata, MixedPrecisionOfResNet50OnAV100) {
  if (!HasCostdata("dpro_amp_v100.csv.gz")) {
    GTEST_SKIP() << "no measurements at " << CostdataFolder();
  }
  const DeviceSpec& v100 = *FindDeviceSpec("V100-SXM2-32GB");
  std::map<std::string, Measured> ops;
  double shortest = INFINITY;
  for (const Row& row : ReadCostTable("dpro_amp_v100.csv.gz")) {
    const double us = std::stod(row.at("us"));
    if (row.at("op").starts_with("Cast")) {
      shortest = std::min(shortest, us);
      continue;
    }
    std::string key;
    for (const auto& [name, value] : row) {
      if (name != "us" && name != "fp") key += fmt::format("{}={} ", name, value);
    }
    Measured& m = ops[key];
    (row.at("fp") == "16" ? m.fp16 : m.fp32).push_back(us);
    m.work = WorkOfRow(row);
    m.conv = row.at("op") == "Conv2D";
  }
  // The shortest casts move 16 kB, which takes a kernel 2 us (the floor of docs/cost-model.md):
  // what the recording adds to every op.
  const double overhead = shortest - 2;
  Errors raw[2], net[2], third[2], all_raw, all, all_third;
  for (const auto& [key, m] : ops) {
    ASSERT_FALSE(m.fp32.empty() || m.fp16.empty()) << key;
    const double t32 = Mean(m.fp32), t16 = Mean(m.fp16);
    auto predict = [&, &m = m](double o) {
      return o + InFormatNs(v100, m.work, DType::kFp32, DType::kFp16, (t32 - o) * 1e3, 0.3) / 1e3;
    };
    raw[m.conv].Add(predict(0), t16), all_raw.Add(predict(0), t16);
    net[m.conv].Add(predict(overhead), t16), all.Add(predict(overhead), t16);
    third[m.conv].Add(t32 / 3, t16), all_third.Add(t32 / 3, t16);
  }
  fmt::print(
      "fp32 -> fp16, V100          120 convolutions               18 products                  "
      "all\n"
      "  by shape                  {}   {}   {}\n"
      "  by shape, overhead apart  {}   {}   {}\n"
      "  a third (Daydream)        {}   {}   {}\n",
      raw[1].Text(), raw[0].Text(), all_raw.Text(), net[1].Text(), net[0].Text(), all.Text(),
      third[1].Text(), third[0].Text(), all_third.Text());
  EXPECT_EQ(raw[1].n, 120);
  EXPECT_EQ(raw[0].n, 18);
  EXPECT_LE(raw[1].mean(), 20) << "convolutions as recorded";
  EXPECT_LE(all.mean(), 20) << "convolutions and products";
  EXPECT_GT(all_third.mean(), 30) << "the rule to beat";
}

// --- fusion

// "[(16, 512), (1,)]" or "(16, 512)" -> element counts.
std::vector<double> ElementCounts(std::string text) {
  for (char& c : text) c = c == '(' ? '[' : c == ')' ? ']' : c;
  auto shapes = ParseShapes(text.starts_with("[[") ? text : "[" + text + "]");
  std::vector<double> counts;
  if (!shapes) return counts;
  for (const Dims& dims : *shapes) {
    double n = dims.empty() ? 0 : 1;
    for (int64_t d : dims) n *= static_cast<double>(d);
    counts.push_back(n);
  }
  return counts;
}

std::vector<int64_t> SizesIn(const std::string& text) {
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < text.size();) {
    if (std::isdigit(static_cast<unsigned char>(text[i])) == 0) {
      ++i;
      continue;
    }
    size_t end = i;
    sizes.push_back(std::stoll(text.substr(i), &end));
    i += end;
  }
  return sizes;
}

struct Op {
  std::string op;
  std::vector<int64_t> sizes;  // b, m, k, n of products; rows, columns of rows
  FusionNode node;
  double repeat = 1;
};

// Views and work on the host move nothing.
std::vector<Op> OpsOf(const std::vector<Row>& rows, const std::string& model,
                      const DeviceSpec& gpu) {
  std::vector<Op> ops;
  for (const Row& row : rows) {
    if (row.at("desc") != model) continue;
    Op op{.op = row.at("op"), .sizes = SizesIn(row.at("fw")), .repeat = std::stod(row.at("rep"))};
    if (op.op == "misc" || op.op == "getitem" || op.op == "output") continue;
    const std::vector<double> out = ElementCounts(row.at("out"));
    op.node.output = out.empty() ? 0 : out[0];
    op.node.inputs = ElementCounts(row.at("ins"));
    if (op.op == "VECsoftmax" || op.op == "VECln") {
      op.node.kind = FusionNode::Kind::kRows;
      op.node.rows_ns = RowOpNs(gpu, {.op = op.op == "VECln" ? RowOp::kLayerNorm : RowOp::kSoftmax,
                                      .rows = op.sizes[0],
                                      .columns = op.sizes[1]});
    } else if (op.op.starts_with("VEC") || op.op == "where") {
      op.node.kind = FusionNode::Kind::kPointwise;
    }
    ops.push_back(std::move(op));
  }
  return ops;
}

// torch.compile of PyTorch 2.1 puts one kernel in place of a product, a scaling, a mask that is
// added, softmax and a product (torch/_inductor/fx_passes/fuse_attention.py, patterns 1 to 6); a
// mask by selection ("where") is none of its patterns. Returns what it saves, in ns.
double AttentionSaving(const DeviceSpec& gpu, const std::vector<Op>& ops) {
  double saved = 0;
  for (size_t i = 0; i + 2 < ops.size(); ++i) {
    if (ops[i].op != "BMM" || ops[i].sizes.size() < 4) continue;
    size_t j = i + 1;
    bool softmax = false, known = true;
    while (j < ops.size() && ops[j].node.kind != FusionNode::Kind::kBarrier) {
      softmax |= ops[j].op == "VECsoftmax";
      known &= ops[j].op != "where";
      ++j;
    }
    if (j == ops.size() || ops[j].op != "BMM" || !softmax || !known) continue;
    const auto& s = ops[i].sizes;
    const GemmShape scores{s[0], s[1], s[3], s[2]}, values{s[0], s[1], s[2], s[3]};
    std::vector<FusionNode> between;
    double mask = 0;
    for (size_t k = i + 1; k < j; ++k) {
      between.push_back(ops[k].node);
      for (double input : ops[k].node.inputs) mask += input < ops[k].node.output ? input : 0;
    }
    const double before = GemmNs(gpu, scores, DType::kFp32, true) +
                          GemmNs(gpu, values, DType::kFp32, true) +
                          MergeAll(gpu, between, {}).ns_after;
    const AttentionShape shape{.heads = static_cast<double>(s[0]),
                               .queries = static_cast<double>(s[1]),
                               .keys = static_cast<double>(s[3]),
                               .width = static_cast<double>(s[2]),
                               .mask_elements = mask};
    saved +=
        std::max(before - FusedAttentionNs(gpu, shape, DType::kFp32, 0.5), 0.0) * ops[i].repeat;
  }
  return saved;
}

TEST(Costdata, CompiledModelsOnAnA100) {
  if (!HasCostdata("e2e_labels.csv")) {
    GTEST_SKIP() << "no measurements at " << CostdataFolder();
  }
  const DeviceSpec& gpu = *FindDeviceSpec("A100-PCIE-40GB");
  const std::vector<Row> graphs = ReadCostTable("e2e_graphs.csv.gz");
  std::map<std::string, double> measured, neusight;
  for (const Row& row : ReadCostTable("e2e_labels.csv")) {
    if (row.at("gpu") != "A100-40") continue;
    measured[row.at("desc")] = std::stod(row.at("ms"));
    if (!row.at("neusight_ms").empty()) {
      neusight[row.at("desc")] = std::stod(row.at("neusight_ms"));
    }
  }
  Errors ours, pointwise, theirs, nothing;
  fmt::print("{:24}{:>9}{:>10}{:>11}{:>18}{:>10}\n", "eager -> compiled, A100", "eager", "compiled",
             "predicted", "without attention", "NeuSight");
  for (const auto& [name, compiled] : measured) {
    if (!name.ends_with("-fusion")) continue;
    const std::string eager_name = name.substr(0, name.size() - 7);
    const std::vector<Op> ops = OpsOf(graphs, eager_name, gpu);
    ASSERT_FALSE(ops.empty()) << eager_name;
    std::vector<FusionNode> nodes;
    for (const Op& op : ops) nodes.push_back(op.node);
    double saved = 0;
    for (const FusionGroup& group : PlanFusion(gpu, nodes, {})) {
      saved += (group.ns_before - group.ns_after) * ops[group.begin].repeat;
    }
    const double eager = measured.at(eager_name);
    const double plain = eager - saved / 1e6;
    const double predicted = plain - AttentionSaving(gpu, ops) / 1e6;
    fmt::print("{:24}{:9.1f}{:10.1f}{:11.1f}{:18.1f}{:10.1f}\n", eager_name, eager, compiled,
               predicted, plain, neusight.at(name));
    ours.Add(predicted, compiled);
    pointwise.Add(plain, compiled);
    theirs.Add(neusight.at(name), compiled);
    nothing.Add(eager, compiled);
  }
  fmt::print("mean error: {:.1f} % (without attention {:.1f}, NeuSight {:.1f}, no effect {:.1f})\n",
             ours.mean(), pointwise.mean(), theirs.mean(), nothing.mean());
  EXPECT_EQ(ours.n, 4);
  EXPECT_LE(ours.mean(), 5);
}

}  // namespace
}  // namespace daydream
