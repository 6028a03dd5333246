// Field numbers are those of perfetto's public protos (protos/perfetto/trace/, API stable).
#include "report/export/perfetto_trace.h"

#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "report/export/counters.h"
#include "report/export/proto_writer.h"
#include "report/lane_rows.h"
#include "report/summary.h"
#include "report/text/format.h"
#include "report/windows.h"
#include "simulator/critical_path.h"

namespace daydream {
namespace {

// Trace
constexpr int kPacket = 1;
// TracePacket
constexpr int kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11, kInterned = 12,
              kSequenceFlags = 13, kTrackDescriptor = 60;
constexpr uint64_t kStateCleared = 1, kNeedsState = 2;
// TrackDescriptor
constexpr int kUuid = 1, kTrackName = 2, kParent = 5, kCounter = 8, kChildOrdering = 11,
              kOrderRank = 12, kDescription = 14, kMergeBehavior = 15;
constexpr uint64_t kExplicitOrder = 3, kNeverMerge = 2;
// CounterDescriptor
constexpr int kUnit = 3;
constexpr uint64_t kUnitCount = 2, kUnitBytes = 3;
// TrackEvent
constexpr int kCategory = 3, kAnnotation = 4, kType = 9, kNameId = 10, kTrack = 11, kValue = 30,
              kFlow = 47;
constexpr uint64_t kSliceBegin = 1, kSliceEnd = 2, kCounterValue = 4;
// DebugAnnotation
constexpr int kAnnotationName = 1, kIntValue = 4, kStringId = 17;
// InternedData: EventCategory, EventName, DebugAnnotationName, InternedString, each {1: id, 2:
// text}.
constexpr int kCategories = 1, kEventNames = 2, kAnnotationNames = 3, kStrings = 29;

class PerfettoWriter {
 public:
  PerfettoWriter() {
    ProtoWriter packet;
    packet.Varint(kSequenceId, 1).Varint(kSequenceFlags, kStateCleared);
    trace_.Message(kPacket, packet);
  }

  uint64_t AddTrack(uint64_t parent, std::string_view name, std::string_view description,
                    uint64_t rank, const Counter* counter = nullptr) {
    ProtoWriter track, packet;
    track.Varint(kUuid, ++last_uuid_).Bytes(kTrackName, Printable(name));
    if (parent != 0) track.Varint(kParent, parent);
    track.Varint(kChildOrdering, kExplicitOrder).Varint(kOrderRank, rank);
    if (!description.empty()) track.Bytes(kDescription, Printable(description));
    track.Varint(kMergeBehavior, kNeverMerge);
    if (counter != nullptr) {
      ProtoWriter unit;
      unit.Varint(kUnit, counter->unit == Counter::Unit::kBytes ? kUnitBytes : kUnitCount);
      track.Message(kCounter, unit);
    }
    packet.Varint(kSequenceId, 1).Message(kTrackDescriptor, track);
    trace_.Message(kPacket, packet);
    return last_uuid_;
  }

  // Names are sent once, in the packet that first uses them.
  uint64_t Intern(int table, std::string_view name) {
    auto& ids = ids_[table];
    auto [it, is_new] = ids.try_emplace(std::string(name), ids.size() + 1);
    if (is_new) {
      ProtoWriter entry;
      entry.Varint(1, it->second).Bytes(2, Printable(name));
      pending_.Message(table, entry);
    }
    return it->second;
  }

  void Annotate(ProtoWriter& event, std::string_view name, int64_t value) {
    ProtoWriter note;
    note.Varint(kAnnotationName, Intern(kAnnotationNames, name));
    note.Varint(kIntValue, static_cast<uint64_t>(value));
    event.Message(kAnnotation, note);
  }
  void Annotate(ProtoWriter& event, std::string_view name, std::string_view value) {
    if (value.empty()) return;
    ProtoWriter note;
    note.Varint(kAnnotationName, Intern(kAnnotationNames, name));
    note.Varint(kStringId, Intern(kStrings, value));
    event.Message(kAnnotation, note);
  }

  // A negative instant cannot be written; it is shown at zero.
  void Emit(Instant at, ProtoWriter& event) {
    ProtoWriter packet;
    packet.Varint(kTimestamp, at.ns < 0 ? 0 : static_cast<uint64_t>(at.ns));
    packet.Varint(kSequenceId, 1).Varint(kSequenceFlags, kNeedsState);
    if (!pending_.bytes().empty()) packet.Message(kInterned, pending_);
    pending_.bytes().clear();
    packet.Message(kTrackEvent, event);
    trace_.Message(kPacket, packet);
  }

  ProtoWriter BeginSlice(uint64_t track, std::string_view name, std::string_view category) {
    ProtoWriter event;
    event.Varint(kType, kSliceBegin).Varint(kTrack, track);
    event.Varint(kNameId, Intern(kEventNames, name));
    event.Varint(kCategory, Intern(kCategories, category));
    return event;
  }
  void SetCounter(Instant at, uint64_t track, int64_t value) {
    ProtoWriter event;
    event.Varint(kType, kCounterValue).Varint(kTrack, track);
    event.Varint(kValue, static_cast<uint64_t>(value));
    Emit(at, event);
  }
  void EndSlice(Instant at, uint64_t track) {
    ProtoWriter event;
    event.Varint(kType, kSliceEnd).Varint(kTrack, track);
    Emit(at, event);
  }

  std::string Take() { return std::move(trace_.bytes()); }

 private:
  ProtoWriter trace_, pending_;
  uint64_t last_uuid_ = 0;
  std::unordered_map<int, std::unordered_map<std::string, uint64_t>> ids_;  // by table
};

// Flow ids by task: one per launch and per event wait.
std::vector<std::vector<uint64_t>> FlowsOf(const Graph& graph, uint64_t& next) {
  std::vector<std::vector<uint64_t>> flows(graph.size());
  for (const Edge& e : graph.edges()) {
    if (e.rule != Rule::kLaunch && e.rule != Rule::kEventWait) continue;
    flows[e.from.index()].push_back(next);
    flows[e.to.index()].push_back(next++);
  }
  return flows;
}

void WriteTask(PerfettoWriter& out, const Side& side, const Slice& s, uint64_t track,
               const std::vector<uint64_t>& flows) {
  const Graph& graph = *side.graph;
  const Task& task = graph.task(s.task);
  std::string_view name = graph.TaskName(s.task);
  ProtoWriter event = out.BeginSlice(track, name.empty() ? Name(task.kind) : name, Name(task.kind));
  out.Annotate(event, "task", s.task.value);
  out.Annotate(event, "step", task.step);
  if (task.phase != Phase::kNone) out.Annotate(event, "phase", Name(task.phase));
  if (task.layer.valid()) out.Annotate(event, "layer", GroupOf(graph, s.task, GroupBy::kLayer));
  if (task.scope.valid()) out.Annotate(event, "op", GroupOf(graph, s.task, GroupBy::kOp));
  if (const CopyDetail* copy = graph.Copy(s.task)) {
    out.Annotate(event, "bytes", static_cast<int64_t>(copy->bytes));
  }
  for (uint64_t flow : flows) event.Fixed64(kFlow, flow);
  out.Emit(s.begin, event);
  out.EndSlice(s.end, track);
}

void WriteCriticalPath(PerfettoWriter& out, const Side& side, uint64_t root) {
  if (side.timeline->start_blocker.empty()) return;
  uint64_t track =
      out.AddTrack(root, "critical path", "what decided the length, without gaps, by resource", 0);
  for (const PathSegment& s : PathOfSteps(*side.graph, *side.timeline)) {
    if (s.end <= s.begin) continue;
    ProtoWriter event = out.BeginSlice(track, Name(s.resource), "critical path");
    if (s.task.valid()) out.Annotate(event, "of", side.graph->TaskName(s.task));
    out.Annotate(event, "rule", Name(s.rule));
    if (s.lag) out.Annotate(event, "what", "latency or gap");
    out.Emit(s.begin, event);
    out.EndSlice(s.end, track);
  }
}

void WriteCounters(PerfettoWriter& out, const Side& side, uint64_t root, uint64_t& rank) {
  for (const Counter& c : CountersOf(side)) {
    const uint64_t track = out.AddTrack(root, c.name, c.description, rank++, &c);
    for (const auto& [at, value] : c.points) out.SetCounter(at, track, value);
  }
}

}  // namespace

std::string PerfettoTrace(std::span<const Side> sides, const TasksWritten& hear) {
  TaskProgress progress(sides, hear);
  PerfettoWriter out;
  uint64_t next_flow = 1;
  for (size_t i = 0; i < sides.size(); ++i) {
    const Side& side = sides[i];
    // Perfetto's page sorts what has no parent by name, whatever its rank.
    const std::string name = sides.size() > 1 ? fmt::format("{}. {}", i + 1, side.name) : side.name;
    uint64_t root = out.AddTrack(0, name, side.description, i);
    WriteCriticalPath(out, side, root);
    std::vector<std::vector<uint64_t>> flows = FlowsOf(*side.graph, next_flow);
    auto lanes = SlicesByLane(*side.graph, *side.timeline);
    uint64_t rank = 1;
    WriteCounters(out, side, root, rank);
    for (size_t l = 0; l < lanes.size(); ++l) {
      for (size_t r = 0; r < lanes[l].size(); ++r) {
        std::string title = LaneTitle(*side.graph, LaneId(l));
        if (r > 0) title += fmt::format(", row {}", r + 1);
        uint64_t track = out.AddTrack(root, title, side.description, rank++);
        for (const Slice& s : lanes[l][r]) {
          WriteTask(out, side, s, track, flows[s.task.index()]);
          if (!progress.Wrote()) return "";
        }
      }
    }
    progress.WroteSide(side);
  }
  return out.Take();
}

}  // namespace daydream
