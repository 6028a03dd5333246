#include "transforms/edits/copy_tasks.h"

#include <algorithm>
#include <map>

namespace daydream {
namespace {

constexpr uint32_t kNoPart = 0xffffffff;

class Copier {
 public:
  Copier(Editor& edit, std::span<const CopyOrder> parts, CopyPlace place, const HollowTask& hollow)
      : edit_(edit),
        parts_(parts),
        place_(place),
        hollow_(hollow),
        recorded_(edit.graph().size()) {}

  void Run() {
    part_.assign(recorded_, kNoPart);
    slot_.assign(recorded_, 0);
    for (size_t p = 0; p < parts_.size(); ++p) {
      for (size_t i = 0; i < parts_[p].tasks.size(); ++i) {
        part_[parts_[p].tasks[i].index()] = static_cast<uint32_t>(p);
        slot_[parts_[p].tasks[i].index()] = static_cast<uint32_t>(i);
      }
    }
    copies_.resize(parts_.size());
    for (size_t p = 0; p < parts_.size(); ++p) CopyOnLanes(p);
    CopyEdges();
  }

 private:
  // Tasks of one part, by lane in lane order.
  std::map<LaneId, std::vector<TaskId>> ByLane(size_t p) const {
    std::map<LaneId, std::vector<TaskId>> lanes;
    for (TaskId t : parts_[p].tasks) lanes[edit_.graph().task(t).lane];
    for (auto& [lane, tasks] : lanes) {
      // Start at a task of the part and go as far as the part goes: parts lie close together.
      size_t left = 0;
      TaskId first;
      for (TaskId t : parts_[p].tasks) {
        if (edit_.graph().task(t).lane != lane) continue;
        ++left;
        if (!first.valid() || Earlier(t, first)) first = t;
      }
      for (TaskId t = first; t.valid() && left > 0; t = edit_.graph().task(t).lane_next) {
        if (t.index() >= recorded_ || part_[t.index()] != p) continue;
        tasks.push_back(t);
        --left;
      }
      // What lies in front of `first` all the same.
      for (TaskId t = edit_.graph().task(first).lane_prev; t.valid() && left > 0;
           t = edit_.graph().task(t).lane_prev) {
        if (t.index() >= recorded_ || part_[t.index()] != p) continue;
        tasks.insert(tasks.begin(), t);
        --left;
      }
    }
    return lanes;
  }

  bool Earlier(TaskId a, TaskId b) const {
    return edit_.graph().task(a).recorded_start < edit_.graph().task(b).recorded_start;
  }

  void CopyOnLanes(size_t p) {
    const size_t n = parts_[p].tasks.size();
    copies_[p].assign(n * static_cast<size_t>(parts_[p].times), TaskId::None());
    for (const auto& [lane, tasks] : ByLane(p)) {
      const auto front = parts_[p].fronts.find(lane);
      const TaskId before = front == parts_[p].fronts.end() ? tasks.front() : front->second;
      TaskId after = tasks.back();
      for (int c = 0; c < parts_[p].times; ++c) {
        for (TaskId t : tasks) {
          Task copy = edit_.graph().task(t);
          copy.event = Id<void>::kNoneValue;
          copy.copy = NumberOf(copy.copy, c);
          if (hollow_ && hollow_(t)) {
            copy.removed = true;
            copy.duration = copy.gap = {};
          }
          TaskId made = place_ == CopyPlace::kBefore ? edit_.InsertBefore(before, copy)
                                                     : edit_.InsertAfter(after, copy);
          after = made;
          copies_[p][static_cast<size_t>(c) * n + slot_[t.index()]] = made;
        }
      }
    }
  }

  // One number for all copies of this round of what had one number before.
  uint16_t NumberOf(uint16_t before, int round) {
    auto [it, fresh] = numbers_.try_emplace({before, round}, uint16_t{0});
    if (fresh) it->second = static_cast<uint16_t>(edit_.NewUnit());
    return it->second;
  }

  TaskId CopyOf(TaskId t, size_t p, int c) const {
    return copies_[p][static_cast<size_t>(c) * parts_[p].tasks.size() + slot_[t.index()]];
  }

  void CopyEdges() {
    const std::vector<Edge> edges(edit_.graph().edges().begin(), edit_.graph().edges().end());
    for (const Edge& e : edges) {
      // Queue edges follow from positions (Editor::Finish).
      if (e.rule == Rule::kQueue || e.to.index() >= recorded_ || e.from.index() >= recorded_) {
        continue;
      }
      const uint32_t p = part_[e.to.index()];
      if (p == kNoPart) continue;
      if (part_[e.from.index()] == p) {
        for (int c = 0; c < parts_[p].times; ++c) {
          edit_.AddEdge(CopyOf(e.from, p, c), CopyOf(e.to, p, c), e.lag, e.rule, e.from_anchor,
                        e.to_anchor);
        }
      } else if (place_ == CopyPlace::kBefore &&
                 edit_.graph().task(e.from).step < edit_.graph().task(e.to).step &&
                 e.rule != Rule::kLaunch) {
        edit_.AddEdge(e.from, CopyOf(e.to, p, 0), e.lag, e.rule, e.from_anchor, e.to_anchor);
      }
    }
  }

  Editor& edit_;
  std::span<const CopyOrder> parts_;
  CopyPlace place_;
  const HollowTask& hollow_;
  size_t recorded_;
  std::map<std::pair<uint16_t, int>, uint16_t> numbers_;
  std::vector<uint32_t> part_, slot_;        // by task
  std::vector<std::vector<TaskId>> copies_;  // by part: [copy][slot]
};

}  // namespace

void CopyParts(Editor& edit, std::span<const CopyOrder> parts, CopyPlace place,
               const HollowTask& hollow) {
  Copier(edit, parts, place, hollow).Run();
}

}  // namespace daydream
