// Eight scenarios of one structure in one pass: the rows are read once, and the eight values of
// an instant are neighbours in memory, so that one instruction of the processor works on several.
#include <algorithm>
#include <cstring>
#include <span>

#include "simulator/contract.h"

namespace daydream {
namespace {

constexpr int64_t kNever = Instant::Min().ns;  // as in evaluate.cc

#if defined(__GNUC__)
#define DD_INLINE __attribute__((always_inline)) inline
#else
#define DD_INLINE inline
#endif

// One value a scenario.
template <size_t kWide>
struct alignas(kWide * sizeof(int64_t)) Instants {
  using V [[gnu::vector_size(kWide * sizeof(int64_t))]] = int64_t;
  V v;

  static DD_INLINE Instants Of(const int64_t* from) {
    Instants read;
    std::memcpy(&read.v, from, sizeof(read.v));
    return read;
  }
  // A lambda would not do: where it is not inlined, it is compiled for other instructions than its
  // caller, which then looks for the vector in another place.
  static DD_INLINE Instants At(const int64_t* instants, Source place) {
    return Of(instants + size_t{place} * kWide);
  }
  static DD_INLINE Instants All(int64_t value) { return {V{} + value}; }
  DD_INLINE void To(int64_t* to) const { std::memcpy(to, &v, sizeof(v)); }
  DD_INLINE void Raise(Instants b) { v = v > b.v ? v : b.v; }
  friend DD_INLINE Instants operator+(Instants a, Instants b) { return {a.v + b.v}; }
  friend DD_INLINE Instants operator+(Instants a, int64_t b) { return {a.v + b}; }
};

template <size_t kWide>
DD_INLINE void EvaluateRows(const Program& p, Standing& at, size_t rows, const int64_t* sums,
                            int64_t* instants) {
  using Values = Instants<kWide>;
  if (at.row == 0) {
    at.lanes = MakeLargeArray(2 * p.lanes * kWide);
    std::fill_n(at.lanes.get(), 2 * p.lanes * kWide, kNever);
    Values::All(kNever).To(instants + size_t{2 * Contracted::kNothing} * kWide);
  }
  const More* more = p.more.data() + at.more;
  const Into* into = p.into.data() + at.row;  // each row has one: most are here for their edges
  int64_t* const lanes = at.lanes.get();
  const auto next = std::span(p.rows).subspan(at.row, std::min(rows, p.rows.size() - at.row));
  at.row += next.size();
  for (const Row& row : next) {
    const uint32_t flags = row.lane_and_flags;
    // When the lane is free, and when its last task started.
    int64_t* const lane = lanes + size_t{flags >> Row::kLaneShift} * 2 * kWide;
    Values begin = Values::All(0);
    begin.Raise(Values::At(instants, into->source[0]) + into->lag[0]);
    begin.Raise(Values::At(instants, into->source[1]) + into->lag[1]);
    Values until = Values::At(instants, into->source[2]) + into->lag[2];
    ++into;
    if ((flags & Row::kMore) != 0) [[unlikely]] {
      begin.Raise(Values::All(more->earliest));
      const More::In* in = p.more_edges.data();
      for (uint32_t k = more->starts_begin; k < more->ends_begin; ++k) {
        begin.Raise(Values::At(instants, in[k].source) + in[k].lag);
      }
      for (uint32_t k = more->ends_begin; k < more->ends_end; ++k) {
        until.Raise(Values::At(instants, in[k].source) + in[k].lag);
      }
      ++more;
    }
    // What the lane says comes last: its next row waits for what follows from that.
    begin.Raise(Values::Of(lane + (flags & Row::kOverlaps) * kWide));
    until.Raise(begin + Values::Of(sums));
    Values free = Values::Of(lane);
    free.Raise(until + Values::Of(sums + kWide));
    free.To(lane);
    begin.To(lane + kWide);
    sums += 2 * kWide;
    int64_t* const own = instants + size_t{row.task} * 2 * kWide;
    if ((flags & Row::kStartIsRead) != 0) begin.To(own);
    if ((flags & Row::kEndIsRead) != 0) until.To(own + kWide);
  }
  at.more = static_cast<size_t>(more - p.more.data());
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx512f"))) void EvaluateAvx512(const Program& p, Standing& at, size_t rows,
                                                       const int64_t* sums, int64_t* instants) {
  EvaluateRows<kSideBySide>(p, at, rows, sums, instants);
}
__attribute__((target("avx2"))) void EvaluateAvx2(const Program& p, Standing& at, size_t rows,
                                                  const int64_t* sums, int64_t* instants) {
  EvaluateRows<kSideBySide>(p, at, rows, sums, instants);
}
#endif

}  // namespace

void EvaluateEight(const Program& p, Standing& at, size_t rows, const int64_t* sums,
                   int64_t* instants) {
#if defined(__x86_64__) && defined(__GNUC__)
  if (__builtin_cpu_supports("avx512f")) return EvaluateAvx512(p, at, rows, sums, instants);
  if (__builtin_cpu_supports("avx2")) return EvaluateAvx2(p, at, rows, sums, instants);
#endif
  EvaluateRows<kSideBySide>(p, at, rows, sums, instants);
}

void EvaluateEight(const Program& p, const int64_t* sums, int64_t* instants) {
  Standing begin;
  EvaluateEight(p, begin, p.rows.size(), sums, instants);
}

void EvaluateOne(const Program& p, const int64_t* sums, int64_t* instants) {
  Standing begin;
  EvaluateRows<1>(p, begin, p.rows.size(), sums, instants);
}

}  // namespace daydream
