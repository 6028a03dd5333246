#include "report/export/dot.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "report/lane_rows.h"
#include "report/summary.h"
#include "report/text/format.h"

namespace daydream {
namespace {

constexpr size_t kNameWidth = 40;

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : Printable(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// Tasks of the step by recorded start, at most `max_tasks`; `total` counts all of them.
std::vector<bool> Choose(const Graph& graph, const DotOptions& options, size_t& total) {
  std::vector<TaskId> tasks;
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& t = graph.tasks()[i];
    if (!t.removed && t.step == options.step) tasks.push_back(TaskId(i));
  }
  total = tasks.size();
  std::stable_sort(tasks.begin(), tasks.end(), [&](TaskId a, TaskId b) {
    return graph.task(a).recorded_start < graph.task(b).recorded_start;
  });
  std::vector<bool> chosen(graph.size(), false);
  for (size_t i = 0; i < std::min(tasks.size(), options.max_tasks); ++i) {
    chosen[tasks[i].index()] = true;
  }
  return chosen;
}

void AddLane(std::string& out, const Graph& graph, LaneId lane, const std::vector<bool>& chosen) {
  std::string body;
  TaskId previous;
  size_t steps = 0;
  for (TaskId t = graph.lane(lane).first; t.valid() && steps++ < graph.size();
       t = graph.task(t).lane_next) {
    if (!chosen[t.index()]) continue;
    const Task& task = graph.task(t);
    std::string_view name = graph.TaskName(t);
    std::string quoted =
        Quoted(CutMiddle(Printable(name.empty() ? Name(task.kind) : name), kNameWidth));
    // Behind the name, whose own backslashes are no line breaks.
    quoted.insert(quoted.size() - 1, "\\n" + FormatTime(task.duration));
    body += fmt::format("    t{} [label={}];\n", t.value, quoted);
    if (previous.valid()) {
      body +=
          fmt::format("    t{} -> t{} [style=bold{}];\n", previous.value, t.value,
                      graph.task(previous).gap.ns != 0
                          ? fmt::format(", label=\"gap {}\"", FormatTime(graph.task(previous).gap))
                          : "");
    }
    previous = t;
  }
  if (body.empty()) return;
  out += fmt::format("  subgraph cluster_{} {{\n    label={};\n{}  }}\n", lane.value,
                     Quoted(LaneTitle(graph, lane)), body);
}

}  // namespace

std::string Dot(const Graph& graph, const DotOptions& options) {
  size_t total = 0;
  std::vector<bool> chosen = Choose(graph, options, total);
  size_t shown = std::min(total, options.max_tasks);
  std::string out = "digraph daydream {\n  rankdir=LR;\n  node [shape=box, fontsize=10];\n";
  if (shown < total) {
    out += fmt::format("  label=\"the first {} of {} tasks of this step\";\n", shown, total);
  }
  for (size_t l = 0; l < graph.lanes().size(); ++l) AddLane(out, graph, LaneId(l), chosen);
  for (const Edge& e : graph.edges()) {
    if (!chosen[e.from.index()] || !chosen[e.to.index()]) continue;
    std::string label(Name(e.rule));
    if (e.lag.ns != 0) label += " " + FormatChange(e.lag);
    out += fmt::format("  t{} -> t{} [label=\"{}\", style=dashed{}{}];\n", e.from.value, e.to.value,
                       label, e.from_anchor == Anchor::kStart ? ", dir=both, arrowtail=odot" : "",
                       e.to_anchor == Anchor::kEnd ? ", arrowhead=dot" : "");
  }
  return out + "}\n";
}

}  // namespace daydream
