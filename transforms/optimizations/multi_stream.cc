// multi-stream: spreads independent kernels of a stream over several (Nimble's assignment,
// transforms/analysis/stream_assignment.h), which then share the GPU.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/median.h"
#include "graph/call_kind.h"
#include "transforms/analysis/kernel_units.h"
#include "transforms/analysis/precision.h"
#include "transforms/analysis/saved_tensors.h"
#include "transforms/analysis/shared_schedule.h"
#include "transforms/core/transform.h"
#include "transforms/edits/inserted_kernel.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

constexpr ParamSpec kMultiStreamParams[] = {
    {.name = "streams",
     .unit = Unit::kNone,
     .fallback = 4,
     .max = 128,
     .help = "streams in place of one; 0 = as many as there is independent work for",
     .source = "chosen by the user. Nimble uses as many as its assignment asks for; a GPU runs up "
               "to 128 kernels at once (CUDA C++ Programming Guide, from compute capability 7.0)",
     .whole = true},
    {.name = "latency",
     .unit = Unit::kDuration,
     .fallback = 1500,
     .low = 500,
     .high = 5000,
     .max = 1e6,
     .help = "from the end of a kernel to the start of one on another stream that waits for it",
     .source = "design estimate, not measured; a replayed graph has about the gap of `graphs`"},
    {.name = "call",
     .unit = Unit::kDuration,
     .fallback = 1500,
     .low = 1000,
     .high = 4000,
     .max = 1e6,
     .help = "host time of recording an event or of making a stream wait for it; none in a graph",
     .source = "calls of this trace, if it has any, else a design estimate, not measured"},
};

class MultiStream {
 public:
  MultiStream(const Params& params, Editor& edit)
      : params_(params), edit_(edit), units_(edit), shapes_(edit.graph()) {}

  absl::Status Run() {
    MeasureCalls();
    for (size_t lane = 0, lanes = graph().lanes().size(); lane < lanes; ++lane) {
      if (graph().lanes()[lane].lane.kind == LaneKind::kStream) Spread(LaneId(lane));
    }
    TellMultiStream();
    return absl::OkStatus();
  }

 private:
  struct Tally {
    size_t independent = 0;       // chains beside the first
    size_t spread = 0, kept = 0;  // windows
    size_t streams = 0, joins = 0;
    size_t shapeless = 0, shared = 0;  // kernels
    Duration stretched;
    double beside = 0;  // bytes
  };

  const Graph& graph() const { return edit_.graph(); }

  void MeasureCalls() {
    std::vector<Duration> calls;
    for (const Task& task : graph().tasks()) {
      if (task.kind != TaskKind::kCall || task.removed) continue;
      const CallKind kind = ClassifyCall(graph().Name(task.name));
      if (kind == CallKind::kEventRecord || kind == CallKind::kStreamWait) {
        calls.push_back(task.duration);
      }
    }
    call_ = Duration::FromDouble(params_["call"]);
    if (calls.empty() || params_.given("call")) return;
    call_ = Median(calls);
  }

  void Spread(LaneId lane) {
    const std::vector<KernelUnit> units = units_.Of(lane);
    if (units.empty()) return;
    const std::vector<bool> lost = units_.LostBehind(units);
    const DeviceSpec* known = DeviceOf(graph(), units.front().kernel).spec;
    device_ = known != nullptr ? *known : DeviceSpec{};
    for (size_t begin = 0; begin < units.size();) {
      size_t end = begin;
      while (end < units.size() && units[end].access) ++end;
      if (end - begin > 1) SpreadWindow(lane, units, begin, end, lost[end - 1]);
      begin = end + 1;
    }
  }

  Duration LengthOf(const KernelUnit& unit) const {
    Duration length;
    for (TaskId t : unit.tasks) length += graph().task(t).duration + graph().task(t).gap;
    return std::max(length, Duration{});
  }

  std::optional<double> ShareOf(TaskId kernel) const {
    const KernelDetail* detail = graph().Kernel(kernel);
    if (detail == nullptr) return std::nullopt;
    return SmShare(device_, *detail);
  }

  bool IsCaptured(TaskId call) const {
    const auto launched = edit_.LaunchedBy(call);
    return std::count_if(launched.begin(), launched.end(),
                         [&](TaskId t) { return IsGpu(graph().task(t).kind); }) > 1;
  }

  // A stream waits for another one.
  struct Meeting {
    uint32_t from, to;  // of the window
  };

  // Waits of one stream for another that do not follow from earlier ones.
  std::vector<Meeting> Meetings(const StreamAssignment& assignment,
                                const std::vector<uint32_t>& stream) const {
    std::vector<Meeting> all;
    for (const auto& [a, b] : assignment.needed) {
      if (stream[a] != stream[b]) all.push_back({a, b});
    }
    std::sort(all.begin(), all.end(), [](const Meeting& x, const Meeting& y) {
      return std::pair(x.to, y.from) < std::pair(y.to, x.from);  // latest origin first
    });
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> reached;  // (to, from stream) -> work
    std::vector<Meeting> kept;
    for (const Meeting& m : all) {
      auto [seen, fresh] = reached.try_emplace({stream[m.to], stream[m.from]}, m.from);
      if (!fresh && seen->second >= m.from) continue;
      seen->second = m.from;
      kept.push_back(m);
    }
    return kept;
  }

  void SpreadWindow(LaneId lane, const std::vector<KernelUnit>& units, size_t begin, size_t end,
                    bool lost) {
    const std::span<const KernelUnit> work = std::span(units).subspan(begin, end - begin);
    const WorkDag dag = units_.Dependencies(work);
    if (dag.edges.size() + 1 == work.size() &&
        std::all_of(dag.edges.begin(), dag.edges.end(),
                    [](const auto& e) { return e.first + 1 == e.second; })) {
      return;  // one after the other
    }
    const StreamAssignment assignment = AssignChains(dag);
    std::vector<int64_t> cost;
    for (const KernelUnit& u : work) cost.push_back(LengthOf(u).ns);
    const auto limit = static_cast<uint32_t>(params_["streams"]);
    const std::vector<uint32_t> stream = FoldChains(dag, assignment, cost, limit);
    const std::vector<Meeting> meetings = Meetings(assignment, stream);
    const KernelUnit* before = begin > 0 ? &units[begin - 1] : nullptr;
    const std::vector<SharedTime> times =
        lost ? std::vector<SharedTime>() : Gain(work, stream, meetings, before);
    tally_.independent += assignment.chains - 1;
    if (times.empty()) {
      ++tally_.kept;
      return;
    }
    ++tally_.spread;
    const KernelUnit* after = end < units.size() ? &units[end] : nullptr;
    Apply(lane, work, stream, meetings, times, before, after);
  }

  // Times on several streams, empty when they are no better than those on one. Both without other
  // streams, launched as recorded.
  std::vector<SharedTime> Gain(std::span<const KernelUnit> work,
                               const std::vector<uint32_t>& stream,
                               const std::vector<Meeting>& meetings,
                               const KernelUnit* before) const {
    const Task& first = graph().task(before != nullptr ? before->kernel : work.front().kernel);
    const Instant base = first.recorded_start + (before != nullptr ? first.duration : Duration{});
    const Duration latency = Duration::FromDouble(params_["latency"]);
    std::vector<SharedWork> one, many;
    std::set<uint32_t> begun;  // streams
    Duration calls;            // host time added so far
    size_t m = 0;
    for (uint32_t i = 0; i < work.size(); ++i) {
      const TaskId call = edit_.LaunchOf(work[i].kernel);
      const Task& launch = graph().task(call);
      const Duration ready = launch.recorded_start + launch.duration - base;
      one.push_back({.duration = LengthOf(work[i]), .ready = std::max(ready, Duration{})});
      many.push_back(one.back());
      many.back().share = ShareOf(work[i].kernel).value_or(0);
      many.back().stream = stream[i];
      const Duration calls_of_one = IsCaptured(call) ? Duration{} : call_ * 2;
      for (; m < meetings.size() && meetings[m].to == i; ++m) {
        many.back().needs.push_back(meetings[m].from);
        calls += calls_of_one;
      }
      const bool waits_first = begun.insert(stream[i]).second && stream[i] != 0 &&
                               many.back().needs.empty() && before != nullptr;
      if (waits_first) calls += calls_of_one;
      many.back().ready = std::max(ready + calls, waits_first ? latency : Duration{});
    }
    const std::vector<SharedTime> alone = ScheduleShared(one, latency);
    std::vector<SharedTime> times = ScheduleShared(many, latency);
    Duration end_of_many;
    for (uint32_t i = 0; i < work.size(); ++i) {
      end_of_many = std::max(end_of_many, times[i].end + (stream[i] == 0 ? Duration{} : latency));
    }
    // Where the GPU waits for launches, the host is late afterwards by the calls that are added.
    Duration busy;
    for (const SharedWork& w : one) busy += w.duration;
    if (busy < alone.back().end) end_of_many += calls;
    if (end_of_many >= alone.back().end) return {};
    return times;
  }

  void Apply(LaneId lane, std::span<const KernelUnit> work, const std::vector<uint32_t>& stream,
             const std::vector<Meeting>& meetings, const std::vector<SharedTime>& times,
             const KernelUnit* before, const KernelUnit* after) {
    edit_.BeginCause("kernels run beside each other");
    for (size_t i = 0; i < work.size(); ++i) {
      if (stream[i] == 0) continue;
      const LaneId to = StreamOf(lane, stream[i]);
      for (TaskId t : work[i].tasks) edit_.Move(t, to, graph().lane(to).last);
    }
    HoldLonger(work, stream);
    std::vector<bool> waits(work.size()), awaited(work.size());
    for (const Meeting& m : meetings) {
      awaited[m.from] = waits[m.to] = true;
      Join(work[m.from], work[m.to]);
    }
    // Streams begin after what came before the window and end before what comes after it.
    std::map<uint32_t, std::pair<size_t, size_t>> ends;
    for (size_t i = 0; i < work.size(); ++i) {
      auto [it, fresh] = ends.try_emplace(stream[i], i, i);
      it->second.second = i;
    }
    for (const auto& [s, span] : ends) {
      if (s == 0) continue;
      const auto& [head, tail] = span;
      if (before != nullptr && !waits[head]) Join(*before, work[head]);
      if (after != nullptr && !awaited[tail]) Join(work[tail], *after);
    }
    edit_.BeginCause("kernels share the multiprocessors");
    for (size_t i = 0; i < work.size(); ++i) {
      if (!ShareOf(work[i].kernel)) ++tally_.shapeless;
      const Duration more = times[i].end - times[i].start - LengthOf(work[i]);
      if (more <= Duration::Ns(1)) continue;  // rounding
      edit_.SetDuration(work[i].kernel, graph().task(work[i].kernel).duration + more);
      ++tally_.shared;
      tally_.stretched += more;
    }
    tally_.streams = std::max<size_t>(tally_.streams, ends.size());
  }

  // On one stream a kernel may get the memory that the kernel before it frees. Each further stream
  // holds the tensor of one kernel longer, at most the largest.
  void HoldLonger(std::span<const KernelUnit> work, const std::vector<uint32_t>& stream) {
    std::map<uint32_t, double> largest;
    for (size_t i = 0; i < work.size(); ++i) {
      if (stream[i] == 0) continue;
      const OpShape& shape = shapes_.Of(work[i].kernel);
      largest[stream[i]] = std::max(largest[stream[i]], WorkedOn(shape) * DTypeBytes(shape.dtype));
    }
    double sum = 0;
    for (const auto& [s, bytes] : largest) sum += bytes;
    tally_.beside = std::max(tally_.beside, sum);
  }

  void Join(const KernelUnit& from, const KernelUnit& to) {
    edit_.BeginCause("kernels run beside each other");
    edit_.AddEdge(from.tasks.back(), to.tasks.front(), Duration::FromDouble(params_["latency"]),
                  Rule::kEventWait);
    ++tally_.joins;
    edit_.BeginCause("calls that join streams");
    AddCall(edit_.LaunchOf(from.kernel), "cudaEventRecord", /*behind=*/true);
    AddCall(edit_.LaunchOf(to.kernel), "cudaStreamWaitEvent", /*behind=*/false);
  }

  void AddCall(TaskId launch, std::string_view name, bool behind) {
    if (!launch.valid() || IsCaptured(launch) || graph().task(launch).removed) return;
    const Task call = CallBeside(graph().task(launch), edit_.graph().AddName(name), call_);
    if (behind) {
      edit_.InsertAfter(launch, call);
    } else {
      edit_.InsertBefore(launch, call);
    }
  }

  LaneId StreamOf(LaneId lane, uint32_t stream) {
    auto [it, fresh] = lanes_.try_emplace({lane, stream}, LaneId::None());
    if (fresh) {
      const std::string_view name = graph().Name(graph().lane(lane).lane.name);
      it->second = edit_.NewStream(fmt::format("{}, {} of several", name, stream + 1), lane);
    }
    return it->second;
  }

  void TellMultiStream() {
    auto& changes = edit_.changes();
    const size_t known = units_.known(), all = known + units_.unknown();
    changes.notes.push_back(
        fmt::format("of {} GPU operations the recorded shapes tell what {} read and write; the "
                    "others stay in order{}",
                    all, known, known == 0 ? " (record with record_shapes=True)" : ""));
    if (tally_.spread == 0) {
      changes.notes.push_back(
          tally_.independent == 0
              ? "no two kernels are seen to be independent"
              : fmt::format("{} runs have independent kernels, but would not end "
                            "earlier on several streams: the host launches too late, "
                            "or the kernels fill the GPU",
                            tally_.kept));
      return;
    }
    changes.notes.push_back(fmt::format(
        "{} runs of kernels on up to {} streams with {} synchronizations; {} more would gain "
        "nothing and stay",
        tally_.spread, tally_.streams, tally_.joins, tally_.kept));
    if (tally_.shared > 0) {
      changes.notes.push_back(
          fmt::format("{} kernels get slower beside others, by {:.2f} ms in all", tally_.shared,
                      tally_.stretched.ms()));
    }
    changes.memory.push_back({.what = "a stream does not wait for memory that another one frees",
                              .bytes = std::llround(tally_.beside),
                              .estimate = true});
    if (tally_.shapeless > 0) {
      changes.bound = true;
      changes.warnings.push_back(fmt::format(
          "an upper bound of the gain: {} kernels have no launch shape, or their GPU is not "
          "known, and are taken to leave all of it to others",
          tally_.shapeless));
    }
  }

  const Params& params_;
  Editor& edit_;
  KernelUnits units_;
  OpShapes shapes_;
  Duration call_;
  DeviceSpec device_;  // of the stream at hand; without multiprocessors when it is not known
  std::map<std::pair<LaneId, uint32_t>, LaneId> lanes_;
  Tally tally_;
};

absl::Status RunMultiStream(const Params& params, Editor& edit) {
  return MultiStream(params, edit).Run();
}

}  // namespace

constinit const Transform kMultiStream = {
    .name = "multi-stream",
    .summary = "Independent kernels of a stream run on several streams",
    .params = kMultiStreamParams,
    .apply = &RunMultiStream,
    .model =
        "Kernels of a step are split into chains as Nimble does: what needs what, without what "
        "follows from the rest (transitive reduction), then a maximum matching, so that everything "
        "independent is on different streams with the fewest synchronizations. A kernel needs an "
        "earlier one of its stream unless recorded shapes show that it does not: an op reads "
        "nothing of the size of the other's result, neither changes what the other reads, and no "
        "data dependency (`--et`) joins them; the two halves of a convolution's backward pass are "
        "independent, too. Kernels of unknown ops, copies, collectives and whatever something else "
        "waits for stay in order. Each wait of one stream for another takes `latency` and, outside "
        "of a graph, two calls of the host. Kernels side by side are slowed so that their shares "
        "of the multiprocessors (blocks of their launch shape against the blocks that fit at once) "
        "sum to 1 at most, in a schedule of the GPU with the launches as recorded. Runs of kernels "
        "that would not end earlier stay on one stream, and so do those whose gain a later kernel "
        "loses that waits for its launch, before the host waits for the GPU.",
    .ignores =
        "Memory bandwidth and caches that kernels share, priorities, and the order in which the "
        "GPU hands out blocks. Without launch shapes the answer is an upper bound of the gain.",
    .sources =
        "Nimble (NeurIPS'20), section 4.2, automatic multi-stream execution; occupancy: "
        "CUDA C++ Programming Guide, technical specifications by compute capability",
    .advice = {.effort = "~100 lines",
               .risk = "races, more memory",
               .how = "with torch.cuda.stream(side): ... around the independent branch, "
                      "side.wait_stream() before and after"},
    .twice = "the kernels have their streams already",
    .memory = MemoryEffect::kAdds,
    .memory_model =
        "Each further stream holds the tensor of one kernel longer, since a stream cannot use "
        "memory that another one frees before the two meet: the largest that a kernel there "
        "works on.",
};

}  // namespace daydream
