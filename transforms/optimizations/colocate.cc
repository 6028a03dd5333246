// colocate: puts a second recorded program on the same GPU (transforms/edits/neighbour.h).
#include <algorithm>
#include <cmath>

#include "graph/build.h"
#include "graph/repeat.h"
#include "trace/importer.h"
#include "transforms/analysis/kernel_share.h"
#include "transforms/analysis/memory_profile.h"
#include "transforms/analysis/precision.h"
#include "transforms/core/transform.h"
#include "transforms/edits/neighbour.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

// The other program has to keep going for as long as this one is looked at, also when both slow
// down to half their speed.
constexpr double kLonger = 2.5;
constexpr size_t kColocateMostTasks = 20'000'000;

constexpr std::string_view kPolicies[] = {"time", "space"};
constexpr ParamSpec kColocateParams[] = {
    {.name = "other",
     .unit = Unit::kText,
     .help = "trace of the other program, recorded alone on the same GPU",
     .source = "chosen by the user",
     .required = true},
    {.name = "policy",
     .unit = Unit::kText,
     .text_fallback = "time",
     .choices = kPolicies,
     .help = "time = the driver's slices, one program at a time; space = MPS, side by side",
     .source = "CUDA documentation, Multi-Process Service: without it, work of different processes "
               "never runs at once"},
    kSaturationParam,
};

Duration SpanOf(const Graph& graph) {
  Instant first{INT64_MAX}, last;
  for (const Task& t : graph.tasks()) {
    if (t.removed) continue;
    first = std::min(first, t.recorded_start);
    last = std::max(last, t.recorded_start + t.duration);
  }
  return last < first ? Duration{} : last - first;
}

absl::Status Refuse(std::string what, std::string why, std::string fix) {
  return MakeStatus(
      absl::StatusCode::kFailedPrecondition,
      {.code = "E0812", .what = std::move(what), .why = std::move(why), .fix = std::move(fix)});
}

absl::Status RunColocate(const Params& params, Editor& edit) {
  if (edit.graph().steps().size() < 2) {
    return Refuse("colocate: this trace has one step",
                  "beside another program the time from step to step counts",
                  "record more steps, or ask daydream colocate, which repeats the step");
  }
  DD_ASSIGN_OR_RETURN(auto trace, ImportFile(std::string(params.text("other"))));
  DD_ASSIGN_OR_RETURN(BuiltGraph other, BuildGraph(trace));
  DD_RETURN_IF_ERROR(CheckSameGpu(edit.graph(), other.graph));
  const uint16_t step = TypicalStep(other.graph);
  const Duration period = RecordedPeriod(other.graph, step);
  if (period <= Duration{}) {
    return Refuse("colocate: the steps of the other program take no time",
                  "it is played over and over beside this one", "record it with GPU work");
  }
  const double times = std::ceil(kLonger * SpanOf(edit.graph()).seconds() / period.seconds()) + 1;
  const auto tasks = static_cast<double>(other.graph.size());
  if (times > kMostCopies ||
      times * tasks / std::max<size_t>(other.graph.steps().size(), 1) > kColocateMostTasks) {
    return Refuse("colocate: the other program's steps are too short beside this one's",
                  fmt::format("{:.0f} of them would have to be played", times),
                  "record fewer steps of this program");
  }
  DD_ASSIGN_OR_RETURN(Graph guest, RepeatStep(other.graph, step, static_cast<int>(times)));
  edit.BeginCause("another program has the GPU at times");
  AddProgram(edit, guest);
  const GpuPolicy policy = params.text("policy") == "space" ? GpuPolicy::kSpace : GpuPolicy::kTime;
  const Turns turns = TakeTurns(edit, policy, {.saturation = params["saturation"]});
  const MemoryProfile theirs = ProfileMemory(other.graph);
  edit.changes().memory.push_back({.what = "the other program's own peak",
                                   .bytes = std::llround(theirs.peak),
                                   .estimate = theirs.estimate() || theirs.at_least,
                                   .unknown = !theirs.known()});
  edit.changes().notes.push_back(fmt::format(
      "the other program plays its step of {:.1f} ms over and over; daydream colocate shows both",
      period.ms()));
  edit.changes().notes.push_back(
      fmt::format("kernels keep others away for {:.0f} % of their time",
                  turns.time.ns > 0 ? 100 * turns.kept.seconds() / turns.time.seconds() : 0.0));
  return absl::OkStatus();
}

}  // namespace

constinit const Transform kColocate = {
    .name = "colocate",
    .summary = "Another recorded program runs on the same GPU",
    .params = kColocateParams,
    .apply = &RunColocate,
    .model =
        "The other program plays its typical step over and over, with processors of its own. "
        "Kernels of both take turns on the GPU, whatever is ready first. By time, a kernel keeps "
        "others away for as long as it runs: nothing of two processes runs at once. In space, for "
        "the part of the GPU that it uses times its duration: the multiprocessors that its grid "
        "needs to be as fast, or its share of the memory bandwidth, whichever is more. So kernels "
        "that fill the GPU take turns, small ones overlap, and a program alone runs as recorded.",
    .ignores =
        "The length of the driver's time slices (whole kernels take turns, so that programs with "
        "long kernels get more) and the cost of a switch; caches; a kernel bound by arithmetic "
        "beside one bound by memory; copies, collectives and the host, which do not share.",
    .sources =
        "CUDA documentation, Multi-Process Service; Dhakal et al. (arXiv 2008.03602) and D-STACK "
        "(arXiv 2304.13541) for what part of a GPU a kernel needs",
    .advice = {.effort = "1 command",
               .risk = "memory",
               .how = "start both; for space nvidia-cuda-mps-control -d first"},
    .memory = MemoryEffect::kAdds,
    .memory_model = "The other program's own peak, as its trace tells it: both have to fit.",
};

}  // namespace daydream
