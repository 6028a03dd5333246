// local-sgd: ranks go on alone, and average their parameters every k steps.
#include <algorithm>

#include "transforms/core/transform.h"
#include "transforms/edits/inserted_kernel.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/parallel/exchange.h"

namespace daydream {
namespace {

constexpr ParamSpec kLocalSgdParams[] = {
    {.name = "steps",
     .fallback = 4,
     .min = 1,
     .max = 1e6,
     .help = "steps from one average to the next",
     .source = "chosen by the user",
     .required = true,
     .whole = true},
    kExchangeFabricParam,
};

// The last kernel of the step on the compute stream: of its optimizer, as the graph is in order.
TaskId LastKernel(const Graph& graph, LaneId compute, uint16_t step) {
  TaskId last;
  for (TaskId t = graph.lane(compute).first; t.valid(); t = graph.task(t).lane_next) {
    const Task& task = graph.task(t);
    if (task.step == step && task.kind == TaskKind::kKernel && !task.removed) last = t;
  }
  return last;
}

// The last of the step's work on the stream of its exchanges.
TaskId LastOnItsStream(const Graph& graph, const Exchange& e) {
  TaskId last = e.collective;
  for (TaskId t = last; t.valid(); t = graph.task(t).lane_next) {
    if (graph.task(t).step == e.step) last = t;
  }
  return last;
}

absl::Status Average(Editor& edit, Exchanges& exchanges, std::span<const Exchange> step,
                     double every) {
  double bytes = 0;
  for (const Exchange& e : step) bytes += static_cast<double>(e.bytes);
  DD_ASSIGN_OR_RETURN(const Duration whole,
                      exchanges.TimeOf(CollectiveKind::kAllReduce, bytes, step[0].ranks));
  const TaskId last = LastKernel(edit.graph(), exchanges.compute, step[0].step);
  const TaskId launch = last.valid() ? edit.LaunchOf(last) : TaskId();
  if (!launch.valid()) return absl::OkStatus();
  Graph& graph = edit.graph();
  const Duration host = exchanges.costs().op.Scaled(1 / every);
  const Task beside = graph.task(launch);
  const TaskId call =
      edit.InsertAfter(launch, CallBeside(beside, graph.AddName("nccl:all_reduce"), host));
  const TaskId average = AddCollective(edit,
                                       {.kind = CollectiveKind::kAllReduce,
                                        .bytes = static_cast<uint64_t>(bytes),
                                        .ranks = step[0].ranks,
                                        .name = "ncclDevKernel_AllReduce",
                                        .step = step[0].step},
                                       {.stream = graph.task(step[0].collective).lane,
                                        .call = call,
                                        .compute = last,
                                        .after = LastOnItsStream(graph, step.back())},
                                       whole.Scaled(1 / every));
  TaskId next = graph.task(last).lane_next;
  while (next.valid() && graph.task(next).removed) next = graph.task(next).lane_next;
  if (next.valid()) edit.AddEdge(average, next, {}, Rule::kEventWait);
  return absl::OkStatus();
}

absl::Status RunLocalSgd(const Params& params, Editor& edit) {
  edit.BeginCause("gradients stay on their rank");
  DD_ASSIGN_OR_RETURN(Exchanges exchanges, Exchanges::Find(edit, params.text("fabric")));
  for (const Exchange& e : exchanges.all) edit.RemoveWithLaunches({&e.collective, 1});
  // Steps that were repeated were recorded at the same time.
  std::stable_sort(exchanges.all.begin(), exchanges.all.end(),
                   [](const Exchange& a, const Exchange& b) { return a.step < b.step; });
  edit.BeginCause("parameters are averaged");
  const std::span<const Exchange> all = exchanges.all;
  for (size_t i = 0; i < all.size();) {
    size_t end = i;
    while (end < all.size() && all[end].step == all[i].step) ++end;
    DD_RETURN_IF_ERROR(Average(edit, exchanges, all.subspan(i, end - i), params["steps"]));
    i = end;
  }
  edit.changes().notes.push_back(
      fmt::format("one step in {:.0f} averages parameters; each step here has its share of that",
                  params["steps"]));
  exchanges.Finish();
  return absl::OkStatus();
}

}  // namespace

constinit const Transform kLocalSgd = {
    .name = "local-sgd",
    .summary = "Local SGD: ranks average their parameters every k steps",
    .params = kLocalSgdParams,
    .apply = &RunLocalSgd,
    .model =
        "No gradients are exchanged. Behind the optimizer of every k-th step all parameters are "
        "averaged in one all-reduce, for which the next step waits; every step gets 1/k of it, so "
        "that its time is the mean over k steps.",
    .ignores =
        "What it does to training. Hooks and copies of DistributedDataParallel stay in the step. "
        "Averages are not overlapped with the next forward pass. Ranks wait for each other once "
        "in k steps only: less than what scale adds for how they differ.",
    .sources =
        "Lin et al. 2020 (Don't Use Large Mini-Batches, Use Local SGD, ICLR); "
        "torch.distributed.algorithms.model_averaging",
    .memory = MemoryEffect::kNone,
    .memory_model = "None: parameters are averaged in place.",
};

}  // namespace daydream
