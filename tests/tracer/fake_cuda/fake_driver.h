// Inside of the fake driver: its objects, and the steps that every call takes.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "tests/tracer/fake_cuda/fake_cuda.h"

// The types behind the driver's handles.
struct CUstream_st {
  uint32_t id = 0;
  std::mutex mutex;
  int64_t busy_until = 0;
  CUgraph capture = nullptr;  // what is launched becomes a node of it
};
struct CUevent_st {
  uint32_t id = 0;
  std::mutex mutex;
  int64_t done_at = 0;
  uint64_t sync = 0;  // counts records of all events
};
struct CUfunc_st {
  std::string name;
};
struct CUgraphNode_st {
  uint64_t id = 0;
  CUfunction function = nullptr;
  daydream::FakeShape shape;
};
struct CUgraph_st {
  uint32_t id = 0;
  std::vector<CUgraphNode> nodes;
};
struct CUgraphExec_st {
  uint32_t id = 0;
  std::vector<CUgraphNode> nodes;
};

namespace daydream {

// Time that every kernel takes, from FAKE_CUDA_KERNEL_NS (default 5000).
int64_t FakeKernelNs();
const FakeTool* Tool();
uint32_t NextId(std::atomic<uint32_t>& counter);
CUstream_st& StreamOf(CUstream stream);
const std::vector<CUstream_st*>& AllStreams();  // the caller holds StreamsMutex()
std::mutex& StreamsMutex();
CUstream_st* NewStream(uint32_t flag, int32_t priority, uint32_t correlation);
void SleepUntil(int64_t time);

// A call from construction to destruction. Calls inside of another share its correlation id.
class Call {
 public:
  Call(uint32_t domain, uint32_t cbid);
  ~Call();
  Call(const Call&) = delete;
  uint32_t correlation() const { return call_.correlation; }
  int64_t start() const { return call_.start; }
  CUresult Return(CUresult result) {
    call_.result = result;
    return result;
  }

 private:
  FakeCall call_;
  bool outermost_ = false;
};

// Adds a kernel to a graph.
CUgraphNode AddNode(CUgraph graph, CUfunction function, const FakeShape& shape);

// Queues `work` on its stream, behind what is there. Returns when it starts.
int64_t Enqueue(CUstream_st& stream, FakeWork work, int64_t duration);

}  // namespace daydream
