#include "tracer/buffer_pool.h"

#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

namespace daydream::tracer {
namespace {

// Size of the smallest records that come often, CUpti_ActivityAPI.
constexpr size_t kSmallRecord = 40;
// CUPTI writes nothing behind the valid bytes; one page more, should it have tried a record.
constexpr size_t kBehind = 4096;
// Threads that may hold a buffer at once when CUPTI cannot be refused.
constexpr size_t kSpare = 4096;

}  // namespace

void BufferPool::Configure(size_t buffer_bytes, size_t pool_bytes, bool may_refuse) {
  std::lock_guard lock(mutex_);
  buffer_bytes_ = buffer_bytes;
  limit_ = std::max<size_t>(pool_bytes / buffer_bytes, 1);
  may_refuse_ = may_refuse;
  allocated_ = 0;
  closed_ = false;
  // So that nothing is allocated on the program's threads later.
  empty_.reserve(limit_ + kSpare);
  full_.resize(limit_ + kSpare);
}

uint8_t* BufferPool::Allocate() {
  void* memory =
      mmap(nullptr, buffer_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  ++allocated_;
  return static_cast<uint8_t*>(memory);
}

uint8_t* BufferPool::Take() {
  std::lock_guard lock(mutex_);
  if (!empty_.empty()) {
    uint8_t* buffer = empty_.back();
    empty_.pop_back();
    return buffer;
  }
  if (allocated_ < limit_) {
    if (uint8_t* buffer = Allocate()) return buffer;
  }
  if (may_refuse_) {
    ++refused_;
    return nullptr;
  }
  if (full_count_ == 0) return allocated_ < limit_ + kSpare ? Allocate() : nullptr;
  Full oldest = full_[first_full_];
  first_full_ = (first_full_ + 1) % full_.size();
  --full_count_;
  overwritten_ += oldest.valid / kSmallRecord;
  memset(oldest.buffer, 0, std::min(oldest.valid + kBehind, buffer_bytes_));
  return oldest.buffer;
}

bool BufferPool::Fill(uint8_t* buffer, size_t valid) {
  std::lock_guard lock(mutex_);
  if (closed_ || valid == 0) {
    empty_.push_back(buffer);
    return false;
  }
  full_[(first_full_ + full_count_++) % full_.size()] = {buffer, valid};
  return true;
}

void BufferPool::Close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
}

BufferPool::Full BufferPool::Next() {
  std::lock_guard lock(mutex_);
  if (full_count_ == 0) return {};
  Full full = full_[first_full_];
  first_full_ = (first_full_ + 1) % full_.size();
  --full_count_;
  return full;
}

void BufferPool::Recycle(const Full& full) {
  memset(full.buffer, 0, std::min(full.valid + kBehind, buffer_bytes_));
  std::lock_guard lock(mutex_);
  empty_.push_back(full.buffer);
}

uint64_t BufferPool::TakeRefused() {
  std::lock_guard lock(mutex_);
  return std::exchange(refused_, 0);
}

uint64_t BufferPool::TakeOverwritten() {
  std::lock_guard lock(mutex_);
  return std::exchange(overwritten_, 0);
}

void BufferPool::AfterForkInChild() {
  new (&mutex_) std::mutex;
  empty_.clear();
  full_count_ = 0;
  closed_ = true;
}

}  // namespace daydream::tracer
