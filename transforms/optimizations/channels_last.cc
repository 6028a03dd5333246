// channels-last: layout changes around convolutions go, and those at the borders of the model come.
#include <algorithm>
#include <map>

#include "base/text.h"
#include "costmodel/roofline.h"
#include "graph/scopes.h"
#include "transforms/analysis/kernel_table.h"
#include "transforms/analysis/op_shapes.h"
#include "transforms/analysis/op_work.h"
#include "transforms/analysis/precision.h"
#include "transforms/core/floor_param.h"
#include "transforms/core/transform.h"
#include "transforms/edits/conv_layout.h"
#include "transforms/edits/inserted_kernel.h"
#include "transforms/edits/scale_by.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

constexpr ParamSpec kChannelsLastParams[] = {
    {.name = "conv",
     .unit = Unit::kFactor,
     .fallback = 1,
     .low = 0.7,
     .high = 1.3,
     .min = 0.1,
     .max = 10,
     .help = "time of convolutions in this layout, without layout changes",
     .source = "not known beforehand: the library picks other kernels; 796 models trained on an "
               "RTX 3090 with AMP (timm results) got 0.80 (p10) to 1.40 (p90) times as fast"},
    {.name = "grouped",
     .unit = Unit::kFactor,
     .fallback = 1,
     .low = 0.8,
     .high = 2.5,
     .min = 0.1,
     .max = 10,
     .help = "the same for grouped and depthwise convolutions",
     .source = "the same results: regnety_032, made of grouped convolutions, 0.71 times as fast"},
    {.name = "norm",
     .unit = Unit::kFactor,
     .fallback = 1,
     .low = 0.8,
     .high = 1.25,
     .min = 0.1,
     .max = 10,
     .help = "time of batch norm and pooling in this layout",
     .source = "design estimate, not measured: the same bytes in another order"},
    kFloorParam,
};

class ChannelsLast {
 public:
  ChannelsLast(const Params& params, Editor& edit)
      : params_(params),
        edit_(edit),
        rules_(edit.graph()),
        works_(edit.graph()),
        shapes_(edit.graph()),
        classes_(edit.graph()) {}

  absl::Status Run() {
    edit_.NeedEditsWhereOthers([](const Task& t) { return IsHost(t.kind); });  // what costs_ are of
    costs_ = MeasureHostCosts(graph());
    for (const GraphLane& lane : graph().lanes()) {
      if (lane.lane.kind == LaneKind::kStream) Walk(lane);
    }
    auto& changes = edit_.changes();
    if (convs_.empty() && grouped_.empty()) {
      changes.notes.push_back("no convolutions");
      return absl::OkStatus();
    }
    if (layout_.empty() && channels_last_ > 0) {
      changes.notes.push_back("its convolutions run in this layout already");
      return absl::OkStatus();
    }
    edit_.BeginCause("layout changes of the library are gone");
    edit_.RemoveWithLaunches(layout_);
    Scale(convs_, "conv", "convolutions in the other layout");
    Scale(grouped_, "grouped", "grouped convolutions in the other layout");
    Scale(norms_, "norm", "batch norm and pooling in the other layout");
    AddBorders();
    TellChannelsLast();
    return absl::OkStatus();
  }

 private:
  struct Border {
    TaskId before;        // kernel that needs the other layout
    double elements = 0;  // 0 = not known
    DType dtype = DType::kUnknown;
  };

  const Graph& graph() const { return edit_.graph(); }

  bool IsGrouped(TaskId t) {
    const OpWorkTable::Op op = works_.Of(t);
    return op.work != nullptr && op.work->kind == OpWork::Kind::kConv &&
           op.work->products[0].batch > 1;
  }

  void Walk(const GraphLane& lane) {
    bool inside = false;  // data has channels last
    uint16_t step = 0;
    Phase phase = Phase::kNone;
    for (TaskId t = lane.first; t.valid(); t = graph().task(t).lane_next) {
      const Task& task = graph().task(t);
      if (task.removed || task.kind != TaskKind::kKernel) continue;
      // Batches come with channels first; gradients arrive as the forward pass left them.
      if (task.step != step || (task.phase != phase && task.phase == Phase::kForward)) {
        inside = false;
      }
      step = task.step;
      phase = task.phase;
      const std::string_view name = graph().Name(task.name);
      if (IsLayoutChange(name)) {
        layout_.push_back(t);
        continue;
      }
      const KernelClass kind = classes_.Of(t);
      const bool conv = kind == KernelClass::kConv || InConvolution(t);
      if (conv) {
        if (IsChannelsLast(name)) ++channels_last_;
        (IsGrouped(t) ? grouped_ : convs_).push_back(t);
        if (!inside && task.phase != Phase::kBackward) AddBorder(t);
        inside = true;
      } else if (kind == KernelClass::kPool || rules_.Of(t).rule == Autocast::kFollow) {
        if (kind == KernelClass::kPool || kind == KernelClass::kNorm) norms_.push_back(t);
      } else if (kind == KernelClass::kGemm || kind == KernelClass::kAttention ||
                 kind == KernelClass::kNorm) {
        // Rows of features: what comes from convolutions is brought into order for them.
        if (inside && task.phase != Phase::kBackward) AddBorder(t);
        inside = false;
      }
    }
  }

  // Convolutions as products carry the names of products.
  bool InConvolution(TaskId t) {
    if (classes_.Of(t) != KernelClass::kGemm) return false;
    for (ScopeId s : ScopesAround(graph(), graph().task(t).scope)) {
      const Scope& scope = ScopeAt(graph(), s);
      if (scope.kind != EventKind::kOp) break;
      if (ContainsAny(graph().Name(scope.name), {"conv", "Conv"})) return true;
    }
    return false;
  }

  void AddBorder(TaskId t) {
    Border border{.before = t};
    const OpShape& shape = shapes_.Of(t);
    const OpWorkTable::Op op = works_.Of(t);
    if (op.work != nullptr && op.work->kind == OpWork::Kind::kGemm) {
      const GemmShape& p = op.work->products[0];
      border.elements =
          static_cast<double>(p.batch) * static_cast<double>(p.m) * static_cast<double>(p.k);
    } else if (shape.known()) {
      border.elements = 1;
      for (int64_t d : shape.inputs[0]) border.elements *= static_cast<double>(d);
    }
    border.dtype = shape.dtype;
    borders_.push_back(border);
  }

  void Scale(const std::vector<TaskId>& kernels, std::string_view param, std::string_view cause) {
    if (kernels.empty()) return;
    if (params_[param] != 1) edit_.BeginCause(cause);
    ScaleBy(param, kernels, params_, edit_);
  }

  // One copy at each border, with its launch and the host time of an op.
  void AddBorders() {
    edit_.BeginCause("layout changes at borders");
    const NameId kernel_name = edit_.graph().AddName("channels_last_copy");
    const NameId op_name = edit_.graph().AddName("aten::contiguous (channels last)");
    const NameId call_name = edit_.graph().AddName("cudaLaunchKernel");
    for (const Border& border : borders_) {
      Duration copied;
      const DeviceSpec* spec = DeviceOf(graph(), border.before).spec;
      if (spec != nullptr && border.elements > 0) {
        const double bytes = 2 * border.elements * DTypeBytes(border.dtype);
        copied = Duration::FromDouble(MemoryNs(*spec, bytes));
      }
      const auto time = [&](const Params& params) {
        return std::max(Duration::FromDouble(params["floor"]), copied);
      };
      const TaskId added = InsertKernel(edit_,
                                        {.at = border.before,
                                         .name = kernel_name,
                                         .duration = time(params_),
                                         .op = op_name,
                                         .call = call_name},
                                        costs_);
      edit_.SetAtEnds(added, edit_.AtEnds([&](const EndView& at) { return time(at.params()); }));
    }
  }

  bool OnRocm() const {
    return std::ranges::any_of(graph().tasks(), [&](const Task& t) {
      return t.kind == TaskKind::kCall && graph().Name(t.name).starts_with("hip");
    });
  }

  void TellChannelsLast() {
    auto& changes = edit_.changes();
    changes.notes.push_back(fmt::format(
        "{} layout changes of the library go, {} at borders come; {} convolution kernels",
        layout_.size(), borders_.size(), convs_.size() + grouped_.size()));
    if (layout_.empty()) {
      changes.notes.push_back(
          "the library does not change layouts here, so little is to be gained");
    }
    if (OnRocm()) {
      changes.conditions.push_back(
          "on ROCm, PyTorch asks MIOpen for this layout only where PYTORCH_MIOPEN_SUGGEST_NHWC=1 "
          "is set, too (its ConvUtils.h)");
    }
    if (!grouped_.empty()) {
      changes.warnings.push_back(
          fmt::format("{} kernels of grouped convolutions: they are often slower in this layout",
                      grouped_.size()));
    }
  }

  const Params& params_;
  Editor& edit_;
  PrecisionRules rules_;
  OpWorkTable works_;
  OpShapes shapes_;
  KernelClasses classes_;
  std::vector<TaskId> layout_, convs_, grouped_, norms_;
  std::vector<Border> borders_;
  HostCosts costs_;
  size_t channels_last_ = 0;
};

absl::Status RunChannelsLast(const Params& params, Editor& edit) {
  return ChannelsLast(params, edit).Run();
}

}  // namespace

constinit const Transform kChannelsLast = {
    .name = "channels-last",
    .summary = "Images are stored with their channels last",
    .params = kChannelsLastParams,
    .ends = AtEnds::kTold,
    .apply = &RunChannelsLast,
    .model =
        "Only convolutions gain for sure: the layout changes that cuDNN puts around those that "
        "run on tensor cores (nchwToNhwc, nhwcToNchw) are gone with their launches. Where data "
        "enters convolutions, and where products or row norms take it from them, one copy is "
        "added with its launch. What other kernels the library picks for convolutions, batch "
        "norm and pooling is not known beforehand: the interval is as wide as the spread that "
        "was measured over 796 models.",
    .ignores =
        "Ops without a kernel for this layout, which copy back and forth; convolutions that "
        "could only run on tensor cores in this layout.",
    .sources =
        "PyTorch documentation, Channels Last Memory Format; NVIDIA Deep Learning "
        "Performance Guide, Convolutional Layers; timm benchmark results",
    .advice = {.effort = "2 lines",
               .risk = "none",
               .how = "model = model.to(memory_format=torch.channels_last); x = "
                      "x.to(memory_format=torch.channels_last)"},
    .twice = "the convolutions run in this layout already",
    .memory = MemoryEffect::kNone,
    .memory_model =
        "None: the same elements in another order. Transposes at the borders free their input at "
        "once.",
};

}  // namespace daydream
