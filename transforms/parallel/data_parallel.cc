#include "transforms/parallel/data_parallel.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/median.h"
#include "costmodel/network/collective_time.h"
#include "transforms/analysis/host_calls.h"
#include "transforms/analysis/memory_profile.h"
#include "transforms/analysis/precision.h"
#include "transforms/parallel/contention.h"
#include "transforms/parallel/exchange.h"
#include "transforms/parallel/gradients.h"
#include "transforms/parallel/norm_buffers.h"
#include "transforms/parallel/transfers.h"

namespace daydream {
namespace {

// The node that closes a bucket takes this many plain gradient nodes more on the host: 2.3 to 5.8
// in traces of a V100 and two A100 machines.
constexpr double kLaunchNodes = 4;
constexpr double kBytesPerNs = 1000;  // where the GPU is not known: a middle of what they sustain
constexpr Duration kFloor = Duration::Us(2);  // docs/cost-model.md

class Spreader {
 public:
  Spreader(Editor& edit, const DataParallel& how)
      : edit_(edit), how_(how), costs_(MeasureHostCosts(edit.graph())), devices_(edit.graph()) {}

  absl::Status Run() {
    if (how_.anew != nullptr) return PutAnew();
    if (how_.ranks > 1) edit_.model_changes().fabric = std::make_shared<const Fabric>(how_.fabric);
    const RankCollectives recorded = CollectivesOf(graph());
    if (!recorded.all.empty()) return Retime(recorded);
    const MemoryProfile memory = ProfileMemory(graph());
    DD_ASSIGN_OR_RETURN(const GradientList gradients, FindGradients(graph()));
    FindCompute();
    if (!compute_.valid()) return absl::OkStatus();
    const std::vector<NormBuffers> buffers = FindNormBuffers(graph());
    for (const StepGradients& step : gradients.steps) {
      DD_RETURN_IF_ERROR(AddBuffers(step, buffers[step.step]));
      edit_.BeginCause("gradients are exchanged");
      DD_RETURN_IF_ERROR(AddStep(step));
      if (how_.sharding != Sharding::kNone) DD_RETURN_IF_ERROR(ShardOptimizer(step));
    }
    if (how_.overlap) ShareGpu(edit_, compute_, {stream_}, RateTogether(graph(), how_.fabric));
    TellMemory(memory, gradients);
    Tell(gradients);
    return absl::OkStatus();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }

  absl::Status PutAnew() {
    DD_ASSIGN_OR_RETURN(const GradientList gradients, FindGradients(graph()));
    FindCompute();
    if (!compute_.valid()) return absl::OkStatus();
    for (const StepGradients& step : gradients.steps) {
      if (how_.anew->after.contains(step.step)) DD_RETURN_IF_ERROR(AddStep(step));
    }
    Tell(gradients);
    return absl::OkStatus();
  }

  // Groups of the whole run grow or shrink with it; those of a part of it stay.
  static bool OfAll(const RankCollectives& recorded, const RankCollective& c) {
    const int32_t size = recorded.communicators[c.communicator].size;
    return recorded.rank.world_size <= 0 || size == 0 || size == recorded.rank.world_size;
  }

  // Most of what they take would stay as it is, for any number of ranks.
  absl::Status CheckSizes(const RankCollectives& recorded) const {
    size_t unknown = 0, all = 0;
    Duration without, whole;
    for (const RankCollective& c : recorded.all) {
      if (!OfAll(recorded, c)) continue;
      const Duration transfer = graph().Transfer(c.task);
      ++all, whole += transfer;
      if (c.bytes == 0) ++unknown, without += transfer;
    }
    if (without <= whole - without) return absl::OkStatus();
    return MakeStatus(
        absl::StatusCode::kFailedPrecondition,
        {.code = "E0815",
         .what = "the sizes of the collectives are not known",
         .why = fmt::format("{} of {} collectives were recorded without one, and what they take "
                            "among another number of ranks follows from it",
                            unknown, all),
         .fix = "record the ranks with record_shapes=True"});
  }

  // Collectives of a run of several ranks: as many bytes a rank, among more or fewer of them.
  absl::Status Retime(const RankCollectives& recorded) {
    DD_RETURN_IF_ERROR(CheckSizes(recorded));
    std::map<std::pair<CollectiveKind, uint64_t>, double> times;
    for (const RankCollective& c : recorded.all) {
      if (c.bytes == 0 || !OfAll(recorded, c)) continue;
      const auto [known, fresh] = times.try_emplace(std::pair(c.kind, c.bytes), 0.0);
      if (!fresh) continue;
      DD_ASSIGN_OR_RETURN(known->second, TimeOf(c.kind, static_cast<double>(c.bytes)));
    }
    edit_.BeginCause(
        fmt::format("collectives among {} rank{}", how_.ranks, how_.ranks == 1 ? "" : "s"));
    for (const RankCollective& c : recorded.all) {
      const Duration whole = graph().task(c.task).duration;
      const Duration transfer = graph().Transfer(c.task);
      if (transfer < whole) edit_.SetDuration(c.task, transfer);
    }
    RetimeTransfers(edit_, recorded, [&](const RankCollective& c, Duration transfer) {
      const auto time = times.find(std::pair(c.kind, c.bytes));
      if (!OfAll(recorded, c) || time == times.end()) return transfer;
      return Duration::FromDouble(time->second * 1e3);
    });
    edit_.changes().notes.push_back(
        fmt::format("this trace has collectives: those of all ranks are timed anew among {}; "
                    "nothing is inserted, and a rank looked at alone waits for nobody",
                    how_.ranks));
    const bool sharded = std::any_of(recorded.all.begin(), recorded.all.end(), [&](const auto& c) {
      return c.kind == CollectiveKind::kReduceScatter && OfAll(recorded, c);
    });
    if (sharded) {
      edit_.changes().notes.push_back(
          "this trace shards what it trains: each rank's own part stays as large as recorded");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<double> TimeOf(CollectiveKind kind, double bytes) {
    if (how_.anew != nullptr) {
      DD_ASSIGN_OR_RETURN(const Duration time, how_.anew->time(kind, bytes));
      return time.us();
    }
    DD_ASSIGN_OR_RETURN(
        const CollectiveTime time,
        TimeOfCollective(how_.fabric, {.kind = kind, .bytes = bytes, .ranks = how_.ranks}));
    from_.Add(time);
    return time.us;
  }

  // By host task the last kernel launched so far on its thread, and the stream of most kernels.
  void FindCompute() {
    compute_ = ComputeStream(graph());
    if (!compute_.valid()) return;
    launched_.assign(graph().size(), TaskId());
    for (const GraphLane& lane : graph().lanes()) {
      if (lane.lane.kind != LaneKind::kThread) continue;
      TaskId last;
      for (TaskId t = lane.first; t.valid(); t = graph().task(t).lane_next) {
        for (TaskId k : edit_.LaunchedBy(t)) {
          if (graph().task(k).lane == compute_ && IsGpu(graph().task(k).kind)) last = k;
        }
        launched_[t.index()] = last;
      }
    }
    stream_ = edit_.NewStream("data parallel", compute_);
  }

  Duration Moves(TaskId near, double bytes) {
    const DeviceSpec* device = near.valid() ? devices_.Of(near) : nullptr;
    const double rate = device == nullptr ? kBytesPerNs : device->SustainedBandwidth() / 1e9;
    return std::max(kFloor, Duration::FromDouble(bytes / rate));
  }

  // Host work behind `after`, on its thread.
  TaskId Call(TaskId after, std::string_view name, Duration duration, uint16_t step) {
    const Task beside = graph().task(after);
    return edit_.InsertAfter(after, {.recorded_start = beside.recorded_start,
                                     .duration = duration,
                                     .name = edit_.graph().AddName(name),
                                     .lane = beside.lane,
                                     .scope = beside.scope,
                                     .step = step,
                                     .kind = TaskKind::kCall,
                                     .phase = beside.phase});
  }

  TaskId Kernel(TaskId after, std::string_view name, Duration duration, TaskId call) {
    const Task beside = graph().task(after);
    const TaskId added = edit_.InsertAfter(after, {.recorded_start = beside.recorded_start,
                                                   .duration = duration,
                                                   .name = edit_.graph().AddName(name),
                                                   .lane = beside.lane,
                                                   .scope = beside.scope,
                                                   .layer = beside.layer,
                                                   .step = beside.step,
                                                   .kind = TaskKind::kKernel,
                                                   .phase = Phase::kBackward});
    edit_.AddEdge(call, added, {}, Rule::kLaunch);
    return added;
  }

  absl::StatusOr<TaskId> Collective(CollectiveKind kind, double bytes, TaskId call, TaskId compute,
                                    uint16_t step) {
    DD_ASSIGN_OR_RETURN(const double us, TimeOf(kind, bytes));
    const auto size = static_cast<uint64_t>(bytes);
    return AddCollective(
        edit_, {.kind = kind, .bytes = size, .ranks = how_.ranks, .name = {}, .step = step},
        {.stream = stream_, .call = call, .compute = compute}, Duration::FromDouble(us * 1e3));
  }

  double BytesOnWire(const Bucket& bucket) const {
    const auto elements = static_cast<double>(bucket.elements);
    return how_.wire_bytes > 0 ? elements * how_.wire_bytes : static_cast<double>(bucket.bytes);
  }

  absl::Status AddStep(const StepGradients& step) {
    std::vector<GradientSize> sizes;
    std::vector<Duration> hosts;
    bool hooked = how_.anew != nullptr;
    for (const Gradient& g : step.ready) {
      sizes.push_back(g.size);
      hosts.push_back(g.host);
      hooked |= g.hooked;
    }
    const std::vector<Bucket> buckets = AssignBuckets(sizes, how_.caps);
    const Duration launch =
        how_.anew != nullptr ? how_.anew->launch : Median(hosts).Scaled(kLaunchNodes);
    std::vector<TaskId> exchanged;
    TaskId host, kernel;  // what was added last on the thread of this gradient
    size_t next = 0;
    for (uint32_t i = 0; i < step.ready.size(); ++i) {
      const Gradient& g = step.ready[i];
      host = g.call.valid() ? g.call : g.last;
      const TaskId before = launched_[host.index()];
      // Hooks of gradients that become ready behind the same kernel follow one another.
      if (before != at_) kernel = at_ = before;
      if (!hooked) {
        host = Call(host, "torch::distributed::reducer::mul_out", costs_.op, step.step);
        if (kernel.valid() && how_.ranks > 1) {
          const double bytes = 2.0 * static_cast<double>(g.size.bytes());
          kernel = Kernel(kernel, "scale a gradient into its bucket", Moves(at_, bytes), host);
        }
      }
      const uint32_t last = static_cast<uint32_t>(step.ready.size()) - 1;
      for (; next < buckets.size(); ++next) {
        if (i < (how_.overlap ? buckets[next].launched_after : last)) break;
        const bool calls = !hooked || how_.anew != nullptr;
        if (calls) host = Call(host, "nccl:all_reduce", launch, step.step);
        if (how_.ranks < 2) continue;
        DD_ASSIGN_OR_RETURN(const TaskId c, Exchange(buckets[next], host, kernel, step.step));
        exchanged.push_back(c);
      }
    }
    if (hooked) {
      BeforeRecordedCopies(step, buckets, exchanged, host, kernel);
    } else {
      AfterBackward(step, buckets, exchanged, host, kernel);
    }
    return absl::OkStatus();
  }

  // Before the first kernel of the forward pass, each type of buffers in one broadcast, whose
  // launch takes the host as long as that of a bucket.
  absl::Status AddBuffers(const StepGradients& step, const NormBuffers& buffers) {
    if (how_.ranks < 2 || !how_.buffers || buffers.statistics <= 0) return absl::OkStatus();
    TaskId first = graph().lane(compute_).first;
    while (first.valid() && !Begins(graph().task(first), step.step)) {
      first = graph().task(first).lane_next;
    }
    const TaskId launch = first.valid() ? edit_.LaunchOf(first) : TaskId();
    if (!launch.valid()) return absl::OkStatus();
    edit_.BeginCause("buffers are broadcast");
    std::vector<Duration> hosts;
    bool hooked = false;
    for (const Gradient& g : step.ready) hosts.push_back(g.host), hooked |= g.hooked;
    const Duration takes = hooked ? Duration{} : Median(hosts).Scaled(kLaunchNodes);
    for (const double bytes : {buffers.statistics, buffers.counters}) {
      const Task beside = graph().task(launch);
      const TaskId call =
          edit_.InsertBefore(launch, {.recorded_start = beside.recorded_start,
                                      .duration = takes,
                                      .name = edit_.graph().AddName("nccl:broadcast"),
                                      .lane = beside.lane,
                                      .scope = beside.scope,
                                      .step = step.step,
                                      .kind = TaskKind::kCall,
                                      .phase = beside.phase});
      DD_ASSIGN_OR_RETURN(const TaskId broadcast, Collective(CollectiveKind::kBroadcast, bytes,
                                                             call, BeforeOn(first), step.step));
      edit_.AddEdge(broadcast, first, {}, Rule::kEventWait);
    }
    return absl::OkStatus();
  }

  static bool Begins(const Task& task, uint16_t step) {
    return task.step == step && task.phase == Phase::kForward && IsGpu(task.kind) && !task.removed;
  }

  // The live task before it on its stream, or None.
  TaskId BeforeOn(TaskId t) const {
    do t = graph().task(t).lane_prev;
    while (t.valid() && (graph().task(t).removed || !IsGpu(graph().task(t).kind)));
    return t;
  }

  absl::StatusOr<TaskId> Exchange(const Bucket& bucket, TaskId call, TaskId& kernel,
                                  uint16_t step) {
    const bool scatter = how_.sharding != Sharding::kNone && !how_.broadcast;
    const auto kind = scatter ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
    if (how_.wire_bytes > 0 && kernel.valid()) {
      kernel = Kernel(kernel, "narrow a bucket", Moves(kernel, CastBytes(bucket)), call);
    }
    return Collective(kind, BytesOnWire(bucket), call, kernel, step);
  }

  double CastBytes(const Bucket& bucket) const {
    return static_cast<double>(bucket.bytes) +
           static_cast<double>(bucket.elements) * how_.wire_bytes;
  }

  // The program was recorded under DistributedDataParallel: its copies back wait for their buckets.
  void BeforeRecordedCopies(const StepGradients& step, const std::vector<Bucket>& buckets,
                            const std::vector<TaskId>& exchanged, TaskId host, TaskId kernel) {
    for (size_t b = 0; b < exchanged.size(); ++b) {
      if (how_.wire_bytes > 0 && kernel.valid()) {
        kernel = Kernel(kernel, "widen a bucket", Moves(kernel, CastBytes(buckets[b])), host);
        edit_.AddEdge(exchanged[b], kernel, {}, Rule::kEventWait);
      }
      const TaskId copy = step.ready[buckets[b].gradients.front()].copy;
      if (copy.valid()) edit_.AddEdge(exchanged[b], copy, {}, Rule::kEventWait);
    }
    if (exchanged.empty() || !kernel.valid()) return;
    TaskId next = NextLive(kernel);
    if (how_.anew != nullptr) next = how_.anew->after.at(step.step);
    if (next.valid()) edit_.AddEdge(exchanged.back(), next, {}, Rule::kEventWait);
  }

  // The compute stream waits for each bucket, whose gradients are then copied back.
  void AfterBackward(const StepGradients& step, const std::vector<Bucket>& buckets,
                     const std::vector<TaskId>& exchanged, TaskId host, TaskId kernel) {
    const TaskId before = host;
    for (size_t b = 0; b < exchanged.size(); ++b) {
      if (!kernel.valid()) break;
      const bool copies = !how_.bucket_view && how_.sharding != Sharding::kGradients;
      if (how_.wire_bytes > 0) {
        kernel = Kernel(kernel, "widen a bucket", Moves(kernel, CastBytes(buckets[b])), host);
        edit_.AddEdge(exchanged[b], kernel, {}, Rule::kEventWait);
      }
      if (!copies) continue;
      for (size_t i = 0; i < buckets[b].gradients.size(); ++i) {
        const GradientSize& size = step.ready[buckets[b].gradients[i]].size;
        host = Call(host, kCopyBackCall, costs_.op, step.step);
        kernel = Kernel(kernel, kCopyBackCall,
                        Moves(kernel, 2.0 * static_cast<double>(size.bytes())), host);
        if (i == 0) edit_.AddEdge(exchanged[b], kernel, {}, Rule::kEventWait);
      }
    }
    if (exchanged.empty() || !kernel.valid()) return;
    // What is launched behind backward comes behind the last bucket; so does the thread that waits
    // for this one.
    if (const TaskId next = NextLive(kernel); next.valid()) {
      edit_.AddEdge(exchanged.back(), next, {}, Rule::kEventWait);
    }
    if (host != before) HandOn(step.ready.back().last, host);
  }

  TaskId NextLive(TaskId t) const {
    do t = graph().task(t).lane_next;
    while (t.valid() && graph().task(t).removed);
    return t;
  }

  // Who waited for `before` waits for `now`.
  void HandOn(TaskId before, TaskId now) {
    std::vector<Edge> edges;
    for (const Edge& e : graph().edges()) {
      if (e.from == before && e.rule == Rule::kHandOff) edges.push_back(e);
    }
    for (const Edge& e : edges) {
      edit_.AddEdge(now, e.to, e.lag, Rule::kHandOff, e.from_anchor, e.to_anchor);
    }
  }

  // Each rank updates its part; then all get the rest.
  absl::Status ShardOptimizer(const StepGradients& step) {
    std::vector<TaskId> kernels;
    for (TaskId t = graph().lane(compute_).first; t.valid(); t = graph().task(t).lane_next) {
      const Task& task = graph().task(t);
      const bool optimizer = task.step == step.step && task.phase == Phase::kOptimizer;
      if (optimizer && IsGpu(task.kind) && !task.removed) kernels.push_back(t);
    }
    if (kernels.empty() || how_.ranks < 2) return absl::OkStatus();
    for (TaskId t : kernels) {
      const Duration whole = graph().task(t).duration;
      const Duration part = whole.Scaled(1.0 / how_.ranks);
      edit_.SetDuration(t, std::min(whole, std::max(kFloor, part)));
    }
    const TaskId launch = edit_.LaunchOf(kernels.back());
    if (!launch.valid()) return absl::OkStatus();
    DD_ASSIGN_OR_RETURN(const TaskId gather, Gather(step, launch, kernels.back()));
    if (const TaskId next = NextLive(kernels.back()); next.valid()) {
      edit_.AddEdge(gather, next, {}, Rule::kEventWait);
    }
    return absl::OkStatus();
  }

  // All ranks get the parameters of the others: at once, or one after the other from their owners.
  absl::StatusOr<TaskId> Gather(const StepGradients& step, TaskId launch, TaskId last) {
    double bytes = 0, us = 0;
    for (const Gradient& g : step.ready) {
      bytes += static_cast<double>(g.size.bytes());
      if (!how_.broadcast) continue;
      DD_ASSIGN_OR_RETURN(const double one,
                          TimeOf(CollectiveKind::kBroadcast, static_cast<double>(g.size.bytes())));
      us += one;
    }
    if (!how_.broadcast) {
      const TaskId call = Call(launch, "nccl:all_gather", costs_.op, step.step);
      return Collective(CollectiveKind::kAllGather, bytes, call, last, step.step);
    }
    const auto calls = static_cast<double>(step.ready.size());
    const TaskId call = Call(launch, "nccl:broadcast", costs_.op.Scaled(calls), step.step);
    return AddCollective(edit_,
                         {.kind = CollectiveKind::kBroadcast,
                          .bytes = static_cast<uint64_t>(bytes),
                          .ranks = how_.ranks,
                          .name = {},
                          .step = step.step},
                         {.stream = stream_, .call = call, .compute = last},
                         Duration::FromDouble(us * 1e3));
  }

  void TellMemory(const MemoryProfile& memory, const GradientList& gradients) {
    double bytes = 0;
    bool hooked = false;
    for (const Gradient& g : gradients.steps.front().ready) {
      bytes += static_cast<double>(g.size.bytes());
      hooked |= g.hooked;
    }
    std::vector<MemoryChange>& changes = edit_.changes().memory;
    if (!hooked && !how_.bucket_view && how_.sharding != Sharding::kGradients) {
      changes.push_back({.what = "buckets beside the gradients",
                         .bytes = static_cast<int64_t>(bytes),
                         .estimate = true});
    }
    const double elsewhere = 1 - 1.0 / how_.ranks;
    if (how_.sharding != Sharding::kNone) {
      changes.push_back({.what = "optimizer state of the other ranks",
                         .bytes = -static_cast<int64_t>(memory.optimizer_state * elsewhere),
                         .estimate = true,
                         .unknown = !memory.optimizer_known});
    }
    if (how_.sharding == Sharding::kGradients) {
      changes.push_back({.what = "gradients of the other ranks",
                         .bytes = -static_cast<int64_t>(bytes * elsewhere),
                         .estimate = true});
    }
  }

  void Tell(const GradientList& gradients) {
    std::vector<std::string>& notes = edit_.changes().notes;
    const StepGradients& step = gradients.steps.front();
    std::vector<GradientSize> sizes;
    for (const Gradient& g : step.ready) sizes.push_back(g.size);
    std::string elements;
    const std::vector<Bucket> buckets = AssignBuckets(sizes, how_.caps);
    for (size_t b = 0; b < buckets.size() && b < 8; ++b) {
      elements += fmt::format("{}{}", b > 0 ? ", " : "", buckets[b].elements);
    }
    notes.push_back(fmt::format("{} gradients in {} buckets of {}{} elements", sizes.size(),
                                buckets.size(), elements, buckets.size() > 8 ? ", ..." : ""));
    for (const std::string& text : from_.Lines()) {
      notes.push_back(fmt::format("{}: {}", how_.fabric.Title(), text));
    }
    if (gradients.width_assumed) {
      notes.push_back("types of gradients were not recorded: 4 bytes an element");
    }
    if (gradients.copied) {
      notes.push_back("sizes of gradients are those of the copies out of the recorded buckets");
    }
    if (gradients.order_assumed) {
      notes.push_back("sizes of gradients are those of the optimizer, in the opposite order");
    }
    if (step.passes > 1) {
      notes.push_back(fmt::format("{} backward passes a step: gradients are exchanged in the last",
                                  step.passes));
    }
  }

  Editor& edit_;
  const DataParallel& how_;
  HostCosts costs_;
  KnownDevices devices_;
  LaneId compute_, stream_;
  std::vector<TaskId> launched_;  // by host task of before: last kernel launched up to it
  TaskId at_;
  TimesFrom from_;
};

}  // namespace

absl::Status SpreadOver(Editor& edit, const DataParallel& how) { return Spreader(edit, how).Run(); }

}  // namespace daydream
