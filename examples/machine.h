// A host with one GPU, played forward in time: what a program would have been seen to do by a
// profiler. It is the clockwork under make_synthetic.cc. Whole numbers only, so the same calls
// give the same trace on every machine.
//
// Host and GPU run side by side. A kernel starts when its launch has returned and its stream is
// free; a launch waits when the stream holds too much unfinished work; reading a result waits for
// the GPU. Every constant is named in machine.cc with its source.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <string_view>

#include "trace/trace_builder.h"

namespace daydream::examples {

// One NVIDIA A100-SXM4-40GB. Source: NVIDIA A100 Tensor Core GPU architecture whitepaper, table 4.
inline constexpr int64_t kMultiprocessors = 108;
inline constexpr int64_t kFlopsPerNs = 19500;  // fp32, without tensor cores
inline constexpr int64_t kBytesPerNs = 1555;

// Copies from the host. 512 KiB in the 60 us that a pageable copy's last chunk needs (the source is
// in machine.cc): the link with nothing to stage.
inline constexpr int64_t kPageableBytesPerUs = 4400;
inline constexpr int64_t kPinnedBytesPerUs = 8700;

struct Kernel {
  std::string_view name;
  int64_t flops = 0;
  int64_t bytes = 0;  // read and written in device memory
  std::array<uint32_t, 3> grid{1, 1, 1};
  uint32_t threads = 128;
  uint32_t registers = 32;
  uint32_t shared_bytes = 0;
  int64_t flops_permille = 800;  // of the peak that the kernel reaches when the GPU is full
  int64_t ns = 0;                // takes exactly this long; 0: what the roofline says
  int stream = 0;                // 0 or 1
  uint32_t collective = Id<void>::kNoneValue;  // of Machine::AddCollective
};

struct MachineOptions {
  uint64_t seed = 20200131;
  int64_t noise_percent = 100;  // of the usual variation of times; 0: none
  int64_t gpu_percent = 100;    // kernels take this part of their time
  int32_t rank = 0, world = 1;
};

class Machine {
 public:
  explicit Machine(const MachineOptions& options = {});

  // The running thread. Switching costs `lag`: the other one is woken by this one.
  enum class Thread { kMain, kAutograd };
  void SwitchTo(Thread thread, int64_t lag_ns);

  // Host work of about this length: what the interpreter and the framework need between calls.
  void Work(int64_t ns);

  // A span on the running thread, from construction to destruction.
  class Span {
   public:
    Span(Machine& machine, EventKind kind, std::string_view name, const OpDetail* op = nullptr);
    ~Span();
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    Machine& machine_;
    TraceBuilder::Event event_;
  };

  void Launch(const Kernel& kernel);
  // Copies pageable host memory to the GPU and waits for it, as Tensor.to("cuda") does.
  void CopyToGpu(int64_t bytes);
  // Copies pinned memory on the second stream and goes on; the first stream waits for the copy.
  void CopyPinnedToGpu(int64_t bytes);
  // Copies a few bytes to the host and waits for all work before it, as Tensor.item() does.
  void ReadBack(int64_t bytes);
  // Work that is put on stream `waiting` from now on waits for what is on the other stream now.
  void StreamWaits(int waiting);
  // A call of the runtime of this length that launches nothing, such as cudaMalloc.
  void HostCall(std::string_view name, int64_t ns);
  int32_t world() const { return options_.world; }
  uint32_t AddCollective(const CollectiveDetail& detail) { return builder_.AddCollective(detail); }

  // What is called while this is off is not recorded, nor the GPU work that it launches.
  void set_recording(bool recording) { recording_ = recording; }

  int64_t host_ns() const { return clock_[static_cast<size_t>(thread_)]; }
  int64_t gpu_end_ns() const { return std::max(streams_[0].free, streams_[1].free); }
  int64_t gpu_busy_ns() const { return busy_; }

  NameId Name(std::string_view text) { return builder_.names().Intern(text); }
  absl::StatusOr<std::shared_ptr<const Trace>> Finish(
      std::string_view name, std::string_view model,
      std::string_view generator = "examples/make_synthetic");

 private:
  int64_t& now() { return clock_[static_cast<size_t>(thread_)]; }
  LaneId lane() const { return lanes_[static_cast<size_t>(thread_)]; }
  int64_t Vary(int64_t ns, int percent);
  int64_t KernelTime(const Kernel& kernel);
  struct Stream {
    LaneId lane;
    int64_t free = 0;               // end of the last work on it
    std::deque<int64_t> in_flight;  // ends of the work that occupies the launch queue
  };
  void Record(const TraceBuilder::Event& event);
  // Puts work on a stream that may start at `ready`; returns its start.
  int64_t Enqueue(EventKind kind, std::string_view name, int64_t ready, int64_t length,
                  uint32_t detail, int stream = 0);
  // A call that ends now; returns nothing, counts the correlation id.
  void Call(std::string_view name, int64_t begin, uint32_t correlation);
  void Synchronize();

  TraceBuilder builder_;
  Thread thread_ = Thread::kMain;
  std::array<int64_t, 2> clock_{};
  std::array<LaneId, 2> lanes_;
  std::array<Stream, 2> streams_;
  int64_t busy_ = 0;
  bool recording_ = true;
  uint32_t correlation_ = 0;
  MachineOptions options_;
  std::mt19937_64 random_;  // its raw output is the same everywhere
};

}  // namespace daydream::examples
