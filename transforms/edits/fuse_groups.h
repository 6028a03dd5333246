// Which kernels fuse merges.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "graph/row_facts.h"
#include "transforms/analysis/op_shapes.h"
#include "transforms/analysis/precision.h"
#include "transforms/core/editor.h"
#include "transforms/core/params.h"

namespace daydream {

// Parameters of all optimizations that merge kernels which go over memory.
inline constexpr ParamSpec kPassesParam = {
    .name = "passes",
    .unit = Unit::kNone,
    .fallback = 2.5,
    .low = 2,
    .high = 3,
    .min = 1,
    .max = 16,
    .help = "tensors that a kernel of unknown shape reads or writes, on average",
    .source = "one (unary) or two (binary) inputs and one output"};
inline constexpr ParamSpec kKeptParam = {
    .name = "kept",
    .unit = Unit::kShare,
    .fallback = 0.5,
    .low = 0,
    .high = 1,
    .max = 1,
    .help = "share of intermediate results that are stored anyway, for backward",
    .source = "design estimate, not measured"};

// What is not known of a run is told from the times of its kernels.
struct RunModel {
  Duration floor;       // shortest kernel; below twice that, times say little about bytes
  double passes = 2.5;  // tensors that a kernel reads or writes, where shapes do not say
  double kept = 0;      // share of the results in between that is written for backward
};

class FuseGroups {
 public:
  explicit FuseGroups(Editor& edit);

  // The kernels of each optimizer step that a fused optimizer does away with, by stream, in lane
  // order. Counts kernels of optimizers that are fused already.
  std::vector<std::vector<TaskId>> Optimizers(size_t* fused_already) const;

  // Longest runs of two or more kernels of these classes, of equal size, on one stream, step and
  // phase with no other work, and no edge but launches, between them. Kernels that a compiler or
  // a library has fused are left out. Sizes are those of recorded shapes, else numbers of threads,
  // which say nothing about other classes than elementwise.
  using Classes = std::vector<KernelClass>;
  std::vector<std::vector<TaskId>> Runs(const Classes& classes);
  // Runs of kernels for which `wanted` holds, whatever their size.
  std::vector<std::vector<TaskId>> RunsOf(const std::vector<bool>& wanted);

  // Time of the merged kernel: the measured times, in the ratio that the bytes give where shapes
  // and the GPU are known (`kept`: FusionRules), else from times. Never more than now.
  Duration TimeOf(const std::vector<TaskId>& run, const RunModel& model, bool* shaped) {
    times_.clear();
    for (TaskId t : run) times_.push_back(graph_.task(t).duration);
    return TimeOf(run, model, times_, shaped);
  }
  Duration TimeOf(const std::vector<TaskId>& run, const RunModel& model, const EndView& end) {
    bool shaped = false;
    times_.clear();
    for (TaskId t : run) times_.push_back(end.DurationOf(t));
    return TimeOf(run, model, times_, &shaped);
  }
  // Merges a run into one kernel; its launches and the host time of its ops are gone, too.
  // `whole_step`: also host time around ops. `cause` names both ("... merged"). `at_ends`: the time
  // there, where it is asked for.
  void Merge(const std::vector<TaskId>& run, std::string_view name, Duration time,
             std::string_view cause, bool whole_step, std::span<const Duration> at_ends = {});
  // Of what passes between the ops of a run that was merged, and that nobody else needs, the share
  // `kept` stays in memory for backward; the rest is made again.
  void KeepBetween(const std::vector<TaskId>& run, double kept);
  KernelClass ClassOf(TaskId t) const {
    const std::vector<KernelClass>& of = known_->kind;
    return t.index() < of.size() ? of[t.index()] : KernelClass::kOther;
  }

  // Host work that only served to launch all but the first of `group`: between consecutive
  // launches on one thread, if the thread launches nothing else and waits for nothing there.
  // `everything`: also work outside of framework ops.
  std::vector<TaskId> HostBetween(const std::vector<TaskId>& group, bool everything) const;

  bool has_backward() const { return known_->has_backward; }
  bool InOptimizerStep(TaskId t) const { return InOptimizer(graph_.task(t)); }

 private:
  // What shapes tell of a run.
  struct ShapedRun {
    std::vector<TaskId> run;
    std::vector<FusionNode> nodes;  // its ops; empty: a size is not known
    DType dtype = {};
  };
  struct Known {
    explicit Known(size_t tasks) : shaped(tasks) {}
    std::vector<bool> elementwise;      // by task
    std::vector<KernelClass> kind;      // by task; kOther for all but kernels not fused yet
    std::vector<bool> held, holds;      // by task: other edges than launches come in, go out
    std::vector<bool> waits;            // by task: waits for the GPU
    std::vector<bool> optimizer_scope;  // by scope
    bool has_backward = false;
    RowFacts<TaskId, ShapedRun> shaped;  // by the first task of a run that was asked for
  };
  // What remains of the time of a run with these: ends of other parameters ask the same once more.
  struct Left {
    double kept;
    Duration floor;
    std::optional<double> share;
  };
  // `times`: what its kernels take.
  Duration TimeOf(const std::vector<TaskId>& run, const RunModel& model,
                  std::span<const Duration> times, bool* shaped);
  ShapedRun Shape(const std::vector<TaskId>& run);
  void LookAt(const std::vector<TaskId>& run);
  std::optional<double> ShareLeft(const std::vector<TaskId>& run, double kept, Duration floor);
  static Known Look(const Graph& graph);
  bool InOptimizer(const Task& task) const;
  bool MayJoin(TaskId previous, TaskId next, bool any_size);
  bool SameSize(TaskId a, TaskId b);
  template <typename Wanted>
  std::vector<std::vector<TaskId>> Collect(const Wanted& wanted, bool any_size);

  Editor& edit_;
  const Graph& graph_;
  OpShapes shapes_;
  KnownDevices devices_;
  std::shared_ptr<const Known> known_;  // of the graph before the edits
  // The run that was asked for last.
  const ShapedRun* asked_ = nullptr;
  ShapedRun own_;  // where it is not one of `known_`
  const DeviceSpec* spec_ = nullptr;
  std::vector<Left> left_;
  std::vector<Duration> times_;
};

}  // namespace daydream
