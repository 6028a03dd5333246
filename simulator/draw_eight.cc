#include "simulator/draw_eight.h"

#include "base/check.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

namespace daydream {
namespace {

constexpr size_t kWide = 8;

void DrawByOne(std::span<const DrawnSum> drawn, const Alternatives* of, const Choice* choices,
               int64_t* sums) {
  for (size_t i = 0; i < drawn.size(); ++i) {
    const DrawnSum& d = drawn[i];
    int64_t* const cells = sums + size_t{d.sum} * kWide;
    const Choice& choice = choices[d.slot];
    for (size_t s = 0; s < kWide; ++s) {
      cells[s] = (d.more ? cells[s] : d.base) + of[i][static_cast<size_t>(choice[s])];
    }
  }
}

#if defined(__x86_64__) && defined(__GNUC__)
// The alternatives are one register, and so are the eight that are chosen of them.
__attribute__((target("avx512f"))) void DrawAvx512(std::span<const DrawnSum> drawn,
                                                   const Alternatives* of, const Choice* choices,
                                                   int64_t* sums) {
  for (size_t i = 0; i < drawn.size(); ++i) {
    const DrawnSum& d = drawn[i];
    int64_t* const cells = sums + size_t{d.sum} * kWide;
    const __m512i chosen = _mm512_maskz_permutexvar_epi64(
        0xff, _mm512_loadu_si512(choices[d.slot].data()), _mm512_loadu_si512(of[i].data()));
    const __m512i base = d.more ? _mm512_loadu_si512(cells) : _mm512_set1_epi64(d.base);
    _mm512_storeu_si512(cells, _mm512_add_epi64(base, chosen));
  }
}
#endif

}  // namespace

void DrawEight(std::span<const DrawnSum> drawn, std::span<const Alternatives> of,
               std::span<const Choice> choices, int64_t* sums) {
  DD_CHECK(of.size() == drawn.size());
#if defined(__x86_64__) && defined(__GNUC__)
  if (__builtin_cpu_supports("avx512f")) {
    return DrawAvx512(drawn, of.data(), choices.data(), sums);
  }
#endif
  DrawByOne(drawn, of.data(), choices.data(), sums);
}

}  // namespace daydream
