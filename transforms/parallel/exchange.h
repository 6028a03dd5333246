// How ranks exchange gradients in a graph: the collectives that backward launches, as a transform
// put them there (data_parallel.h) or as they were recorded; and the verbs to change them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "costmodel/network/collective_time.h"
#include "costmodel/network/size_curve.h"
#include "transforms/analysis/host_calls.h"
#include "transforms/analysis/precision.h"
#include "transforms/core/params.h"
#include "transforms/parallel/buckets.h"
#include "transforms/parallel/transfers.h"

namespace daydream {

// A collective starts so long after the last of what it waits for: its launch, the compute before
// it, the collective before it. Median of 2035 all-reduces in three traces of A100 GPUs: 1.4 to 2.0
// (90 %: 2 to 6).
inline constexpr Duration kStartLag{1700};

struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  uint64_t bytes = 0;  // as nccl-tests counts them (costmodel/network/collective_time.h)
  int ranks = 2;
  std::string_view name = {};  // empty: as NCCL calls its kernels
  uint16_t step = 0;
  std::string_view group = {};  // whatever transfers.h has a word for
};
struct CollectivePlace {
  LaneId stream;
  TaskId call, compute;  // what launches it, and the kernel that it waits for; either may be None
  TaskId after = {};     // on its stream; None: behind everything
  TaskId beside = {};    // where it stands in time, when neither launches it nor is waited for
};
// A collective that takes `transfer` and waits for nobody. O(1).
TaskId AddCollective(Editor& edit, const CollectiveCall& what, const CollectivePlace& where,
                     Duration transfer);

// The collective `t` is `what` from now on, but for its name, step and times.
void DescribeAs(Editor& edit, TaskId t, const CollectiveCall& what);

// Gradients that are exchanged together, in one collective.
struct Exchange {
  TaskId collective;
  TaskId call;    // launches it
  TaskId before;  // last compute kernel that it waits for; None: not known
  TaskId after;   // first compute kernel that waits for it; None: none
  CollectiveKind kind = CollectiveKind::kAllReduce;
  uint64_t bytes = 0;
  int ranks = 2;
  uint16_t step = 0;
  std::vector<GradientSize> gradients;  // whose sizes sum to `bytes`; empty: not known
  uint32_t element_bytes = 4;
  uint64_t elements() const { return bytes / element_bytes; }
};

// `fabric=` of what changes an exchange.
inline constexpr ParamSpec kExchangeFabricParam = {
    .name = "fabric",
    .unit = Unit::kText,
    .help =
        "what joins the ranks, one of `daydream fabric list`, or a file; without: as ddp(...) "
        "was told, else what the transfers in the trace say",
    .source = "chosen by the user"};

// All exchanges of a graph. Changes are made through it, and Finish() ends them: collectives and
// compute share the GPU as they did before (contention.h).
class Exchanges {
 public:
  // E0824 when nothing exchanges gradients: no collective is launched where autograd hands a
  // parameter its gradient. E0820, E0821 as ChooseFabric(). O(tasks + edges + scopes).
  static absl::StatusOr<Exchanges> Find(Editor& edit, std::string_view fabric);

  std::vector<Exchange> all;  // in the order of launches
  LaneId compute;
  // nullptr: only what the trace's transfers say is known.
  const Fabric* fabric() const { return edit_->graph().model_changes().fabric.get(); }
  const HostCosts& costs() const { return costs_; }

  // What a collective takes on this network. E0823 when the fabric holds no `ranks`.
  absl::StatusOr<Duration> TimeOf(CollectiveKind kind, double bytes, int ranks);
  // The exchange's collective sends other bytes; the wait recorded in it stays.
  absl::Status Resize(Exchange& e, CollectiveKind kind, double bytes);
  // One more collective behind `after` on the stream of the exchange, launched with it.
  absl::StatusOr<TaskId> AddBehind(const Exchange& e, TaskId after, CollectiveKind kind,
                                   double bytes);
  // A kernel on the compute stream that the exchange waits for, behind those of before; and one
  // that waits for it, before whatever does. None where there is no kernel to put it beside.
  TaskId KernelBefore(Exchange& e, std::string_view name, Duration duration);
  TaskId KernelAfter(Exchange& e, std::string_view name, Duration duration);
  // Bytes through the memory of the GPU, at least a kernel's least time.
  Duration Moves(const Exchange& e, double bytes);
  const DeviceSpec* DeviceOf(const Exchange& e);
  double GradientBytes() const;  // of a step
  void Finish();

 private:
  explicit Exchanges(Editor& edit);
  void Collect();
  void FindNeighbours();
  void NameGradients();
  TaskId Kernel(TaskId at, bool after, std::string_view name, Duration duration);

  Editor* edit_;
  HostCosts costs_;
  KnownDevices devices_;
  RankCollectives collectives_;
  SizeCurve curve_;
  bool shared_ = false;  // the GPU, by Graph::alone()
  TimesFrom from_;
};

}  // namespace daydream
