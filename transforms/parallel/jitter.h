// How ranks differ in speed: draws that are the same on every machine.
#pragma once

#include <cstdint>

namespace daydream {

// Standard normal, of two numbers. The same bits everywhere: integers mixed, then a rational
// approximation of the inverse normal distribution (Acklam 2003, off by 1e-9).
double DrawNormal(uint64_t seed, uint64_t index);

// Factor on the work of a rank: 1 + sd z, at least a tenth.
double JitterOf(uint64_t seed, int32_t rank, double sd);

// Standard deviation between ranks where nobody tells one, as a share of their own work: between
// the 1.8 % of eight recorded ranks that their hosts bind and the 0 to 1.2 % that published weak
// scaling of FSDP leaves room for (docs/decisions/014-one-rank-stands-for-n.md).
inline constexpr double kUsualJitter = 0.015;

// Mean and variance of the largest of n standard normal draws: sums over the density of the
// maximum, to 1e-4. n >= 1. e(8) = 1.424, v(8) = 0.373 (tables of order statistics).
struct Maximum {
  double mean = 0, variance = 1;
};
Maximum MaximumOf(int64_t n);

}  // namespace daydream
