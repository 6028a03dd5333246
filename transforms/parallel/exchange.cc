#include "transforms/parallel/exchange.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "costmodel/network/collective_time.h"
#include "graph/scopes.h"
#include "transforms/edits/inserted_kernel.h"
#include "transforms/parallel/contention.h"
#include "transforms/parallel/fabric_choice.h"
#include "transforms/parallel/gradients.h"

namespace daydream {
namespace {

// Where the GPU is not known: a middle of what they sustain.
constexpr double kMiddleBytesPerNs = 1000;
constexpr Duration kLeastKernel = Duration::Us(2);  // docs/cost-model.md

std::string_view KernelName(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllGather:
      return "ncclDevKernel_AllGather";
    case CollectiveKind::kReduceScatter:
      return "ncclDevKernel_ReduceScatter";
    case CollectiveKind::kBroadcast:
      return "ncclDevKernel_Broadcast";
    default:
      return "ncclDevKernel_AllReduce";
  }
}

uint32_t DetailOf(Graph& graph, const CollectiveCall& what) {
  const auto all = static_cast<int64_t>(what.bytes);
  const int64_t part = all / std::max(1, what.ranks);
  const bool scatters = what.kind == CollectiveKind::kReduceScatter;
  const bool gathers = what.kind == CollectiveKind::kAllGather;
  return graph.AddCollectiveDetail(
      {.name = graph.AddName(CollectiveName(what.kind)),
       .dtype = graph.AddName("Byte"),
       .process_group = what.group.empty() ? NameId() : graph.AddName(what.group),
       .elements_in = gathers ? part : all,
       .elements_out = scatters ? part : all,
       .group_size = what.ranks});
}

bool HandsGradients(const Graph& graph, ScopeId innermost) {
  for (ScopeId s : ScopesAround(graph, innermost)) {
    const std::string_view name = graph.Name(ScopeAt(graph, s).name);
    if (ContainsAny(name, {"AccumulateGrad", "torch::distributed::reducer"})) return true;
  }
  return false;
}

}  // namespace

void DescribeAs(Editor& edit, TaskId t, const CollectiveCall& what) {
  Graph& graph = edit.graph();
  KernelDetail kernel;
  if (const KernelDetail* known = graph.Kernel(t); known != nullptr) kernel = *known;
  kernel.collective = DetailOf(graph, what);
  edit.SetKernel(t, kernel);
}

TaskId AddCollective(Editor& edit, const CollectiveCall& what, const CollectivePlace& where,
                     Duration transfer) {
  Graph& graph = edit.graph();
  KernelDetail kernel;
  kernel.collective = DetailOf(graph, what);
  const TaskId beside = where.beside.valid()    ? where.beside
                        : where.compute.valid() ? where.compute
                                                : where.call;
  const Task task{.recorded_start = graph.task(beside).recorded_start,
                  .duration = transfer,
                  .name = graph.AddName(what.name.empty() ? KernelName(what.kind) : what.name),
                  .lane = where.stream,
                  .detail = graph.AddKernelDetail(kernel),
                  .step = what.step,
                  .kind = TaskKind::kCollective,
                  .phase = Phase::kComm};
  const TaskId added =
      where.after.valid() ? edit.InsertAfter(where.after, task) : edit.Append(task);
  edit.SetTransfer(added, transfer);
  if (where.call.valid()) edit.AddEdge(where.call, added, kStartLag, Rule::kLaunch);
  if (where.compute.valid()) edit.AddEdge(where.compute, added, kStartLag, Rule::kEventWait);
  return added;
}

Exchanges::Exchanges(Editor& edit)
    : edit_(&edit),
      costs_(MeasureHostCosts(edit.graph())),
      devices_(edit.graph()),
      collectives_(CollectivesOf(edit.graph())) {
  compute = ComputeStream(edit.graph());
}

absl::StatusOr<Exchanges> Exchanges::Find(Editor& edit, std::string_view fabric) {
  if (!fabric.empty()) {
    DD_ASSIGN_OR_RETURN(Fabric chosen, ChooseFabric(fabric));
    edit.model_changes().fabric = std::make_shared<const Fabric>(std::move(chosen));
  }
  Exchanges out(edit);
  out.Collect();
  if (out.all.empty()) {
    return MakeStatus(
        absl::StatusCode::kFailedPrecondition,
        {.code = "E0824",
         .what = "no exchange of gradients in this trace",
         .why = out.collectives_.all.empty()
                    ? "it has no collective"
                    : "no collective with a size is launched where autograd hands a parameter its "
                      "gradient",
         .fix = "ddp(RANKS, fabric=NAME) beside it, or the trace of one rank of several"});
  }
  out.shared_ = UnshareGpu(edit);
  out.curve_ = TransfersBySize(edit.graph(), out.collectives_);
  out.FindNeighbours();
  out.NameGradients();
  return out;
}

void Exchanges::Collect() {
  const Graph& graph = edit_->graph();
  for (const RankCollective& c : collectives_.all) {
    const bool reduces =
        c.kind == CollectiveKind::kAllReduce || c.kind == CollectiveKind::kReduceScatter;
    const TaskId call = edit_->LaunchOf(c.task);
    if (!reduces || c.bytes == 0 || !call.valid()) continue;
    if (!HandsGradients(graph, graph.task(call).scope)) continue;
    all.push_back({.collective = c.task,
                   .call = call,
                   .before = {},
                   .after = {},
                   .kind = c.kind,
                   .bytes = c.bytes,
                   .ranks = std::max(2, collectives_.communicators[c.communicator].size),
                   .step = graph.task(c.task).step,
                   .gradients = {}});
  }
}

void Exchanges::FindNeighbours() {
  const Graph& graph = edit_->graph();
  std::map<TaskId, size_t> of;
  for (size_t i = 0; i < all.size(); ++i) of[all[i].collective] = i;
  for (const Edge& e : graph.edges()) {
    if (e.rule != Rule::kEventWait) continue;
    if (auto it = of.find(e.to); it != of.end() && graph.task(e.from).lane == compute) {
      all[it->second].before = e.from;
    }
    if (auto it = of.find(e.from); it != of.end() && graph.task(e.to).lane == compute) {
      TaskId& after = all[it->second].after;
      const bool earlier =
          !after.valid() || graph.task(e.to).recorded_start < graph.task(after).recorded_start;
      if (earlier) after = e.to;
    }
  }
  // Of a recording that does not tell: the last kernel launched before the collective.
  for (Exchange& e : all) {
    for (TaskId t = e.call; t.valid() && !e.before.valid(); t = graph.task(t).lane_prev) {
      for (TaskId k : edit_->LaunchedBy(t)) {
        if (graph.task(k).lane == compute && !graph.task(k).removed) e.before = k;
      }
    }
  }
  // Streams wait for the last of them; the others are over by then.
  for (size_t i = all.size(); i-- > 1;) {
    const bool same = all[i - 1].step == all[i].step;
    if (same && !all[i - 1].after.valid()) all[i - 1].after = all[i].after;
  }
}

void Exchanges::NameGradients() {
  const absl::StatusOr<GradientList> known = FindGradients(edit_->graph());
  if (!known.ok()) return;
  std::map<uint16_t, std::pair<const StepGradients*, size_t>> at;
  for (const StepGradients& step : known->steps) at[step.step] = {&step, 0};
  for (Exchange& e : all) {
    auto it = at.find(e.step);
    if (it == at.end()) continue;
    auto& [step, next] = it->second;
    uint64_t bytes = 0;
    size_t end = next;
    while (end < step->ready.size() && bytes < e.bytes) bytes += step->ready[end++].size.bytes();
    if (bytes != e.bytes) {
      at.erase(it);
      continue;
    }
    for (; next < end; ++next) e.gradients.push_back(step->ready[next].size);
    if (!e.gradients.empty()) e.element_bytes = e.gradients[0].element_bytes;
  }
}

absl::StatusOr<Duration> Exchanges::TimeOf(CollectiveKind kind, double bytes, int ranks) {
  if (ranks < 2 || bytes <= 0) return Duration{};
  if (fabric() == nullptr) {
    // Of a trace alone: the all-reduce that puts as many bytes on the wire.
    const double factor = BusFactor(kind, ranks) / BusFactor(CollectiveKind::kAllReduce, ranks);
    from_.Add({.explained = "times of other sizes and kinds follow the transfers in this trace"});
    return Duration::FromDouble(curve_.At(bytes * factor) * 1e3);
  }
  DD_ASSIGN_OR_RETURN(const CollectiveTime time,
                      TimeOfCollective(*fabric(), {.kind = kind, .bytes = bytes, .ranks = ranks}));
  from_.Add({.explained = fmt::format("{}: {}", fabric()->Title(), time.explained),
             .beyond = time.beyond});
  return Duration::FromDouble(time.us * 1e3);
}

absl::Status Exchanges::Resize(Exchange& e, CollectiveKind kind, double bytes) {
  const Graph& graph = edit_->graph();
  DD_ASSIGN_OR_RETURN(const Duration then, TimeOf(kind, bytes, e.ranks));
  const Duration whole = graph.task(e.collective).duration;
  const Duration transfer = std::min(graph.Transfer(e.collective), whole);
  edit_->SetDuration(e.collective, whole - transfer + then);
  edit_->SetTransfer(e.collective, then);
  DescribeAs(*edit_, e.collective,
             {.kind = kind, .bytes = static_cast<uint64_t>(bytes), .ranks = e.ranks});
  if (kind != e.kind) edit_->Rename(e.collective, KernelName(kind));
  return absl::OkStatus();
}

absl::StatusOr<TaskId> Exchanges::AddBehind(const Exchange& e, TaskId after, CollectiveKind kind,
                                            double bytes) {
  DD_ASSIGN_OR_RETURN(const Duration time, TimeOf(kind, bytes, e.ranks));
  return AddCollective(
      *edit_,
      {.kind = kind, .bytes = static_cast<uint64_t>(bytes), .ranks = e.ranks, .step = e.step},
      {.stream = edit_->graph().task(after).lane, .call = e.call, .compute = {}, .after = after},
      time);
}

TaskId Exchanges::Kernel(TaskId at, bool after, std::string_view name, Duration duration) {
  const NameId id = edit_->graph().AddName(name);
  return InsertKernel(*edit_,
                      {.at = at,
                       .after = after,
                       .name = id,
                       .duration = duration,
                       .op = id,
                       .call = edit_->graph().AddName("cudaLaunchKernel")},
                      costs_);
}

TaskId Exchanges::KernelBefore(Exchange& e, std::string_view name, Duration duration) {
  if (!e.before.valid()) return {};
  const TaskId old = e.before;
  e.before = Kernel(old, true, name, duration);
  edit_->AddEdge(e.before, e.collective, kStartLag, Rule::kEventWait);
  // What follows on the stream is put behind it, too.
  for (Exchange& other : all) {
    if (&other != &e && other.before == old) other.before = e.before;
  }
  return e.before;
}

TaskId Exchanges::KernelAfter(Exchange& e, std::string_view name, Duration duration) {
  if (!e.after.valid()) return {};
  const TaskId kernel = Kernel(e.after, false, name, duration);
  edit_->AddEdge(e.collective, kernel, {}, Rule::kEventWait);
  return kernel;
}

const DeviceSpec* Exchanges::DeviceOf(const Exchange& e) {
  return e.before.valid() ? devices_.Of(e.before) : nullptr;
}

Duration Exchanges::Moves(const Exchange& e, double bytes) {
  const DeviceSpec* device = DeviceOf(e);
  const double rate = device == nullptr ? kMiddleBytesPerNs : device->SustainedBandwidth() / 1e9;
  return std::max(kLeastKernel, Duration::FromDouble(bytes / rate));
}

double Exchanges::GradientBytes() const {
  double bytes = 0;
  for (const Exchange& e : all) {
    if (e.step == all.front().step) bytes += static_cast<double>(e.bytes);
  }
  return bytes;
}

void Exchanges::Finish() {
  if (shared_) ShareAgain(*edit_);
  for (std::string& text : from_.Lines()) edit_->changes().notes.push_back(std::move(text));
}

}  // namespace daydream
