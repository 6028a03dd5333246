#include "simulator/accounting.h"

#include <algorithm>

namespace daydream {
namespace {

// Length of a union of intervals that come in order of their begins.
class Union {
 public:
  void Add(Instant begin, Instant end) {
    if (end <= covered_) return;
    length_ += end - std::max(begin, covered_);
    covered_ = end;
  }
  Duration length() const { return length_; }

 private:
  Instant covered_ = Instant::Min();
  Duration length_;
};

}  // namespace

std::vector<LaneAccount> Account(const Graph& graph, const Timeline& timeline) {
  std::vector<LaneAccount> accounts;
  const Instant last = Instant::AtNs(0) + timeline.makespan;
  std::vector<TaskId> tasks;
  for (size_t l = 0; l < graph.lanes().size(); ++l) {
    tasks.clear();
    for (TaskId t = graph.lanes()[l].first; t.valid(); t = graph.task(t).lane_next) {
      tasks.push_back(t);
    }
    auto earlier = [&](TaskId a, TaskId b) {
      return timeline.start[a.index()] < timeline.start[b.index()];
    };
    if (!std::is_sorted(tasks.begin(), tasks.end(), earlier)) {
      std::sort(tasks.begin(), tasks.end(), earlier);
    }
    Union work, busy, occupied;  // own work; and waits; and gaps
    for (TaskId t : tasks) {
      const Task& task = graph.task(t);
      const Instant start = timeline.start[t.index()], end = timeline.end[t.index()];
      work.Add(start, task.removed ? start : start + task.duration);
      busy.Add(start, end);
      const Instant free = task.removed ? end : end + task.gap;
      occupied.Add(start, std::min(std::max(end, free), last));
    }
    accounts.push_back({.lane = LaneId(l),
                        .busy = busy.length(),
                        .waiting = busy.length() - work.length(),
                        .gap = occupied.length() - busy.length(),
                        .idle = timeline.makespan - occupied.length()});
  }
  return accounts;
}

}  // namespace daydream
