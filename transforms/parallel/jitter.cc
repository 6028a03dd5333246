#include "transforms/parallel/jitter.h"

#include <algorithm>
#include <cmath>

namespace daydream {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014).
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// The value below which the share p of a normal distribution lies; 0 < p < 1.
double InverseNormal(double p) {
  constexpr double a[] = {-39.69683028665376, 220.9460984245205,  -275.9285104469687,
                          138.3577518672690,  -30.66479806614716, 2.506628277459239};
  constexpr double b[] = {-54.47609879822406, 161.5858368580409, -155.6989798598866,
                          66.80131188771972, -13.28068155288572};
  constexpr double c[] = {-0.007784894002430293, -0.3223964580411365, -2.400758277161838,
                          -2.549732539343734,    4.374664141464968,   2.938163982698783};
  constexpr double d[] = {0.007784695709041462, 0.3224671290700398, 2.445134137142996,
                          3.754408661907416};
  constexpr double kTail = 0.02425;
  if (p > 0.5) return -InverseNormal(1 - p);
  if (p < kTail) {
    const double q = std::sqrt(-2 * std::log(p));
    return (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
           ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
  }
  const double q = p - 0.5, r = q * q;
  return (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
         (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
}

}  // namespace

double DrawNormal(uint64_t seed, uint64_t index) {
  const uint64_t bits = Mix(Mix(seed) ^ index) >> 11;  // 53 of them
  return InverseNormal((static_cast<double>(bits) + 0.5) * 0x1p-53);
}

double JitterOf(uint64_t seed, int32_t rank, double sd) {
  return std::max(0.1, 1 + sd * DrawNormal(seed, static_cast<uint64_t>(std::max(0, rank))));
}

Maximum MaximumOf(int64_t n) {
  if (n <= 1) return {};
  // E[M] = sum of x d(Phi(x)^n), in steps of 0.002 between -8 and 12.
  constexpr double kLow = -8, kHigh = 12, kStep = 0.002;
  double mean = 0, square = 0, before = 0;
  for (double x = kLow; x < kHigh; x += kStep) {
    const double phi = 0.5 * std::erfc(-(x + kStep) / std::sqrt(2.0));
    const double now = std::pow(phi, static_cast<double>(n));
    const double middle = x + kStep / 2;
    mean += middle * (now - before);
    square += middle * middle * (now - before);
    before = now;
  }
  return {mean, square - mean * mean};
}

}  // namespace daydream
