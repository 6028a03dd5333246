#include "costmodel/attention_surface.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/check.h"
#include "costmodel/surface_lines.h"
#include "costmodel/surface_texts.h"

namespace daydream {
namespace {

constexpr double kAttentionBlock = 128, kKeyBlock = 64;
constexpr size_t kAttentionLengths = 7;
constexpr double kAttentionEdgesUs[] = {4, 8, 16, 64, 256, 1024};
constexpr std::array<size_t, 4> kAttentionNodes{16, 16, 4, 7};
// Of the grid: log2 of queries, of heads, twice of the padded width, of heads that share keys.
constexpr double kAttentionFirst[] = {0, 0, 12, 0}, kAttentionStep[] = {1, 1, 2, 1};

struct AttentionSurface {
  std::string device;
  int major = 0, minor = 0, shapes = 0;
  bool causal = false;
  double launch_us = 0, rate_share = 0, bandwidth_share = 0, wave_odds = 0, narrow_head = 0,
         ramp_us = 0, blend = 0, tile_kilocycles = 0, packed_odds = 0;
  std::array<double, kAttentionLengths> low{}, high{};
  std::vector<float> correction;
};

constexpr std::pair<std::string_view, double AttentionSurface::*> kAttentionConstants[] = {
    {"launch_us", &AttentionSurface::launch_us},
    {"rate_share", &AttentionSurface::rate_share},
    {"bandwidth_share", &AttentionSurface::bandwidth_share},
    {"wave_odds", &AttentionSurface::wave_odds},
    {"narrow_head", &AttentionSurface::narrow_head},
    {"ramp_us", &AttentionSurface::ramp_us},
    {"blend", &AttentionSurface::blend},
    {"tile_kilocycles", &AttentionSurface::tile_kilocycles},
    {"packed_odds", &AttentionSurface::packed_odds}};

// The texts are part of the program; a test parses each of them.
AttentionSurface ParseAttention(std::string_view text) {
  AttentionSurface s;
  bool grid = false;
  for (const std::vector<std::string_view>& words : SurfaceLines(text)) {
    if (grid) {
      for (std::string_view w : words)
        s.correction.push_back(static_cast<float>(SurfaceNumber(w) / 100));
    } else if (words[0] == "correction") {
      grid = true;
    } else if (words[0] == "device") {
      s.device = words[1];
      const DeviceSpec* spec = FindDeviceSpec(s.device);
      DD_CHECK(spec != nullptr);
      s.major = spec->compute_major, s.minor = spec->compute_minor;
    } else if (words[0] == "shapes") {
      s.shapes = static_cast<int>(SurfaceNumber(words[1]));
    } else if (words[0] == "low" || words[0] == "high") {
      DD_CHECK(words.size() == 1 + kAttentionLengths);
      for (size_t i = 0; i < kAttentionLengths; ++i) {
        (words[0] == "low" ? s.low : s.high)[i] = SurfaceNumber(words[1 + i]);
      }
    } else if (words[0] != "rows") {
      const auto* constant =
          std::find_if(std::begin(kAttentionConstants), std::end(kAttentionConstants),
                       [&](const auto& c) { return c.first == words[0]; });
      DD_CHECK(constant != std::end(kAttentionConstants));
      s.*constant->second = SurfaceNumber(words[1]);
    }
  }
  DD_CHECK(s.correction.size() ==
           kAttentionNodes[0] * kAttentionNodes[1] * kAttentionNodes[2] * kAttentionNodes[3]);
  return s;
}

const std::vector<AttentionSurface>& AllAttention() {
  static const auto* const all = [] {
    auto* surfaces = new std::vector<AttentionSurface>;
    for (const SurfaceText& text : SurfaceTexts()) {
      if (text.file.find(".attention") == std::string_view::npos) continue;
      surfaces->push_back(ParseAttention(text.text));
      surfaces->back().causal = text.file.find("_causal") != std::string_view::npos;
    }
    return surfaces;
  }();
  return *all;
}

// Kernels exist for 64, 96, 128, ... elements of a head.
double PaddedWidth(double width) { return std::ceil(width / 32) * 32; }

double AttentionCorrectionAt(const AttentionSurface& surface, const SelfAttention& a) {
  const double sizes[] = {std::log2(a.length), std::log2(a.batch * a.heads),
                          2 * std::log2(PaddedWidth(a.width)), std::log2(a.heads / a.kv_heads)};
  size_t low[4];
  double part[4];
  for (size_t i = 0; i < 4; ++i) {
    const double at = std::clamp((sizes[i] - kAttentionFirst[i]) / kAttentionStep[i], 0.0,
                                 static_cast<double>(kAttentionNodes[i]) - 1.001);
    low[i] = static_cast<size_t>(at);
    part[i] = at - static_cast<double>(low[i]);
  }
  double value = 0;
  for (size_t corner = 0; corner < 16; ++corner) {
    double weight = 1;
    size_t at = 0;
    for (size_t i = 0; i < 4; ++i) {
      const bool up = (corner >> i & 1) != 0;
      weight *= up ? part[i] : 1 - part[i];
      at = at * kAttentionNodes[i] + low[i] + (up ? 1 : 0);
    }
    value += weight * surface.correction[at];
  }
  return value;
}

AttentionTime AttentionOn(const AttentionSurface& s, const DeviceSpec& device,
                          const SelfAttention& a) {
  const double keys = std::ceil(a.length / kKeyBlock) * kKeyBlock;
  const double read = a.causal && a.length > kAttentionBlock ? (keys + kAttentionBlock) / 2 : keys;
  const double rate = device.TensorPeak(DType::kBf16) * 1e6 *
                      std::sqrt(device.base_clock_mhz / device.boost_clock_mhz) * s.rate_share *
                      (a.width < 100 ? s.narrow_head : 1) / device.multiprocessors;
  const double tile = 4 * kAttentionBlock * read * PaddedWidth(a.width) / rate +
                      1000 * s.tile_kilocycles / device.boost_clock_mhz;
  AttentionTime time;
  const double share = s.wave_odds / (1 + s.wave_odds);
  auto in_waves = [&](double waves) {
    return (share * std::ceil(waves) + (1 - share) * std::max(waves, 1.0)) * tile;
  };
  time.waves = a.batch * a.heads * std::ceil(a.length / kAttentionBlock) / device.multiprocessors;
  double compute = in_waves(time.waves);
  if (a.kv_heads < a.heads) {
    // Queries of heads that share their keys are rows of one block: always of single queries, of
    // more by some kernels.
    const double rows = a.length * a.heads / a.kv_heads;
    const double packed =
        in_waves(a.batch * a.kv_heads * std::ceil(rows / kAttentionBlock) / device.multiprocessors);
    const double part = a.length == 1 ? 1 : s.packed_odds / (1 + s.packed_odds);
    compute *= std::pow(packed / compute, part);
  }
  const double moved = 2 * a.width * a.batch * a.length * (2 * a.heads + 2 * a.kv_heads);
  const double memory = moved / (device.memory_gb_per_s * 1e3 * s.bandwidth_share) +
                        s.ramp_us * std::min(1.0, moved / 4e6);
  const double power = 1 + s.blend;
  time.correction = AttentionCorrectionAt(s, a);
  const double us =
      (s.launch_us + std::pow(std::pow(compute, power) + std::pow(memory, power), 1 / power)) *
      std::exp(time.correction);
  const auto length = static_cast<size_t>(
      std::upper_bound(std::begin(kAttentionEdgesUs), std::end(kAttentionEdgesUs), us) -
      std::begin(kAttentionEdgesUs));
  time.ns = us * 1e3;
  // Without a launch, to the kernel that PyTorch takes where that is an older one.
  const double alone_ns = time.ns - 1e3 * s.launch_us * std::exp(time.correction);
  const double peak = FlashAttention2Share(device) * device.TensorPeak(DType::kBf16) * 1e3;
  const double older_ns = peak > 0 ? a.Flops() / peak : 0;
  time.low_ns = alone_ns * std::exp(s.low[length]);
  time.high_ns = std::max(time.ns, older_ns) * std::exp(s.high[length]);
  time.compute_ns = compute * 1e3;
  time.memory_ns = memory * 1e3;
  time.launch_ns = s.launch_us * 1e3;
  time.device = s.device;
  time.shapes = s.shapes;
  return time;
}

}  // namespace

double SelfAttention::Flops() const {
  return (causal ? 2 : 4) * batch * heads * length * length * width;
}

AttentionTime TimeOfAttention(const DeviceSpec& device, const SelfAttention& a) {
  if (!(a.batch >= 1 && a.length >= 1 && a.kv_heads >= 1 && a.heads >= a.kv_heads &&
        a.width >= 1)) {
    return {};
  }
  if (device.vendor != "NVIDIA" || !(device.TensorPeak(DType::kBf16) > 0)) return {};
  for (const AttentionSurface& s : AllAttention()) {
    const bool same = s.major == device.compute_major && s.minor == device.compute_minor;
    if (same && s.causal == a.causal) return AttentionOn(s, device, a);
  }
  return {};
}

double FlashAttention2Share(const DeviceSpec& device) {
  if (device.vendor != "NVIDIA") return 0;
  // Long rows of `vllm_flash_attn` on an A100 reach 190 to 200 of 312 TFLOPS, on an L40S 196 to 208
  // of 362. Hopper: 35 % (Shah et al., FlashAttention-3, 2024, abstract).
  if (device.compute_major == 8) return device.compute_minor == 0 ? 0.62 : 0.55;
  return device.compute_major == 9 ? 0.35 : 0;
}

double AttentionShare(const DeviceSpec& device) {
  const double share = FlashAttention2Share(device), peak = device.TensorPeak(DType::kBf16);
  if (share > 0) return share;
  constexpr SelfAttention kLong{
      .batch = 8, .length = 2048, .heads = 16, .kv_heads = 16, .width = 128};
  DeviceSpec first = device;  // of its generation
  first.compute_minor = 0;
  const AttentionTime time = TimeOfAttention(first, kLong);
  return time.ns > 0 ? kLong.Flops() / (time.ns * peak * 1e3) : 0;
}

}  // namespace daydream
