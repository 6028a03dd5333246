// A host with one GPU, played forward in time: what a program would have been seen to do by a
// profiler. It is the clockwork under make_synthetic.cc. Whole numbers only, so the same calls
// give the same trace on every machine.
//
// Host and GPU run side by side. A kernel starts when its launch has returned and its stream is
// free; a launch waits when the stream holds too much unfinished work; reading a result waits for
// the GPU. Every constant is named in machine.cc with its source.
#pragma once

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

struct Kernel {
  std::string_view name;
  int64_t flops = 0;
  int64_t bytes = 0;  // read and written in device memory
  std::array<uint32_t, 3> grid{1, 1, 1};
  uint32_t threads = 128;
  uint32_t registers = 32;
  uint32_t shared_bytes = 0;
  int64_t flops_permille = 800;  // of the peak that the kernel reaches when the GPU is full
};

class Machine {
 public:
  Machine();

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
  // Copies a few bytes to the host and waits for all work before it, as Tensor.item() does.
  void ReadBack(int64_t bytes);

  NameId Name(std::string_view text) { return builder_.names().Intern(text); }
  absl::StatusOr<std::shared_ptr<const Trace>> Finish(std::string_view name,
                                                      std::string_view model);

 private:
  int64_t& now() { return clock_[static_cast<size_t>(thread_)]; }
  LaneId lane() const { return lanes_[static_cast<size_t>(thread_)]; }
  int64_t Vary(int64_t ns, int percent);
  int64_t KernelTime(const Kernel& kernel);
  // Puts work on the stream that may start at `ready`; returns its start.
  int64_t Enqueue(EventKind kind, std::string_view name, int64_t ready, int64_t length,
                  uint32_t detail);
  // A call that ends now; returns nothing, counts the correlation id.
  void Call(std::string_view name, int64_t begin, uint32_t correlation);
  void Synchronize();

  TraceBuilder builder_;
  Thread thread_ = Thread::kMain;
  std::array<int64_t, 2> clock_{};
  std::array<LaneId, 2> lanes_;
  LaneId stream_;
  int64_t stream_free_ = 0;        // end of the last work on the stream
  std::deque<int64_t> in_flight_;  // ends of the work that occupies the launch queue
  uint32_t correlation_ = 0;
  std::mt19937_64 random_{20200131};  // its raw output is the same everywhere
};

}  // namespace daydream::examples
