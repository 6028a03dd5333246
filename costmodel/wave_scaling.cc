#include "costmodel/wave_scaling.h"

#include <algorithm>
#include <cmath>

namespace daydream {
namespace {

// The paper leaves the number of waves unrounded when it is large, and names no number; beyond this
// rounding changes a wave count by less than 1 %.
constexpr double kManyWaves = 100;

// Units of a multiprocessor. Those of CDNA3 issue two operations at once: its data-sheet rate is
// twice what units and clock give.
double UnitsOf(const DeviceSpec& device) {
  const double units = device.fp32_cores_per_multiprocessor;
  const double once = 2e-6 * device.multiprocessors * units * device.boost_clock_mhz;
  return units * std::max(std::round(device.fp32_tflops / once), 1.0);
}

// The clock that long kernels run at: base clock, as in the paper's table of devices.
double ClockOf(const DeviceSpec& device, bool count_units) {
  return device.base_clock_mhz * (count_units ? UnitsOf(device) : 1);
}

}  // namespace

WaveScaling ScaleWaves(const DeviceSpec& from, const DeviceSpec& to, const LaunchShape& launch,
                       const WaveOptions& options) {
  WaveScaling scaling;
  const double wave_from = WaveSize(from, launch), wave_to = WaveSize(to, launch);
  const double arithmetic = ClockOf(from, options.count_units) * from.multiprocessors /
                            (ClockOf(to, options.count_units) * to.multiprocessors);
  const double bandwidth = from.SustainedBandwidth() / to.SustainedBandwidth();
  const double clock = ClockOf(from, options.count_units) / ClockOf(to, options.count_units);
  scaling.waves_from = launch.blocks / wave_from;
  scaling.waves_to = launch.blocks / wave_to;
  if (options.intensity) {
    const double ridge = to.fp32_tflops * 1e12 / to.SustainedBandwidth();
    const double x = std::max(*options.intensity, 0.0);
    scaling.gamma = x < ridge ? 1 - 0.5 * x / ridge : 0.5 * ridge / x;
  }
  const double g = scaling.gamma;
  const double fewest = std::min(scaling.waves_from, scaling.waves_to);
  scaling.rounded = launch.blocks > 0 && fewest < kManyWaves;
  if (scaling.rounded) {
    // A wave that is not full shares the bandwidth among fewer.
    const double most_to = std::min(wave_to, launch.blocks);
    const double most_from = std::min(wave_from, launch.blocks);
    scaling.factor = std::ceil(scaling.waves_to) / std::ceil(scaling.waves_from) *
                     std::pow(bandwidth * most_to / most_from, g) * std::pow(clock, 1 - g);
  } else {
    scaling.factor =
        std::pow(bandwidth, g) * std::pow(wave_from / wave_to, 1 - g) * std::pow(clock, 1 - g);
  }
  scaling.factor =
      std::clamp(scaling.factor, std::min(bandwidth, arithmetic), std::max(bandwidth, arithmetic));
  return scaling;
}

}  // namespace daydream
