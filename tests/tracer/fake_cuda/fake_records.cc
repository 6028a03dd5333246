#include "tests/tracer/fake_cuda/fake_records.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <mutex>
#include <new>
#include <vector>

#include "tests/tracer/fake_cuda/fake_cuda.h"
#include "tests/tracer/fake_cuda/fake_version.h"
#include "tests/tracer/fake_cuda/faults.h"

namespace daydream {
namespace {

constexpr uint32_t kForeignKind = 60;  // not in the headers of CUDA 13.0
constexpr size_t kForeignSize = 64;
constexpr uint32_t kBadKind = 99;
constexpr uint32_t kFirstVersionThatTakesNull = 27;  // CUDA 12.9

std::atomic<size_t> g_dropped;
std::atomic<uint64_t> g_records;
std::atomic<bool> g_stopped;

struct Buffer {
  std::mutex mutex;
  uint8_t* data = nullptr;
  size_t capacity = 0, used = 0;
  std::atomic<bool> in_use = true;  // by a living thread
};

struct Buffers {
  std::mutex mutex;
  std::vector<Buffer*> all;
};
Buffers& All() {
  static auto& buffers = *new Buffers;
  return buffers;
}

Buffer* NewBuffer() {
  std::lock_guard lock(All().mutex);
  for (Buffer* buffer : All().all) {
    if (!buffer->in_use) {
      buffer->in_use = true;
      return buffer;
    }
  }
  return All().all.emplace_back(new Buffer);
}

struct OfThread {
  Buffer* buffer = NewBuffer();
  // Without the mutex: in a child of a fork, a thread that is not there may hold it.
  ~OfThread() { buffer->in_use = false; }
};

void HandBack(Buffer& b) {
  if (b.data == nullptr) return;
  Client().complete(nullptr, 0, b.data, b.capacity, b.used);
  b.data = nullptr;
}

void CheckZero(const Buffer& b) {
  static const bool check = FaultNumber("check_zero") != 0;
  if (!check) return;
  if (b.data[0] == 0 && memcmp(b.data, b.data + 1, b.capacity - 1) == 0) return;
  fprintf(stderr, "fake CUPTI: a new buffer is not zero\n");
  abort();
}

// A record of the newest version becomes one of this: cut off, or with zeros at its end.
void Append(Buffer& b, const void* record, size_t given, size_t size) {
  memset(b.data + b.used, 0, size);
  memcpy(b.data + b.used, record, given < size ? given : size);
  b.used += size;
}
void Append(Buffer& b, const void* record, size_t size) { Append(b, record, size, size); }

// Room for `size` bytes in `b`; false: the record is dropped.
bool MakeRoom(Buffer& b, size_t size) {
  if (b.data != nullptr && b.used + size <= b.capacity) return true;
  HandBack(b);
  size_t max_records = 0;
  b.used = 0;
  Client().request(&b.data, &b.capacity, &max_records);
  if (b.data == nullptr) {
    static const int64_t version = FaultNumber("version", TheFakeCupti().cupti);
    if (version < kFirstVersionThatTakesNull) {
      fprintf(stderr, "fake CUPTI: a null buffer crashes this version\n");
      abort();
    }
    return false;
  }
  if (Client().zeroed_buffers) {
    CheckZero(b);
  } else {
    memset(b.data, 0, b.capacity);
  }
  return size <= b.capacity;
}

bool Every(const char* fault, uint64_t count) {
  int64_t n = FaultNumber(fault);
  return n > 0 && count % static_cast<uint64_t>(n) == 0;
}

bool AnyRecordFaults() {
  static const bool any = FaultNumber("drop") + FaultNumber("foreign_record") +
                              FaultNumber("bad_record") + FaultNumber("command_buffer_full") !=
                          0;
  return any;
}

void AppendOddities(Buffer& b, uint64_t count) {
  uint8_t odd[kForeignSize] = {};
  uint32_t kind = Every("foreign_record", count) ? kForeignKind : kBadKind;
  if ((kind == kForeignKind || Every("bad_record", count)) && MakeRoom(b, sizeof odd)) {
    memcpy(odd, &kind, sizeof kind);
    Append(b, odd, sizeof odd);
  }
  if (Every("command_buffer_full", count)) {
    CUpti_ActivityOverhead3 o{};
    const size_t size = RecordSize(CUPTI_ACTIVITY_KIND_OVERHEAD);
    if (!MakeRoom(b, size)) return;
    o.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
    o.overheadKind = CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL;
    o.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
    o.objectId.pt.processId = static_cast<uint32_t>(getpid());
    o.objectId.pt.threadId = static_cast<uint32_t>(syscall(SYS_gettid));
    o.start = o.end = static_cast<uint64_t>(FakeNow() + Client().clock_offset);
    // The client has to free this.
    if (size > offsetof(CUpti_ActivityOverhead3, overheadData)) {
      const auto kb = static_cast<size_t>(FaultNumber("overhead_kb"));
      const size_t bytes = sizeof(CUpti_ActivityOverheadCommandBufferFullData) + kb * 1024;
      o.overheadData = malloc(bytes);
      memset(o.overheadData, kb == 0 ? 0 : 1, bytes);
    }
    Append(b, &o, sizeof o, size);
  }
}

void Put(Buffer& b, const void* record, size_t given) {
  uint64_t count = 0;
  uint32_t kind = 0;
  memcpy(&kind, record, sizeof kind);
  const size_t size = RecordSize(kind);
  if (AnyRecordFaults()) count = ++g_records;
  if ((count != 0 && Every("drop", count)) || !MakeRoom(b, size)) {
    ++g_dropped;
    return;
  }
  Append(b, record, given, size);
  if (count != 0) AppendOddities(b, count);
}

struct Work {
  std::vector<uint8_t> record;
  size_t end_offset = 0;
  int64_t end = 0;
};
struct Gpu {
  std::mutex mutex;
  std::deque<Work> pending;
  Buffer* buffer = nullptr;  // none yet
};
Gpu& TheGpu() {
  static auto& gpu = *new Gpu;
  return gpu;
}

// The caller holds gpu.mutex.
void PutFinishedWork(Gpu& gpu, bool forced) {
  int64_t now = FakeNow();
  if (gpu.buffer == nullptr) gpu.buffer = NewBuffer();
  std::lock_guard lock(gpu.buffer->mutex);
  while (!gpu.pending.empty() && (forced || gpu.pending.front().end <= now)) {
    Work& work = gpu.pending.front();
    if (work.end > now) memset(work.record.data() + work.end_offset, 0, sizeof(uint64_t));
    Put(*gpu.buffer, work.record.data(), work.record.size());
    gpu.pending.pop_front();
  }
}

// In a child of a fork: what a thread held that is not there is made anew, and empty.
template <class Locked>
void OpenInChild(Locked& locked) {
  if (locked.mutex.try_lock()) return locked.mutex.unlock();
  new (&locked) Locked;
}

void OpenAllInChild() {
  OpenInChild(All());
  for (Buffer* buffer : All().all) OpenInChild(*buffer);
  OpenInChild(TheGpu());
}

}  // namespace

void PrepareForks() {
  All(), TheGpu();  // a child would wait for whoever was making them
  pthread_atfork(nullptr, nullptr, OpenAllInChild);
}

FakeClient& Client() {
  static auto& client = *[] {
    auto* c = new FakeClient;
    timespec t;
    clock_gettime(CLOCK_REALTIME, &t);  // the default clock of the real one
    c->clock_offset = t.tv_sec * int64_t{1'000'000'000} + t.tv_nsec - FakeNow();
    return c;
  }();
  return client;
}

size_t RecordSize(uint32_t kind) {
  static const FakeCuptiVersion& version = TheFakeCupti();
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return version.copy;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return version.set;
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME:
      return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_DEVICE:
      return version.device;
    case CUPTI_ACTIVITY_KIND_CONTEXT:
      return version.context;
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return version.kernel;
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return version.overhead;
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      return version.event;
    case CUPTI_ACTIVITY_KIND_STREAM:
      return sizeof(CUpti_ActivityStream);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return version.sync;
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return sizeof(CUpti_ActivityMemory4);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return version.graph;
    case kForeignKind:
      return kForeignSize;
    default:
      return 0;
  }
}

void PutRecord(const void* record, size_t size) {
  if (g_stopped.load(std::memory_order_relaxed)) return;
  static thread_local OfThread mine;
  std::lock_guard lock(mine.buffer->mutex);
  Put(*mine.buffer, record, size);
}

void PutWork(const void* record, size_t size, size_t start_offset, size_t end_offset, int64_t end) {
  if (g_stopped.load(std::memory_order_relaxed)) return;
  static std::atomic<uint64_t> count;
  const auto* bytes = static_cast<const uint8_t*>(record);
  Work work{{bytes, bytes + size}, end_offset, end};
  if (Every("no_time", ++count)) {
    memset(work.record.data() + start_offset, 0, sizeof(uint64_t));
    memset(work.record.data() + end_offset, 0, sizeof(uint64_t));
  }
  Gpu& gpu = TheGpu();
  std::lock_guard lock(gpu.mutex);
  gpu.pending.push_back(std::move(work));
  PutFinishedWork(gpu, false);
}

void DropRunningWork(uint32_t kind) {
  Gpu& gpu = TheGpu();
  std::lock_guard lock(gpu.mutex);
  PutFinishedWork(gpu, false);
  std::erase_if(gpu.pending, [kind](const Work& work) {
    return memcmp(work.record.data(), &kind, sizeof kind) == 0;
  });
}

void FlushBuffers(bool forced) {
  static const bool withhold = FaultNumber("withhold") != 0;
  bool keep_work = false;
  {
    std::lock_guard lock(TheGpu().mutex);
    PutFinishedWork(TheGpu(), forced);
    keep_work = withhold && !TheGpu().pending.empty();
  }
  std::vector<Buffer*> all;
  {
    std::lock_guard lock(All().mutex);
    all = All().all;
  }
  for (Buffer* buffer : all) {
    if (keep_work && buffer == TheGpu().buffer) continue;
    std::lock_guard lock(buffer->mutex);
    HandBack(*buffer);
  }
}

size_t TakeDropped() { return g_dropped.exchange(0); }

void StopRecords() { g_stopped = true; }

}  // namespace daydream
