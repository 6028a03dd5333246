// Eight scenarios of one structure in one pass: the rows are read once, and the eight values of
// an instant are neighbours in memory, so that one instruction of the processor works on several.
#include <algorithm>
#include <vector>

#include "simulator/contract.h"

namespace daydream {
namespace {

constexpr int64_t kNever = Instant::Min().ns;  // as in evaluate.cc

#if defined(__GNUC__)
#define DD_INLINE __attribute__((always_inline)) inline
#else
#define DD_INLINE inline
#endif

template <size_t kWide>
struct alignas(kWide * sizeof(int64_t)) Instants {
  int64_t v[kWide];
};

template <size_t kWide>
DD_INLINE void Raise(Instants<kWide>& a, const int64_t* b, int64_t plus) {
  for (size_t s = 0; s < kWide; ++s) a.v[s] = std::max(a.v[s], b[s] + plus);
}
template <size_t kWide>
DD_INLINE void Raise(Instants<kWide>& a, const Instants<kWide>& b, const int64_t* plus) {
  for (size_t s = 0; s < kWide; ++s) a.v[s] = std::max(a.v[s], b.v[s] + plus[s]);
}

template <size_t kWide>
struct LaneState {
  Instants<kWide> bound[2];  // clock, start of the last task
};

template <size_t kWide>
DD_INLINE void EvaluateRows(const Program& p, const int64_t* sums, int64_t* start, int64_t* end) {
  using Values = Instants<kWide>;
  int64_t* const columns[2] = {start, end};
  auto at = [&](Source s) { return columns[s & 1] + size_t{s >> 1} * kWide; };
  Values nothing;
  std::fill_n(nothing.v, kWide, kNever);
  std::copy_n(nothing.v, kWide, start + p.tasks * kWide);
  std::copy_n(nothing.v, kWide, end + p.tasks * kWide);
  std::vector<LaneState<kWide>> lanes(p.lanes, LaneState<kWide>{{nothing, nothing}});
  const More* more = p.more.data();
  const Into* into = p.into.data();  // each row has one: most are here because of their edges
  for (const Row& row : p.rows) {
    const uint32_t flags = row.lane_and_flags;
    LaneState<kWide>& lane = lanes[flags >> Row::kLaneShift];
    const int64_t* const duration = sums + size_t{row.task} * 2 * kWide;
    Values begin{};
    Raise(begin, lane.bound[flags & Row::kOverlaps].v, 0);
    Raise(begin, at(into->source[0]), into->lag[0]);
    Raise(begin, at(into->source[1]), into->lag[1]);
    Values until = nothing;
    Raise(until, at(into->source[2]), into->lag[2]);
    ++into;
    if ((flags & Row::kMore) != 0) [[unlikely]] {
      for (int64_t& v : begin.v) v = std::max(v, more->earliest);
      const More::In* in = p.more_edges.data();
      for (uint32_t k = more->starts_begin; k < more->ends_begin; ++k) {
        Raise(begin, at(in[k].source), in[k].lag);
      }
      for (uint32_t k = more->ends_begin; k < more->ends_end; ++k) {
        Raise(until, at(in[k].source), in[k].lag);
      }
      ++more;
    }
    Raise(until, begin, duration);
    lane.bound[1] = begin;
    Raise(lane.bound[0], until, duration + kWide);
    if ((flags & Row::kEndIsRead) != 0) {
      std::copy_n(until.v, kWide, end + size_t{row.task} * kWide);
    }
    if ((flags & Row::kStartIsRead) != 0) {
      std::copy_n(begin.v, kWide, start + size_t{row.task} * kWide);
    }
  }
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx512f"))) void EvaluateAvx512(const Program& p, const int64_t* sums,
                                                       int64_t* start, int64_t* end) {
  EvaluateRows<kSideBySide>(p, sums, start, end);
}
__attribute__((target("avx2"))) void EvaluateAvx2(const Program& p, const int64_t* sums,
                                                  int64_t* start, int64_t* end) {
  EvaluateRows<kSideBySide>(p, sums, start, end);
}
#endif

}  // namespace

void EvaluateEight(const Program& p, const int64_t* sums, int64_t* start, int64_t* end) {
#if defined(__x86_64__) && defined(__GNUC__)
  if (__builtin_cpu_supports("avx512f")) return EvaluateAvx512(p, sums, start, end);
  if (__builtin_cpu_supports("avx2")) return EvaluateAvx2(p, sums, start, end);
#endif
  EvaluateRows<kSideBySide>(p, sums, start, end);
}

void EvaluateOne(const Program& p, const int64_t* sums, int64_t* start, int64_t* end) {
  EvaluateRows<1>(p, sums, start, end);
}

}  // namespace daydream
