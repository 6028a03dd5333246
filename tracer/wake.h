// A count that one thread waits for and any raises, also in a signal handler and in CUPTI's
// callbacks. A semaphore by the monotonic clock, which glibc has only since 2.30.
#pragma once

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace daydream::tracer {

class Wake {
 public:
  void Post() {
    const int before = errno;
    count_.fetch_add(1, std::memory_order_release);
    syscall(SYS_futex, Word(), FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, nullptr, nullptr, 0);
    errno = before;
  }

  // Takes one. False: none had come by `until`, CLOCK_MONOTONIC in ns.
  bool WaitUntil(int64_t until) {
    timespec t{until / 1'000'000'000, until % 1'000'000'000};
    while (!Take()) {
      const long result = syscall(SYS_futex, Word(), FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, &t,
                                  nullptr, FUTEX_BITSET_MATCH_ANY);
      if (result != 0 && errno == ETIMEDOUT) return Take();
    }
    return true;
  }

  void Reset() { count_.store(0, std::memory_order_relaxed); }

 private:
  bool Take() {
    uint32_t now = count_.load(std::memory_order_relaxed);
    while (now > 0 && !count_.compare_exchange_weak(now, now - 1, std::memory_order_acquire)) {
    }
    return now > 0;
  }
  uint32_t* Word() { return reinterpret_cast<uint32_t*>(&count_); }

  std::atomic<uint32_t> count_{0};
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
};

}  // namespace daydream::tracer
