#include "costmodel/network/size_curve.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "base/median.h"

namespace daydream {
namespace {

using Terms = std::array<double, 3>;

Terms TermsAt(double bytes) { return {1, std::sqrt(bytes), bytes}; }

// Solves the normal equations of the terms in `mask` by elimination with pivots; nothing when they
// are singular or a coefficient is below 0.
std::optional<Terms> Solve(std::span<const SizePoint> points, unsigned mask) {
  std::vector<size_t> used;
  for (size_t i = 0; i < 3; ++i) {
    if ((mask >> i & 1) != 0) used.push_back(i);
  }
  const size_t n = used.size();
  std::array<std::array<double, 4>, 3> rows{};
  for (const SizePoint& p : points) {
    const Terms terms = TermsAt(p.bytes);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) rows[i][j] += terms[used[i]] * terms[used[j]] / (p.us * p.us);
      rows[i][n] += terms[used[i]] / p.us;
    }
  }
  for (size_t i = 0; i < n; ++i) {
    size_t pivot = i;
    for (size_t r = i + 1; r < n; ++r) {
      if (std::abs(rows[r][i]) > std::abs(rows[pivot][i])) pivot = r;
    }
    std::swap(rows[i], rows[pivot]);
    if (std::abs(rows[i][i]) < std::numeric_limits<double>::min()) return std::nullopt;
    for (size_t r = 0; r < n; ++r) {
      if (r == i) continue;
      const double f = rows[r][i] / rows[i][i];
      for (size_t c = i; c <= n; ++c) rows[r][c] -= f * rows[i][c];
    }
  }
  Terms found{};
  for (size_t i = 0; i < n; ++i) {
    found[used[i]] = rows[i][n] / rows[i][i];
    if (!(found[used[i]] >= 0) || !std::isfinite(found[used[i]])) return std::nullopt;
  }
  return found;
}

double Squares(std::span<const SizePoint> points, const Terms& t) {
  double sum = 0;
  for (const SizePoint& p : points) {
    const Terms at = TermsAt(p.bytes);
    const double off = (t[0] * at[0] + t[1] * at[1] + t[2] * at[2]) / p.us - 1;
    sum += off * off;
  }
  return sum;
}

std::vector<SizePoint> OnePerSize(std::span<const SizePoint> measured) {
  std::map<double, std::vector<double>> by_size;
  for (const SizePoint& p : measured) {
    const bool good = p.bytes > 0 && p.us > 0 && std::isfinite(p.bytes) && std::isfinite(p.us);
    if (good) by_size[p.bytes].push_back(p.us);
  }
  std::vector<SizePoint> points;
  for (auto& [bytes, times] : by_size) points.push_back({bytes, Median(times)});
  return points;
}

CurveError ErrorOf(std::vector<double> off) {
  if (off.empty()) return {};
  std::sort(off.begin(), off.end());
  CurveError error{.most = off.back(), .sizes = off.size()};
  for (double e : off) error.mean += e / static_cast<double>(off.size());
  // The nearest rank: of fewer than twenty the largest.
  error.p95 = off[(off.size() * 95 + 99) / 100 - 1];
  return error;
}

}  // namespace

double SizeCurve::Smooth(double bytes) const {
  return a_us + g_us * std::sqrt(std::max(0.0, bytes)) + us_per_byte * std::max(0.0, bytes);
}

double SizeCurve::At(double bytes) const {
  const double smooth = Smooth(bytes);
  if (points.empty() || !(bytes > 0)) return smooth;
  const auto above = std::lower_bound(points.begin(), points.end(), bytes,
                                      [](const SizePoint& p, double b) { return p.bytes < b; });
  // How much the measured time differs from the smooth one; in logarithms, straight between sizes.
  auto bend = [&](const SizePoint& p) { return std::log(p.us / Smooth(p.bytes)); };
  if (above == points.end()) return smooth * std::exp(bend(points.back()));
  if (above == points.begin()) return smooth * std::exp(bend(points.front()));
  const SizePoint &low = above[-1], &high = *above;
  const double share = std::log(bytes / low.bytes) / std::log(high.bytes / low.bytes);
  return smooth * std::exp((1 - share) * bend(low) + share * bend(high));
}

SizeCurve FitSizeCurve(std::span<const SizePoint> measured) {
  SizeCurve curve;
  curve.points = OnePerSize(measured);
  double least = std::numeric_limits<double>::max();
  // With the term of long messages first: of two that fit alike, it goes on beyond the last size.
  for (unsigned mask : {7u, 5u, 6u, 4u, 3u, 1u, 2u}) {
    if (static_cast<size_t>(std::popcount(mask)) > curve.points.size()) continue;
    const std::optional<Terms> terms = Solve(curve.points, mask);
    if (!terms) continue;
    const double squares = Squares(curve.points, *terms);
    if (!(squares < least - 1e-12)) continue;
    least = squares;
    curve.a_us = (*terms)[0], curve.g_us = (*terms)[1], curve.us_per_byte = (*terms)[2];
  }
  return curve;
}

CurveError ErrorOfFit(const SizeCurve& curve) {
  std::vector<double> off;
  for (const SizePoint& p : curve.points) off.push_back(std::abs(curve.Smooth(p.bytes) / p.us - 1));
  return ErrorOf(std::move(off));
}

CurveError ErrorLeftOut(const SizeCurve& curve) {
  if (curve.points.size() < 5) return {};
  std::vector<SizePoint> kept, held;
  for (size_t i = 0; i < curve.points.size(); ++i) {
    (i % 2 == 0 ? kept : held).push_back(curve.points[i]);
  }
  const SizeCurve other = FitSizeCurve(kept);
  std::vector<double> off;
  for (const SizePoint& p : held) off.push_back(std::abs(other.At(p.bytes) / p.us - 1));
  return ErrorOf(std::move(off));
}

}  // namespace daydream
