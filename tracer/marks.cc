#include "tracer/marks.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <new>

#include "tracer/name_table.h"

namespace daydream::tracer {
namespace {

constexpr size_t kBlockMarks = 1024;
constexpr size_t kMaxBlocks = kMaxWaitingMarks / kBlockMarks;

// Filled by its thread from the front, emptied by the taker.
struct Block {
  std::atomic<size_t> filled{0};
  std::atomic<Block*> next{nullptr};
  MarkRecord marks[kBlockMarks];
};

// The marks of one thread. It belongs to its thread, then, when that has ended and all is taken,
// to the next thread that needs one.
struct ThreadMarks {
  enum State : uint32_t { kUsed, kEnded, kFree };
  std::atomic<uint32_t> state{kUsed};
  std::atomic<uint32_t> thread{0};
  Block* filling = nullptr;     // the thread's
  Block* emptying = nullptr;    // the taker's, as the next two
  size_t taken = 0;             // of `emptying`
  ThreadMarks* next = nullptr;  // constant once it is in the list
};

constinit std::atomic<ThreadMarks*> threads{nullptr};
constinit std::atomic<size_t> blocks{0};
constinit std::atomic<uint64_t> dropped{0};
constinit thread_local ThreadMarks* mine = nullptr;
pthread_once_t key_once = PTHREAD_ONCE_INIT;
pthread_key_t key;

void EndThread(void* marks) {
  mine = nullptr;
  static_cast<ThreadMarks*>(marks)->state.store(ThreadMarks::kEnded, std::memory_order_release);
}

void MakeKey() { pthread_key_create(&key, EndThread); }

Block* NewBlock() {
  if (blocks.fetch_add(1, std::memory_order_relaxed) < kMaxBlocks) {
    if (auto* block = new (std::nothrow) Block) return block;
  }
  blocks.fetch_sub(1, std::memory_order_relaxed);
  return nullptr;
}

ThreadMarks* ReuseThreadMarks() {
  for (auto* t = threads.load(std::memory_order_acquire); t != nullptr; t = t->next) {
    uint32_t state = ThreadMarks::kFree;
    if (t->state.compare_exchange_strong(state, ThreadMarks::kUsed, std::memory_order_acq_rel)) {
      return t;
    }
  }
  return nullptr;
}

ThreadMarks* NewThreadMarks() {
  Block* block = NewBlock();
  if (block == nullptr) return nullptr;
  auto* t = new (std::nothrow) ThreadMarks;
  if (t == nullptr) {
    delete block;
    blocks.fetch_sub(1, std::memory_order_relaxed);
    return nullptr;
  }
  t->filling = t->emptying = block;
  t->next = threads.load(std::memory_order_relaxed);
  while (!threads.compare_exchange_weak(t->next, t, std::memory_order_release)) {
  }
  return t;
}

ThreadMarks* StartThread() {
  pthread_once(&key_once, MakeKey);
  ThreadMarks* t = ReuseThreadMarks();
  if (t == nullptr) t = NewThreadMarks();
  if (t == nullptr) return nullptr;
  t->thread.store(static_cast<uint32_t>(syscall(SYS_gettid)), std::memory_order_relaxed);
  pthread_setspecific(key, t);
  mine = t;
  return t;
}

int64_t Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Calls `take` for what waits in `t`.
template <class Take>
void TakeOf(ThreadMarks* t, Take take) {
  while (true) {
    Block* block = t->emptying;
    const size_t filled = block->filled.load(std::memory_order_acquire);
    if (filled > t->taken) {
      take(t->thread.load(std::memory_order_relaxed), block->marks + t->taken, filled - t->taken);
    }
    t->taken = filled;
    Block* next = block->next.load(std::memory_order_acquire);
    if (filled < kBlockMarks || next == nullptr) return;
    t->emptying = next;
    t->taken = 0;
    delete block;
    blocks.fetch_sub(1, std::memory_order_relaxed);
  }
}

template <class Take>
void TakeAll(Take take) {
  for (auto* t = threads.load(std::memory_order_acquire); t != nullptr; t = t->next) {
    // Read first: what the thread marked before it ended is then visible.
    const bool ended = t->state.load(std::memory_order_acquire) == ThreadMarks::kEnded;
    TakeOf(t, take);
    if (ended) t->state.store(ThreadMarks::kFree, std::memory_order_release);
  }
}

}  // namespace

uint32_t MarkName(std::string_view text) { return names.Intern(text, NameUse::kMark); }

uint32_t NvtxName(std::string_view text) { return names.Intern(text, NameUse::kNvtx); }

std::string_view MarkText(uint32_t name) { return names.Text(name); }

void Mark(uint32_t kind, uint32_t name, int64_t value) {
  ThreadMarks* t = mine;
  if (t == nullptr) t = StartThread();
  if (t == nullptr) {
    dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  Block* block = t->filling;
  size_t at = block->filled.load(std::memory_order_relaxed);
  if (at == kBlockMarks) {
    Block* more = NewBlock();
    if (more == nullptr) {
      dropped.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    t->filling = more;
    block->next.store(more, std::memory_order_release);
    block = more;
    at = 0;
  }
  block->marks[at] = {.time_ns = Now(), .value = value, .name = name, .kind = kind};
  block->filled.store(at + 1, std::memory_order_release);
}

void TakeMarks(void (*take)(void* user, uint32_t thread, const MarkRecord* marks, size_t count),
               void* user) {
  TakeAll([=](uint32_t thread, const MarkRecord* marks, size_t count) {
    take(user, thread, marks, count);
  });
}

void DropMarks() {
  TakeAll([](uint32_t, const MarkRecord*, size_t) {});
}

bool AnyMarks() {
  for (auto* t = threads.load(std::memory_order_acquire); t != nullptr; t = t->next) {
    const Block* block = t->emptying;
    if (block->filled.load(std::memory_order_acquire) > t->taken) return true;
    if (block->next.load(std::memory_order_acquire) != nullptr) return true;
  }
  return false;
}

uint64_t DroppedMarks() { return dropped.load(std::memory_order_relaxed); }

uint64_t DroppedNames() { return names.dropped(); }

void TouchThreadLocals() {
  // Of one library they come together.
  ThreadMarks* volatile touched = mine;
  static_cast<void>(touched);
}

void MarksBeforeFork() { names.mutex().lock(); }

void MarksAfterForkInParent() { names.mutex().unlock(); }

void MarksAfterForkInChild() {
  names.mutex().unlock();
  // The blocks stay allocated: another thread of the parent may have been inside of one.
  threads.store(nullptr, std::memory_order_relaxed);
  blocks.store(0, std::memory_order_relaxed);
  if (mine != nullptr) pthread_setspecific(key, nullptr);
  mine = nullptr;
}

}  // namespace daydream::tracer
