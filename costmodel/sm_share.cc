#include "costmodel/sm_share.h"

#include <algorithm>
#include <cmath>

namespace daydream {
namespace {

// Warps that keep the arithmetic of a multiprocessor busy: four schedulers, four cycles from an
// instruction to one that needs its result (CUDA C++ Programming Guide, 5.2.3 "Multiprocessor
// Level").
constexpr double kWarpsForArithmetic = 16;

// Relative time of the busiest multiprocessor when `n` of them share the grid. Blocks that fit
// together start together; fewer warps than the arithmetic needs cost no more than one block.
double ArithmeticTime(const DeviceSpec& device, const LaunchShape& launch, int n) {
  if (launch.blocks <= 0) return 1.0 / n;
  const double together =
      std::max(1.0, WaveSize(device, launch) / std::max(device.multiprocessors, 1));
  const double warps =
      std::ceil(static_cast<double>(std::max<int64_t>(launch.threads_per_block, 1)) / 32);
  auto of_resident = [&](double blocks) {
    return blocks > 0 ? std::max(1.0, blocks * warps / kWarpsForArithmetic) : 0;
  };
  const double blocks = std::ceil(launch.blocks / n);
  const double full = std::floor(blocks / together);
  return full * of_resident(together) + of_resident(blocks - full * together);
}

// Share of the bandwidth that `n` multiprocessors draw.
double Drawn(const DeviceSpec& device, const LaunchShape& launch, int n, const ShareRules& rules) {
  const double working = launch.blocks > 0 ? std::min<double>(n, launch.blocks) : n;
  const double saturating = std::max(device.multiprocessors * rules.saturation, 1.0);
  return std::min({1.0, working / saturating, rules.bandwidth});
}

int All(const DeviceSpec& device) { return std::max(device.multiprocessors, 1); }

double Slowdown(const DeviceSpec& device, const ShareDemand& demand, int n,
                const ShareRules& rules) {
  const double longest = std::max(demand.arithmetic, demand.memory);
  if (!(longest > 0)) return 1;
  const int all = All(device);
  const double arithmetic = ArithmeticTime(device, demand.launch, n) /
                            ArithmeticTime(device, demand.launch, all) * demand.arithmetic;
  ShareRules alone = rules;
  alone.bandwidth = 1;
  const double memory = Drawn(device, demand.launch, all, alone) /
                        Drawn(device, demand.launch, n, rules) * demand.memory;
  return std::max(1.0, std::max(arithmetic, memory) / longest);
}

}  // namespace

int MultiprocessorsIn(const DeviceSpec& device, double share) {
  // A tenth of 80 is 8, whatever the last bit of 0.1 says.
  return std::clamp(static_cast<int>(std::floor(All(device) * share + 1e-9)), 1, All(device));
}

double ShareSlowdown(const DeviceSpec& device, const ShareDemand& demand, double share,
                     const ShareRules& rules) {
  return Slowdown(device, demand, MultiprocessorsIn(device, share), rules);
}

double KneeOf(const DeviceSpec& device, const ShareDemand& demand, double slower,
              const ShareRules& rules) {
  // Monotone: halve.
  int low = 0, high = All(device);
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (Slowdown(device, demand, middle, rules) <= 1 + slower ? high : low) = middle;
  }
  return static_cast<double>(high) / All(device);
}

double PartInUse(const DeviceSpec& device, const ShareDemand& demand, const ShareRules& rules) {
  const double longest = std::max(demand.arithmetic, demand.memory);
  if (!(longest > 0)) return 1;
  const double bandwidth =
      Drawn(device, demand.launch, All(device), rules) * demand.memory / longest;
  return std::clamp(std::max(KneeOf(device, demand, 0, rules), bandwidth), 0.0, 1.0);
}

}  // namespace daydream
