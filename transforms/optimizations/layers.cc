// layers: repeats or removes members of a family of layers, in forward and in backward.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/ranges.h>

#include "transforms/analysis/layer_families.h"
#include "transforms/analysis/memory_profile.h"
#include "transforms/core/transform.h"
#include "transforms/edits/copy_tasks.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

constexpr ParamSpec kLayersParams[] = {
    {.name = "size",
     .unit = Unit::kText,
     .help = "how many layers the family has (48), or how many times as many (x2)",
     .source = "chosen by the user",
     .required = true},
    {.name = "family",
     .unit = Unit::kText,
     .help = "the repeated layers, by their name without the number; empty = those with most GPU "
             "time",
     .source = "chosen by the user"},
    {.name = "parameters",
     .unit = Unit::kShare,
     .fallback = 0.9,
     .low = 0.65,
     .high = 1,
     .max = 1,
     .help = "share of all parameters that is in the family, for the optimizer and all-reduces",
     .source = "sizes in published configurations: GPT-2 small 69 %, BERT-base 78 %, Llama 2 7B "
               "96 %"},
};

// A graph of this size takes about a gigabyte.
constexpr size_t kLayersMostTasks = 10'000'000;
// Members whose GPU time differs by no more than this factor are taken for alike.
constexpr double kAlike = 2;

class Layers {
 public:
  Layers(const Params& params, Editor& edit)
      : params_(params), edit_(edit), families_(edit.graph()) {}

  absl::Status Run() {
    DD_RETURN_IF_ERROR(FindFamily());
    if (family_ == nullptr) return absl::OkStatus();
    DD_RETURN_IF_ERROR(FindCount());
    Collect();
    DD_RETURN_IF_ERROR(CheckAskedOnce());
    TellMemory();
    CompareMembers();
    const size_t now = family_->numbers.size();
    if (count_ < now) {
      edit_.BeginCause(fmt::format("fewer layers of {}", family_->name));
      for (const auto& [part, tasks] : parts_) {
        if (part.member >= static_cast<int>(count_)) edit_.Remove(tasks);
      }
    } else if (count_ > now) {
      DD_RETURN_IF_ERROR(Repeat());
    }
    ScaleUpdates(1 + params_["parameters"] *
                         (static_cast<double>(count_) / static_cast<double>(now) - 1));
    edit_.changes().notes.push_back(
        fmt::format("{}: {} layers instead of {}", family_->name, count_, now));
    return absl::OkStatus();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }

  absl::Status FindFamily() {
    const std::string_view wanted = params_.text("family");
    const int f = wanted.empty() ? 0 : families_.Find(wanted);
    if (f >= 0 && static_cast<size_t>(f) < families_.all().size()) {
      index_ = static_cast<size_t>(f);
      family_ = &families_.all()[index_];
      return absl::OkStatus();
    }
    if (wanted.empty()) {
      edit_.changes().notes.push_back(
          "no layers with numbers in this trace: record them with with_modules=True or daydream "
          "trace");
      return absl::OkStatus();
    }
    std::vector<std::string_view> names;
    for (const LayerFamily& known : families_.all()) {
      if (names.size() < 8) names.push_back(known.name);
    }
    return MakeStatus(
        absl::StatusCode::kInvalidArgument,
        {.code = "E0618",
         .what = fmt::format("layers: no repeated layers are called '{}'", wanted),
         .why = names.empty() ? std::string("this trace has none")
                              : fmt::format("this trace has {}", fmt::join(names, ", ")),
         .fix = "--opt 'layers(x2)' takes those with most GPU time"});
  }

  absl::Status FindCount() {
    const auto wanted = ParseQuantity(params_.text("size"));
    const auto now = static_cast<double>(family_->numbers.size());
    double count = 0;
    if (wanted.ok() && wanted->unit == Unit::kFactor) count = std::round(wanted->value * now);
    if (wanted.ok() && wanted->unit == Unit::kNone) count = std::round(wanted->value);
    if (!(count >= 1 && count <= 100'000)) {
      return MakeStatus(
          absl::StatusCode::kInvalidArgument,
          {.code = "E0616",
           .what = fmt::format("layers: '{}' is no number of layers", params_.text("size")),
           .why = fmt::format("{} has {} of them; at least one stays", family_->name, now),
           .fix = "--opt 'layers(48)' or --opt 'layers(x2)'"});
    }
    count_ = static_cast<size_t>(count);
    return absl::OkStatus();
  }

  // Members that were repeated are no longer told from their repetitions. Other copies are of whole
  // passes, and of work outside of the family, too.
  absl::Status CheckAskedOnce() const {
    std::vector<bool> of_passes(std::numeric_limits<uint16_t>::max() + 1, false);
    of_passes[0] = true;  // recorded
    for (const Task& task : graph().tasks()) {
      if (families_.MemberOf(index_, task.layer) < 0) of_passes[task.copy] = true;
    }
    const bool repeated = std::ranges::any_of(parts_, [&](const auto& part) {
      return std::ranges::any_of(part.second,
                                 [&](TaskId t) { return !of_passes[graph().task(t).copy]; });
    });
    if (!repeated) return absl::OkStatus();
    return MakeStatus(
        absl::StatusCode::kInvalidArgument,
        {.code = "E0616",
         .what = fmt::format("layers: {} was repeated before in this scenario", family_->name),
         .why = "which of them would go is not known",
         .fix = fmt::format("say once how many there are in the end: --opt 'layers({})'", count_)});
  }

  // What belongs together on every lane: a member in one direction of one step.
  struct Part {
    uint16_t step = 0;
    Phase phase = Phase::kNone;
    int member = 0;
    friend auto operator<=>(const Part&, const Part&) = default;
  };

  void Collect() {
    for (size_t i = 0; i < graph().size(); ++i) {
      const TaskId t(i);
      const Task& task = graph().task(t);
      if (task.removed) continue;
      // A delay belongs to what it delays.
      const TaskId of =
          task.kind == TaskKind::kDelay && task.lane_next.valid() ? task.lane_next : t;
      const int member = families_.MemberOf(index_, graph().task(of).layer);
      if (member < 0) continue;
      parts_[{graph().task(of).step, graph().task(of).phase, member}].push_back(t);
    }
  }

  // Which members are repeated or removed matters where they are not alike.
  void CompareMembers() {
    if (count_ == family_->numbers.size()) return;
    std::vector<Duration> gpu(family_->numbers.size());
    for (const auto& [part, tasks] : parts_) {
      for (TaskId t : tasks) {
        if (IsGpu(graph().task(t).kind)) {
          gpu[static_cast<size_t>(part.member)] += graph().task(t).duration;
        }
      }
    }
    const auto [least, most] = std::minmax_element(gpu.begin(), gpu.end());
    if (*most <= least->Scaled(kAlike)) return;
    edit_.changes().warnings.push_back(fmt::format(
        "layers of {} are not alike, from {:.1f} to {:.1f} ms of GPU work: which of them come or "
        "go decides the answer, and layers of other sizes would be another model",
        family_->name, least->ms(), most->ms()));
  }

  absl::Status Repeat() {
    edit_.BeginCause(fmt::format("more layers of {}", family_->name));
    std::vector<CopyOrder> orders;
    size_t tasks = 0;
    for (auto& [part, members] : parts_) {
      const auto m = static_cast<size_t>(part.member);
      const size_t times = TimesOf(m) - 1;
      if (times == 0) continue;
      tasks += times * members.size();
      orders.push_back({.tasks = members, .times = static_cast<int>(times)});
    }
    if (tasks > kLayersMostTasks) {
      return MakeStatus(absl::StatusCode::kInvalidArgument,
                        {.code = "E0617",
                         .what = fmt::format("layers: {} layers make a graph of {} million tasks",
                                             count_, tasks / 1'000'000),
                         .why = "every layer is played task by task",
                         .fix = "fewer layers: times grow evenly from some number on"});
    }
    CopyParts(edit_, orders, CopyPlace::kAfter);
    return absl::OkStatus();
  }

  // How many there are of a member in the end.
  size_t TimesOf(size_t member) const {
    const size_t now = family_->numbers.size();
    if (count_ < now) return member < count_ ? 1 : 0;
    return count_ / now + (member < count_ % now ? 1 : 0);
  }

  // What members keep for backward, and parameters with all that there is one of for each.
  void TellMemory() {
    std::vector<MemoryChange>& memory = edit_.changes().memory;
    memory.push_back({.what = "what layers keep for backward", .kept = true});
    const double growth =
        params_["parameters"] *
        (static_cast<double>(count_) / static_cast<double>(family_->numbers.size()) - 1);
    memory.push_back(ChangeOfParameters(ProfileMemory(graph()), growth));
    edit_.model_changes().parameter_growth *= 1 + growth;
  }

  // The optimizer and the exchange of gradients follow the number of parameters.
  void ScaleUpdates(double factor) {
    edit_.BeginCause("the optimizer has other parameters");
    std::vector<TaskId> updates, gradients;
    for (size_t i = 0; i < edit_.recorded_tasks(); ++i) {
      const TaskId t(i);
      const Task& task = graph().task(t);
      if (task.removed || families_.MemberOf(index_, task.layer) >= 0) continue;
      if (task.kind == TaskKind::kCollective) {
        gradients.push_back(t);
      } else if (task.phase == Phase::kOptimizer && task.kind != TaskKind::kWait &&
                 task.kind != TaskKind::kDelay) {
        updates.push_back(t);
      }
    }
    edit_.Scale(updates, factor);
    if (updates.empty() && gradients.empty() && count_ == family_->numbers.size()) {
      for (const auto& [part, tasks] : parts_) edit_.Scale(tasks, 1);
    }
    for (TaskId t : gradients) {
      const Duration transfer = graph().Transfer(t), then = transfer.Scaled(factor);
      edit_.SetDuration(t, graph().task(t).duration - transfer + then);
      edit_.SetTransfer(t, then);
    }
  }

  const Params& params_;
  Editor& edit_;
  LayerFamilies families_;
  size_t index_ = 0;
  const LayerFamily* family_ = nullptr;
  size_t count_ = 0;
  std::map<Part, std::vector<TaskId>> parts_;
};

absl::Status RunLayers(const Params& params, Editor& edit) { return Layers(params, edit).Run(); }

}  // namespace

constinit const Transform kLayers = {
    .name = "layers",
    .summary = "A deeper or shallower model: repeated layers come or go",
    .params = kLayersParams,
    .apply = &RunLayers,
    .model =
        "Layers whose names differ by their number are a family. More of them: members are "
        "repeated one after the other, each behind itself in forward and in backward, with their "
        "host work, their GPU work and the dependencies inside. Fewer: the last ones go. Kernels "
        "and host time of the optimizer and the transfer of collectives follow the share of "
        "parameters.",
    .ignores =
        "Work that the trace gives no layer, launches that a larger optimizer adds, memory that "
        "runs out. Collectives inside of a layer are repeated with it.",
    .sources = "follows from the graph; shares of parameters from published model configurations",
    .twice = "",
    .memory_model =
        "What the members of the family keep for backward comes or goes with them; parameters, "
        "their gradients and the optimizer's state follow the share `parameters`.",
};

}  // namespace daydream
