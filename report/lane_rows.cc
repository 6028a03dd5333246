#include "report/lane_rows.h"

#include <algorithm>

#include <fmt/format.h>

#include "report/text/format.h"

namespace daydream {

std::vector<std::vector<std::vector<Slice>>> SlicesByLane(const Graph& graph,
                                                          const Timeline& timeline) {
  std::vector<std::vector<Slice>> slices(graph.lanes().size());
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& task = graph.tasks()[i];
    if (task.removed || timeline.end[i] <= timeline.start[i]) continue;
    slices[task.lane.index()].push_back({TaskId(i), timeline.start[i], timeline.end[i]});
  }
  std::vector<std::vector<std::vector<Slice>>> lanes(slices.size());
  for (size_t l = 0; l < slices.size(); ++l) {
    std::sort(slices[l].begin(), slices[l].end(), [](const Slice& a, const Slice& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.task < b.task;
    });
    for (const Slice& s : slices[l]) {
      auto fits = [&](const std::vector<Slice>& row) { return row.back().end <= s.begin; };
      auto row = std::find_if(lanes[l].begin(), lanes[l].end(), fits);
      if (row == lanes[l].end()) row = lanes[l].insert(row, std::vector<Slice>());
      row->push_back(s);
    }
  }
  return lanes;
}

std::string LaneTitle(const Graph& graph, LaneId id) {
  const Lane& lane = graph.lane(id).lane;
  std::string name = Printable(graph.Name(lane.name));
  switch (lane.kind) {
    case LaneKind::kStream:
      return lane.number < 0 ? fmt::format("GPU {} stream {}", lane.device, name)
                             : fmt::format("GPU {} stream {}", lane.device, lane.number);
    case LaneKind::kThread: {
      const std::string number = fmt::format("thread {}", lane.number);
      // PyTorch names it "thread 12" or "thread 12 (python)", which says it all.
      if (name == number || name.starts_with(number + " ")) return name;
      return name.empty() ? number : fmt::format("{} ({})", number, name);
    }
    case LaneKind::kChannel:
      break;
  }
  // Of several words it says what it is: "loader worker 0".
  if (name.find(' ') != std::string::npos) return name;
  return fmt::format("channel {}", name.empty() ? fmt::format("{}", lane.number) : name);
}

}  // namespace daydream
