// A mutex that fork() is prepared for: it waits for whoever holds it, so that the child finds what
// it guards in order, unless that is the forking thread itself. CUDA and CUPTI fork at times, also
// when the recorder calls them with its mutexes held.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <mutex>

namespace daydream::tracer {

class ForkMutex {
 public:
  void lock() {
    mutex_.lock();
    Take();
  }
  bool try_lock() { return mutex_.try_lock() && Take(); }
  // By the system clock, which the thread sanitizer of GCC 12 knows, unlike the steady one.
  bool try_lock_for(std::chrono::nanoseconds time) {
    return mutex_.try_lock_until(std::chrono::system_clock::now() + time) && Take();
  }
  void unlock() {
    owner_.store(pthread_t{}, std::memory_order_relaxed);
    mutex_.unlock();
  }

  bool IsMine() const { return owner_.load(std::memory_order_relaxed) == pthread_self(); }
  // True: it has to be unlocked after the fork. Without `wait` it may stay with another thread.
  bool LockForFork(bool wait) {
    if (IsMine()) return false;
    if (!wait) return try_lock();
    lock();
    return true;
  }

 private:
  bool Take() {
    owner_.store(pthread_self(), std::memory_order_relaxed);
    return true;
  }

  std::timed_mutex mutex_;
  std::atomic<pthread_t> owner_{};  // the same thread in a child
};

}  // namespace daydream::tracer
