// How ranks differ in speed: draws that are the same on every machine.
#pragma once

#include <cstdint>

namespace daydream {

// Standard normal, of two numbers. The same bits everywhere: integers mixed, then a rational
// approximation of the inverse normal distribution (Acklam 2003, off by 1e-9).
double DrawNormal(uint64_t seed, uint64_t index);

// Factor on the work of a rank: 1 + sd z, at least a tenth.
double JitterOf(uint64_t seed, int32_t rank, double sd);

// Mean and variance of the largest of n standard normal draws: sums over the density of the
// maximum, to 1e-4. n >= 1. e(8) = 1.424, v(8) = 0.373 (tables of order statistics).
struct Maximum {
  double mean = 0, variance = 1;
};
Maximum MaximumOf(int64_t n);

}  // namespace daydream
