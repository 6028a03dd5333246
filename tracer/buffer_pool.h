// Buffers that CUPTI fills: handed out empty and zeroed, taken back full, put in a queue for the
// worker. The functions that CUPTI's threads call take one short lock and do nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace daydream::tracer {

class BufferPool {
 public:
  // Not more than `pool_bytes` are in use at a time, in buffers of `buffer_bytes`. `may_refuse`:
  // CUPTI takes a null pointer for an answer.
  void Configure(size_t buffer_bytes, size_t pool_bytes, bool may_refuse);
  size_t buffer_bytes() const { return buffer_bytes_; }

  // An empty buffer. When all are full: null, or (if that may not be) the one that waits longest,
  // whose records are lost.
  uint8_t* Take();
  // Queues a buffer of which `valid` bytes are filled. Returns whether it has any.
  bool Fill(uint8_t* buffer, size_t valid);
  // From now on Fill() gives buffers back to the pool at once.
  void Close();

  struct Full {
    uint8_t* buffer = nullptr;
    size_t valid = 0;
  };
  // For the worker: the buffer that waits longest, or null; and what to do with it afterwards.
  Full Next();
  void Recycle(const Full& full);
  // Buffers that were refused since the last call, and records that were overwritten (at most).
  uint64_t TakeRefused();
  uint64_t TakeOverwritten();

  void BeforeFork() { mutex_.lock(); }
  void AfterForkInParent() { mutex_.unlock(); }
  // The child forgets the buffers; their memory stays, for CUPTI may know some of them.
  void AfterForkInChild();

 private:
  uint8_t* Allocate();

  std::mutex mutex_;
  size_t buffer_bytes_ = 0, limit_ = 0, allocated_ = 0;
  bool may_refuse_ = true, closed_ = false;
  std::vector<uint8_t*> empty_;
  std::vector<Full> full_;  // a ring: first_full_ is where it begins
  size_t first_full_ = 0, full_count_ = 0;
  uint64_t refused_ = 0, overwritten_ = 0;
};

}  // namespace daydream::tracer
