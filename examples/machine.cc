#include "examples/machine.h"

#include <algorithm>

#include "base/check.h"

namespace daydream::examples {
namespace {

constexpr int64_t kProcess = 4242;
constexpr int64_t kAutogradThread = 4301;
constexpr int64_t kStream = 7;  // PyTorch's default stream is seen under this number

// Medians read off published PyTorch profiler traces of V100 and A100 machines; the reasons and
// the spread are in examples/README.md.
constexpr int64_t kLaunchCall = 5200;     // cudaLaunchKernel that does not wait
constexpr int64_t kLaunchLatency = 1500;  // call returned -> kernel starts on an idle stream
constexpr int64_t kKernelGap = 1100;      // end of a kernel -> start of the next one
constexpr int64_t kQueueDepth = 1022;     // GPU work a stream holds before a launch waits
constexpr int64_t kQueueRelease = 5500;   // place free -> the waiting launch returns
constexpr int64_t kCopySubmit = 8000;     // start of the call -> the copy may start
constexpr int64_t kCopyPost = 8000;       // end of a copy to the host -> its call returns
constexpr int64_t kStagingLead = 60000;   // a pageable copy's call returns before its last chunk
constexpr int64_t kPageableBytesPerUs = 4400;
constexpr int64_t kStagedAtOnce = 65536;  // smaller pageable copies are staged and return
constexpr int64_t kSyncCall = 4000;       // cudaStreamSynchronize that does not wait
constexpr int64_t kKernelFloor = 1600;    // the shortest kernel: start, drain
constexpr int64_t kBandwidthPermille = 830;

constexpr uint32_t kNoDetail = Id<void>::kNoneValue;

}  // namespace

Machine::Machine() {
  lanes_[0] = builder_.AddLane(LaneKind::kThread, kProcess, kProcess, -1);
  lanes_[1] = builder_.AddLane(LaneKind::kThread, kProcess, kAutogradThread, -1);
  stream_ = builder_.AddLane(LaneKind::kStream, 0, kStream, 0);
  builder_.NameLane(lanes_[0], "python");
  builder_.NameLane(lanes_[1], "pt_autograd_0");
  builder_.NameLane(stream_, "stream 7");
  builder_.AddDevice({.id = 0,
                      .name = "NVIDIA A100-SXM4-40GB",
                      .memory_bytes = 42505273344,
                      .compute_major = 8,
                      .compute_minor = 0,
                      .multiprocessors = static_cast<int32_t>(kMultiprocessors),
                      .warp_size = 32,
                      .max_threads_per_multiprocessor = 2048,
                      .registers_per_multiprocessor = 65536,
                      .shared_memory_per_multiprocessor = 167936});
  builder_.SetRank(0, 1);
}

int64_t Machine::Vary(int64_t ns, int percent) {
  int64_t range = ns * percent / 100;
  return range <= 0
             ? ns
             : ns - range + static_cast<int64_t>(random_() % static_cast<uint64_t>(2 * range + 1));
}

void Machine::SwitchTo(Thread thread, int64_t lag_ns) {
  int64_t from = now();
  thread_ = thread;
  now() = std::max(now(), from + Vary(lag_ns, 20));
}

void Machine::Work(int64_t ns) { now() += Vary(ns, 8); }

Machine::Span::Span(Machine& machine, EventKind kind, std::string_view name, const OpDetail* op)
    : machine_(machine) {
  event_.start = Instant::AtNs(machine.now());
  event_.lane = machine.lane();
  event_.name = machine.Name(name);
  event_.kind = kind;
  if (op != nullptr) event_.detail = machine.builder_.AddOp(*op);
}

Machine::Span::~Span() {
  event_.duration = Instant::AtNs(machine_.now()) - event_.start;
  machine_.builder_.AddEvent(event_);
  machine_.now() += 200;  // spans of one thread never touch
}

// A roofline: the longer of arithmetic and memory traffic, and never under a floor.
int64_t Machine::KernelTime(const Kernel& kernel) {
  int64_t compute = kernel.flops * 1000 / (kFlopsPerNs * kernel.flops_permille);
  int64_t memory = kernel.bytes * 1000 / (kBytesPerNs * kBandwidthPermille);
  return Vary(kKernelFloor + std::max(compute, memory), 2);
}

int64_t Machine::Enqueue(EventKind kind, std::string_view name, int64_t ready, int64_t length,
                         uint32_t detail) {
  int64_t start = std::max(ready, stream_free_ + Vary(kKernelGap, 20));
  stream_free_ = start + length;
  in_flight_.push_back(stream_free_);
  builder_.AddEvent({.start = Instant::AtNs(start),
                     .duration = Duration::Ns(length),
                     .lane = stream_,
                     .name = Name(name),
                     .kind = kind,
                     .correlation = correlation_,
                     .detail = detail});
  return start;
}

void Machine::Call(std::string_view name, int64_t begin, uint32_t correlation) {
  builder_.AddEvent({.start = Instant::AtNs(begin),
                     .duration = Duration::Ns(now() - begin),
                     .lane = lane(),
                     .name = Name(name),
                     .kind = EventKind::kCall,
                     .correlation = correlation,
                     .detail = kNoDetail});
  now() += 300;
}

void Machine::Launch(const Kernel& kernel) {
  int64_t begin = now();
  ++correlation_;
  now() += Vary(kLaunchCall, 15);
  while (!in_flight_.empty() && in_flight_.front() <= begin) in_flight_.pop_front();
  if (static_cast<int64_t>(in_flight_.size()) >= kQueueDepth) {
    int64_t release = in_flight_[in_flight_.size() - kQueueDepth];
    now() = std::max(now(), release + kQueueRelease);
  }
  KernelDetail detail{.grid = kernel.grid,
                      .block = {kernel.threads, 1, 1},
                      .registers_per_thread = kernel.registers,
                      .shared_memory_bytes = kernel.shared_bytes};
  Enqueue(EventKind::kKernel, kernel.name, now() + Vary(kLaunchLatency, 20), KernelTime(kernel),
          builder_.AddKernel(detail));
  Call("cudaLaunchKernel", begin, correlation_);
}

void Machine::Synchronize() {
  int64_t begin = now();
  now() = std::max(begin + Vary(kSyncCall, 10), stream_free_ + kCopyPost);
  Call("cudaStreamSynchronize", begin, ++correlation_);
}

void Machine::CopyToGpu(int64_t bytes) {
  int64_t begin = now();
  ++correlation_;
  int64_t length = kKernelFloor + bytes * 1000 / kPageableBytesPerUs;
  CopyDetail detail{
      .bytes = static_cast<uint64_t>(bytes), .from = Memory::kPageable, .to = Memory::kDevice};
  Enqueue(EventKind::kMemcpy, "Memcpy HtoD (Pageable -> Device)", begin + Vary(kCopySubmit, 10),
          length, builder_.AddCopy(detail));
  now() += Vary(kCopySubmit, 10) + 2000;
  if (bytes > kStagedAtOnce) now() = std::max(now(), stream_free_ - Vary(kStagingLead, 10));
  Call("cudaMemcpyAsync", begin, correlation_);
  Synchronize();
}

void Machine::ReadBack(int64_t bytes) {
  int64_t begin = now();
  ++correlation_;
  CopyDetail detail{
      .bytes = static_cast<uint64_t>(bytes), .from = Memory::kDevice, .to = Memory::kPageable};
  Enqueue(EventKind::kMemcpy, "Memcpy DtoH (Device -> Pageable)", begin + Vary(kCopySubmit, 10),
          kKernelFloor, builder_.AddCopy(detail));
  now() = stream_free_ + Vary(kCopyPost, 10);
  Call("cudaMemcpyAsync", begin, correlation_);
  Synchronize();
}

absl::StatusOr<std::shared_ptr<const Trace>> Machine::Finish(std::string_view name,
                                                             std::string_view model) {
  Provenance& provenance = builder_.provenance();
  provenance.input_events = builder_.events();
  provenance.importer = "synthetic";
  provenance.format = "generated by examples/make_synthetic";
  provenance.source = std::string(name) + "-synthetic";
  provenance.synthetic = true;
  builder_.AddSoftware("model", std::string(model));
  return builder_.Build();
}

}  // namespace daydream::examples
