// The surfaces against measured rows, and between GPUs. Tables of docs/cost-model.md come from
// held_out/: surfaces that never saw a third of the shapes, which are those that count here. The
// rest says that the program answers what costmodel/fit/ fitted. Skipped, visibly, where the data
// is not beside the repository.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>
#include <tuple>

#include <fmt/format.h>

#include "costmodel/attention_surface.h"
#include "costmodel/calibrate.h"
#include "costmodel/op_time.h"
#include "costmodel/surface.h"
#include "costmodel/transfer.h"
#include "tests/costmodel/cost_page.h"
#include "tests/costmodel/kernel_rows.h"

namespace daydream {
namespace {

// "bf16", "fp8", "nvfp4" or "int8_wo", and GPU. Nothing of these saw a shape for which IsHeldOut.
const std::map<std::pair<std::string, std::string>, Surface>& HeldOut() {
  static const auto* const all = [] {
    auto* surfaces = new std::map<std::pair<std::string, std::string>, Surface>;
    for (const auto& file :
         std::filesystem::directory_iterator(DAYDREAM_SOURCE_DIR "/tests/costmodel/held_out")) {
      Surface surface = SurfaceOfText(ReadText(file.path()));
      const std::pair key{std::string(DTypeName(surface.format)), surface.device};
      surfaces->emplace(key, std::move(surface));
    }
    return surfaces;
  }();
  return *all;
}

OpTime HeldOutTime(const DeviceSpec& device, const OpWork& work) {
  OpTime time = PredictOp(device, work, DType::kBf16);
  const Surface& surface = HeldOut().at({"bf16", device.name});
  time.ns = TimeOnSurface(surface, device, DType::kBf16, work.products[0]).ns;
  return time;
}

struct Bar {
  double mean, by_time;
  bool met(const Bar& reached) const { return reached.mean <= mean && reached.by_time <= by_time; }
};

std::string Verdict(const Bar& bar, const ByTime& errors) {
  return fmt::format("{:.0f} / {:.0f}, {}", bar.mean, bar.by_time,
                     bar.met({errors.mean(), errors.by_time()}) ? "met" : "not met");
}

bool HasBar(const std::string& format) { return format == "bf16" || format == "fp8"; }
Bar BarOfShapes(const std::string& format, const std::string& gpu) {
  if (format != "bf16") return {8, 8};
  return gpu == "L40S" ? Bar{10, 8} : Bar{6, 5};
}
constexpr Bar kBarOfTransfers = {8, 6}, kBarOfUnseenGpus = {12, 10};
constexpr double kBarOfCalibrate = 4;  // by row, after kMeasured products
constexpr size_t kMeasured = 20;

struct LeftOut {
  ByTime errors, complete;  // off the median of the engines; where all three timed the shape
  int inside = 0, in_range = 0, rows = 0;
};

// By format and GPU.
const std::map<std::pair<std::string, std::string>, LeftOut>& LeftOutShapes() {
  static const auto* const all = [] {
    auto* result = new std::map<std::pair<std::string, std::string>, LeftOut>;
    for (const auto& [key, surface] : HeldOut()) {
      const auto& [format, gpu] = key;
      const DeviceSpec& spec = *FindDeviceSpec(gpu);
      LeftOut& left_out = (*result)[key];
      const auto products = ProductsIn(format == "bf16" ? "bfloat16" : format);
      for (const auto& [shape, engines] : products.at(gpu)) {
        if (!IsHeldOut(shape)) continue;
        const SurfaceTime time =
            TimeOnSurface(surface, spec, surface.format, ShapeOf(shape), /*with_cast=*/true);
        const KernelRange range =
            RangeOnSurface(surface, spec, surface.format, ShapeOf(shape), /*with_cast=*/true);
        left_out.errors.Add(time.ns * 1e-3, Median(engines));
        if (engines.size() == 3) left_out.complete.Add(time.ns * 1e-3, Median(engines));
        for (const auto& [engine, us] : engines) {
          ++left_out.rows;
          left_out.in_range += us * 1e3 >= range.low_ns && us * 1e3 <= range.high_ns ? 1 : 0;
          left_out.inside += us * 1e3 >= time.low_ns && us * 1e3 <= time.high_ns ? 1 : 0;
        }
      }
    }
    return result;
  }();
  return *all;
}

// Off the median of the engines that timed a shape, and how many of their rows the interval holds.
TEST(Kerneldata, ShapesThatWereLeftOut) {
  if (!HasCostdata(kFolder + "gemm.csv.gz")) GTEST_SKIP() << "no measurements beside this folder";
  std::string page =
      "| format | GPU | shapes | off the median, mean / by time, % | of shapes that all three "
      "engines "
      "timed | bar | rows inside the interval of bursts, % | inside the range of `kernels`, % "
      "|\n|---|---|---|---|---|---|---|---|\n";
  for (const auto& [key, left_out] : LeftOutShapes()) {
    const auto& [format, gpu] = key;
    const auto& [errors, complete, inside, in_range, rows] = left_out;
    const double share = 100.0 * inside / rows;
    const std::string of_three =
        complete.n == 0 ? "one engine"
                        : fmt::format("{:.1f} / {:.1f}", complete.mean(), complete.by_time());
    page += fmt::format("| {} | {} | {} | {:.1f} / {:.1f} | {} | {} | {:.0f} | {:.0f} |\n", format,
                        gpu, errors.n, errors.mean(), errors.by_time(), of_three,
                        // Nobody asked for one.
                        HasBar(format) ? Verdict(BarOfShapes(format, gpu), errors) : "none", share,
                        100.0 * in_range / rows);
    EXPECT_GE(share, 85) << gpu << format;
    EXPECT_LE(share, 95) << gpu << format;
  }
  CheckCostPage("kerneldata_test left_out", page);
}

// fp8 without the cast of A has the surface of bf16 with its own peak: nearly no engine, which also
// casts, is faster. On long products, where a cast counts least, the fastest is not far from it.
TEST(Kerneldata, ProductsInFp8WithoutTheCastAreAsFastAsTheFastestEngineOrFaster) {
  if (!HasCostdata(kFolder + "gemm.csv.gz")) GTEST_SKIP() << "no measurements beside this folder";
  for (const auto& [gpu, rows] : ProductsIn("fp8")) {
    const DeviceSpec& spec = *FindDeviceSpec(gpu);
    const Surface& surface = *SurfaceOf(spec, DType::kFp8);
    std::vector<double> fastest, long_ones;
    for (const auto& [shape, engines] : rows) {
      double us = INFINITY;
      for (const auto& [engine, one] : engines) us = std::min(us, one);
      const double ratio = us * 1e3 / TimeOnSurface(surface, spec, DType::kFp8, ShapeOf(shape)).ns;
      fastest.push_back(ratio);
      if (us > 256) long_ones.push_back(ratio);
    }
    std::sort(fastest.begin(), fastest.end());
    std::sort(long_ones.begin(), long_ones.end());
    const double tenth = fastest[fastest.size() / 10], middle = long_ones[long_ones.size() / 2];
    std::cout << gpu << ": fastest engine over the product alone, tenth " << tenth
              << ", long ones in the middle " << middle << '\n';
    EXPECT_GT(tenth, 1) << gpu;
    EXPECT_LT(middle, 1.2) << gpu;
  }
}

TEST(Kerneldata, SurfacesAreAsNearToTheirRowsAsTheFitSays) {
  if (!HasCostdata(kFolder + "gemm.csv.gz")) GTEST_SKIP() << "no measurements beside this folder";
  // Fitted rows: nearer than those left out, which are above.
  const std::map<std::string, std::pair<double, double>> bars = {{"A100-SXM4-80GB", {6, 5}},
                                                                 {"H100-SXM5-80GB", {6, 5}},
                                                                 {"B200-SXM-180GB", {6, 5}},
                                                                 {"L40S", {10, 8}}};
  for (const auto& [gpu, rows] : Products()) {
    const DeviceSpec& spec = *FindDeviceSpec(gpu);
    const Surface& surface = *SurfaceOf(spec, DType::kBf16);
    ByTime errors;
    size_t inside = 0, all = 0;
    for (const auto& [shape, engines] : rows) {
      const SurfaceTime time = TimeOnSurface(surface, spec, DType::kBf16, ShapeOf(shape));
      errors.Add(time.ns * 1e-3, Median(engines));
      for (const auto& [engine, us] : engines) {
        ++all;
        inside += us * 1e3 >= time.low_ns && us * 1e3 <= time.high_ns ? 1 : 0;
      }
    }
    const double share = 100 * static_cast<double>(inside) / static_cast<double>(all);
    std::cout << gpu << " " << errors.n << " shapes " << errors.mean() << " / " << errors.by_time()
              << " %, " << share << " % of rows inside\n";
    EXPECT_LE(errors.mean(), bars.at(gpu).first) << gpu;
    EXPECT_LE(errors.by_time(), bars.at(gpu).second) << gpu;
    EXPECT_GE(share, 85) << gpu;
    EXPECT_LE(share, 97) << gpu;
  }
}

struct TransferErrors {
  ByTime ours, roofline;
};

// The same product of the same engine on both GPUs, one recorded time at a time: what an engine
// does slower than the surface is carried over by Transfer. On shapes that no surface saw.
TransferErrors TransferBetween(const std::string& from, const std::string& to) {
  const DeviceSpec &here = *FindDeviceSpec(from), &there = *FindDeviceSpec(to);
  TransferErrors errors;
  const Rows& others = Products().at(to);
  for (const auto& [shape, engines] : Products().at(from)) {
    const auto found = others.find(shape);
    if (found == others.end() || !IsHeldOut(shape)) continue;
    const OpWork work = WorkOfProduct(ShapeOf(shape));
    const OpTime a = HeldOutTime(here, work), b = HeldOutTime(there, work);
    const double bytes = work.Bytes(DType::kBf16);
    auto bound = [&](const DeviceSpec& d) {
      return std::max(work.flops / (d.bf16_tflops * 1e3), bytes / d.memory_gb_per_s);
    };
    for (const auto& [engine, us] : engines) {
      const auto measured = found->second.find(engine);
      if (measured == found->second.end()) continue;
      const Transfer t = TransferOp(us * 1e3, a, b, 0, false, TransferRules{});
      errors.ours.Add(t.ns * 1e-3, measured->second);
      errors.roofline.Add(us * bound(there) / bound(here), measured->second);
    }
  }
  return errors;
}

// By the GPU that was measured and the one that is asked for.
const std::map<std::pair<std::string, std::string>, TransferErrors>& Transfers() {
  static const auto* const all = [] {
    auto* result = new std::map<std::pair<std::string, std::string>, TransferErrors>;
    for (const auto& [from, rows] : Products()) {
      for (const auto& [to, others] : Products()) {
        if (from != to) result->emplace(std::pair{from, to}, TransferBetween(from, to));
      }
    }
    return result;
  }();
  return *all;
}

TEST(Kerneldata, ProductsGoToAnotherGpuBetterThanByARatioOfRooflines) {
  if (!HasCostdata(kFolder + "gemm.csv.gz")) GTEST_SKIP() << "no measurements beside this folder";
  std::string page =
      "| bf16, from | to | rows | mean / by time, % | ratio of rooflines | bar |\n"
      "|---|---|---|---|---|---|\n";
  for (const auto& [gpus, errors] : Transfers()) {
    const auto& [from, to] = gpus;
    const auto& [ours, roofline] = errors;
    page += fmt::format("| {} | {} | {} | {:.1f} / {:.1f} | {:.1f} / {:.1f} | {} |\n", from, to,
                        ours.n, ours.mean(), ours.by_time(), roofline.mean(), roofline.by_time(),
                        Verdict(kBarOfTransfers, ours));
    EXPECT_LT(ours.mean(), roofline.mean()) << from << " to " << to;
    EXPECT_LT(ours.by_time(), roofline.by_time()) << from << " to " << to;
  }
  CheckCostPage("kerneldata_test transfer", page);
}

// What `calibrate` makes of n measured products of 16 us and more, spread over the list, asked
// about the shapes that were left out: of the GPU as it is, and of one whose description
// claims `slower` times the peak that it has. The rest of an error is that of the surface. What
// counts is by how much `calibrate` moves the rate: long shares of two surfaces are not the same.
ByTime Calibrated(const std::string& gpu, double slower, size_t n) {
  DeviceSpec spec = *FindDeviceSpec(gpu);
  spec.bf16_tflops *= slower, spec.fp16_tflops *= slower;
  std::vector<std::pair<Shape, double>> known;
  for (const auto& [shape, engines] : Products().at(gpu)) {
    if (!IsHeldOut(shape) && Median(engines) > 16) known.push_back({shape, Median(engines)});
  }
  std::vector<RateSample> samples;
  for (size_t i = 0; i < n; ++i) {
    const auto& [shape, us] = known[(2 * i + 1) * known.size() / (2 * n)];
    samples.push_back(
        {.work = WorkOfProduct(ShapeOf(shape)), .dtype = DType::kBf16, .ns = us * 1e3});
  }
  const Surface& held_out = HeldOut().at({"bf16", gpu});
  if (n > 0) {
    const double shares =
        LongShareOf(held_out, spec) / LongShareOf(*SurfaceOf(spec, DType::kBf16), spec);
    spec = Calibrate(spec, samples, {.source = "test"})->device;
    spec.measured_tensor_share *= shares;
  }
  ByTime errors;
  for (const auto& [shape, engines] : Products().at(gpu)) {
    if (!IsHeldOut(shape)) continue;
    errors.Add(TimeOnSurface(held_out, spec, DType::kBf16, ShapeOf(shape)).ns * 1e-3,
               Median(engines));
  }
  return errors;
}

TEST(Kerneldata, CalibrateNeedsFewProducts) {
  if (!HasCostdata(kFolder + "gemm.csv.gz")) GTEST_SKIP() << "no measurements beside this folder";
  std::string page =
      "| bf16, mean / by time, % | uncalibrated | 5 products | 10 | 20 | 40 "
      "|\n|---|---|---|---|---|---|\n";
  for (const auto& [gpu, rows] : Products()) {
    for (const double slower : {1.0, 1.25}) {
      page += fmt::format("| {}{} |", gpu, slower > 1 ? ", peak given 1.25 times too high" : "");
      double before = 0;
      for (const size_t n : {size_t{0}, size_t{5}, size_t{10}, kMeasured, size_t{40}}) {
        const ByTime errors = Calibrated(gpu, slower, n);
        page += fmt::format(" {:.1f} / {:.1f} |", errors.mean(), errors.by_time());
        if (n == 0) before = errors.by_time();
        if (n != kMeasured) continue;
        EXPECT_LT(errors.by_time(), slower > 1 ? before / 2 : before + 2) << gpu;
      }
      page += '\n';
    }
  }
  CheckCostPage("kerneldata_test calibrate", page);
}

// What costmodel/fit/floors.py found that other learners are off by: "transfer,bf16,L40S,A100-...".
std::map<std::string, Bar> Floors() {
  std::map<std::string, Bar> floors;
  std::istringstream in(ReadText(DAYDREAM_SOURCE_DIR "/tests/costmodel/floors.csv"));
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> cells = CsvCells(line);
    if (cells[0] == "kind") continue;
    floors[fmt::format("{},{},{},{}", cells[0], cells[1], cells[2], cells[3])] = {
        std::stod(cells[4]), std::stod(cells[5])};
  }
  return floors;
}

// GPUs that were left out as a whole, as costmodel/fit/surfaces.py wrote down: "# L40S: 16 / 10".
std::map<std::string, Bar> UnseenGpus() {
  std::map<std::string, Bar> errors;
  std::istringstream in(ReadText(DAYDREAM_SOURCE_DIR "/costmodel/surfaces/unseen.bf16.txt"));
  for (std::string line; std::getline(in, line);) {
    for (const auto& [gpu, rows] : Products()) {
      if (!line.starts_with("# " + gpu + ": ")) continue;
      const std::string numbers = line.substr(gpu.size() + 4);
      errors[gpu] = {std::stod(numbers), std::stod(numbers.substr(numbers.find('/') + 1))};
    }
  }
  return errors;
}

// All bars of products in one table: asked for, reached, and how near any other learner came.
TEST(Kerneldata, BarsStandBesideWhatOtherLearnersReach) {
  if (!HasCostdata(kFolder + "gemm.csv.gz")) GTEST_SKIP() << "no measurements beside this folder";
  std::string page =
      "| products, mean / by time, % | bar | reached | nearest other learner "
      "| other engines on the same shapes | |\n|---|---|---|---|---|---|\n";
  const std::map<std::string, Bar> floors = Floors();
  const auto add = [&](const std::string& what, const Bar& bar, const Bar& reached,
                       const Bar& other, const ByTime& engines) {
    const std::string asked = std::isinf(bar.by_time)
                                  ? fmt::format("{} by row", bar.mean)
                                  : fmt::format("{} / {}", bar.mean, bar.by_time);
    page += fmt::format("| {} | {} | {:.1f} / {:.1f} | {:.1f} / {:.1f} | {:.1f} / {:.1f} | {} |\n",
                        what, asked, reached.mean, reached.by_time, other.mean, other.by_time,
                        engines.mean(), engines.by_time(),
                        bar.met(reached) ? "met"
                        : bar.met(other) ? "missed, within reach"
                                         : "missed by the others, too");
  };
  for (const auto& [key, left_out] : LeftOutShapes()) {
    const auto& [format, gpu] = key;
    if (!HasBar(format)) continue;
    add(fmt::format("{}, shapes left out, {}", format, gpu), BarOfShapes(format, gpu),
        {left_out.errors.mean(), left_out.errors.by_time()},
        floors.at(fmt::format("shapes,{},,{}", format, gpu)),
        FromOtherEngines(ProductsIn(format == "bf16" ? "bfloat16" : format).at(gpu)));
  }
  for (const auto& [gpus, errors] : Transfers()) {
    add(fmt::format("bf16, {} to {}", gpus.first, gpus.second), kBarOfTransfers,
        {errors.ours.mean(), errors.ours.by_time()},
        floors.at(fmt::format("transfer,bf16,{},{}", gpus.first, gpus.second)),
        FromRatiosOfOtherEngines(Products().at(gpus.first), Products().at(gpus.second)));
  }
  for (const auto& [gpu, reached] : UnseenGpus()) {
    add(fmt::format("bf16, {} left out", gpu), kBarOfUnseenGpus, reached,
        floors.at("unseen,bf16,," + gpu), FromOtherEngines(Products().at(gpu)));
  }
  for (const auto& [gpu, rows] : Products()) {
    const ByTime reached = Calibrated(gpu, 1, kMeasured);
    add(fmt::format("bf16, {}, `calibrate` with {}", gpu, kMeasured), {kBarOfCalibrate, INFINITY},
        {reached.mean(), reached.by_time()}, floors.at("shapes,bf16,," + gpu),
        FromOtherEngines(rows));
  }
  CheckCostPage("kerneldata_test bars", page);
}

TEST(Kerneldata, AttentionIsAsNearToItsRowsAsTheFitSays) {
  for (const bool causal : {true, false}) {
    const std::string file = kFolder + (causal ? "context" : "encoder") + "_attention.csv.gz";
    if (!HasCostdata(file)) GTEST_SKIP() << "no measurements beside this folder";
    std::map<std::string, ByTime> errors;
    ForEachCostRow(file, [&](const CostRow& row) {
      const bool other =
          row.at("engine") == "trtllm" || row.at("source").find("triton") != std::string::npos;
      const bool plain =
          row.at("attn_dtype") == "bfloat16" && (!causal || row.at("kv_cache_dtype") == "bfloat16");
      if (other || !plain) return;
      const SelfAttention shape{
          .batch = row.Number("batch_size"),
          .length = row.Number("isl"),
          .heads = row.Number("num_heads"),
          .kv_heads = row.Number(causal ? "num_key_value_heads" : "num_heads"),
          .width = row.Number("head_dim"),
          .causal = causal};
      const std::string& gpu = Names().at(row.at("gpu"));
      errors[gpu].Add(TimeOfAttention(*FindDeviceSpec(gpu), shape).ns * 1e-3, row.Number("us"));
    });
    for (const auto& [gpu, e] : errors) {
      std::cout << gpu << (causal ? " causal" : "") << " attention, " << e.n
                << " rows: " << e.mean() << " / " << e.by_time() << " %\n";
      EXPECT_LE(e.by_time(), 10) << gpu << causal;
      EXPECT_LE(e.mean(), 13) << gpu << causal;
    }
  }
}

}  // namespace
}  // namespace daydream
