#include "transforms/edits/resize.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace daydream {
namespace {

enum Basis : uint8_t { kByShapes, kByLaunch, kByGrowth, kUnchanged };

Basis BasisOf(RetimedBy by) {
  switch (by) {
    case RetimedBy::kProducts:
    case RetimedBy::kBytes:
    case RetimedBy::kFloor:
      return kByShapes;
    case RetimedBy::kWaves:
      return kByLaunch;
    case RetimedBy::kGrowth:
      return kByGrowth;
  }
  return kByGrowth;
}

double Elements(const std::vector<Dims>& inputs) {
  double sum = 0;
  for (const Dims& dims : inputs) {
    double n = 1;
    for (int64_t d : dims) n *= static_cast<double>(d);
    sum += n;
  }
  return sum;
}

std::unique_ptr<OpWork> Keep(std::optional<OpWork> work) {
  return work ? std::make_unique<OpWork>(*std::move(work)) : nullptr;
}

}  // namespace

Resizer::Resizer(Editor& edit, Duration floor, Model model, std::vector<Model> at_ends)
    : edit_(edit),
      shapes_(edit.graph()),
      kernels_(edit.graph()),
      devices_(edit.graph()),
      floor_(floor > Duration{} ? floor : KernelFloor(edit.graph())),
      model_(model),
      at_ends_(std::move(at_ends)) {}

const Resizer::Change& Resizer::ChangeOf(TaskId t, const SizesOf& sizes) {
  const Graph& graph = edit_.graph();
  const Task& task = graph.task(t);
  auto [it, inserted] = changes_.try_emplace({task.scope, task.phase, TraitsOf(t).kind});
  Change& change = it->second;
  if (!inserted) return change;
  const OpShape& shape = shapes_.Of(t);
  const Sizes to = sizes(t, shape);
  if (!to.inputs) {
    change.growth = to.growth;
    change.none = to.growth == 1;
    return change;
  }
  const std::string_view op = graph.Name(graph.tables().scopes[shape.scope.index()].name);
  resized_.emplace_back(shape.scope, *to.inputs);
  change.before = Keep(WorkOf(op, shape.inputs, shape.dtype));
  change.after = Keep(WorkOf(op, *to.inputs, shape.dtype));
  const double before = Elements(shape.inputs);
  if (before > 0) change.growth = Elements(*to.inputs) / before;
  return change;
}

void Resizer::Resize(TaskId t, const SizesOf& sizes) {
  const Change& change = ChangeOf(t, sizes);
  if (!edit_.graph().task(t).removed) Set(t, change);
}

void Resizer::KeepShapes() {
  for (const auto& [scope, inputs] : resized_) SetInputs(edit_.graph(), scope, inputs);
  resized_.clear();
}

void Resizer::Grow(TaskId t, double growth) {
  Change change;
  change.growth = growth;
  Set(t, change);
}

void Resizer::Set(TaskId t, const Change& change) {
  const Duration now = edit_.graph().task(t).duration;
  if (change.none) {
    times_[kUnchanged] += now;
    return;
  }
  const auto time_by = [&](const Retimed& then, const Model& model) {
    return std::max(now + (then.time - now).Scaled(model.factor), Duration{});
  };
  const Retimed then = Then(t, now, change, model_.fill);
  times_[BasisOf(then.by)] += now;
  std::vector<Duration> at_ends;
  for (const Model& there : at_ends_) {
    const bool same = there.fill == model_.fill;
    at_ends.push_back(time_by(same ? then : Then(t, now, change, there.fill), there));
  }
  edit_.SetDuration(t, time_by(then, model_));
  edit_.SetAtEnds(t, at_ends);
}

Retimed Resizer::Then(TaskId t, Duration now, const Change& change, double fill) {
  return Retime({.time = now,
                 .traits = TraitsOf(t),
                 .launch = edit_.graph().Kernel(t),
                 .device = devices_.Of(t)},
                {.before = change.before.get(),
                 .after = change.after.get(),
                 .growth = change.growth,
                 .fill = fill},
                floor_);
}

const KernelTraits& Resizer::TraitsOf(TaskId t) { return kernels_.Of(edit_.graph().task(t).name); }

Duration Resizer::AllTime() const {
  return std::accumulate(times_.begin(), times_.end(), Duration{});
}

double Resizer::UnchangedShare() const {
  const Duration all = AllTime();
  return all > Duration{} ? times_[kUnchanged].seconds() / all.seconds() : 0;
}

std::string Resizer::Summary() const {
  const Duration all = AllTime();
  if (all <= Duration{}) return "no kernel";
  const auto percent = [&](Basis b) { return 100 * times_[b].seconds() / all.seconds(); };
  return fmt::format(
      "kernel time re-timed by shapes {:.0f} %, by blocks of the launch {:.0f} %, by the growth of "
      "the work alone {:.0f} %; {:.0f} % does not change",
      percent(kByShapes), percent(kByLaunch), percent(kByGrowth), percent(kUnchanged));
}

}  // namespace daydream
