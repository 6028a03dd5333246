// A Trace is what was measured: events on lanes, in columns, with their details in side tables.
// It is built once by a TraceBuilder (trace/trace_builder.h) and never changes afterwards; share
// it as std::shared_ptr<const Trace>.
//
// Rows are sorted by (lane, start, longer first, input order), so the rows of one lane are one
// contiguous range and a scope comes before what it contains. 33 bytes a row.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/string_pool.h"
#include "base/time.h"

namespace daydream {

enum class LaneKind : uint8_t {
  kThread,   // a CPU thread
  kStream,   // a GPU stream
  kChannel,  // a communication channel or another modelled resource; never recorded
};

// How a stream and the legacy default stream of its device wait for each other.
enum class StreamType : uint8_t {
  kUnknown,
  kBlocking,     // each waits for what was launched before on the other
  kNonBlocking,  // they do not
  kDefault,      // is that stream
};

// One thing that runs one event at a time (GPU streams may overlap; see graph/build.h, rule G3).
struct Lane {
  LaneKind kind = LaneKind::kThread;
  NameId name;          // thread name or "stream 7"
  int32_t rank = 0;     // index into Trace::ranks
  int32_t device = -1;  // streams: device id; threads: -1
  int64_t process = 0;  // threads: OS process id; streams: 0
  int64_t number = 0;   // threads: OS thread id; streams: stream id
  StreamType stream = StreamType::kUnknown;
};

enum class EventKind : uint8_t {
  kOp,          // framework operator on a CPU thread ("aten::conv2d"); detail -> ops
  kAnnotation,  // named range: ProfilerStep#3, Optimizer.step#SGD.step, nccl:all_reduce, NVTX
  kFrame,       // "nn.Module: ResNet_0" frame of the Python stack
  kCall,        // CUDA/HIP runtime or driver call on a CPU thread
  kKernel,      // detail -> kernels
  kMemcpy,      // detail -> copies
  kMemset,      // detail -> copies
  kSync,        // GPU-side record of a wait (CUPTI synchronization activity); detail -> syncs
};
constexpr bool IsGpuWork(EventKind k) {
  return k == EventKind::kKernel || k == EventKind::kMemcpy || k == EventKind::kMemset;
}

// How a kernel was launched. Equal shapes are stored once.
struct KernelDetail {
  std::array<uint32_t, 3> grid{};   // blocks; 0 = not recorded
  std::array<uint32_t, 3> block{};  // threads
  uint32_t registers_per_thread = 0;
  uint32_t shared_memory_bytes = 0;
  uint64_t graph_node = 0;  // CUDA graph node id; 0 = not launched by a graph (or not recorded)
  uint32_t collective = Id<void>::kNoneValue;  // row of collectives; none for compute kernels
  // Nodes of a CUDA graph: path of the layer whose code made the node, if a recording knows, and
  // whether that was in the backward pass.
  NameId layer;
  bool backward = false;
  friend bool operator==(const KernelDetail&, const KernelDetail&) = default;
};

enum class Memory : uint8_t { kUnknown, kPageable, kPinned, kDevice, kManaged, kArray };
struct CopyDetail {
  uint64_t bytes = 0;
  Memory from = Memory::kUnknown;  // kUnknown for memsets
  Memory to = Memory::kUnknown;
  friend bool operator==(const CopyDetail&, const CopyDetail&) = default;
};

struct OpDetail {
  int64_t sequence = -1;        // autograd sequence number; -1 = none
  int64_t forward_thread = -1;  // framework's id of the thread that ran the forward op; -1 = none
  NameId shapes;  // "[[32, 3, 224, 224], [64, 3, 7, 7]]" as recorded; None = not recorded
  NameId types;   // "[\"float\", \"Scalar\"]" as recorded; None = not recorded
  uint32_t collective = Id<void>::kNoneValue;  // row of collectives (record_param_comms)
  friend bool operator==(const OpDetail&, const OpDetail&) = default;
};

struct CollectiveDetail {
  NameId name;           // "allreduce"
  NameId dtype;          // "Float"
  NameId process_group;  // name of the group
  int64_t elements_in = 0;
  int64_t elements_out = 0;
  int32_t group_size = 0;
  friend bool operator==(const CollectiveDetail&, const CollectiveDetail&) = default;
};

enum class SyncKind : uint8_t { kUnknown, kEvent, kStreamWaitEvent, kStream, kContext };
struct SyncDetail {
  SyncKind kind = SyncKind::kUnknown;
  int64_t stream = -1;              // waiting stream (kStreamWaitEvent) or awaited (kStream)
  int64_t wait_on_stream = -1;      // stream on which the awaited event was recorded
  uint32_t record_correlation = 0;  // correlation of the cudaEventRecord call; 0 = unknown
  int64_t event = -1;               // CUDA event id
  friend bool operator==(const SyncDetail&, const SyncDetail&) = default;
};

// One allocation (or release) of GPU memory by the framework, as the PyTorch profiler notes them
// with profile_memory=True.
struct Allocation {
  Instant at;
  LaneId lane;  // thread; None when nothing else was recorded of it
  int32_t device = -1;
  int64_t bytes = 0;       // negative: released
  int64_t allocated = -1;  // by tensors afterwards; -1 = not recorded
  int64_t reserved = -1;   // by the framework from the driver afterwards; -1 = not recorded
  friend bool operator==(const Allocation&, const Allocation&) = default;
};

// One event needs what another has made: an argument of an op, a job for a thread.
struct DataDependency {
  uint32_t producer = 0, consumer = 0;  // rows
  friend bool operator==(const DataDependency&, const DataDependency&) = default;
};

struct Device {
  int32_t id = 0;
  std::string name;  // "NVIDIA A100-SXM4-40GB"; empty when not recorded
  uint64_t memory_bytes = 0;
  int32_t compute_major = 0, compute_minor = 0;
  int32_t multiprocessors = 0;
  int32_t warp_size = 0;
  int32_t max_threads_per_multiprocessor = 0;
  int64_t registers_per_multiprocessor = 0;
  int64_t shared_memory_per_multiprocessor = 0;
  int64_t clock_khz = 0;              // 0 = not recorded, as above
  int64_t memory_bandwidth_kbps = 0;  // thousand bytes a second
  // What its kernels were launched on, where each tells its blocks per multiprocessor: that of
  // most.
  int32_t launched_multiprocessors = 0;
};

// A process group member whose events are in this trace.
struct Rank {
  int32_t rank = -1;        // -1 = not recorded
  int32_t world_size = -1;  // -1 = not recorded
};

// One count of something that did not become an event, or became one with a repair.
struct ImportCount {
  std::string what;  // "flow events"
  uint64_t count = 0;
  bool loss = false;   // true: information that a prediction may need is gone
  std::string reason;  // "launch and kernel are joined by correlation id"
  // First place seen: byte position in the uncompressed input, -1 = not known.
  int64_t first_byte = -1;
  bool repair = false;  // true: these became rows; they are not part of the sum below
};

// What recording cost the program: medians of its steps, from mark to mark, with and without the
// recorder at work, and the medians of how far the steps are from these. Counts are 0 when there
// were no such steps.
struct RecordingCost {
  // What each of something costs the thread that does it, and two standard errors.
  struct Each {
    double ns = 0, error_ns = 0;
    friend bool operator==(const Each&, const Each&) = default;
  };

  uint64_t steps_with = 0, steps_without = 0;
  Duration with, without;
  Duration with_spread, without_spread;
  // How far the steps without before the recorded ones are from those after them.
  Duration drift;
  // A recorded call; a piece of GPU work; a mark of a layer. Nothing where the steps do not tell.
  // Without `work`, a call and the GPU work of it.
  std::optional<Each> call, work, layer_mark;
  // GPU work of a recorded step: so much may a thread without recording have waited for it, and so
  // much more may recording cost than the steps show.
  Duration hidden;
  friend bool operator==(const RecordingCost&, const RecordingCost&) = default;
};

// How the trace came to be, for `info` and for error messages.
struct Provenance {
  std::string importer;                                       // "kineto", "ddtrace"
  std::string format;                                         // "PyTorch profiler JSON"
  std::string source;                                         // file name, without folders
  bool synthetic = false;                                     // generated, not recorded
  std::vector<std::pair<std::string, std::string>> software;  // {"CUDA runtime", "12.4"}, sorted
  uint64_t input_events = 0;                                  // events in the input, kept or not
  // what is not a row (or was repaired); rows() + non-repairs = input
  std::vector<ImportCount> counts;
  // Parts of the input that nothing was taken from, and how many rows they have: no input events.
  std::vector<std::pair<std::string, uint64_t>> tables_not_read;
  // The recorder notes neither waits nor calls that wait: nothing says when the CPU stood still.
  bool no_waits = false;
  // Rows are planned, not measured: their starts follow from durations and dependencies, which hold
  // every order that there is.
  bool planned = false;
  RecordingCost cost;  // recordings of `daydream trace`
  // The same of each rank, by index of Trace::ranks, where several recordings became one trace;
  // `cost` is nobody's then. Empty: one recording, or none tells it.
  std::vector<RecordingCost> rank_costs;
  const RecordingCost& CostOfRank(size_t rank) const {
    return rank < rank_costs.size() ? rank_costs[rank] : cost;
  }
};

struct Part;  // trace/part/part.h

struct Trace {
  std::shared_ptr<StringPool> names = std::make_shared<StringPool>();
  std::vector<Lane> lanes;
  std::vector<uint32_t> lane_begin;  // lanes.size() + 1: rows of lane l are [begin[l], begin[l+1])

  // Columns, one entry per event.
  std::vector<Instant> start;
  std::vector<Duration> duration;
  std::vector<LaneId> lane;
  std::vector<NameId> name;
  std::vector<EventKind> kind;
  std::vector<uint32_t> correlation;  // joins a call with its GPU work and syncs; 0 = none
  std::vector<uint32_t> detail;       // row of the table of its kind; kNoneValue = none

  // Details, each distinct value stored once.
  std::vector<KernelDetail> kernels;
  std::vector<CopyDetail> copies;
  std::vector<OpDetail> ops;
  std::vector<CollectiveDetail> collectives;
  std::vector<SyncDetail> syncs;

  std::vector<Allocation> allocations;       // by time
  std::vector<DataDependency> dependencies;  // by consumer; empty: not recorded
  std::vector<Device> devices;
  std::vector<Rank> ranks;  // at least one
  // Clock reading of Instant 0 in the input (its own clock), so that ranks can be aligned.
  int64_t clock_origin_ns = 0;
  Provenance provenance;
  // Where this trace holds only some of the steps that were recorded: which. Else nothing.
  std::shared_ptr<const Part> part;

  size_t rows() const { return start.size(); }
  Instant End(size_t row) const { return start[row] + duration[row]; }
  std::string_view Name(NameId id) const { return id.valid() ? names->Get(id) : ""; }
  std::string_view EventName(size_t row) const { return names->Get(name[row]); }
  // The device with this id, or nullptr when its properties were not recorded.
  const Device* FindDevice(int32_t id) const;
  // Bytes held by columns, tables and names: what "memory per event" measures.
  size_t MemoryBytes() const;
};

}  // namespace daydream
