#include "report/questions/share_curve.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "simulator/simulate.h"
#include "transforms/analysis/kernel_share.h"

namespace daydream {
namespace {

constexpr int kPoints = 10;

struct Kernel {
  TaskId task;
  KernelDemands::Kernel wants;
};

class Curve {
 public:
  explicit Curve(const Graph& graph) : graph_(graph) {
    for (const GraphStep& step : graph.steps()) counted_ += step.measured ? 1 : 0;
  }

  absl::StatusOr<ShareCurve> Run() {
    FindKernels();
    if (device_ == nullptr) {
      return MakeStatus(absl::StatusCode::kFailedPrecondition,
                        {.code = "E0810",
                         .what = "the GPU of this recording is not known, or it has no kernels",
                         .why = "a share of a GPU is a number of its multiprocessors",
                         .fix = "daydream info TRACE shows what was recorded"});
    }
    curve_.device = device_->name;
    curve_.multiprocessors = device_->multiprocessors;
    for (int i = 1; i <= kPoints; ++i) {
      DD_ASSIGN_OR_RETURN(ShareCurve::Point point, At(static_cast<double>(i) / kPoints));
      curve_.points.push_back(point);
    }
    DD_RETURN_IF_ERROR(FindStepKnee());
    GroupKernels();
    return std::move(curve_);
  }

 private:
  void FindKernels() {
    KernelDemands demands(graph_);
    Duration all, by_launch;
    for (size_t i = 0; i < graph_.size(); ++i) {
      const Task& task = graph_.task(TaskId(i));
      if (task.removed || task.kind != TaskKind::kKernel) continue;
      const auto wants = demands.Of(TaskId(i));
      if (!wants) continue;
      device_ = wants->device;
      kernels_.push_back({TaskId(i), *wants});
      all += task.duration;
      if (wants->by_launch) by_launch += task.duration;
    }
    curve_.by_launch = all.ns > 0 ? by_launch.seconds() / all.seconds() : 0;
  }

  // Kernels of the steps that count; of all where none does.
  bool Counts(const Task& task) const {
    return counted_ == 0 || graph_.steps()[task.step].measured;
  }
  double Windows() const { return static_cast<double>(std::max<size_t>(counted_, 1)); }

  absl::StatusOr<ShareCurve::Point> At(double share) const {
    Graph graph = graph_;
    Duration kernels;
    for (const Kernel& k : kernels_) {
      Task& task = graph.mutable_task(k.task);
      task.duration =
          task.duration.Scaled(ShareSlowdown(*k.wants.device, k.wants.demand, share, {}));
      if (Counts(task)) kernels += task.duration;
    }
    DD_ASSIGN_OR_RETURN(Timeline timeline, Simulate(graph));
    return ShareCurve::Point{.share = share,
                             .step = StepTime(graph, timeline),
                             .kernels = kernels.Scaled(1 / Windows())};
  }

  absl::Status FindStepKnee() {
    const double limit = curve_.points.back().step.seconds() * (1 + curve_.slower);
    int low = 0, high = device_->multiprocessors;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      const double share = static_cast<double>(middle) / device_->multiprocessors;
      DD_ASSIGN_OR_RETURN(ShareCurve::Point point, At(share));
      (point.step.seconds() <= limit ? high : low) = middle;
    }
    curve_.step_knee = static_cast<double>(high) / device_->multiprocessors;
    return absl::OkStatus();
  }

  void GroupKernels() {
    std::map<std::string_view, ShareCurve::Kernel> groups;
    std::map<std::string_view, double> weighted;
    for (const Kernel& k : kernels_) {
      const Task& task = graph_.task(k.task);
      if (!Counts(task)) continue;
      const std::string_view name = graph_.Name(task.name);
      ShareCurve::Kernel& group = groups[name];
      group.time += task.duration;
      group.calls += 1 / Windows();
      weighted[name] +=
          task.duration.seconds() * KneeOf(*k.wants.device, k.wants.demand, curve_.slower, {});
    }
    for (auto& [name, group] : groups) {
      group.name = name;
      if (group.time > Duration{}) group.knee = weighted[name] / group.time.seconds();
      group.time = group.time.Scaled(1 / Windows());
      curve_.kernels.push_back(group);
    }
    std::stable_sort(
        curve_.kernels.begin(), curve_.kernels.end(),
        [](const ShareCurve::Kernel& a, const ShareCurve::Kernel& b) { return b.time < a.time; });
  }

  const Graph& graph_;
  size_t counted_ = 0;
  std::vector<Kernel> kernels_;
  const DeviceSpec* device_ = nullptr;
  ShareCurve curve_;
};

}  // namespace

absl::StatusOr<ShareCurve> MakeShareCurve(const Graph& graph) { return Curve(graph).Run(); }

}  // namespace daydream
