#include "report/questions/slowest_rank.h"

#include <algorithm>
#include <set>
#include <vector>

#include "simulator/ranks/columns.h"
#include "transforms/parallel/jitter.h"

namespace daydream {
namespace {

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
      if (task.removed || (steps && !IsGpu(task.kind))) continue;
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
  std::set<uint16_t> with_gpu;
  for (const Task& t : graph.tasks()) {
    if (!t.removed && IsGpu(t.kind)) with_gpu.insert(t.step);
  }
  const bool steps = with_gpu.size() > 1;
  const std::vector<TaskId> ends = LastWork(graph, steps);
  if (ends.empty()) return std::nullopt;
  auto columns = RankColumns::Make(graph, ends);
  if (!columns.ok()) return std::nullopt;
  // Nothing of a rank is later than of a slower one, as long as all that differs is one factor of
  // its own work: whatever a collective waits for, it waits for the slowest. A column is the
  // slowest rank of a draw; the first one is as recorded.
  const size_t draws = DrawsOf(ranks);
  std::vector<double> slowest = {1.0};
  double mean = 0;
  for (size_t draw = 0; draw < draws; ++draw) {
    double most = 0;
    for (int r = 0; r < ranks; ++r) most = std::max(most, JitterOf(draw + 1, r, sd));
    slowest.push_back(most);
    mean += (most - 1) / static_cast<double>(draws);
  }
  const std::vector<double> lengths =
      DrawLengths(graph, ends, columns->Run({.host = slowest, .gpu = slowest}, 1), steps);
  const double alike = lengths.front();
  double sum = 0;
  for (size_t draw = 1; draw < lengths.size(); ++draw) sum += lengths[draw];
  if (!(alike > 0)) return std::nullopt;
  const double longer = sum / (alike * static_cast<double>(draws)) - 1;
  // The slowest of few draws is by chance not as slow as that of all, and its step with it.
  const double expected = sd * MaximumOf(ranks).mean;
  return 1 + (mean > 0 ? longer * expected / mean : longer);
}

}  // namespace daydream
