// A pipeline over three streams: chunks of data are copied to the GPU, worked on, and copied back,
// two of them in flight; events order the streams. Steps and stages are marked with
// daydream_mark.h.
//
//   stream_pipeline [STEPS]
//
// Checks itself: every chunk that comes back is what the CPU makes of it.
#include <array>
#include <cstring>

#include "example.h"
#include "tracer/daydream_mark.h"

namespace {

constexpr int kChunk = 1 << 20;  // numbers
constexpr int kChunks = 8;       // a step
constexpr int kSlots = 2;        // chunks in flight
constexpr int kRounds = 64;      // work per number
constexpr int kThreads = 256;

// A permutation of the 32-bit numbers: xorshift, with the shifts of Marsaglia (2003).
__host__ __device__ uint32_t Scrambled(uint32_t x) {
  for (int i = 0; i < kRounds; ++i) {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
  }
  return x;
}

__global__ void Scramble(const uint32_t* in, uint32_t* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = Scrambled(in[i]);
}

// Memory that the GPU can copy from and to while the host goes on.
class PinnedArray {
 public:
  explicit PinnedArray(size_t size) { CHECK_CUDA(cudaMallocHost(&data_, size * sizeof(uint32_t))); }
  ~PinnedArray() { cudaFreeHost(data_); }
  PinnedArray(const PinnedArray&) = delete;
  PinnedArray& operator=(const PinnedArray&) = delete;
  uint32_t* data() { return data_; }

 private:
  uint32_t* data_ = nullptr;
};

// Buffers on the GPU for one chunk in flight, and what has happened to them.
struct Slot {
  Slot() : in(kChunk), out(kChunk) {
    for (cudaEvent_t* e : {&arrived, &worked, &left}) {
      CHECK_CUDA(cudaEventCreateWithFlags(e, cudaEventDisableTiming));
    }
  }
  ~Slot() {
    for (cudaEvent_t e : {arrived, worked, left}) cudaEventDestroy(e);
  }
  DeviceArray<uint32_t> in, out;
  cudaEvent_t arrived, worked, left;
  bool used = false;
};

class Pipeline {
 public:
  Pipeline() {
    for (cudaStream_t* s : {&to_gpu_, &work_, &from_gpu_}) {
      CHECK_CUDA(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking));
    }
  }
  ~Pipeline() {
    for (cudaStream_t s : {to_gpu_, work_, from_gpu_}) cudaStreamDestroy(s);
  }

  void Send(const uint32_t* from, uint32_t* to, Slot& slot) {
    constexpr size_t kBytes = kChunk * sizeof(uint32_t);
    daydream_begin("load");
    // The chunk that was here before must have been read.
    if (slot.used) CHECK_CUDA(cudaStreamWaitEvent(to_gpu_, slot.worked, 0));
    CHECK_CUDA(cudaMemcpyAsync(slot.in.data(), from, kBytes, cudaMemcpyHostToDevice, to_gpu_));
    CHECK_CUDA(cudaEventRecord(slot.arrived, to_gpu_));
    daydream_end();

    daydream_begin("scramble");
    CHECK_CUDA(cudaStreamWaitEvent(work_, slot.arrived, 0));
    // ... and its result must have left.
    if (slot.used) CHECK_CUDA(cudaStreamWaitEvent(work_, slot.left, 0));
    Scramble<<<kChunk / kThreads, kThreads, 0, work_>>>(slot.in.data(), slot.out.data());
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaEventRecord(slot.worked, work_));
    daydream_end();

    daydream_begin("store");
    CHECK_CUDA(cudaStreamWaitEvent(from_gpu_, slot.worked, 0));
    CHECK_CUDA(cudaMemcpyAsync(to, slot.out.data(), kBytes, cudaMemcpyDeviceToHost, from_gpu_));
    CHECK_CUDA(cudaEventRecord(slot.left, from_gpu_));
    daydream_end();
    slot.used = true;
  }

  void Finish() { CHECK_CUDA(cudaStreamSynchronize(from_gpu_)); }

 private:
  cudaStream_t to_gpu_, work_, from_gpu_;
};

}  // namespace

int main(int argc, char** argv) {
  NeedGpu();
  const int steps = StepsFrom(argc, argv, 30);
  constexpr size_t kAll = static_cast<size_t>(kChunk) * kChunks;
  PinnedArray input(kAll), output(kAll);
  Random random(3);
  for (size_t i = 0; i < kAll; ++i) input.data()[i] = random.Next();
  std::memset(output.data(), 0, kAll * sizeof(uint32_t));

  Pipeline pipeline;
  std::array<Slot, kSlots> slots;
  CHECK_CUDA(cudaDeviceSynchronize());  // the slots were cleared on another stream
  for (int step = 0; step < steps; ++step) {
    daydream_step(step);
    for (int c = 0; c < kChunks; ++c) {
      size_t at = static_cast<size_t>(c) * kChunk;
      pipeline.Send(input.data() + at, output.data() + at, slots[c % kSlots]);
    }
    pipeline.Finish();
  }
  bool right = true;
  // Of each chunk a part: the CPU would take longer than the GPU's whole run.
  for (size_t i = 0; i < kAll; i += 97) {
    right = right && output.data()[i] == Scrambled(input.data()[i]);
  }
  std::printf("%d steps of %d chunks of %d numbers\n", steps, kChunks, kChunk);
  return Verdict(right, "every 97th number");
}
