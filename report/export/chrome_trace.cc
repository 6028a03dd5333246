#include "report/export/chrome_trace.h"

#include <optional>

#include <fmt/format.h>

#include "report/lane_rows.h"
#include "report/summary.h"
#include "report/text/json_writer.h"
#include "report/windows.h"
#include "simulator/critical_path.h"

namespace daydream {
namespace {

// Appends events, one a line, with the commas between them.
class Events {
 public:
  explicit Events(std::string& out) : out_(out) {}
  template <class... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    out_ += first_ ? "\n" : ",\n";
    first_ = false;
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

 private:
  std::string& out_;
  bool first_ = true;
};

// Microseconds with all three decimals: integer arithmetic, so nothing is rounded.
std::string Us(int64_t ns) {
  uint64_t size = ns < 0 ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", size / 1000, size % 1000);
}

std::string ArgsOf(const Graph& graph, TaskId id) {
  const Task& task = graph.task(id);
  std::string out = fmt::format("\"task\":{},\"kind\":{},\"step\":{}", id.value,
                                JsonQuoted(Name(task.kind)), task.step);
  if (task.phase != Phase::kNone) {
    out += fmt::format(",\"phase\":{}", JsonQuoted(Name(task.phase)));
  }
  if (task.layer.valid() && task.layer.index() < graph.layers().size()) {
    out += fmt::format(",\"layer\":{}",
                       JsonQuoted(graph.Name(graph.layers()[task.layer.index()].name)));
  }
  if (IsGpu(task.kind) || task.kind == TaskKind::kCall) {
    out += fmt::format(",\"op\":{}", JsonQuoted(GroupOf(graph, id, GroupBy::kOp)));
  }
  if (const CopyDetail* copy = graph.Copy(id)) out += fmt::format(",\"bytes\":{}", copy->bytes);
  return out;
}

void Meta(Events& events, std::string_view what, size_t pid, size_t tid, std::string_view name,
          size_t order) {
  std::string kind = what == "process" ? "process" : "thread";
  events.Add("{{\"ph\":\"M\",\"name\":\"{}_name\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}}",
             kind, pid, tid, JsonQuoted(name));
  events.Add(
      "{{\"ph\":\"M\",\"name\":\"{}_sort_index\",\"pid\":{},\"tid\":{},"
      "\"args\":{{\"sort_index\":{}}}}}",
      kind, pid, tid, order);
}

// Thread ids of a side: 1 is the critical path, then the rows of the lanes. None: no more is
// wanted.
std::optional<std::vector<size_t>> AddSlices(Events& events, const Side& side, size_t pid,
                                             TaskProgress& progress) {
  std::vector<size_t> tid_of(side.graph->size(), 0);
  auto lanes = SlicesByLane(*side.graph, *side.timeline);
  size_t tid = 1;
  for (size_t l = 0; l < lanes.size(); ++l) {
    for (size_t r = 0; r < lanes[l].size(); ++r) {
      ++tid;
      std::string title = LaneTitle(*side.graph, LaneId(l));
      if (r > 0) title += fmt::format(", row {}", r + 1);
      Meta(events, "thread", pid, tid, title, tid);
      for (const Slice& s : lanes[l][r]) {
        tid_of[s.task.index()] = tid;
        events.Add(
            "{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},\"name\":{},"
            "\"cat\":{},\"args\":{{{}}}}}",
            pid, tid, Us(s.begin.ns), Us((s.end - s.begin).ns),
            JsonQuoted(side.graph->TaskName(s.task)),
            JsonQuoted(Name(side.graph->task(s.task).kind)), ArgsOf(*side.graph, s.task));
        if (!progress.Wrote()) return std::nullopt;
      }
    }
  }
  return tid_of;
}

void AddFlows(Events& events, const Side& side, size_t pid, const std::vector<size_t>& tid_of) {
  size_t id = 0;
  for (const Edge& e : side.graph->edges()) {
    ++id;
    if (e.rule != Rule::kLaunch) continue;
    size_t from = tid_of[e.from.index()], to = tid_of[e.to.index()];
    if (from == 0 || to == 0) continue;
    std::string name = fmt::format("{}.{}", pid, id);
    events.Add(
        "{{\"ph\":\"s\",\"id\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{},\"name\":\"launch\","
        "\"cat\":\"launch\"}}",
        name, pid, from, Us(side.timeline->start[e.from.index()].ns));
    events.Add(
        "{{\"ph\":\"f\",\"bp\":\"e\",\"id\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{},"
        "\"name\":\"launch\",\"cat\":\"launch\"}}",
        name, pid, to, Us(side.timeline->start[e.to.index()].ns));
  }
}

void AddCriticalPath(Events& events, const Side& side, size_t pid) {
  if (side.timeline->start_blocker.empty()) return;
  Meta(events, "thread", pid, 1, "critical path", 1);
  for (const PathSegment& s : PathOfSteps(*side.graph, *side.timeline)) {
    if (s.end <= s.begin) continue;
    events.Add(
        "{{\"ph\":\"X\",\"pid\":{},\"tid\":1,\"ts\":{},\"dur\":{},\"name\":{},"
        "\"cat\":\"critical path\",\"args\":{{\"of\":{},\"rule\":{},\"lag\":{}}}}}",
        pid, Us(s.begin.ns), Us((s.end - s.begin).ns), JsonQuoted(Name(s.resource)),
        JsonQuoted(s.task.valid() ? side.graph->TaskName(s.task) : ""), JsonQuoted(Name(s.rule)),
        s.lag);
  }
}

}  // namespace

std::string ChromeTrace(std::span<const Side> sides, const TasksWritten& hear) {
  TaskProgress progress(sides, hear);
  std::string out =
      "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"producer\":\"daydream\"},"
      "\"traceEvents\":[";
  Events events(out);
  for (size_t i = 0; i < sides.size(); ++i) {
    size_t pid = i + 1;
    Meta(events, "process", pid, 0, sides[i].name, pid);
    const auto tid_of = AddSlices(events, sides[i], pid, progress);
    if (!tid_of.has_value()) return "";
    AddFlows(events, sides[i], pid, *tid_of);
    AddCriticalPath(events, sides[i], pid);
    progress.WroteSide(sides[i]);
  }
  return out + "\n]}\n";
}

}  // namespace daydream
