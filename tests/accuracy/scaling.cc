#include "tests/accuracy/scaling.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <tuple>

#include <fmt/format.h>

#include "tests/accuracy/one_gpu.h"
#include "tests/accuracy/powersgd_steps.h"
#include "tests/costmodel/costdata.h"

namespace daydream {
namespace {

const std::string kScaling = DAYDREAM_DATA_DIR "/netdata/published_scaling.csv";
const std::string kVtrain = DAYDREAM_DATA_DIR "/netdata/vtrain_single.csv";
constexpr std::string_view kVtrainGroup = "vTrain";
const std::string kFabricFile = DAYDREAM_SOURCE_DIR "/tests/accuracy/ddp2-xl.fabric";
const std::string kH800File = DAYDREAM_SOURCE_DIR "/tests/accuracy/h800-2.fabric";

using Table = std::vector<std::map<std::string, std::string>>;

Table ReadTable(const std::string& path) {
  Table table;
  std::ifstream in(path);
  std::vector<std::string> head;
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> cells = CsvCells(line);
    if (head.empty()) {
      head = cells;
      continue;
    }
    auto& row = table.emplace_back();
    for (size_t i = 0; i < std::min(head.size(), cells.size()); ++i) row[head[i]] = cells[i];
  }
  return table;
}

// --- two GPUs, a transformer of 2.0 billion parameters in fp32

// 48 blocks of width 1600: attention, a gated MLP of 6400, two norms; 10000 tokens.
std::vector<Dims> XlParameters() {
  std::vector<Dims> p = {{10000, 1600}};
  for (int layer = 0; layer < 48; ++layer) {
    for (int i = 0; i < 4; ++i) p.push_back({1600, 1600});
    p.insert(p.end(), {{6400, 1600}, {6400, 1600}, {1600, 6400}, {1600}, {1600}});
  }
  p.insert(p.end(), {{1600}, {10000, 1600}});
  return p;
}

class Xl {
 public:
  Xl() : table_(ReadTable(kScaling)) {}

  // The step on one GPU is the naive one without its exchange; the optimizer is what is left of it.
  // Nobody measured the phases at batch 2: as at batch 4, which the host bounds, too.
  TrainedModel Model(const std::string& config) const {
    TrainedModel m{.parameters = XlParameters()};
    const std::string naive = "data parallel, naive: one all-reduce a tensor after backward";
    const double step = Value("ddp2-xl", naive, config, "step") -
                        Value("ddp2-xl", naive, config, "exposed all-reduce");
    std::string alone = config.substr(config.find("batch"));
    if (alone.starts_with("batch 2")) alone.replace(6, 1, "4");
    const double both = Value("ddp2-xl", "one GPU, no communication", alone, "forward+backward");
    m.forward_ms = Value("ddp2-xl", "one GPU, no communication", alone, "forward");
    m.backward_ms = both - m.forward_ms;
    m.optimizer_ms = step - both;
    return m;
  }

  double Value(const std::string& set, const std::string& change, const std::string& config,
               const std::string& metric) const {
    for (const auto& row : table_) {
      if (row.at("set") == set && row.at("change") == change && row.at("config") == config &&
          row.at("metric") == metric) {
        return std::stod(row.at("value"));
      }
    }
    return 0;
  }

  const Table& table() const { return table_; }

 private:
  Table table_;
};

// What each way to exchange gradients is called there, and here. Their own code reduces gradients
// in place: nothing is copied out of buckets.
constexpr std::pair<std::string_view, std::string_view> kWays[] = {
    {"data parallel, naive: one all-reduce a tensor after backward", "bucket=1B,overlap=no"},
    {"data parallel, flat: one all-reduce after backward", "bucket=1e11B,overlap=no"},
    {"data parallel, overlap per parameter", "bucket=1B"},
    {"data parallel, overlap in buckets of 1 MB", "bucket=1MB"},
    {"data parallel, overlap in buckets of 10 MB", "bucket=10MB"},
    {"data parallel, overlap in buckets of 100 MB", "bucket=100MB"},
    {"data parallel, overlap in buckets of 1000 MB", "bucket=1000MB"},
};

std::string SpreadXl(std::string_view strategy, std::string_view how, std::string_view fabric) {
  return fmt::format("{}(2,fabric={},bucket_view=yes{}{})", strategy, fabric,
                     how.empty() ? "" : ",", how);
}

// The bucket of the least step, by place in kWays.
size_t BestBucket(const std::map<size_t, double>& steps) {
  return std::min_element(steps.begin(), steps.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

std::string BestBucketLine(std::string_view of, std::span<const JudgedRow> rows) {
  std::map<size_t, double> measured, predicted;
  for (const JudgedRow& r : rows) {
    const size_t at = r.row.find("buckets of ");
    if (at == std::string::npos || !r.why.empty()) continue;
    const auto size = static_cast<size_t>(std::stoul(r.row.substr(at + 11)));
    measured[size] = r.measured, predicted[size] = r.predicted;
  }
  if (measured.empty()) return fmt::format("{}: no bucket was predicted", of);
  return fmt::format("{}: best bucket {} MB predicted, {} MB measured", of, BestBucket(predicted),
                     BestBucket(measured));
}

// A step on one GPU over that on n: by how many points predicted and measured differ.
std::string EfficiencyLine(std::span<const JudgedRow> rows) {
  size_t judged = 0, close = 0;
  double worst = 0;
  for (const JudgedRow& r : rows) {
    if (!r.why.empty() || r.kind != "ddp") continue;
    const double points = 100 * std::abs(r.before / r.predicted - r.before / r.measured);
    ++judged, close += points <= 5, worst = std::max(worst, points);
  }
  return fmt::format(
      "The step on one GPU over that on n, of data parallelism alone: {} of {} rows within 5 "
      "points, at worst {:.1f}.",
      close, judged, worst);
}

void JudgeXl(const Xl& xl, ScalingRows& out) {
  for (const char* config : {"local batch 2, sequence 128", "local batch 4, sequence 128",
                             "local batch 4, sequence 256", "local batch 4, sequence 512"}) {
    std::vector<AskedRow> asked;
    for (const auto& [change, how] : kWays) {
      const double measured = xl.Value("ddp2-xl", std::string(change), config, "step");
      const bool full = change.find("flat") != change.npos && measured > 1900;
      const bool fitted = how == "bucket=1B" && std::string_view(config).ends_with("512");
      if (full || fitted) continue;
      asked.push_back({.row = {.row = fmt::format("{}, {}", change.substr(15), config),
                               .group = "ddp2-xl",
                               .scenario = SpreadXl("ddp", how, "ddp2-xl"),
                               .measured = measured},
                       .scenario = SpreadXl("ddp", how, kFabricFile),
                       .memory_gb = {}});
    }
    const size_t first = out.rows.size();
    PredictRows(xl.Model(config), std::move(asked), out.rows);
    out.notes.push_back(BestBucketLine(config, std::span(out.rows).subspan(first)));
  }
}

// The same model on two GPUs with fast links. Published: "CS336 report (ShibukiZero)", ms.
constexpr double kH800Compute = 313.3, kH800Optimizer = 92.1;
// By kWays; the naive run (445.9) is where the rate of the network comes from.
constexpr double kH800Steps[] = {0, 446.4, 420.7, 423.1, 422.6, 433.6, 429.0};

void JudgeH800(ScalingRows& out) {
  // Nobody published the phases: backward takes twice as long as forward.
  const TrainedModel model{.parameters = XlParameters(),
                           .forward_ms = kH800Compute / 3,
                           .backward_ms = kH800Compute * 2 / 3,
                           .optimizer_ms = kH800Optimizer};
  std::vector<AskedRow> asked;
  for (size_t i = 1; i < std::size(kWays); ++i) {
    const auto& [change, how] = kWays[i];
    asked.push_back({.row = {.row = fmt::format("{}, two H800", change.substr(15)),
                             .group = "H800",
                             .scenario = SpreadXl("ddp", how, "h800-2"),
                             .measured = kH800Steps[i]},
                     .scenario = SpreadXl("ddp", how, kH800File),
                     .memory_gb = {}});
  }
  const size_t first = out.rows.size();
  PredictRows(model, std::move(asked), out.rows);
  out.notes.push_back(BestBucketLine("two H800", std::span(out.rows).subspan(first)));
}

// Sharded against not, in the order of the runs that were published.
void JudgeZero(const Xl& xl, ScalingRows& out) {
  std::vector<double> step[2], peak[2];
  for (const auto& row : xl.table()) {
    if (row.at("set") != "zero1-xl") continue;
    const bool sharded = row.at("change").ends_with("True");
    (row.at("metric") == "step" ? step : peak)[sharded].push_back(std::stod(row.at("value")));
  }
  TrainedModel model = xl.Model("local batch 2, sequence 128");
  std::vector<AskedRow> times, sizes;
  for (size_t i = 0; i < std::min(step[0].size(), step[1].size()); ++i) {
    const AskedRow asked{.row = {.row = fmt::format("optimizer sharded, run {}", i + 1),
                                 .group = "zero1-xl",
                                 .scenario = SpreadXl("zero1", "gather=broadcast", "ddp2-xl"),
                                 .measured = step[1][i]},
                         .scenario = SpreadXl("zero1", "gather=broadcast", kFabricFile),
                         .memory_gb = {}};
    times.push_back(asked);
    sizes.push_back(asked);
    sizes.back().row.measured = peak[1][i];
    sizes.back().memory_gb = peak[0][i];
  }
  PredictRows(model, std::move(times), out.rows);
  PredictRows(model, std::move(sizes), out.memory);
}

// --- Megatron-DeepSpeed on A100, data parallelism within a node of eight

// A rank's parameters, with tied embeddings of 51200 tokens, in one buffer of fp16 gradients.
std::vector<Dims> MegatronParameters(int64_t hidden, int64_t layers, int64_t shards) {
  std::vector<Dims> p = {{51200 / shards, hidden}};
  for (int64_t i = 0; i < layers; ++i) p.push_back({12 * hidden / shards, hidden});
  return p;
}

void JudgeVtrain(ScalingRows& out) {
  auto number = [](const std::map<std::string, std::string>& row, const char* column) {
    return std::stoll(row.at(column));
  };
  // By all that stays the same: times by ranks of data parallelism.
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t>;
  std::map<Key, std::map<int64_t, double>> runs;
  for (const auto& row : ReadTable(kVtrain)) {
    const int64_t micro = number(row, "micro batch"), d = number(row, "data parallelism");
    runs[{number(row, "hidden size"), number(row, "# layers"), micro,
          number(row, "global batch") / (micro * d), number(row, "tensor parallelism"),
          number(row, "pipeline parallelism")}][d] = std::stod(row.at("iteration time (ms)"));
  }
  for (const auto& [key, times] : runs) {
    const auto [hidden, layers, micro, batches, tensor, pipeline] = key;
    const auto alone = times.find(1);
    if (alone == times.end() || times.size() < 2) continue;
    TrainedModel model{.parameters = MegatronParameters(hidden, layers / pipeline, tensor),
                       .type = "c10::Half",
                       .forward_ms = alone->second / 3,
                       .backward_ms = alone->second * 2 / 3,
                       .optimizer_ms = 0};
    std::vector<AskedRow> asked;
    for (const auto& [ranks, measured] : times) {
      if (ranks == 1) continue;
      const std::string scenario =
          fmt::format("ddp({},fabric=nvlink3,bucket=1e11B,overlap=no,bucket_view=yes)", ranks);
      asked.push_back(
          {.row = {.row = fmt::format("hidden {}, {} layers, {} x {}, tp {}, pp {}, "
                                      "dp {}",
                                      hidden, layers, batches, micro, tensor, pipeline, ranks),
                   .group = std::string(kVtrainGroup),
                   .scenario = scenario,
                   .measured = measured},
           .scenario = scenario,
           .memory_gb = {}});
    }
    PredictRows(model, std::move(asked), out.rows);
  }
}

std::string RowLine(const JudgedRow& r, int digits) {
  if (!r.why.empty()) return fmt::format("| {} | `{}` | | | | {} |\n", r.row, r.scenario, r.why);
  const std::string interval =
      r.low ? fmt::format(", {:.{}f} - {:.{}f}", *r.low, digits, *r.high, digits) : "";
  return fmt::format("| {} | `{}` | {:.{}f} | {:.{}f}{} | {:.{}f} | {:+.1f} %{} |\n", r.row,
                     r.scenario, r.before, digits, r.predicted, digits, interval, r.measured,
                     digits, 100 * r.error(),
                     !r.low       ? ""
                     : r.inside() ? ", inside"
                                  : ", outside");
}

// Each row of vTrain, shorter than RowLine(): they differ in numbers only.
std::string VtrainTable(std::span<const JudgedRow> rows) {
  std::string table;
  size_t count = 0;
  for (const JudgedRow& r : rows) {
    if (r.group != kVtrainGroup) continue;
    ++count;
    table += fmt::format("| {} | {:.0f} | {:.0f} | {} | {:.0f} | {:+.1f} {} |\n", r.row, r.before,
                         r.predicted, r.low ? fmt::format("{:.0f}-{:.0f}", *r.low, *r.high) : "",
                         r.measured, 100 * r.error(), r.inside() ? "in" : "out");
  }
  return fmt::format(
      "\n### All {} rows of vTrain\n\n"
      "Milliseconds; dp n is `ddp(n,fabric=nvlink3,bucket=1e11B,overlap=no,bucket_view=yes)` of\n"
      "the same run with dp 1.\n\n"
      "| published | dp 1 | predicted | interval | measured | error, % |\n"
      "|---|---:|---:|---|---:|---:|\n{}",
      count, table);
}

}  // namespace

bool HasScalingData() {
  return std::filesystem::exists(kScaling) && std::filesystem::exists(kVtrain);
}

ScalingRows JudgeScaling() {
  ScalingRows out;
  if (!HasScalingData()) return out;
  const Xl xl;
  JudgeXl(xl, out);
  JudgeH800(out);
  JudgeZero(xl, out);
  JudgePowersgd(out.rows);
  JudgeVtrain(out);
  return out;
}

std::string ScalingSection(const ScalingRows& scaling) {
  std::string text =
      "\n## Many GPUs\n\n"
      "Steps of data-parallel training that others published, predicted from the step on one GPU, "
      "which is\ncomposed of what they published of that: its phases, each with a kernel for every "
      "parameter, as long as\nthe parameter's share. *ddp2-xl*: a transformer of 2.0 billion "
      "parameters in fp32 on two GPUs, on a\nnetwork of its own four all-reduces and one `overlap` "
      "(`tests/accuracy/ddp2-xl.fabric`); the step on one\nGPU is the naive one without its "
      "exposed "
      "all-reduces. The flat run that filled the memory (1963 ms) and\nthe run that `overlap` "
      "comes "
      "from are left out. *H800*: the same model on two GPUs with fast links,\nphases as "
      "published, on "
      "a network whose rate is what the naive run says of it\n(`tests/accuracy/h800-2.fabric`). "
      "*vTrain*: Megatron-DeepSpeed on A100, data parallelism\nwithin a node "
      "from "
      "the same ranks without it, on the built-in `nvlink3`. " +
      HowPowersgdIsJudged() + "\n\n";
  text += GroupTable(scaling.rows) + "\n";
  text +=
      "| published | scenario | one GPU ms | predicted | measured | error |\n"
      "|---|---|---|---|---|---|\n";
  for (const JudgedRow& r : scaling.rows) {
    if (r.group != kVtrainGroup) text += RowLine(r, 1);
  }
  text += "\n";
  text +=
      "Peak memory, GB of 2^30 bytes:\n\n"
      "| published | scenario | not sharded | predicted | measured | error |\n"
      "|---|---|---|---|---|---|\n";
  for (const JudgedRow& r : scaling.memory) text += RowLine(r, 2);
  text += "\n" + EfficiencyLine(scaling.rows) + "\n\nBuckets:\n\n";
  for (const std::string& note : scaling.notes) text += fmt::format("* {}\n", note);
  text +=
      "\nNot judged, and why:\n\n"
      "* P3 (ResNet-50 +25 %, VGG-19 +66 %): neither the step on one GPU nor what its parameter "
      "servers take was\n  published.\n"
      "* BlueConnect (-87 % of synchronization on 192 GPUs): sizes of messages and the network are "
      "not described.\n"
      "* DGC (270 to 600 times fewer bytes): `dgc(0.1%)` sends 500 times fewer, which lies "
      "between, "
      "but no step was\n  published to compose.\n"
      "* Data parallelism over several nodes: of the rows of vTrain on several nodes, of nanotron "
      "and "
      "of Megatron no two\n  differ in data parallelism only, and those of MPT are FSDP. What "
      "vTrain "
      "has within a node is below.\n";
  return text + VtrainTable(scaling.rows);
}

}  // namespace daydream
