// Time inside daydream is a whole number of nanoseconds. `Duration` is a length, `Instant` is a
// point on the trace's own clock (0 = the first event). They do not convert into one another.
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>

namespace daydream {

struct Duration {
  int64_t ns = 0;

  static constexpr Duration Ns(int64_t v) { return Duration{v}; }
  static constexpr Duration Us(int64_t v) { return Duration{v * 1000}; }
  static constexpr Duration Ms(int64_t v) { return Duration{v * 1000000}; }
  static constexpr Duration Max() { return Duration{std::numeric_limits<int64_t>::max()}; }
  // The nearest whole nanosecond, half to even; saturates at +-2^62, NaN becomes 0.
  static Duration FromDouble(double v) {
    constexpr double kLimit = 4.611686018427387904e18;
    if (!(v == v)) return Duration{0};
    if (v >= kLimit) return Duration{int64_t{1} << 62};
    if (v <= -kLimit) return Duration{-(int64_t{1} << 62)};
    return Duration{std::llrint(v)};
  }

  constexpr double us() const { return static_cast<double>(ns) / 1e3; }
  constexpr double ms() const { return static_cast<double>(ns) / 1e6; }
  constexpr double seconds() const { return static_cast<double>(ns) / 1e9; }

  // This length times `factor`, as FromDouble() rounds; exact when the factor is 1.
  Duration Scaled(double factor) const {
    return factor == 1.0 ? *this : FromDouble(static_cast<double>(ns) * factor);
  }

  friend constexpr auto operator<=>(Duration, Duration) = default;
  friend constexpr Duration operator+(Duration a, Duration b) { return {a.ns + b.ns}; }
  friend constexpr Duration operator-(Duration a, Duration b) { return {a.ns - b.ns}; }
  friend constexpr Duration operator-(Duration a) { return {-a.ns}; }
  friend constexpr Duration operator*(Duration a, int64_t n) { return {a.ns * n}; }
  friend constexpr Duration operator/(Duration a, int64_t n) { return {a.ns / n}; }
  constexpr Duration& operator+=(Duration d) { return ns += d.ns, *this; }
  constexpr Duration& operator-=(Duration d) { return ns -= d.ns, *this; }
};

struct Instant {
  int64_t ns = 0;

  static constexpr Instant AtNs(int64_t v) { return Instant{v}; }
  static constexpr Instant Min() { return Instant{std::numeric_limits<int64_t>::min() / 4}; }

  friend constexpr auto operator<=>(Instant, Instant) = default;
  friend constexpr Instant operator+(Instant a, Duration d) { return {a.ns + d.ns}; }
  friend constexpr Instant operator-(Instant a, Duration d) { return {a.ns - d.ns}; }
  friend constexpr Duration operator-(Instant a, Instant b) { return {a.ns - b.ns}; }
};

struct Interval {
  Instant begin, end;
};

}  // namespace daydream
