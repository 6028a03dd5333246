#include "simulator/draw_eight.h"

#include <algorithm>

#include "base/check.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

namespace daydream {
namespace {

constexpr size_t kWide = 8;

void DrawByOne(const DrawnSums& drawn, size_t first, const Choice* choices, int64_t* sums) {
  for (size_t i = 0; i < drawn.drawn.size(); ++i) {
    const DrawnSum& d = drawn.drawn[i];
    int64_t* const cells = sums + (d.sum - first) * kWide;
    const Choice& choice = choices[d.slot];
    for (size_t s = 0; s < kWide; ++s) cells[s] += drawn.of[i][static_cast<size_t>(choice[s])];
  }
}

#if defined(__x86_64__) && defined(__GNUC__)
// The alternatives are one register, and so are the eight that are chosen of them.
__attribute__((target("avx512f"))) void DrawAvx512(const DrawnSums& drawn, size_t first,
                                                   const Choice* choices, int64_t* sums) {
  for (size_t i = 0; i < drawn.drawn.size(); ++i) {
    const DrawnSum& d = drawn.drawn[i];
    int64_t* const cells = sums + (d.sum - first) * kWide;
    const __m512i chosen = _mm512_maskz_permutexvar_epi64(
        0xff, _mm512_loadu_si512(choices[d.slot].data()), _mm512_loadu_si512(drawn.of[i].data()));
    _mm512_storeu_si512(cells, _mm512_add_epi64(_mm512_loadu_si512(cells), chosen));
  }
}
#endif

}  // namespace

DrawnSums DrawnSums::Take(size_t sum) {
  size_t count = 0;
  while (count < drawn.size() && drawn[count].sum < sum) ++count;
  const DrawnSums taken{drawn.first(count), of.first(count)};
  *this = {drawn.subspan(count), of.subspan(count)};
  return taken;
}

void DrawEight(std::span<const int64_t> base, size_t first, const DrawnSums& drawn,
               std::span<const Choice> choices, int64_t* sums) {
  DD_CHECK(drawn.of.size() == drawn.drawn.size());
  for (size_t i = 0; i < base.size(); ++i) std::fill_n(sums + i * kWide, kWide, base[i]);
#if defined(__x86_64__) && defined(__GNUC__)
  if (__builtin_cpu_supports("avx512f")) return DrawAvx512(drawn, first, choices.data(), sums);
#endif
  DrawByOne(drawn, first, choices.data(), sums);
}

}  // namespace daydream
