#include "trace/chakra/plan.h"

#include <algorithm>
#include <queue>
#include <tuple>

namespace daydream {
namespace {

class Planner {
 public:
  explicit Planner(NodePlan& plan)
      : plan_(plan), ready_(plan.nodes.size()), waits_(plan.nodes.size(), 0) {
    std::sort(plan_.edges.begin(), plan_.edges.end());
    plan_.edges.erase(std::unique(plan_.edges.begin(), plan_.edges.end()), plan_.edges.end());
    begin_.assign(plan_.nodes.size() + 1, 0);
    for (const auto& [before, after] : plan_.edges) {
      ++waits_[after];
      ++begin_[before + 1];
    }
    for (size_t n = 0; n < plan_.nodes.size(); ++n) begin_[n + 1] += begin_[n];
    uint32_t lanes = 0;
    for (const PlannedNode& node : plan_.nodes) lanes = std::max(lanes, node.lane + 1);
    free_.resize(lanes);
  }

  void Run() {
    const auto count = static_cast<uint32_t>(plan_.nodes.size());
    std::vector<bool> done(count, false), forced(count, false);
    for (uint32_t n = 0; n < count; ++n) {
      if (waits_[n] == 0) queue_.emplace(ready_[n], n);
    }
    uint32_t first = 0;  // all nodes below are done
    while (plan_.order.size() < count) {
      if (queue_.empty()) {  // a circle: its first node does not wait for what is still to come
        while (done[first]) ++first;
        forced[first] = true;
        queue_.emplace(ready_[first], first);
      }
      const uint32_t n = queue_.top().second;
      queue_.pop();
      if (done[n]) continue;
      done[n] = true;
      Start(n, done);
    }
    if (std::find(forced.begin(), forced.end(), true) != forced.end()) DropCircles();
  }

 private:
  void Start(uint32_t n, const std::vector<bool>& done) {
    PlannedNode& node = plan_.nodes[n];
    node.start = std::max(ready_[n], free_[node.lane]);
    const Instant end = node.start + node.duration;
    free_[node.lane] = end;
    plan_.order.push_back(n);
    for (size_t e = begin_[n]; e < begin_[n + 1]; ++e) {
      const uint32_t after = plan_.edges[e].second;
      if (done[after]) continue;
      ready_[after] = std::max(ready_[after], end);
      if (--waits_[after] == 0) queue_.emplace(ready_[after], after);
    }
  }

  void DropCircles() {
    std::vector<uint32_t> place(plan_.nodes.size());
    for (uint32_t i = 0; i < plan_.order.size(); ++i) place[plan_.order[i]] = i;
    const auto backwards = [&](const auto& edge) {
      return place[edge.first] >= place[edge.second];
    };
    plan_.dropped = std::erase_if(plan_.edges, backwards);
  }

  NodePlan& plan_;
  std::vector<Instant> ready_;
  std::vector<uint32_t> waits_;
  std::vector<size_t> begin_;  // edges by their first node
  std::vector<Instant> free_;  // by lane
  using Entry = std::pair<Instant, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

}  // namespace

void Plan(NodePlan& plan) { Planner(plan).Run(); }

}  // namespace daydream
