#include "costmodel/tiles.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "costmodel/roofline.h"

namespace daydream {
namespace {

// The constants were fitted together to the training half of the kernel timings published with
// NeuSight (fp32; P4, P100, V100, T4, A100-40GB), by least squares of log errors;
// costmodel/fit/fit.py does it again. docs/cost-model.md has the errors on GPUs that were left out.
constexpr double kWaveQuantisation = 0.808264;  // share of a started wave that costs as a full one
constexpr double kTileCycles = 1620.2;          // fixed cost of one tile on one multiprocessor
constexpr double kOccupancyDepth = 0.954217, kOccupancyScale = 0.370649;
constexpr double kL2Fit = 0.144526;   // share of L2 that helps re-reads of A and B
constexpr double kSplitNs = 8318.26;  // adding up the parts when k is split
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

// A product with sizes as numbers, so that no product of them overflows.
struct Problem {
  double batch, m, n, k;
  double element_bytes;
  bool batched;
  bool fed = false;                   // count the L2 cache (TimeOfFedTiles)
  bool by_rule = false;               // no measured rates: they are those of products
  double share_a = 1, share_b = 1;    // of A and B that exists in memory
  double stride_a = 1, stride_b = 1;  // fetched for each element used
};

Problem ProblemOf(const GemmShape& shape, DType dtype, bool batched) {
  Problem p{.batch = static_cast<double>(shape.batch),
            .m = static_cast<double>(shape.m),
            .n = static_cast<double>(shape.n),
            .k = static_cast<double>(shape.k),
            .element_bytes = DTypeBytes(dtype),
            .batched = batched};
  if (!batched) {
    p.m *= p.batch;
    p.batch = 1;
  }
  return p;
}

// What does not depend on the tile.
struct Rates {
  double flops_per_ns;  // of one multiprocessor
  double bytes_per_ns;  // of the device
  double tile_ns;       // fixed cost of a tile
  double multiprocessors;
  double miss;  // share of re-reads of A and B that go to memory
};

Rates RatesFor(const DeviceSpec& device, const Problem& p, DType dtype) {
  Rates rates;
  rates.multiprocessors = device.multiprocessors;
  const double tflops =
      p.by_rule ? ConvolutionRateFor(device, dtype) : RateFor(device, dtype, p.batched);
  rates.flops_per_ns = tflops * 1e3 / device.multiprocessors;
  rates.bytes_per_ns = device.SustainedBandwidth() * 1e-9;
  // The clock under load is to the boost clock as the sustained rate is to the peak.
  const double share = device.SustainedTflops(DType::kFp32, p.batched) / device.fp32_tflops;
  rates.tile_ns = kTileCycles / (device.boost_clock_mhz * std::min(share, 1.0)) * 1e3;
  const double fit = kL2Fit * device.l2_mb * 1e6 / (p.element_bytes * (p.m * p.k + p.k * p.n));
  rates.miss = 1 / (1 + fit * fit);
  return rates;
}

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

// One tile of `k` steps on one multiprocessor, without company.
double OneTileNs(const Problem& p, const Rates& rates, const Tile& tile, double k) {
  const double multiply =
      2.0 * tile.rows * tile.columns * k / (rates.flops_per_ns * tile.efficiency);
  if (!p.fed) return multiply + rates.tile_ns;
  const double fetch = p.element_bytes * k * rates.multiprocessors *
                       (tile.rows * p.stride_a + tile.columns * p.stride_b) /
                       (kL2Speed * rates.bytes_per_ns);
  return std::hypot(multiply, fetch) + rates.tile_ns;
}

// The best way to use `tile`.
TileTime TimeOfTile(const Problem& p, const Rates& rates, const Tile& tile) {
  const double tiles = p.batch * std::ceil(p.m / tile.rows) * std::ceil(p.n / tile.columns);
  const double in = InputBytes(p, rates, tile.rows, tile.columns);
  const double out = p.element_bytes * p.batch * p.m * p.n;
  TileTime best{.ns = INFINITY, .tile_rows = tile.rows, .tile_columns = tile.columns};
  for (int split : {1, 2, 4, 8, 16}) {
    const double k = std::ceil(p.k / split);
    if (split > 1 && (p.batched || k < kShortestPart || tiles >= 2 * rates.multiprocessors)) {
      break;
    }
    const double waves = tiles * split / rates.multiprocessors;
    const double rounded =
        kWaveQuantisation * std::ceil(waves) + (1 - kWaveQuantisation) * std::max(waves, 1.0);
    // Few tiles on a multiprocessor cannot hide each other's latencies.
    const double resident =
        std::min(std::ceil(waves), 4.0) * tile.rows * tile.columns / kReferenceTile;
    const double occupancy = 1 - kOccupancyDepth * std::exp(-resident / kOccupancyScale);
    const double compute = rounded * OneTileNs(p, rates, tile, k) / occupancy;
    const double bytes = in + out + (split > 1 ? split * out : 0);
    const double memory = bytes / rates.bytes_per_ns;
    const double extra = split > 1 ? kSplitNs : 0;
    const double ns = std::hypot(compute, memory) + extra;
    if (ns >= best.ns) continue;
    best.ns = ns;
    best.split = split;
    best.waves = waves;
    best.compute_ns = compute;
    best.memory_ns = memory;
    best.split_ns = extra;
    best.memory_bytes = bytes;
  }
  return best;
}

TileTime BestTile(const DeviceSpec& device, const Problem& p, DType dtype) {
  if (!(p.batch * p.m * p.n * p.k > 0)) return {};
  const Rates rates = RatesFor(device, p, dtype);
  const Menu menu = MenuOf(device);
  TileTime best{.ns = INFINITY};
  for (const Tile& tile : p.batched ? menu.batched : menu.single) {
    for (const Tile& turned : {tile, Tile{tile.columns, tile.rows, tile.efficiency}}) {
      const TileTime time = TimeOfTile(p, rates, turned);
      if (time.ns < best.ns) best = time;
      if (tile.rows == tile.columns) break;
    }
  }
  return best;
}

}  // namespace

TileTime TimeOfTiles(const DeviceSpec& device, const GemmShape& shape, DType dtype, bool batched) {
  return BestTile(device, ProblemOf(shape, dtype, batched), dtype);
}

double GemmNs(const DeviceSpec& device, const GemmShape& shape, DType dtype, bool batched) {
  return TimeOfTiles(device, shape, dtype, batched).ns;
}

TileTime TimeOfFedTiles(const DeviceSpec& device, const GemmShape& shape, DType dtype, bool batched,
                        const Operands* operands) {
  Problem p = ProblemOf(shape, dtype, batched);
  p.fed = true;
  p.by_rule = operands != nullptr;
  if (operands != nullptr && p.batch * p.m * p.n * p.k > 0) {
    p.share_a = operands->a / (p.batch * p.m * p.k);
    p.share_b = operands->b / (p.batch * p.k * p.n);
    p.stride_a = operands->stride_a;
    p.stride_b = operands->stride_b;
  }
  return BestTile(device, p, dtype);
}

}  // namespace daydream
