#include "costmodel/surface.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "base/check.h"
#include "costmodel/surface_lines.h"
#include "costmodel/surface_texts.h"

namespace daydream {
namespace {

struct NamedConstant {
  std::string_view name;
  double SurfaceConstants::*member;
};
constexpr NamedConstant kSurfaceConstants[] = {
    {"launch_kilocycles", &SurfaceConstants::launch_kilocycles},
    {"rate_share", &SurfaceConstants::rate_share},
    {"bandwidth_share", &SurfaceConstants::bandwidth_share},
    {"l2_speed_share", &SurfaceConstants::l2_speed_share},
    {"l2_share", &SurfaceConstants::l2_share},
    {"weights_l2_share", &SurfaceConstants::weights_l2_share},
    {"warm_weights", &SurfaceConstants::warm_weights},
    {"tile_kilocycles", &SurfaceConstants::tile_kilocycles},
    {"step_cycles", &SurfaceConstants::step_cycles},
    {"wave_odds", &SurfaceConstants::wave_odds},
    {"split_kilocycles", &SurfaceConstants::split_kilocycles},
    {"tile_128x128", &SurfaceConstants::tile_128x128},
    {"tile_128x64", &SurfaceConstants::tile_128x64},
    {"tile_64x64", &SurfaceConstants::tile_64x64},
    {"tile_64x32", &SurfaceConstants::tile_64x32},
    {"feed_share", &SurfaceConstants::feed_share},
    {"blend", &SurfaceConstants::blend},
    {"ramp_kilocycles", &SurfaceConstants::ramp_kilocycles},
    {"ragged", &SurfaceConstants::ragged},
    {"cast_kilocycles", &SurfaceConstants::cast_kilocycles}};

// The same for all surfaces: costmodel/fit/surfaces.py.
constexpr double kSurfaceEdgesUs[] = {4, 8, 16, 64, 256, 1024};
constexpr double kFirstLog2[] = {0, 5, 5};
constexpr double kRampBytes = 4e6;             // from here on the memory is at full speed
constexpr int64_t kRaggedRows = 8;             // other kernels run where m is no multiple
constexpr int64_t kShortestSurfacePart = 128;  // of a split k
// A long step takes so many times as long as a burst (SustainedNs): the middle, and the most.
constexpr double kSustainedMiddle = 1.15, kSustainedMost = 1.3;
// Of a normal distribution 15 % lie beyond 1.04 spreads on one side, and 9 % beyond 1.70 on both. A
// third of kernels at either end and a third between, which hardly lies out, makes that one in ten.
constexpr double kOneSided = 1.04 / 1.70;
// Generations whose surface counts by exp(-distance / kGenerationReach) for one that was not
// measured.
constexpr double kGenerationReach = 3;

// A place on one line for architectures: their compute capability, with consumer Blackwell (12),
// which multiplies as Ada does, beside it.
double SurfaceGeneration(int major, int minor) { return major >= 12 ? 8.9 : major + 0.1 * minor; }

struct KnownSurface {
  Surface surface;
  double generation = 0;  // 0: the interval of GPUs that were left out
};

size_t CountOfNodes(const std::array<size_t, 3>& nodes) { return nodes[0] * nodes[1] * nodes[2]; }

KnownSurface KnownOf(std::string_view text) {
  KnownSurface known{.surface = SurfaceOfText(text)};
  const DeviceSpec* spec = FindDeviceSpec(known.surface.device);
  if (spec == nullptr) return known;
  known.generation = SurfaceGeneration(spec->compute_major, spec->compute_minor);
  DD_CHECK(known.surface.correction.size() == CountOfNodes(Surface::kNodes));
  DD_CHECK(known.surface.ragged_correction.size() == CountOfNodes(Surface::kRaggedNodes));
  return known;
}

// Of a generation without measurements: means of logarithms, nearer generations counting more, and
// the interval of GPUs that were left out. No correction: what others deviate by helped as often as
// it hurt there.
Surface MeanSurface(std::span<const KnownSurface> all, double generation, DType format) {
  Surface mean;
  mean.format = format;
  double total = 0;
  SurfaceConstants logs{};
  for (const KnownSurface& known : all) {
    const Surface& s = known.surface;
    if (s.format != format) continue;
    if (known.generation == 0) {
      mean.low = s.low, mean.high = s.high;
      continue;
    }
    const double weight = std::exp(-std::abs(known.generation - generation) / kGenerationReach);
    total += weight;
    for (const NamedConstant& n : kSurfaceConstants) {
      logs.*n.member += weight * std::log(s.constants.*n.member);
    }
    mean.device += (mean.device.empty() ? "" : ", ") + s.device;
    mean.shapes += s.shapes;
    mean.rows += s.rows;
  }
  for (const NamedConstant& n : kSurfaceConstants)
    mean.constants.*n.member = std::exp(logs.*n.member / total);
  if (mean.low[0] < 0) return mean;
  // Of a format for which no GPU was left out: twice what bf16 has.
  for (const KnownSurface& known : all) {
    if (known.generation != 0) continue;
    for (size_t i = 0; i < Surface::kLengths; ++i) {
      mean.low[i] = 2 * known.surface.low[i], mean.high[i] = 2 * known.surface.high[i];
    }
  }
  return mean;
}

struct Atlas {
  std::vector<KnownSurface> known;
  // Those of bf16 for formats of which there is no row: with the interval of GPUs that were left
  // out, for nothing is known of how well they fit.
  std::vector<KnownSurface> lent;
  std::vector<std::pair<double, Surface>> others;  // by generation: bf16, fp8 and nvfp4

  Atlas() {
    for (const SurfaceText& text : SurfaceTexts()) {
      if (text.file.find(".attention") == std::string_view::npos) {
        known.push_back(KnownOf(text.text));
      }
    }
    for (double generation : {8.0, 8.6, 8.7, 8.9, 9.0, 10.0, 10.3, 11.0}) {
      for (DType format : {DType::kBf16, DType::kFp8, DType::kNvfp4}) {
        others.push_back({generation, MeanSurface(known, generation, format)});
      }
    }
    const Surface& unseen = others.front().second;
    for (const KnownSurface& one : known) {
      if (one.generation == 0 || one.surface.format != DType::kBf16) continue;
      lent.push_back(one);
      lent.back().surface.low = unseen.low, lent.back().surface.high = unseen.high;
    }
  }
};

double SurfacePeakOf(const DeviceSpec& device, DType format) { return device.TensorPeak(format); }

// What a processor reads from the L2 cache in a clock, as gpu-benches
// (github.com/te42kyfo/gpu-benches, gpu-l2-cache) measured it: 35.5 bytes on an A100 (5.4
// TB/s), 34.5 and 37.5 on H100 PCIe and H200, but 14.7 on an L40 and 16.7 on an A40. Newer GPUs
// were not: taken as those of their kind.
double L2BytesPerClock(const DeviceSpec& device) {
  const bool large = (device.compute_major == 8 && device.compute_minor == 0) ||
                     device.compute_major == 9 || device.compute_major == 10;
  return large ? 36 : 15;
}

struct SurfaceTile {
  int rows, columns;
  double SurfaceConstants::*efficiency;  // nullptr: 1
};
constexpr SurfaceTile kSurfaceTiles[] = {{256, 128, nullptr},
                                         {128, 256, nullptr},
                                         {128, 128, &SurfaceConstants::tile_128x128},
                                         {128, 64, &SurfaceConstants::tile_128x64},
                                         {64, 128, &SurfaceConstants::tile_128x64},
                                         {64, 64, &SurfaceConstants::tile_64x64},
                                         {64, 32, &SurfaceConstants::tile_64x32},
                                         {32, 64, &SurfaceConstants::tile_64x32}};

// Between the nodes of a grid, in each direction along a line; as at the edge outside of it.
double OnSurfaceGrid(std::span<const float> values, const std::array<size_t, 3>& nodes, double step,
                     const std::array<double, 3>& logs) {
  size_t low[3];
  double part[3];
  for (size_t i = 0; i < 3; ++i) {
    const double at =
        std::clamp((logs[i] - kFirstLog2[i]) / step, 0.0, static_cast<double>(nodes[i]) - 1.001);
    low[i] = static_cast<size_t>(at);
    part[i] = at - static_cast<double>(low[i]);
  }
  double value = 0;
  for (size_t corner = 0; corner < 8; ++corner) {
    double weight = 1;
    size_t at = 0;
    for (size_t i = 0; i < 3; ++i) {
      const bool up = (corner >> i & 1) != 0;
      weight *= up ? part[i] : 1 - part[i];
      at = at * nodes[i] + low[i] + (up ? 1 : 0);
    }
    value += weight * values[at];
  }
  return value;
}

double SurfaceCorrectionAt(const Surface& surface, const GemmShape& shape) {
  if (surface.correction.empty()) return 0;
  const std::array<double, 3> logs = {std::log2(static_cast<double>(shape.m)),
                                      std::log2(static_cast<double>(shape.n)),
                                      std::log2(static_cast<double>(shape.k))};
  double value = OnSurfaceGrid(surface.correction, Surface::kNodes, 1, logs);
  if (shape.m % kRaggedRows != 0) {
    value += OnSurfaceGrid(surface.ragged_correction, Surface::kRaggedNodes, 3, logs);
  }
  return value;
}

class SurfaceEvaluation {
 public:
  SurfaceEvaluation(const Surface& surface, const DeviceSpec& device, DType format,
                    const GemmShape& shape, bool warm = false)
      : c_(surface.constants),
        batch_(static_cast<double>(shape.batch)),
        m_(static_cast<double>(shape.m)),
        n_(static_cast<double>(shape.n)),
        k_(static_cast<double>(shape.k)),
        element_(format == DType::kInt8Weights ? 2 : DTypeBytes(format)),
        processors_(device.multiprocessors),
        boost_(device.boost_clock_mhz),
        kilocycle_us_(1000 / boost_),
        has_cast_(element_ < 2 && surface.format == format) {
    const double clock = std::sqrt(device.base_clock_mhz / device.boost_clock_mhz);
    rate_ = SurfacePeakOf(device, format) * 1e6 * clock * c_.rate_share / processors_;
    if (device.measured_tensor_share > 0) {
      rate_ *= device.measured_tensor_share / LongShareOf(surface, device);
    }
    const double bandwidth = device.memory_gb_per_s * 1e3 * c_.bandwidth_share;
    const double reads = L2BytesPerClock(device) * processors_ * boost_;
    // A product alone, all of whose operands are in the cache, may read it as fast as it goes.
    from_l2_ = std::max((warm ? 1 : c_.l2_speed_share) * reads, bandwidth);
    const double weights = batch_ * DTypeBytes(format) * n_ * k_, l2 = device.l2_mb * 1e6;
    const double moved = batch_ * (element_ * m_ * k_ + 2 * m_ * n_) + weights;
    // What was just written or read is in the cache; of weights a part, where they fit.
    const double cold =
        (moved - weights) * Hit(moved - weights, c_.l2_share * l2) +
        weights * c_.warm_weights / (1 + c_.warm_weights) * Hit(moved, c_.weights_l2_share * l2);
    const double cached = warm ? std::max(cold, moved * Hit(moved, c_.l2_share * l2)) : cold;
    memory_ = (moved - cached) / bandwidth + cached / from_l2_ +
              c_.ramp_kilocycles * kilocycle_us_ * std::min(1.0, moved / kRampBytes);
    if (shape.m % kRaggedRows != 0) ragged_ = c_.ragged;
    wave_share_ = c_.wave_odds / (1 + c_.wave_odds);
    const double per_operation = 2 * ragged_ / rate_;
    const double per_element = element_ / (64 * boost_ * c_.feed_share);
    for (size_t i = 0; i < std::size(kSurfaceTiles); ++i) {
      const SurfaceTile& tile = kSurfaceTiles[i];
      waves_[i] = batch_ * std::ceil(m_ * (1.0 / tile.rows)) *
                  std::ceil(n_ * (1.0 / tile.columns)) / processors_;
      const bool turned = i > 0 && tile.rows == kSurfaceTiles[i - 1].columns &&
                          tile.columns == kSurfaceTiles[i - 1].rows;
      if (turned) {
        tile_us_[i] = tile_us_[i - 1];
      } else {
        const double efficiency =
            tile.efficiency == nullptr ? 1 : std::min(c_.*tile.efficiency, 1.3);
        const double multiply = tile.rows * tile.columns * per_operation / efficiency;
        const double feed = (tile.rows + tile.columns) * per_element;
        tile_us_[i] = std::sqrt(multiply * multiply + feed * feed);
      }
      least_compute_ = std::min(least_compute_, waves_[i] * k_ * tile_us_[i]);
    }
  }

  SurfaceTime Best() const {
    SurfaceTime best{.ns = INFINITY};
    // (c ^ p + m ^ p) ^ (1 / p) is at least (c + m) * 2 ^ (1 / p - 1): power means.
    const double power = 1 + c_.blend, root = 1 / power, least = std::exp2(root - 1);
    for (int split : {1, 2, 4, 8, 16}) {
      if (split > 1 && k_ / split < kShortestSurfacePart) break;
      const double parts = split > 1 ? batch_ * split * m_ * n_ * 8 / from_l2_ : 0;
      const double more = split > 1 ? c_.split_kilocycles * kilocycle_us_ : 0;
      const double memory = memory_ + parts;
      // Not even with full waves; a further split moves more.
      if (std::max({least_compute_, memory, least * (least_compute_ + memory)}) + more >= best.ns) {
        break;
      }
      SurfaceTime time = BestTile(split);
      time.memory_ns = memory;
      // More of both than a smaller split has.
      if (split > 1 && time.compute_ns >= best.compute_ns) continue;
      const double longer = std::max(time.compute_ns, time.memory_ns);
      const double bound = std::max(longer, least * (time.compute_ns + time.memory_ns));
      if (bound + more >= best.ns) continue;
      const double ratio = std::min(time.compute_ns, time.memory_ns) / longer;
      time.ns = longer * std::pow(1 + std::pow(ratio, power), root) + more;
      if (time.ns < best.ns) best = time;
    }
    return best;
  }

  double CastUs() const {
    if (!has_cast_) return 0;
    return c_.cast_kilocycles * kilocycle_us_ + (2 + element_) * batch_ * m_ * k_ / from_l2_;
  }

  double LaunchUs() const { return c_.launch_kilocycles * kilocycle_us_; }

 private:
  static double Hit(double bytes, double cache) {
    const double share = bytes / std::max(cache, 1.0), square = share * share;
    return 1 / (1 + square * square * share);
  }

  // In microseconds, as all here.
  SurfaceTime BestTile(int split) const {
    SurfaceTime best{.compute_ns = INFINITY, .split = split};
    const double part = k_ / split;
    const double fixed = (part * c_.step_cycles / 64 + 1000 * c_.tile_kilocycles) / boost_;
    for (size_t i = 0; i < std::size(kSurfaceTiles); ++i) {
      const double waves = waves_[i] * split;
      const double rounds =
          wave_share_ * std::ceil(waves) + (1 - wave_share_) * std::max(waves, 1.0);
      const double time = rounds * (part * tile_us_[i] + fixed);
      if (time >= best.compute_ns) continue;
      best.compute_ns = time;
      best.tile_rows = kSurfaceTiles[i].rows;
      best.tile_columns = kSurfaceTiles[i].columns;
      best.waves = waves;
    }
    return best;
  }

  const SurfaceConstants& c_;
  double batch_, m_, n_, k_, element_, processors_, boost_, kilocycle_us_;
  bool has_cast_ = false;  // in the rows of the surface
  double rate_ = 0, from_l2_ = 0, memory_ = 0, ragged_ = 1, wave_share_ = 0;
  double least_compute_ = INFINITY;           // the best tile in full waves
  double waves_[std::size(kSurfaceTiles)];    // of tiles of each size, k in one part
  double tile_us_[std::size(kSurfaceTiles)];  // one of them, for each step of k
};

}  // namespace

// The texts are part of the program; a test parses each of them.
Surface SurfaceOfText(std::string_view text) {
  Surface s;
  s.measured = true;
  std::vector<float>* grid = nullptr;
  for (const std::vector<std::string_view>& words : SurfaceLines(text)) {
    if (words[0] == "correction" || words[0] == "ragged_correction") {
      grid = words[0] == "correction" ? &s.correction : &s.ragged_correction;
    } else if (grid != nullptr) {
      for (std::string_view w : words) grid->push_back(static_cast<float>(SurfaceNumber(w) / 100));
    } else if (words[0] == "device") {
      s.device = words[1];
    } else if (words[0] == "format") {
      s.format = words[1] == "fp8"       ? DType::kFp8
                 : words[1] == "nvfp4"   ? DType::kNvfp4
                 : words[1] == "int8_wo" ? DType::kInt8Weights
                                         : DType::kBf16;
    } else if (words[0] == "shapes" || words[0] == "rows") {
      (words[0] == "rows" ? s.rows : s.shapes) = static_cast<int>(SurfaceNumber(words[1]));
    } else if (words[0] == "low" || words[0] == "high") {
      DD_CHECK(words.size() == 1 + Surface::kLengths);
      for (size_t i = 0; i < Surface::kLengths; ++i) {
        (words[0] == "low" ? s.low : s.high)[i] = SurfaceNumber(words[1 + i]);
      }
    } else {
      const auto* named = std::find_if(std::begin(kSurfaceConstants), std::end(kSurfaceConstants),
                                       [&](const NamedConstant& n) { return n.name == words[0]; });
      DD_CHECK(named != std::end(kSurfaceConstants));
      s.constants.*named->member = SurfaceNumber(words[1]);
    }
  }
  return s;
}

const Surface* SurfaceOf(const DeviceSpec& device, DType format, bool with_cast) {
  static const auto* const atlas = new Atlas;
  if (device.vendor != "NVIDIA" || device.compute_major < 8) return nullptr;
  if (!(SurfacePeakOf(device, format) > 0)) return nullptr;
  const bool lent = format == DType::kTf32 || (format == DType::kFp8 && !with_cast);
  if (lent || format == DType::kFp16) format = DType::kBf16;
  const double generation = SurfaceGeneration(device.compute_major, device.compute_minor);
  for (const KnownSurface& known : lent ? atlas->lent : atlas->known) {
    if (known.surface.format == format && known.generation == generation) return &known.surface;
  }
  const Surface* nearest = nullptr;
  double distance = INFINITY;
  for (const auto& [at, surface] : atlas->others) {
    if (surface.format != format || std::abs(at - generation) >= distance) continue;
    distance = std::abs(at - generation);
    nearest = &surface;
  }
  return nearest;
}

double LongShareOf(const Surface& surface, const DeviceSpec& device) {
  const double clock = std::sqrt(device.base_clock_mhz / device.boost_clock_mhz);
  const GemmShape cube{.m = 8192, .n = 8192, .k = 8192};
  // The correction is of times.
  return clock * surface.constants.rate_share * std::exp(-SurfaceCorrectionAt(surface, cube));
}

SurfaceTime TimeOnSurface(const Surface& surface, const DeviceSpec& device, DType format,
                          const GemmShape& shape, bool with_cast) {
  if (shape.batch <= 0 || shape.m <= 0 || shape.n <= 0 || shape.k <= 0) return {};
  const SurfaceEvaluation evaluation(surface, device, format, shape);
  SurfaceTime time = evaluation.Best();
  // Only single products were measured.
  if (shape.batch == 1) {
    time.correction = SurfaceCorrectionAt(surface, shape);
  }
  const double cast = evaluation.CastUs();
  const double rows_us = (evaluation.LaunchUs() + time.ns + cast) * std::exp(time.correction);
  const double us = with_cast ? rows_us : rows_us - cast * std::exp(time.correction);
  const auto length = static_cast<size_t>(
      std::upper_bound(std::begin(kSurfaceEdgesUs), std::end(kSurfaceEdgesUs), rows_us) -
      std::begin(kSurfaceEdgesUs));
  time.ns = us * 1e3;
  time.low_ns = time.ns * std::exp(surface.low[length]);
  time.high_ns = time.ns * std::exp(surface.high[length]);
  time.compute_ns *= 1e3;
  time.memory_ns *= 1e3;
  time.launch_ns = evaluation.LaunchUs() * 1e3;
  time.cast_ns = with_cast ? cast * 1e3 : 0;
  return time;
}

namespace {

// How much of the time the arithmetic does the waiting.
double ArithmeticShare(const SurfaceTime& time) {
  const double compute = time.compute_ns * time.compute_ns;
  if (!(compute > 0)) return 0;
  return compute / (compute + time.memory_ns * time.memory_ns);
}

}  // namespace

double SustainedNs(const SurfaceTime& time) {
  const double work = std::max(time.ns - time.launch_ns, 0.0);
  return time.ns + (kSustainedMiddle - 1) * work * ArithmeticShare(time);
}

KernelRange RangeOnSurface(const Surface& surface, const DeviceSpec& device, DType format,
                           const GemmShape& shape, bool with_cast) {
  const SurfaceTime time = TimeOnSurface(surface, device, format, shape, with_cast);
  if (!(time.ns > 0)) return {};
  const SurfaceEvaluation warm(surface, device, format, shape, /*warm=*/true);
  const double alone_ns =
      1e3 * std::exp(time.correction) * (warm.Best().ns + (with_cast ? warm.CastUs() : 0));
  double least = std::min(std::log(alone_ns / time.ns), 0.0), most = 0;
  const double low = std::log(time.low_ns / time.ns);
  double high = std::log(time.high_ns / time.ns);
  // What was measured on this GPU says itself what it sustains.
  if (!(device.measured_tensor_share > 0)) {
    most = std::log(SustainedNs(time) / time.ns);
    high = std::hypot(high, std::log(kSustainedMost / kSustainedMiddle) * ArithmeticShare(time));
  }
  // Kernels at one end lie out on one side only where the ends are far apart.
  const double apart = std::min((most - least) / (high - low), 1.0);
  const double part = 1 - (1 - kOneSided) * apart;
  return {.low_ns = time.ns * std::exp(least + part * low),
          .high_ns = time.ns * std::exp(most + part * high)};
}

double UnalignedNs(const DeviceSpec& device, DType format, const GemmShape& shape) {
  constexpr int64_t kWholeBytes = 16;
  constexpr double kShare2 = 0.10, kShare4 = 0.25, kShare8 = 0.26;  // by bytes that fit
  if (device.vendor != "NVIDIA" || device.compute_major != 9) return 0;
  const double peak = SurfacePeakOf(device, format), bytes = DTypeBytes(format);
  if (shape.n <= 0 || shape.k <= 0 || bytes < 2 || !(peak > 0)) return 0;
  const int64_t both = shape.n | shape.k;
  const int64_t piece = std::min(both & -both, kWholeBytes) * static_cast<int64_t>(bytes);
  if (piece >= kWholeBytes) return 0;
  const double share = piece >= 8 ? kShare8 : piece >= 4 ? kShare4 : kShare2;
  return shape.Flops() / (share * peak * 1e3);
}

double DeviationKept(double ns, double deviation) {
  // The best of ten rules on two thirds of the products that two GPUs have, all twelve pairs.
  constexpr double kShortNs = 256e3, kLongNs = 4096e3, kLongKeep = 0.4, kFasterKeep = 0.2;
  const double way = std::log(std::max(ns, 1.0) / kShortNs) / std::log(kLongNs / kShortNs);
  return kLongKeep * std::clamp(way, 0.0, 1.0) + (deviation < 0 ? kFasterKeep : 0);
}

}  // namespace daydream
