// One piece of work on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace daydream {

// Runs `work(0)` to `work(count - 1)`, each once, on at most `jobs` threads; in order on one. Which
// thread does what is not determined, so results belong into places of their own. Fewer threads do
// it when the system has no more. What `work` throws (std::bad_alloc) is thrown here, once all
// threads have ended; what was not begun by then is left out.
void ForEachParallel(size_t count, unsigned jobs, const std::function<void(size_t)>& work);

}  // namespace daydream
