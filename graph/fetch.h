// Rows that a pass reads in an order of its own, which the processor does not foresee.
#pragma once

namespace daydream {

// Has `row` at hand by the time it is read.
template <class T>
void FetchToRead([[maybe_unused]] const T& row) {
#if defined(__GNUC__)
  __builtin_prefetch(&row);
#endif
}

}  // namespace daydream
