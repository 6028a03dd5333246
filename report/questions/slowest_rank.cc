#include "report/questions/slowest_rank.h"

#include <algorithm>
#include <set>
#include <vector>

#include "simulator/ranks/columns.h"
#include "transforms/parallel/jitter.h"

namespace daydream {
namespace {

// More ranks than this follow from the closed form alone.
constexpr int kMostColumns = 16384;

// Draws of the speeds of n ranks: many of few ranks, some of many.
size_t DrawsOf(int ranks) { return std::clamp<size_t>(2048 / static_cast<size_t>(ranks), 4, 64); }

// The last GPU work of the first and of the last step; of a single step the last work of each lane.
std::vector<TaskId> LastWork(const Graph& graph, bool steps) {
  std::vector<TaskId> ends;
  uint16_t first = 0xffff, last = 0;
  for (const Task& t : graph.tasks()) {
    if (!t.removed && IsGpu(t.kind)) first = std::min(first, t.step), last = std::max(last, t.step);
  }
  for (const GraphLane& lane : graph.lanes()) {
    TaskId of_first, of_last;
    for (TaskId t = lane.first; t.valid(); t = graph.task(t).lane_next) {
      const Task& task = graph.task(t);
      if (task.removed || (steps && (!IsGpu(task.kind) || !lane.marks_steps))) continue;
      if (steps && task.step == first) of_first = t;
      if (!steps || task.step == last) of_last = t;
    }
    if (of_last.valid()) ends.push_back(of_last);
    if (of_first.valid() && of_first != of_last) ends.insert(ends.begin(), of_first);
  }
  return ends;
}

// From the last end of the first step to the last end of all; one number for each draw.
std::vector<double> DrawLengths(const Graph& graph, std::span<const TaskId> ends,
                                std::span<const Instant> at, bool steps) {
  std::vector<double> lengths;
  const uint16_t last = graph.task(ends.back()).step;
  for (size_t draw = 0; draw < at.size() / ends.size(); ++draw) {
    Instant begin, end;
    for (size_t i = 0; i < ends.size(); ++i) {
      const Instant here = at[draw * ends.size() + i];
      end = std::max(end, here);
      if (steps && graph.task(ends[i]).step != last) begin = std::max(begin, here);
    }
    lengths.push_back(static_cast<double>((end - begin).ns));
  }
  return lengths;
}

}  // namespace

std::optional<double> SlowestOf(const Graph& graph, int ranks, double sd) {
  if (ranks > kMostColumns) return std::nullopt;
  std::set<uint16_t> with_gpu;
  for (const Task& t : graph.tasks()) {
    if (!t.removed && IsGpu(t.kind)) with_gpu.insert(t.step);
  }
  const bool steps = with_gpu.size() > 1;
  const std::vector<TaskId> ends = LastWork(graph, steps);
  if (ends.empty()) return std::nullopt;
  auto columns = RankColumns::Make(graph, ends);
  if (!columns.ok()) return std::nullopt;
  const auto n = static_cast<size_t>(ranks);
  RankSpeeds speeds;
  double slowest = 0;
  const size_t draws = DrawsOf(ranks);
  for (size_t draw = 0; draw < draws; ++draw) {
    double most = 0;
    for (int r = 0; r < ranks; ++r) {
      speeds.host.push_back(JitterOf(draw + 1, r, sd));
      most = std::max(most, speeds.host.back());
    }
    slowest += (most - 1) / static_cast<double>(draws);
  }
  speeds.gpu = speeds.host;
  const double alike =
      DrawLengths(graph, ends, columns->Run({.host = {1.0}, .gpu = {1.0}}, 1), steps).front();
  const std::vector<double> lengths = DrawLengths(graph, ends, columns->Run(speeds, n), steps);
  double sum = 0;
  for (double length : lengths) sum += length;
  if (!(alike > 0)) return std::nullopt;
  const double longer = sum / (alike * static_cast<double>(draws)) - 1;
  // The slowest of few draws is by chance not as slow as that of all, and its step with it.
  const double expected = sd * MaximumOf(ranks).mean;
  return 1 + (slowest > 0 ? longer * expected / slowest : longer);
}

}  // namespace daydream
