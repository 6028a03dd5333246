// gpu: times all work for another GPU (transforms/edits/other_gpu.h) and puts that GPU into the
// graph.
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include <fmt/ranges.h>

#include "transforms/analysis/device_choice.h"
#include "transforms/core/transform.h"
#include "transforms/edits/other_gpu.h"
#include "transforms/edits/retime.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

// GPUs of one node that NVLink or PCIe joins; larger groups also cross a network, which does not
// come with the card (DGX and HGX systems of NVIDIA and AMD's OAM platforms hold 8).
constexpr int kGpusOfNode = 8;
constexpr size_t kTermsKept = 200;

constexpr std::string_view kTf32[] = {"auto", "off", "all"};
constexpr std::string_view kLinks[] = {"auto", "same"};
constexpr ParamSpec kGpuParams[] = {
    {.name = "to",
     .unit = Unit::kText,
     .help = "name of a known GPU (H100, A100-SXM4-40GB), or a device file of your own",
     .source = "chosen by the user",
     .required = true},
    {.name = "from",
     .unit = Unit::kText,
     .help = "the GPU that was recorded, where the trace does not say or its name is not known; "
             "with none, what the trace says",
     .source = "chosen by the user"},
    {.name = "cpu",
     .unit = Unit::kFactor,
     .fallback = 1,
     .min = 0.01,
     .max = 100,
     .help = "how many times faster the new host is: ops, calls and the loader",
     .source = "1: the card changes, the host does not"},
    {.name = "tf32",
     .unit = Unit::kText,
     .text_fallback = "auto",
     .choices = kTf32,
     .help = "what runs in TF32 on a GPU that has it, coming from one without: auto = "
             "convolutions, all = matrix products, too",
     .source = "PyTorch documentation, TensorFloat-32 on Ampere: cudnn.allow_tf32 is on, "
               "cuda.matmul.allow_tf32 off by default (since 1.12)"},
    {.name = "links",
     .unit = Unit::kText,
     .text_fallback = "auto",
     .choices = kLinks,
     .help = "auto = copies and collectives inside a node run at the new card's links",
     .source = "data sheets: PCIe and NVLink of both cards"},
    {.name = "own",
     .unit = Unit::kNone,
     .fallback = 0.5,
     .low = 0.2,
     .high = 0.8,
     .max = 1,
     .help = "how much of its deviation from the cost model a kernel keeps on the new GPU",
     .source = "20 pairs of GPUs of the NeuSight data: best exponent 0.2 to 0.4 between, up to 0.7 "
               "within architectures"},
    {.name = "kernels",
     .unit = Unit::kFactor,
     .fallback = 1,
     .low = 0.9,
     .high = 1.1,
     .min = 0.1,
     .max = 10,
     .help = "factor on the new times of kernels",
     .source = "whole models on GPUs left out of the fit: 6.7 % mean error over 61 pairs of GPUs "
               "and models, in the study behind docs/cost-model.md"},
};

OtherGpuRules RulesOf(const Params& params) {
  OtherGpuRules rules;
  const std::string_view tf32 = params.text("tf32");
  rules.tf32 = tf32 == "off"   ? OtherGpuRules::Tf32::kNone
               : tf32 == "all" ? OtherGpuRules::Tf32::kAll
                               : OtherGpuRules::Tf32::kConvolutions;
  rules.transfer.own = params["own"];
  return rules;
}

// All parameters at an end of one of them.
struct GpuValues {
  explicit GpuValues(const Params& p) : transfer(RulesOf(p).transfer), kernels(p["kernels"]) {}
  TransferRules transfer;
  double kernels;
};

class ToGpu {
 public:
  ToGpu(const Params& params, Editor& edit, const DeviceChoice& target)
      : params_(params),
        edit_(edit),
        at_ends_(edit.AtEnds([](const EndView& at) { return GpuValues(at.params()); })),
        target_(target),
        spec_(std::make_shared<const DeviceSpec>(target.spec)),
        floor_(KernelFloor(edit.graph())) {}

  absl::Status Run() {
    DD_RETURN_IF_ERROR(FindRecorded());
    RetimeKernels();
    for (size_t i = 0; i < edit_.recorded_tasks(); ++i) RetimeOther(TaskId(i));
    edit_.model_changes().device = spec_;
    if (to().memory_gb != from_->memory_gb) {
      edit_.changes().capacity = static_cast<uint64_t>(to().memory_gb * (1 << 30));
    }
    TellGpu();
    return absl::OkStatus();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }
  const DeviceSpec& to() const { return *spec_; }

  // The first one that GPU work ran on and that is known.
  DeviceMatch RecordedDevice() const {
    KnownDevices devices(graph());
    for (size_t i = 0; i < graph().size(); ++i) {
      const Task& task = graph().task(TaskId(i));
      if (task.removed || !IsGpu(task.kind)) continue;
      if (devices.Of(TaskId(i)) != nullptr) return DeviceOf(graph(), TaskId(i));
    }
    return {};
  }

  // `from` is for recordings that do not say what they ran on, or by a name that is not known.
  absl::Status CheckNamed(const DeviceSpec& named) const {
    const DeviceMatch match = RecordedDevice();
    const DeviceSpec* recorded = match.spec;
    if (!match.named || recorded->name == named.name) return absl::OkStatus();
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0810",
                       .what = fmt::format("gpu: from={}, but the recording names {}",
                                           params_.text("from"), recorded->name),
                       .effect = "every ratio would be of the wrong GPU",
                       .fix = "leave out from=: it is for recordings that do not name their GPU"});
  }

  absl::Status FindRecorded() {
    if (const std::string_view name = params_.text("from"); !name.empty()) {
      DD_ASSIGN_OR_RETURN(const DeviceChoice named, ChooseDevice(name));
      DD_RETURN_IF_ERROR(CheckNamed(named.spec));
      named_ = std::make_shared<const DeviceSpec>(named.spec);
      edit_.model_changes().device = named_;  // until the kernels are timed, all of them ran on it
      from_ = named_.get();
      return absl::OkStatus();
    }
    from_ = RecordedDevice().spec;
    if (from_ != nullptr) return absl::OkStatus();
    return MakeStatus(
        absl::StatusCode::kFailedPrecondition,
        {.code = "E0810",
         .what = "gpu: the GPU of this recording is not known",
         .why = "new times are ratios: what the model says of the new GPU against the recorded one",
         .effect = "nothing can be predicted for another GPU",
         .fix = fmt::format("name it: gpu({}, from=NAME); daydream info TRACE shows what was "
                            "recorded; GPUs that are known: {}",
                            params_.text("to"), fmt::join(KnownGpus(), ", "))});
  }

  // All new times are found before the first is set: they depend on each other by op.
  void RetimeKernels() {
    OtherGpu other(graph(), to(), RulesOf(params_));
    std::vector<std::pair<TaskId, OtherGpu::Kernel>> kernels;
    std::vector<std::vector<Duration>> times_at_ends;
    std::map<std::pair<NameId, std::string>, size_t> terms;
    std::vector<KernelTerms>& all = edit_.changes().terms;
    for (TaskId t : edit_.Select(
             [](const Graph&g, TaskId id) { return g.task(id).kind == TaskKind::kKernel; })) {
      const OtherGpu::Kernel kernel = other.Of(t);
      kernels.push_back({t, kernel});
      times_at_ends.push_back(TimesAtEnds(t, kernel, other));
      auto [it, inserted] = terms.try_emplace({graph().task(t).name, other.Explain(t)}, all.size());
      if (inserted) {
        all.push_back({.kernel = std::string(graph().TaskName(t)),
                       .source = kernel.source,
                       .how = it->first.second});
      }
      KernelTerms& term = all[it->second];
      ++term.kernels;
      term.before += graph().task(t).duration;
      term.after += kernel.time;
    }
    std::stable_sort(all.begin(), all.end(), [](const KernelTerms& a, const KernelTerms& b) {
      return a.before > b.before;
    });
    FoldTerms(all);
    for (size_t i = 0; i < kernels.size(); ++i) {
      const auto& [t, kernel] = kernels[i];
      SetKernel(t, kernel);
      edit_.SetAtEnds(t, times_at_ends[i]);
    }
  }

  std::vector<Duration> TimesAtEnds(TaskId t, const OtherGpu::Kernel& kernel,
                                    OtherGpu& other) const {
    const double own = RulesOf(params_).transfer.own;
    std::vector<Duration> times;
    for (const GpuValues& there : at_ends_) {
      const bool same = there.transfer.own == own;
      times.push_back(TimeOf(same ? kernel : other.Of(t, there.transfer), there.kernels));
    }
    return times;
  }

  // `factor`: what times of models are multiplied with.
  static Duration TimeOf(const OtherGpu::Kernel& kernel, double factor) {
    return kernel.tf32 ? std::max(kernel.time.Scaled(FactorOf(kernel, factor)), kernel.least)
                       : InSameFormat(kernel, factor);
  }
  static Duration InSameFormat(const OtherGpu::Kernel& kernel, double factor) {
    return std::max(kernel.same_format.Scaled(FactorOf(kernel, factor)), kernel.least_same_format);
  }
  static double FactorOf(const OtherGpu::Kernel& kernel, double factor) {
    return kernel.source == TermSource::kMeasured ? 1 : factor;
  }

  // What is not shown one by one is in the last entries, one for each source, so that the entries
  // add up.
  static void FoldTerms(std::vector<KernelTerms>& all) {
    if (all.size() <= kTermsKept) return;
    std::map<TermSource, std::pair<size_t, KernelTerms>> rest;  // entries, their sum
    for (size_t i = kTermsKept; i < all.size(); ++i) {
      auto& [entries, sum] = rest[all[i].source];
      ++entries;
      sum.kernels += all[i].kernels;
      sum.before += all[i].before;
      sum.after += all[i].after;
    }
    all.resize(kTermsKept);
    for (auto& [source, part] : rest) {
      part.second.kernel = fmt::format("[{} others]", part.first);
      part.second.source = source;
      part.second.how = fmt::format("by {}: each by its own terms", Name(source));
      all.push_back(std::move(part.second));
    }
  }

  void SetKernel(TaskId t, const OtherGpu::Kernel& kernel) {
    const Duration measured = graph().task(t).duration;
    kernel_time_ += measured;
    by_source_[kernel.source] += measured;
    if (kernel.bounded) ++bounded_;
    if (kernel.lost != DType::kUnknown) lost_.insert(kernel.lost);
    edit_.BeginCause(fmt::format("kernels run on the {}", to().name));
    edit_.SetDuration(t, InSameFormat(kernel, params_["kernels"]));
    if (!kernel.tf32) return;
    ++tf32_;
    edit_.BeginCause("fp32 matrix kernels run in TF32");
    edit_.SetDuration(t, TimeOf(kernel, params_["kernels"]));
    // Later optimizations read from the name in which format it multiplies.
    edit_.Rename(t, fmt::format("tf32 {}", graph().TaskName(t)));
  }

  void RetimeOther(TaskId t) {
    const Task& task = graph().task(t);
    if (task.removed) return;
    if (task.kind == TaskKind::kMemcpy || task.kind == TaskKind::kMemset) RetimeCopy(t);
    if (task.kind == TaskKind::kCollective) RetimeCollective(t);
    if (IsHost(task.kind) || task.kind == TaskKind::kData) RetimeHost(t);
  }

  void RetimeHost(TaskId t) {
    const double cpu = params_["cpu"];
    if (cpu == 1) return;
    edit_.BeginCause("the host is another one");
    const Task& task = graph().task(t);
    const Duration gap = task.gap;
    if (task.duration > Duration{}) edit_.SetDuration(t, task.duration.Scaled(1 / cpu));
    if (gap > Duration{}) edit_.SetGap(t, gap.Scaled(1 / cpu));
  }

  void SetWork(TaskId t, double factor) {
    const Duration measured = graph().task(t).duration;
    const Duration fixed = std::min(measured, floor_);
    edit_.SetDuration(t, fixed + (measured - fixed).Scaled(factor));
  }

  void RetimeCopy(TaskId t) {
    const CopyDetail* copy = graph().Copy(t);
    const bool host =
        copy != nullptr && (copy->from == Memory::kPageable || copy->from == Memory::kPinned ||
                            copy->to == Memory::kPageable || copy->to == Memory::kPinned);
    edit_.BeginCause("copies run on the new card's links and memory");
    if (!host) {
      SetWork(t, from_->SustainedBandwidth() / to().SustainedBandwidth());
      return;
    }
    if (params_.text("links") == "same" || from_->pcie_gb_per_s <= 0 || to().pcie_gb_per_s <= 0) {
      return;
    }
    const Duration measured = graph().task(t).duration;
    const double link_ns = static_cast<double>(copy->bytes) / from_->pcie_gb_per_s;
    // The host fills the staging buffer of a pageable copy; it is the slower part where the copy
    // takes more than twice the link's time.
    const bool pageable = copy->from == Memory::kPageable || copy->to == Memory::kPageable;
    const bool host_bound = pageable && static_cast<double>(measured.ns) > 2 * link_ns;
    SetWork(t, host_bound ? 1 / params_["cpu"] : from_->pcie_gb_per_s / to().pcie_gb_per_s);
  }

  // Only the transfer changes; how long ranks wait for each other is another question.
  void RetimeCollective(TaskId t) {
    const CollectiveDetail* detail = graph().Collective(t);
    ++collectives_;
    if (params_.text("links") == "same" ||
        (detail != nullptr && detail->group_size > kGpusOfNode)) {
      ++network_;
      return;
    }
    const bool nvlink = from_->nvlink_gb_per_s > 0 && to().nvlink_gb_per_s > 0;
    const double from =
        from_->nvlink_gb_per_s > 0 ? from_->nvlink_gb_per_s / 2 : from_->pcie_gb_per_s;
    const double then = to().nvlink_gb_per_s > 0 ? to().nvlink_gb_per_s / 2 : to().pcie_gb_per_s;
    if (from <= 0 || then <= 0) return;
    link_ = nvlink ? "NVLink" : "PCIe and NVLink";
    // An option before this one may have left less of it than its recorded transfer.
    const Duration now = std::min(graph().Transfer(t), graph().task(t).duration);
    const Duration fixed = std::min(now, floor_);
    const Duration transfer = fixed + (now - fixed).Scaled(from / then);
    edit_.BeginCause("collectives run on the new card's links");
    edit_.SetDuration(t, graph().task(t).duration - now + transfer);
    edit_.SetTransfer(t, transfer);
  }

  void TellGpu() {
    std::vector<std::string>& notes = edit_.changes().notes;
    std::vector<std::string>& warnings = edit_.changes().warnings;
    notes.push_back(fmt::format("from {} to {}", from_->name, to().name));
    std::string shares;
    for (TermSource m :
         {TermSource::kShapes, TermSource::kWaves, TermSource::kClass, TermSource::kMeasured}) {
      if (m == TermSource::kMeasured && by_source_[m].ns == 0) continue;
      const double part =
          kernel_time_.ns > 0 ? by_source_[m].seconds() / kernel_time_.seconds() : 0;
      shares += fmt::format("{}{:.0f} % by {}", shares.empty() ? "" : ", ", 100 * part, Name(m));
    }
    notes.push_back("kernel time: " + shares);
    if (tf32_ > 0) {
      notes.push_back(
          fmt::format("{} fp32 matrix kernels run in TF32, as PyTorch lets them by "
                      "default; gpu(..., tf32=off) keeps fp32",
                      tf32_));
    }
    if (bounded_ > 0)
      notes.push_back(fmt::format("{} kernels are at the new GPU's roofline", bounded_));
    if (params_["cpu"] == 1)
      notes.push_back("the host stays as it was: gpu(..., cpu=1.2x) for a faster one");
    if (collectives_ > 0) {
      notes.push_back(network_ == collectives_
                          ? "collectives stay as they were"
                          : fmt::format("collectives inside a node by {}", link_));
    }
    for (DType lost : lost_) {
      warnings.push_back(
          fmt::format("the {} has no tensor cores for {}: such kernels run in another "
                      "format",
                      to().name, DTypeName(lost)));
    }
    if (from_->vendor != to().vendor) {
      warnings.push_back(
          fmt::format("the cost model was fitted to NVIDIA's GPUs, and in fp32 to two of AMD's; on "
                      "another vendor's, other libraries run ({} to {})",
                      from_->vendor, to().vendor));
    }
    for (const std::string& doubt : target_.assumptions) {
      // A known GPU has a data sheet; what a file leaves out weakens the answer.
      (target_.path.empty() ? notes : warnings).push_back("not verified: " + doubt);
    }
  }

  const Params& params_;
  Editor& edit_;
  const std::vector<GpuValues> at_ends_;  // of open parameters
  const DeviceChoice& target_;
  std::shared_ptr<const DeviceSpec> spec_, named_;
  Duration floor_;
  const DeviceSpec* from_ = nullptr;
  Duration kernel_time_;
  std::map<TermSource, Duration> by_source_;
  std::set<DType> lost_;
  uint64_t tf32_ = 0, bounded_ = 0, collectives_ = 0, network_ = 0;
  std::string_view link_ = "NVLink";
};

absl::Status RunGpu(const Params& params, Editor& edit) {
  DD_ASSIGN_OR_RETURN(DeviceChoice target, ChooseDevice(params.text("to")));
  return ToGpu(params, edit, target).Run();
}

}  // namespace

constinit const Transform kGpu = {
    .name = "gpu",
    .summary = "The program runs on another GPU, known or described in a file",
    .params = kGpuParams,
    .same_work = true,
    .ends = AtEnds::kTimes,
    .apply = &RunGpu,
    .model =
        "Kernels are timed anew one by one. Ops with recorded shapes: the cost model on the new "
        "GPU, and we keep half (`own`) of how far this kernel was from the model on the recorded "
        "GPU, without what all products were off by (the clock; of other ops within 10 %), at most "
        "twice what the models differ; products on tensor cores from Ampere on: the measured "
        "surface of the new GPU, and we keep all that products of this recording were off by and, "
        "of long ones, 0.4 of the rest (0.2 more where a kernel is faster); convolutions: measured "
        "time times the ratio of models. "
        "Memory-bound kernels without shapes: wave scaling of their launch. Others: sustained "
        "rates of their class. No kernel of known work is faster than the new GPU's data-sheet "
        "roofline, and what every kernel takes at least stays. fp32 convolutions run in TF32 where "
        "that comes with the GPU. Copies follow PCIe or memory bandwidth, collectives inside a "
        "node NVLink or PCIe, the host only `cpu`. The step is then played again, so that one "
        "which becomes bound by launches stays so.",
    .ignores =
        "Libraries that pick other algorithms, larger batches that fit, power limits of the new "
        "machine, networks between nodes, waiting of ranks for each other.",
    .sources =
        "Yu et al., Habitat (ATC'21) for wave scaling and ratios; Lee et al., NeuSight (ASPLOS'25) "
        "for measurements and tiles; NVIDIA's AIConfigurator for products on tensor cores; PyTorch "
        "documentation for TF32; docs/cost-model.md",
    .advice = {.effort = "another machine", .risk = "cost", .how = "run the program there"},
    .twice = "a program runs on one GPU",
    .memory = MemoryEffect::kNone,
    .memory_model =
        "None: the same tensors. Whether they fit the memory of the other card is said.",
};

}  // namespace daydream
