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

  void BeforeFork() {
    const bool mine = owner_.load(std::memory_order_relaxed) == pthread_self();
    if (!mine) lock();
    locked_for_fork_ = !mine;
  }
  // In the parent and in the child, whose only thread is the one that forked.
  void AfterFork() {
    if (locked_for_fork_) unlock();
  }

 private:
  bool Take() {
    owner_.store(pthread_self(), std::memory_order_relaxed);
    return true;
  }

  std::timed_mutex mutex_;
  std::atomic<pthread_t> owner_{};  // the same thread in a child
  bool locked_for_fork_ = false;    // guarded by the mutex
};

}  // namespace daydream::tracer
