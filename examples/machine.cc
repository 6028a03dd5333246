#include "examples/machine.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"

namespace daydream::examples {
namespace {

constexpr int64_t kProcess = 4242;
constexpr int64_t kAutogradThread = 4301;
constexpr int64_t kStream = 7;  // PyTorch's default stream is seen under this number
constexpr int64_t kSecondStream = 13;

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
constexpr int64_t kStagedAtOnce = 65536;  // smaller pageable copies are staged and return
constexpr int64_t kEventCall = 1500;      // cudaEventRecord, cudaStreamWaitEvent
constexpr int64_t kSyncCall = 4000;       // cudaStreamSynchronize that does not wait
constexpr int64_t kKernelFloor = 1600;    // the shortest kernel: start, drain
constexpr int64_t kBandwidthPermille = 830;

constexpr uint32_t kNoDetail = Id<void>::kNoneValue;

}  // namespace

Machine::Machine(const MachineOptions& options) : options_(options), random_(options.seed) {
  lanes_[0] = builder_.AddLane(LaneKind::kThread, kProcess, kProcess, -1);
  lanes_[1] = builder_.AddLane(LaneKind::kThread, kProcess, kAutogradThread, -1);
  streams_[0].lane = builder_.AddLane(LaneKind::kStream, 0, kStream, 0);
  builder_.NameLane(lanes_[0], "python");
  builder_.NameLane(lanes_[1], "pt_autograd_0");
  builder_.NameLane(streams_[0].lane, "stream 7");
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
  builder_.SetRank(options.rank, options.world);
  // Ranks of one run share a clock: its zero is an hour in.
  if (options.world > 1) builder_.SetClockBase(int64_t{3600} * 1'000'000'000);
}

int64_t Machine::Vary(int64_t ns, int percent) {
  int64_t range = ns * percent * options_.noise_percent / 10000;
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
  machine_.Record(event_);
  machine_.now() += 200;  // spans of one thread never touch
}

// A roofline: the longer of arithmetic and memory traffic, and never under a floor.
int64_t Machine::KernelTime(const Kernel& kernel) {
  if (kernel.ns > 0) return kernel.ns * options_.gpu_percent / 100;
  int64_t compute = kernel.flops * 1000 / (kFlopsPerNs * kernel.flops_permille);
  int64_t memory = kernel.bytes * 1000 / (kBytesPerNs * kBandwidthPermille);
  return Vary((kKernelFloor + std::max(compute, memory)) * options_.gpu_percent / 100, 2);
}

void Machine::Record(const TraceBuilder::Event& event) {
  if (recording_) builder_.AddEvent(event);
}

int64_t Machine::Enqueue(EventKind kind, std::string_view name, int64_t ready, int64_t length,
                         uint32_t detail, int number) {
  Stream& stream = streams_[static_cast<size_t>(number)];
  if (!stream.lane.valid()) {
    stream.lane = builder_.AddLane(LaneKind::kStream, 0, kSecondStream, 0);
    builder_.SetStreamType(stream.lane, StreamType::kNonBlocking);
    builder_.NameLane(stream.lane, "stream 13");
  }
  int64_t start = std::max(ready, stream.free + Vary(kKernelGap, 20));
  stream.free = start + length;
  stream.in_flight.push_back(stream.free);
  busy_ += length;
  Record({.start = Instant::AtNs(start),
          .duration = Duration::Ns(length),
          .lane = stream.lane,
          .name = Name(name),
          .kind = kind,
          .correlation = correlation_,
          .detail = detail});
  return start;
}

void Machine::Call(std::string_view name, int64_t begin, uint32_t correlation) {
  Record({.start = Instant::AtNs(begin),
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
  std::deque<int64_t>& in_flight = streams_[static_cast<size_t>(kernel.stream)].in_flight;
  while (!in_flight.empty() && in_flight.front() <= begin) in_flight.pop_front();
  if (static_cast<int64_t>(in_flight.size()) >= kQueueDepth) {
    int64_t release = in_flight[in_flight.size() - kQueueDepth];
    now() = std::max(now(), release + kQueueRelease);
  }
  KernelDetail detail{.grid = kernel.grid,
                      .block = {kernel.threads, 1, 1},
                      .registers_per_thread = kernel.registers,
                      .shared_memory_bytes = kernel.shared_bytes,
                      .collective = kernel.collective};
  Enqueue(EventKind::kKernel, kernel.name, now() + Vary(kLaunchLatency, 20), KernelTime(kernel),
          builder_.AddKernel(detail), kernel.stream);
  Call("cudaLaunchKernel", begin, correlation_);
}

void Machine::Synchronize() {
  int64_t begin = now();
  now() = std::max(begin + Vary(kSyncCall, 10), streams_[0].free + kCopyPost);
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
  if (bytes > kStagedAtOnce) now() = std::max(now(), streams_[0].free - Vary(kStagingLead, 10));
  Call("cudaMemcpyAsync", begin, correlation_);
  Synchronize();
}

void Machine::CopyPinnedToGpu(int64_t bytes) {
  const int64_t begin = now();
  ++correlation_;
  const int64_t length = kKernelFloor + bytes * 1000 / kPinnedBytesPerUs;
  const CopyDetail detail{
      .bytes = static_cast<uint64_t>(bytes), .from = Memory::kPinned, .to = Memory::kDevice};
  now() += Vary(kCopySubmit, 10);
  Enqueue(EventKind::kMemcpy, "Memcpy HtoD (Pinned -> Device)", now(), length,
          builder_.AddCopy(detail), 1);
  Call("cudaMemcpyAsync", begin, correlation_);
  StreamWaits(0);
}

void Machine::StreamWaits(int waiting) {
  Stream& waits = streams_[static_cast<size_t>(waiting)];
  const Stream& other = streams_[static_cast<size_t>(1 - waiting)];
  const uint32_t recorded = ++correlation_;
  int64_t begin = now();
  now() += kEventCall;
  Call("cudaEventRecord", begin, recorded);
  begin = now();
  now() += kEventCall;
  const SyncDetail detail{.kind = SyncKind::kStreamWaitEvent,
                          .stream = builder_.lane(waits.lane).number,
                          .wait_on_stream = builder_.lane(other.lane).number,
                          .record_correlation = recorded};
  Record({.start = Instant::AtNs(begin),
          .duration = Duration::Ns(1),
          .lane = waits.lane,
          .name = Name("Stream Wait Event"),
          .kind = EventKind::kSync,
          .correlation = ++correlation_,
          .detail = builder_.AddSync(detail)});
  waits.free = std::max(waits.free, other.free);
  Call("cudaStreamWaitEvent", begin, correlation_);
}

void Machine::HostCall(std::string_view name, int64_t ns) {
  const int64_t begin = now();
  now() += Vary(ns, 8);
  Call(name, begin, 0);
}

void Machine::ReadBack(int64_t bytes) {
  int64_t begin = now();
  ++correlation_;
  CopyDetail detail{
      .bytes = static_cast<uint64_t>(bytes), .from = Memory::kDevice, .to = Memory::kPageable};
  Enqueue(EventKind::kMemcpy, "Memcpy DtoH (Device -> Pageable)", begin + Vary(kCopySubmit, 10),
          kKernelFloor, builder_.AddCopy(detail));
  now() = streams_[0].free + Vary(kCopyPost, 10);
  Call("cudaMemcpyAsync", begin, correlation_);
  Synchronize();
}

absl::StatusOr<std::shared_ptr<const Trace>> Machine::Finish(std::string_view name,
                                                             std::string_view model,
                                                             std::string_view generator) {
  Provenance& provenance = builder_.provenance();
  provenance.input_events = builder_.events();
  provenance.importer = "synthetic";
  provenance.format = fmt::format("generated by {}", generator);
  provenance.source = std::string(name) + "-synthetic";
  provenance.synthetic = true;
  builder_.AddSoftware("model", std::string(model));
  return builder_.Build();
}

}  // namespace daydream::examples
