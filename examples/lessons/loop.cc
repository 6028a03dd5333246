#include "examples/lessons/loop.h"

#include <fmt/format.h>

namespace daydream::examples {
namespace {

constexpr int64_t kAllReduceElements = 25'000'000;

// A collective waits `late_ns` longer, for this rank's own work takes so much less.
void LaunchKernel(Machine& machine, const LoopKernel& k, int64_t late_ns) {
  if (k.waits) machine.StreamWaits(k.stream);
  const OpDetail detail;
  Machine::Span op(machine, EventKind::kOp, k.op, &detail);
  machine.Work(k.host_ns);
  Kernel kernel{
      .name = k.kernel, .grid = {1024, 1, 1}, .threads = 256, .ns = k.ns, .stream = k.stream};
  kernel.ns += k.collective ? late_ns : -late_ns;
  if (k.collective) {
    kernel.collective = machine.AddCollective({.name = machine.Name("allreduce"),
                                               .dtype = machine.Name("Float"),
                                               .process_group = machine.Name("0"),
                                               .elements_in = kAllReduceElements,
                                               .elements_out = kAllReduceElements,
                                               .group_size = machine.world()});
  }
  machine.Launch(kernel);
}

void Load(Machine& machine, int64_t ns) {
  Machine::Span load(machine, EventKind::kAnnotation,
                     "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
  machine.Work(ns);
}

void HostOp(Machine& machine, std::string_view name, int64_t ns) {
  const OpDetail detail;
  Machine::Span op(machine, EventKind::kOp, name, &detail);
  machine.Work(ns);
}

}  // namespace

std::vector<LoopKernel> EqualKernels(int count, LoopKernel all) {
  all.ns /= count;
  return std::vector<LoopKernel>(static_cast<size_t>(count), all);
}

absl::StatusOr<Played> PlayLoop(std::string_view name, const Loop& loop) {
  constexpr int kLateStep = 3;
  Machine machine(loop.machine);
  StepClock clock;
  for (int step = 0; step < loop.steps; ++step) {
    machine.set_recording(!loop.only_last || step + 1 == loop.steps);
    Machine::Span mark(machine, EventKind::kAnnotation, fmt::format("ProfilerStep#{}", step));
    if (step == 0 && loop.first_ns > 0) HostOp(machine, "aten::_first_call", loop.first_ns);
    if (loop.load_ns > 0) Load(machine, loop.load_ns);
    for (int i = 0; i < loop.memory_calls; ++i) {
      machine.HostCall("cudaFree", loop.memory_call_ns);
      machine.HostCall("cudaMalloc", loop.memory_call_ns);
    }
    for (size_t i = 0; i < loop.kernels.size(); ++i) {
      LaunchKernel(machine, loop.kernels[i], step % 2 == 0 ? 0 : loop.peer_late_ns);
      if (i == 0 && step == kLateStep && loop.late_stall_ns > 0) {
        HostOp(machine, "CompiledFunction: compile", loop.late_stall_ns);
      }
    }
    if (loop.item) {
      HostOp(machine, "aten::detach", Us(5));
      const OpDetail detail;
      Machine::Span item(machine, EventKind::kOp, "aten::item", &detail);
      Machine::Span dense(machine, EventKind::kOp, "aten::_local_scalar_dense", &detail);
      machine.ReadBack(4);
    }
    clock.EndStep(machine);
  }
  Played played;
  clock.Fill(played);
  auto trace = machine.Finish(name, "a loop of a lesson", "daydream tour");
  if (!trace.ok()) return trace.status();
  played.trace = *std::move(trace);
  return played;
}

}  // namespace daydream::examples
