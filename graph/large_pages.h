// Large arrays, in large pages where the system has them: touching pages of 4 KiB for the first
// time takes longer than replaying the tasks that live in them (two thirds of a batch of eight
// scenarios of a million tasks, see tests/bench/simulate_bench.cc). For graph/ and simulator/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace daydream {

// Advice for memory that was not touched yet; without effect where it cannot be followed.
inline void UseLargePages([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) {
#if defined(__linux__)
  constexpr uintptr_t kLargePage = uintptr_t{1} << 21;
  const size_t before =
      (kLargePage - reinterpret_cast<uintptr_t>(memory) % kLargePage) % kLargePage;
  if (bytes < before + kLargePage) return;
  const size_t whole = (bytes - before) / kLargePage * kLargePage;
  madvise(static_cast<char*>(memory) + before, whole, MADV_HUGEPAGE);
#endif
}

// Has the memory of the row so many behind `*row` at hand by the time it is written: where rows fit
// no cache, appending one takes two thirds as long, then. There may be no such row.
template <class T>
void FetchToWrite([[maybe_unused]] const T* row, [[maybe_unused]] size_t ahead) {
#if defined(__GNUC__)
  constexpr size_t kLine = 64;
  const uintptr_t at = reinterpret_cast<uintptr_t>(row) + ahead * sizeof(T);
  for (size_t i = 0; i < sizeof(T); i += kLine) {
    // A number until here, as a pointer behind the end of an array is no pointer of C++.
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    __builtin_prefetch(reinterpret_cast<const void*>(at + i), 1);
  }
#endif
}

// Chosen for tasks, by what BM_BuildLargeGraph takes.
inline constexpr size_t kTasksAhead = 16;

// Room for `size` elements in an empty vector.
template <class T>
void ReserveLarge(std::vector<T>& v, size_t size) {
  v.reserve(size);
  UseLargePages(v.data(), size * sizeof(T));
}

// As many of `value`.
template <class T>
std::vector<T> LargeVector(size_t size, const T& value) {
  std::vector<T> v;
  ReserveLarge(v, size);
  v.resize(size, value);
  return v;
}

// Room for `size` numbers that are not set to anything. Eight of them from a multiple of eight on
// are one cache line: one load of the widest kind, where it would be two.
inline constexpr std::align_val_t kCacheLine{64};
struct FreeLargeArray {
  void operator()(int64_t* array) const { operator delete[](array, kCacheLine); }
};
using LargeArray = std::unique_ptr<int64_t[], FreeLargeArray>;
inline LargeArray MakeLargeArray(size_t size) {
  LargeArray array(new (kCacheLine) int64_t[size]);
  UseLargePages(array.get(), size * sizeof(int64_t));
  return array;
}

}  // namespace daydream
