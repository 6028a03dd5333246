#include "costmodel/roofline.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace daydream {
namespace {

// The constants of this file were fitted together to the training half of the kernel timings
// published with NeuSight (fp32; P4, P100, V100, T4, A100-40GB), by least squares of log errors.
// On GPUs left out of the fit the mean error was 6 to 8 % for products on A100-80GB and H100 and
// 18 to 22 % on L4, whose clock moves with its temperature.
constexpr double kWaveQuantisation = 0.808264;  // share of a started wave that costs as a full one
constexpr double kTileCycles = 1620.2;          // fixed cost of one tile on one multiprocessor
constexpr double kOccupancyDepth = 0.954217, kOccupancyScale = 0.370649;
constexpr double kL2Fit = 0.144526;               // share of L2 that helps re-reads of A and B
constexpr double kSplitNs = 8318.26;              // adding up the parts when k is split
constexpr double kL2Speed = 2.5;                  // L2 over device memory
constexpr double kL2Share = 0.72, kL2Slope = 12;  // where a working set stops fitting
constexpr double kReferenceTile = 128 * 128;
constexpr int64_t kShortestPart = 64;  // of a split k, as libraries do

struct Tile {
  int rows = 0, columns = 0;
  double efficiency = 1;  // of the sustained rate
};

// Tiles seen in kernel names of cuBLAS, by architecture.
struct Menu {
  std::span<const Tile> single, batched;
};

constexpr Tile kPascal[] = {{128, 128, 1.0}, {64, 64, 0.640912}, {128, 32, 0.3836}};
constexpr Tile kPascalBatched[] = {{128, 64, 0.965578}};
constexpr Tile kVolta[] = {{128, 128, 1.0},
                           {128, 64, 0.980611},
                           {64, 64, 0.969401},
                           {128, 32, 0.658933},
                           {32, 32, 0.500159}};
constexpr Tile kVoltaBatched[] = {{128, 64, 0.980611}, {64, 64, 0.969401}, {128, 32, 0.658933}};
constexpr Tile kAmpere[] = {{128, 128, 1.0},
                            {128, 64, 0.950464},
                            {64, 64, 0.882734},
                            {128, 32, 0.979824},
                            {32, 32, 0.500692}};
constexpr Tile kAmpereBatched[] = {{128, 128, 1.0}};

// An architecture that is not known may use every tile.
Menu MenuOf(const DeviceSpec& device) {
  if (device.vendor != "NVIDIA") return {kAmpere, kAmpere};
  switch (device.compute_major) {
    case 6:
      return {kPascal, kPascalBatched};
    case 7:
      return {kVolta, kVoltaBatched};
    case 8:
      return {kAmpere, kAmpereBatched};
    default:
      return {kAmpere, kAmpere};
  }
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-std::clamp(x, -50.0, 50.0))); }

double L2Bytes(const DeviceSpec& device) { return device.l2_mb * 1e6; }

// A product with sizes as numbers, so that no product of them overflows.
struct Problem {
  double batch, m, n, k;
  double element_bytes;
  bool batched;
  bool fed = false;                   // count the L2 cache (FedProductNs)
  double share_a = 1, share_b = 1;    // of A and B that exists in memory
  double stride_a = 1, stride_b = 1;  // fetched for each element used
};

// What does not depend on the tile.
struct Rates {
  double flops_per_ns;  // of one multiprocessor
  double bytes_per_ns;  // of the device
  double tile_ns;       // fixed cost of a tile
  double multiprocessors;
  double miss;  // share of re-reads of A and B that go to memory
};

// Bytes of A and B that come from memory: strips of the tiles in flight are read anew each time.
double InputBytes(const Problem& p, const Rates& rates, double tile_rows, double tile_columns) {
  const double grid_m = std::ceil(p.m / tile_rows), grid_n = std::ceil(p.n / tile_columns);
  const double in_flight = std::min(rates.multiprocessors * 2, grid_m * grid_n);
  double across = std::min(std::max(std::sqrt(in_flight * tile_rows / tile_columns), 1.0), grid_n);
  const double down = std::min(std::max(in_flight / across, 1.0), grid_m);
  across = std::min(std::max(in_flight / down, 1.0), grid_n);
  const double strip =
      p.element_bytes * p.k * (down * tile_rows * p.share_a + across * tile_columns * p.share_b);
  const double strips = p.batch * grid_m * grid_n / (down * across);
  const double once = p.element_bytes * p.batch * (p.m * p.k * p.share_a + p.k * p.n * p.share_b);
  return once + std::max(strips * strip - once, 0.0) * rates.miss;
}

double TileNs(const Problem& p, const Rates& rates, double rows, double columns,
              double efficiency) {
  const double tiles = p.batch * std::ceil(p.m / rows) * std::ceil(p.n / columns);
  const double in_ns = InputBytes(p, rates, rows, columns) / rates.bytes_per_ns;
  const double out_ns = p.element_bytes * p.batch * p.m * p.n / rates.bytes_per_ns;
  double best = INFINITY;
  for (int split : {1, 2, 4, 8, 16}) {
    const double k = std::ceil(p.k / split);
    if (split > 1 && (p.batched || k < kShortestPart || tiles >= 2 * rates.multiprocessors)) {
      break;
    }
    const double waves = tiles * split / rates.multiprocessors;
    const double rounded =
        kWaveQuantisation * std::ceil(waves) + (1 - kWaveQuantisation) * std::max(waves, 1.0);
    const double multiply = 2 * rows * columns * k / (rates.flops_per_ns * efficiency);
    const double fetch = !p.fed ? 0
                                : p.element_bytes * k * rates.multiprocessors *
                                      (rows * p.stride_a + columns * p.stride_b) /
                                      (kL2Speed * rates.bytes_per_ns);
    const double one = (p.fed ? std::hypot(multiply, fetch) : multiply) + rates.tile_ns;
    // Few tiles on a multiprocessor cannot hide each other's latencies.
    const double resident = std::min(std::ceil(waves), 4.0) * rows * columns / kReferenceTile;
    const double occupancy = 1 - kOccupancyDepth * std::exp(-resident / kOccupancyScale);
    const double compute = rounded * one / occupancy;
    const double memory = in_ns + out_ns + (split > 1 ? split * out_ns : 0);
    best = std::min(best, std::hypot(compute, memory) + (split > 1 ? kSplitNs : 0));
  }
  return best;
}

// The rate that `dtype` runs at: tensor cores if there are any, else vector units.
double SustainedFor(const DeviceSpec& device, DType dtype, bool batched) {
  const double rate = device.SustainedTflops(dtype, batched);
  return rate > 0 ? rate : device.SustainedTflops(DType::kFp32, batched);
}

}  // namespace

Duration RooflineBound(const DeviceSpec& device, double flops, double bytes, DType dtype) {
  const double tflops = std::max(device.TensorPeak(dtype), device.fp32_tflops);
  const double from_memory = std::max(bytes - L2Bytes(device), 0.0);
  return Duration::FromDouble(
      std::floor(std::max(flops / (tflops * 1e3), from_memory / device.memory_gb_per_s)));
}

double SustainedRooflineNs(const DeviceSpec& device, double flops, double bytes, DType dtype) {
  return std::max(flops / (SustainedFor(device, dtype, false) * 1e3),
                  bytes / (device.SustainedBandwidth() * 1e-9));
}

double MemoryNs(const DeviceSpec& device, double bytes) {
  bytes = std::max(bytes, 1.0);
  const double hit = Sigmoid(kL2Slope * (std::log(kL2Share * L2Bytes(device)) - std::log(bytes)));
  return bytes / (device.SustainedBandwidth() * 1e-9) * (1 - hit + hit / kL2Speed);
}

namespace {

Problem ProblemOf(const GemmShape& shape, DType dtype, bool batched) {
  Problem p{.batch = static_cast<double>(shape.batch),
            .m = static_cast<double>(shape.m),
            .n = static_cast<double>(shape.n),
            .k = static_cast<double>(shape.k),
            .element_bytes = static_cast<double>(DTypeBytes(dtype)),
            .batched = batched};
  if (!batched) {
    p.m *= p.batch;
    p.batch = 1;
  }
  return p;
}

double BestTileNs(const DeviceSpec& device, const Problem& p, DType dtype) {
  const bool batched = p.batched;
  if (!(p.batch * p.m * p.n * p.k > 0)) return 0;
  Rates rates;
  rates.multiprocessors = device.multiprocessors;
  rates.flops_per_ns = SustainedFor(device, dtype, batched) * 1e3 / device.multiprocessors;
  rates.bytes_per_ns = device.SustainedBandwidth() * 1e-9;
  // The clock under load is to the boost clock as the sustained rate is to the peak.
  const double clock_mhz =
      std::min(device.boost_clock_mhz, device.SustainedTflops(DType::kFp32, batched) /
                                           device.fp32_tflops * device.boost_clock_mhz);
  rates.tile_ns = kTileCycles / clock_mhz * 1e3;
  const double fit = kL2Fit * L2Bytes(device) / (p.element_bytes * (p.m * p.k + p.k * p.n));
  rates.miss = 1 / (1 + fit * fit);
  const Menu menu = MenuOf(device);
  double best = INFINITY;
  for (const Tile& tile : batched ? menu.batched : menu.single) {
    best = std::min({best, TileNs(p, rates, tile.rows, tile.columns, tile.efficiency),
                     TileNs(p, rates, tile.columns, tile.rows, tile.efficiency)});
  }
  return best;
}

}  // namespace

double GemmNs(const DeviceSpec& device, const GemmShape& shape, DType dtype, bool batched) {
  return BestTileNs(device, ProblemOf(shape, dtype, batched), dtype);
}

double FedProductNs(const DeviceSpec& device, const GemmShape& shape, DType dtype, bool batched,
                    const Operands* operands) {
  Problem p = ProblemOf(shape, dtype, batched);
  p.fed = true;
  if (operands != nullptr && p.batch * p.m * p.n * p.k > 0) {
    p.share_a = operands->a / (p.batch * p.m * p.k);
    p.share_b = operands->b / (p.batch * p.k * p.n);
    p.stride_a = operands->stride_a;
    p.stride_b = operands->stride_b;
  }
  return BestTileNs(device, p, dtype);
}

double RowOpNs(const DeviceSpec& device, RowOp op, int64_t rows, int64_t columns) {
  // Fitted with the constants above. A row costs a fixed number of cycles and some per element;
  // rows in flight that do not fit in L2 are read from memory twice.
  constexpr double kNormSlope = 2.75482, kNormFit = 0.567787, kNormRow = 7886.48,
                   kNormElement = 4.41595;
  constexpr double kSoftmaxSlope = 6.57732, kSoftmaxFit = 0.879127, kWarpRow = 149.004,
                   kWarpElement = 0.60453, kBlockRow = 9685.86, kBlockElement = 49.6752;
  constexpr double kBlend = 2.12239;
  if (rows <= 0 || columns <= 0) return 0;
  const auto b = static_cast<double>(rows), h = static_cast<double>(columns);
  const double threads =
      static_cast<double>(device.multiprocessors) * device.threads_per_multiprocessor;
  const double l2 = L2Bytes(device);
  double miss = 0, extra = 1, cycles = 0;
  if (op == RowOp::kLayerNorm) {
    const double in_flight = threads / 128;
    extra = 0.5;
    miss =
        Sigmoid(kNormSlope * (std::log(std::min(b, in_flight) * 4 * h) - std::log(kNormFit * l2)));
    cycles = b / in_flight * (kNormRow + kNormElement * h);
  } else if (columns <= 1024) {  // a warp for each row
    cycles = b / (threads / 32) * (kWarpRow + kWarpElement * h);
  } else {
    const double wanted = std::min(h / 4, 1024.0);
    const double block = std::max(32.0, std::exp2(std::ceil(std::log2(wanted / 2))));
    const double in_flight = threads / block;
    miss = Sigmoid(kSoftmaxSlope *
                   (std::log(std::min(b, in_flight) * 4 * h) - std::log(kSoftmaxFit * l2)));
    cycles = b / in_flight * (kBlockRow + kBlockElement * std::ceil(h / (4 * block)));
  }
  const double memory = MemoryNs(device, 8 * b * h) * (1 + extra * miss);
  const double latency = cycles / device.boost_clock_mhz * 1e3;
  return std::pow(std::pow(memory, kBlend) + std::pow(latency, kBlend), 1 / kBlend);
}

double FormatNs(const DeviceSpec& device, const OpWork& work, DType dtype) {
  if (work.kind == OpWork::Kind::kMemory) return MemoryNs(device, work.Bytes(dtype));
  double ns = 0;
  for (size_t i = 0; i < work.products.size(); ++i) {
    const GemmShape& product = work.products[i];
    const bool batched = work.kind == OpWork::Kind::kGemm && product.batch > 1;
    const Operands* operands = i < work.operands.size() ? &work.operands[i] : nullptr;
    ns += FedProductNs(device, product, dtype, batched, operands);
  }
  return ns;
}

double FormatRatio(const DeviceSpec& device, const OpWork& work, DType from, DType to) {
  if (from == to) return 1;
  const double time_from = FormatNs(device, work, from), time_to = FormatNs(device, work, to);
  return time_from > 0 && time_to > 0 ? time_to / time_from : 1;
}

double InFormatNs(const DeviceSpec& device, const OpWork& work, DType from, DType to,
                  double measured_ns, double own) {
  if (from == to || measured_ns <= 0) return measured_ns;
  if (to != DType::kTf32 && !work.AlignedForTensorCores()) return measured_ns;
  const double now = FormatNs(device, work, from), then = FormatNs(device, work, to);
  if (now <= 0 || then <= 0) return measured_ns;
  return std::min(measured_ns, then * std::pow(measured_ns / now, own));
}

}  // namespace daydream
