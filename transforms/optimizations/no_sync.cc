// no-sync: reads of values that are only logged no longer stop the host.
#include <algorithm>
#include <map>
#include <set>

#include "graph/call_kind.h"
#include "graph/device_waits.h"
#include "transforms/analysis/gpu_waits.h"
#include "transforms/analysis/host_calls.h"
#include "transforms/core/select.h"
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

// Places that a note names before it sums up the others.
constexpr size_t kMostSites = 3;
// n streams that meet two by two have n * n edges, in one place 2 n.
constexpr size_t kMostPairwise = 16;

constexpr ParamSpec kNoSyncParams[] = {
    {.name = "select",
     .unit = Unit::kText,
     .help = "which waits go, such as op:aten::item or call:DeviceSynchronize; without: reads and "
             "synchronizations by which nothing is seen to be decided",
     .source = "chosen by the user"},
};

class NoSync {
 public:
  NoSync(const Params& params, Editor& edit) : params_(params), edit_(edit), uses_(edit.graph()) {}

  absl::Status Run() {
    gone_.assign(graph().size(), false);
    launches_ = FindLaunches(graph());
    if (params_.given("select")) {
      DD_ASSIGN_OR_RETURN(Selector selector, Selector::Compile(params_.text("select")));
      for (TaskId t : selector.Select(graph())) Take(t, /*chosen=*/true);
    } else {
      for (size_t i = 0; i < graph().size(); ++i) Take(TaskId(i), /*chosen=*/false);
    }
    Remove();
    TellNoSync();
    return absl::OkStatus();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }

  // Work of a stream that was awaited last, and what was launched behind that first: None where
  // nothing was.
  struct Met {
    TaskId work, next;
  };
  // Where many streams meet, by the thread that waited.
  struct Meeting {
    LaneId lane;
    TaskId place;                                    // the last
    std::vector<Met> met;                            // by lane
    std::set<std::pair<uint32_t, LaneId>> launches;  // of each `next`, by the place on the thread
  };

  static bool OnlyForLogging(WaitUse use) { return use == WaitUse::kRead || use == WaitUse::kSync; }

  // A copy that waits is a call and a waiting part of the same name; either names both.
  TaskId WaitOf(TaskId t) const {
    if (uses_.UseOf(t) != WaitUse::kNone) return t;
    return graph().task(t).kind == TaskKind::kCall ? OwnWait(graph(), t) : TaskId::None();
  }

  void Take(TaskId t, bool chosen) {
    TaskId wait = WaitOf(t);
    if (!wait.valid() || gone_[wait.index()]) return;
    WaitUse use = uses_.UseOf(wait);
    if (use == WaitUse::kNone) return;
    // Memory that is given back has to be idle, ranks have to meet, and a batch has to be there.
    bool can_go = use == WaitUse::kSteers || use == WaitUse::kToDevice || use == WaitUse::kData ||
                  OnlyForLogging(use);
    const bool at_end = use == WaitUse::kSync && AtAnEnd(wait);
    if (can_go && (chosen || (OnlyForLogging(use) && !at_end))) {
      gone_[wait.index()] = true;
      return;
    }
    if (!chosen && wait != t) return;  // counted when its own turn comes
    TaskId call = graph().task(wait).kind == TaskKind::kWait && graph().task(wait).lane_prev.valid()
                      ? graph().task(wait).lane_prev
                      : wait;
    const std::string_view why =
        at_end ? "at an end of the recording, as profilers and benchmarks make it"
               : WaitUseName(use);
    kept_.Add(graph(), wait, fmt::format("{}, {}", SiteOf(graph(), wait), why),
              RecordedHostTime(graph(), call));
  }

  // Nothing shows that the program itself has such a wait: between two steps it would lie between
  // launches.
  bool AtAnEnd(TaskId wait) const { return !launches_.Around(graph().task(wait).recorded_start); }

  // Streams that met in a wait of the host meet without it: what runs on one of them afterwards may
  // need what ran on the others, and nothing else keeps them from drifting apart.
  void KeepMeetings() {
    std::vector<std::pair<TaskId, TaskId>> meetings;
    VisitWaits(graph(), [&](TaskId wait, AwaitedWork& awaited) {
      if (!gone_[wait.index()]) return;
      if (awaited.last.size() > kMostPairwise) return MeetInOnePlace(wait, awaited);
      if (awaited.last.size() == 1) return;
      for (const auto& [lane, a] : awaited.last) {
        Met& met = met_[{graph().task(wait).lane, lane}];
        Await(wait, a, met);
        const TaskId next = met.next;
        for (const auto& [other, b] : awaited.last) {
          if (next.valid() && other != lane) meetings.emplace_back(b, next);
        }
      }
    });
    for (auto& [thread, meeting] : meeting_) {
      for (const Met& met : meeting.met) StandBehind(meeting, met);
    }
    for (const auto& [from, to] : meetings) edit_.AddEdge(from, to);
    for (const auto& [next, place] : behind_) edit_.AddEdge(place, next);
  }

  // Many streams meet in a task that takes no time. It stands behind the earlier ones of its
  // thread, which know what streams without new work had done. Only streams with news are looked
  // at: those of others have what stands behind the last place.
  void MeetInOnePlace(TaskId wait, AwaitedWork& awaited) {
    const Task& host = graph().task(wait);
    auto [thread, fresh] = meeting_.try_emplace(host.lane);
    Meeting& meeting = thread->second;
    if (fresh) {
      meeting.lane = edit_.NewLane("meetings of streams", LaneKind::kChannel);
      meeting.met.resize(graph().lanes().size());
    }
    const TaskId place = edit_.Append({.recorded_start = host.recorded_start,
                                       .name = host.name,
                                       .lane = meeting.lane,
                                       .step = host.step,
                                       .kind = TaskKind::kDelay});
    std::ranges::sort(awaited.news);
    awaited.news.erase(std::unique(awaited.news.begin(), awaited.news.end()), awaited.news.end());
    for (const LaneId lane : awaited.news) {
      const TaskId work = awaited.last.at(lane);
      if (meeting.met[lane.index()].work == work) continue;
      edit_.AddEdge(work, place);
      FindNext(wait, meeting, lane, work);
    }
    awaited.news.clear();
    // What was launched behind an earlier wait and is behind this one, too, is still the first.
    while (!meeting.launches.empty() && meeting.launches.begin()->first <= place_[wait.index()]) {
      const LaneId lane = meeting.launches.begin()->second;
      FindNext(wait, meeting, lane, meeting.met[lane.index()].work);
    }
    meeting.place = place;
  }

  // Of a stream of which `work` is awaited now.
  void FindNext(TaskId wait, Meeting& meeting, LaneId lane, TaskId work) {
    Met& met = meeting.met[lane.index()];
    StandBehind(meeting, met);
    if (met.next.valid()) meeting.launches.erase({PlaceOfLaunch(met.next), lane});
    Await(wait, work, met);
    if (met.next.valid()) meeting.launches.emplace(PlaceOfLaunch(met.next), lane);
  }

  // The waits of a thread in turn. Nothing before what was launched behind an earlier one was
  // launched behind this one: who looks for it goes over a stream once.
  void Await(TaskId wait, TaskId work, Met& met) const {
    const bool later = met.work.valid() && place_[met.work.index()] <= place_[work.index()];
    met.work = work;
    if (later && !met.next.valid()) return;
    const bool ahead = later && place_[met.next.index()] > place_[work.index()];
    met.next = LaunchedBehind(wait, ahead ? graph().task(met.next).lane_prev : work);
  }

  void StandBehind(const Meeting& meeting, const Met& met) {
    if (met.next.valid()) behind_[met.next] = meeting.place;
  }

  uint32_t PlaceOfLaunch(TaskId work) const { return place_[edit_.LaunchOf(work).index()]; }

  // The first work behind `t` on its stream that was launched behind `wait` on its thread.
  TaskId LaunchedBehind(TaskId wait, TaskId t) const {
    for (t = graph().task(t).lane_next; t.valid(); t = graph().task(t).lane_next) {
      const TaskId call = edit_.LaunchOf(t);
      if (!call.valid() || graph().task(call).lane != graph().task(wait).lane) continue;
      if (place_[call.index()] > place_[wait.index()]) return t;
    }
    return TaskId::None();
  }

  void FindPlaces() {
    place_.assign(graph().size(), 0);
    for (const GraphLane& lane : graph().lanes()) {
      uint32_t place = 0;
      for (TaskId t = lane.first; t.valid(); t = graph().task(t).lane_next) {
        place_[t.index()] = ++place;
      }
    }
  }

  // The call of a copy that waits; none where a wait is for other work.
  TaskId CopyOf(TaskId wait) const {
    const Task& task = graph().task(wait);
    const TaskId call = task.kind == TaskKind::kWait ? task.lane_prev : wait;
    return call.valid() && !edit_.LaunchedBy(call).empty() ? call : TaskId::None();
  }

  // Where a wait for a copy goes.
  std::set<ScopeId> Readers() const {
    std::set<ScopeId> readers;
    for (size_t i = 0; i < gone_.size(); ++i) {
      const TaskId t(i);
      if (gone_[i] && CopyOf(t).valid()) readers.insert(graph().task(t).scope);
    }
    readers.erase(ScopeId::None());
    return readers;
  }

  void Remove() {
    edit_.BeginCause("the host does not wait for values to print");
    FindPlaces();
    KeepMeetings();
    for (const auto& [e, by] : EdgesPassedOn(graph(), [&](TaskId t) { return gone_[t.index()]; })) {
      edit_.AddEdge(e.from, e.to, e.lag, e.rule, e.from_anchor, e.to_anchor);
    }
    edit_.DropEdges([&](const Graph&, const Edge& e) {
      return e.rule == Rule::kHostWait && gone_[e.to.index()];
    });
    const std::set<ScopeId> readers = Readers();
    std::vector<TaskId> calls;
    for (size_t i = 0; i < gone_.size(); ++i) {
      if (!gone_[i]) continue;
      TaskId t(i);
      const Task& task = graph().task(t);
      const bool copies = !edit_.LaunchedBy(t).empty();
      TaskId call = task.kind == TaskKind::kWait && task.lane_prev.valid() ? task.lane_prev : t;
      std::string site = fmt::format("{}, {}", SiteOf(graph(), t), WaitUseName(uses_.UseOf(t)));
      const Duration time = RecordedHostTime(graph(), call);
      // A value that is read waits for its copy and once more behind it.
      const bool first = CopyOf(t).valid() || !readers.contains(task.scope);
      (uses_.UseOf(t) == WaitUse::kSteers ? steering_ : taken_)
          .Add(graph(), t, std::move(site), time, first);
      // The copy that brings the value stays, its call with it; so does what the program does next.
      if (!copies) calls.push_back(t);
    }
    edit_.RemoveButGap(calls);
  }

  static std::string Join(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += (text.empty() ? "" : "; ") + line;
    return text;
  }

  void TellNoSync() {
    auto& changes = edit_.changes();
    changes.places = taken_.size() + steering_.size();
    if (!kept_.empty()) {
      const std::vector<std::string> lines = kept_.Lines(graph(), kMostSites);
      changes.notes.push_back(lines.empty()
                                  ? "all that waits does so outside of the steps that count"
                                  : fmt::format("these keep waiting: {}", Join(lines)));
    }
    if (!taken_.empty()) {
      changes.conditions.push_back(
          fmt::format("right only if nothing is decided by their values: {}",
                      Join(taken_.Lines(graph(), kMostSites))));
    }
    if (!steering_.empty()) {
      changes.warnings.push_back(fmt::format(
          "these were selected although the program needs them to go on, so it is a limit, in a "
          "step: {}",
          Join(steering_.Lines(graph(), kMostSites))));
    }
    if (taken_.empty() && steering_.empty() && kept_.empty()) {
      changes.notes.push_back("the host does not wait for the GPU in this trace");
    }
  }

  const Params& params_;
  Editor& edit_;
  GpuWaits uses_;
  RecordedLaunches launches_;
  std::vector<bool> gone_;       // by task: a wait that goes
  std::vector<uint32_t> place_;  // by task: on its lane
  std::map<LaneId, Meeting> meeting_;
  std::map<std::pair<LaneId, LaneId>, Met> met_;  // where few meet, by thread and stream
  std::map<TaskId, TaskId> behind_;               // work and the last place that it comes behind
  SiteList kept_, taken_, steering_;
};

absl::Status RunNoSync(const Params& params, Editor& edit) { return NoSync(params, edit).Run(); }

}  // namespace

constinit const Transform kNoSync = {
    .name = "no-sync",
    .summary = "The host does not wait for values that are only logged",
    .params = kNoSyncParams,
    .apply = &RunNoSync,
    .model =
        "Reads of single values and synchronizations no longer wait for the GPU: their edges and "
        "the synchronizing calls are gone, copies of values to the host stay as asynchronous ones, "
        "to be looked at later. Streams for which one call waited go on waiting for each other. "
        "Reads inside of ops whose result has a size that depends on values (nonzero, unique, "
        "masked_select and the like), reads that branch (is_nonzero, equal), that size what ranks "
        "exchange (all_to_all), the check of a gradient scaler, waits that free memory, waits for "
        "other processes, blocking copies to the GPU and copies of more than 64 KiB to the host "
        "(pin-memory), the data loader and "
        "synchronizations before the first or behind the last launch of the recording, which "
        "profilers and benchmarks make, stay as they are. How far the host runs ahead then is "
        "limited by the launch queue and by the waits that are left.",
    .ignores =
        "What the program does with a value: Python code that decides by it cannot be seen in a "
        "trace. A prediction for those waits that really are for logging.",
    .sources =
        "PyTorch documentation, Performance Tuning Guide: avoid unnecessary CPU-GPU "
        "synchronization; CUDA C++ Programming Guide, implicit synchronization",
    .advice = {.effort = "1 line",
               .risk = "values are seen later",
               .how = "keep values on the GPU (loss.detach()) and read them once in many steps"},
    .twice = "the waits are gone already",
    .memory = MemoryEffect::kNone,
    .memory_model = "None: waits hold no memory on the GPU.",
};

}  // namespace daydream
