// Small traces for tests, written event by event in microseconds.
#pragma once

#include <memory>
#include <string_view>

#include "base/check.h"
#include "trace/trace_builder.h"

namespace daydream {

class TraceSketch {
 public:
  static constexpr int64_t kProcess = 100;

  LaneId Thread(int64_t tid = kProcess) {
    return builder_.AddLane(LaneKind::kThread, kProcess, tid, -1);
  }
  LaneId Stream(int64_t number = 7, StreamType type = StreamType::kUnknown) {
    const LaneId lane = builder_.AddLane(LaneKind::kStream, 0, number, 0);
    if (type != StreamType::kUnknown) builder_.SetStreamType(lane, type);
    return lane;
  }
  // `shapes` as recorded: "[[4, 8], []]".
  void Op(LaneId lane, std::string_view name, double us, double length_us, int64_t sequence = -1,
          std::string_view shapes = "", int64_t forward_thread = -1) {
    OpDetail op{.sequence = sequence, .forward_thread = forward_thread};
    if (!shapes.empty()) {
      op.shapes = builder_.names().Intern(shapes);
      op.types = builder_.names().Intern(R"(["float", "float"])");
    }
    const uint32_t detail = builder_.AddOp(op);
    Add(lane, name, us, length_us, EventKind::kOp, 0, detail);
  }
  void Mark(LaneId lane, std::string_view name, double us, double length_us) {
    Add(lane, name, us, length_us, EventKind::kAnnotation);
  }
  void Frame(LaneId lane, std::string_view module, double us, double length_us) {
    Add(lane, module, us, length_us, EventKind::kFrame);
  }
  void Call(LaneId lane, std::string_view name, double us, double length_us,
            uint32_t correlation = 0) {
    Add(lane, name, us, length_us, EventKind::kCall, correlation);
  }
  void Kernel(LaneId lane, std::string_view name, double us, double length_us,
              uint32_t correlation = 0) {
    Add(lane, name, us, length_us, EventKind::kKernel, correlation,
        builder_.AddKernel({.grid = {1, 1, 1}, .block = {32, 1, 1}}));
  }
  // An all-reduce of 4 MB; `group` as FormatCollectiveGroup() writes it, empty = nothing is known.
  void Collective(LaneId lane, std::string_view name, double us, double length_us,
                  uint32_t correlation, std::string_view group) {
    KernelDetail kernel{.grid = {24, 1, 1}, .block = {32, 1, 1}};
    if (!group.empty()) {
      kernel.collective = builder_.AddCollective({.name = builder_.names().Intern("allreduce"),
                                                  .dtype = builder_.names().Intern("Float"),
                                                  .process_group = builder_.names().Intern(group),
                                                  .elements_in = 1'000'000,
                                                  .elements_out = 1'000'000,
                                                  .group_size = 2});
    }
    Add(lane, name, us, length_us, EventKind::kKernel, correlation, builder_.AddKernel(kernel));
  }
  void Copy(LaneId lane, Memory from, Memory to, uint64_t bytes, double us, double length_us,
            uint32_t correlation) {
    Add(lane, "Memcpy", us, length_us, EventKind::kMemcpy, correlation,
        builder_.AddCopy({.bytes = bytes, .from = from, .to = to}));
  }
  void Memset(LaneId lane, double us, double length_us, uint32_t correlation) {
    Add(lane, "Memset", us, length_us, EventKind::kMemset, correlation,
        builder_.AddCopy({.bytes = 1024}));
  }
  void Sync(LaneId lane, const SyncDetail& detail, double us, uint32_t correlation) {
    Add(lane, "Sync", us, 1, EventKind::kSync, correlation, builder_.AddSync(detail));
  }
  // A launch call and its kernel.
  void Launch(LaneId thread, LaneId stream, std::string_view kernel, double call_us,
              double call_length_us, double start_us, double length_us) {
    uint32_t c = ++correlation_;
    Call(thread, "cudaLaunchKernel", call_us, call_length_us, c);
    Kernel(stream, kernel, start_us, length_us, c);
  }

  // The `consumer`-th event added needs what the `producer`-th made, counted from 0.
  void Depend(uint32_t producer, uint32_t consumer) { builder_.AddDependency(producer, consumer); }
  uint32_t Last() const { return static_cast<uint32_t>(builder_.events()) - 1; }

  std::shared_ptr<const Trace> Build() {
    auto trace = builder_.Build();
    DD_CHECK(trace.ok());
    return *trace;
  }

 private:
  void Add(LaneId lane, std::string_view name, double us, double length_us, EventKind kind,
           uint32_t correlation = 0, uint32_t detail = Id<void>::kNoneValue) {
    builder_.AddEvent({.start = Instant::AtNs(static_cast<int64_t>(us * 1000)),
                       .duration = Duration::Ns(static_cast<int64_t>(length_us * 1000)),
                       .lane = lane,
                       .name = builder_.names().Intern(name),
                       .kind = kind,
                       .correlation = correlation,
                       .detail = detail});
  }

  TraceBuilder builder_;
  uint32_t correlation_ = 1000;
};

}  // namespace daydream
