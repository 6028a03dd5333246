// Time of a collective by its size, at one number of ranks: t(S) = a + g sqrt(S) + S b, all >= 0.
//
// The root is what pipelining in chunks costs, and what protocols that take over from one another
// look like from outside. On the 16 published sweeps of nccl-tests that the built-in fabrics rest
// on, it is off by 5.9 % in the mean, alpha + S/B by 12 % (docs/ranks.md).
#pragma once

#include <span>
#include <vector>

namespace daydream {

struct SizePoint {
  double bytes = 0, us = 0;
  friend bool operator==(const SizePoint&, const SizePoint&) = default;
};

struct SizeCurve {
  double a_us = 0;         // of an empty message
  double g_us = 0;         // a root of a byte
  double us_per_byte = 0;  // of a long one
  // What was measured, sizes ascending: the curve is bent to meet it, and follows its own shape
  // between two sizes and beyond the last ones.
  std::vector<SizePoint> points;

  // Without the points. Ascending in `bytes`.
  double Smooth(double bytes) const;
  // With them. O(log points).
  double At(double bytes) const;
};

// Least squares of the relative error over the non-negative a, g, b: the seven ways to leave some
// of them out are tried. Sizes may come in any order; equal ones become their median, and what is
// not above 0 and finite is left out. The points are kept. O(points).
SizeCurve FitSizeCurve(std::span<const SizePoint> measured);

struct CurveError {
  double mean = 0, p95 = 0, most = 0;  // |predicted / measured - 1|
  size_t sizes = 0;
};
// Of the smooth curve at what it was fitted to.
CurveError ErrorOfFit(const SizeCurve& curve);
// Of curves that were fitted to the other sizes, at every second size. No sizes below five.
CurveError ErrorLeftOut(const SizeCurve& curve);

}  // namespace daydream
