#include "graph/ranks/join.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace daydream {
namespace {

class Joiner {
 public:
  Joiner(std::span<const Graph* const> graphs, std::span<const RankCollectives> ranks,
         const MatchedRanks& matched, const Meetings& meetings, std::span<const Duration> transfer)
      : graphs_(graphs), ranks_(ranks), matched_(matched), meetings_(meetings) {
    out_.transfer.assign(transfer.begin(), transfer.end());
  }

  JointGraph Run(std::span<const Duration> shift) {
    size_t tasks = matched_.rows.size() + graphs_.size() + 1, edges = 0;
    for (const Graph* g : graphs_) tasks += g->size(), edges += g->edges().size();
    out_.graph.Reserve(tasks, edges + 2 * ranks_.size() * matched_.rows.size());
    out_.graph.AddStep({.label = "joint", .measured = true, .recorded_period = {}});
    for (size_t r = 0; r <= graphs_.size(); ++r) {
      out_.origin.push_back(AddOrigin(r < graphs_.size() ? shift[r] : Duration{}));
    }
    out_.task.resize(graphs_.size());
    FindMembers();
    for (size_t r = 0; r < graphs_.size(); ++r) CopyRank(r);
    for (size_t i = 0; i < matched_.rows.size(); ++i) AddMeeting(i);
    return std::move(out_);
  }

 private:
  TaskId AddOrigin(Duration shift) {
    Lane lane;
    lane.kind = LaneKind::kChannel;
    const LaneId id = out_.graph.AddLane({.lane = lane});
    Task task;
    task.lane = id;
    task.kind = TaskKind::kDelay;
    task.duration = shift;
    return out_.graph.Append(task);
  }

  // Rows that two take part in, or one and a Ghost: where a collective was removed on a rank, the
  // others go on without it.
  void FindMembers() {
    row_of_.resize(graphs_.size());
    for (size_t r = 0; r < graphs_.size(); ++r) row_of_[r].assign(graphs_[r]->size(), kNoRow);
    out_.arrival.resize(graphs_.size());
    for (size_t i = 0; i < matched_.rows.size(); ++i) {
      std::vector<RowMember> live;
      for (const RowMember& m : matched_.rows[i].members) {
        const TaskId own = ranks_[m.rank].all[m.collective].task;
        if (!graphs_[m.rank]->task(own).removed) live.push_back(m);
      }
      if (live.empty() || (live.size() < 2 && !meetings_.rows[i].ghost)) continue;
      for (const RowMember& m : live) {
        row_of_[m.rank][ranks_[m.rank].all[m.collective].task.index()] = static_cast<uint32_t>(i);
      }
    }
  }

  // Nothing of a rank starts before the rank does, nor before the instant that it was bound to.
  void CopyRank(size_t r) {
    const Graph& from = *graphs_[r];
    std::vector<TaskId>& place = out_.task[r];
    place.assign(from.size(), TaskId());
    out_.arrival[r].assign(from.size(), TaskId());
    for (size_t l = 0; l < from.lanes().size(); ++l) {
      const GraphLane& lane = from.lanes()[l];
      GraphLane copy = lane;
      copy.first = copy.last = TaskId();
      copy.lane.name = NameId();
      copy.lane.rank = static_cast<int32_t>(r);
      const LaneId id = out_.graph.AddLane(copy);
      for (TaskId t = lane.first; t.valid(); t = from.task(t).lane_next) {
        place[t.index()] = CopyTask(from, t, id, r);
      }
    }
    for (const Edge& e : from.edges()) {
      Edge edge = e;
      edge.from = place[e.from.index()], edge.to = place[e.to.index()];
      const TaskId left = out_.arrival[r][e.from.index()], came = out_.arrival[r][e.to.index()];
      if (left.valid() && e.from_anchor == Anchor::kStart) edge.from = left;
      if (came.valid() && e.to_anchor == Anchor::kStart) edge.to = came;
      if (edge.from.valid() && edge.to.valid()) out_.graph.AddEdge(edge);
    }
  }

  TaskId CopyTask(const Graph& from, TaskId t, LaneId lane, size_t r) {
    Task task = from.task(t);
    const bool first = !task.lane_prev.valid();
    const Duration bound = task.earliest - Instant{};
    task.lane = lane;
    task.name = NameId();
    task.scope = ScopeId();
    task.layer = LayerId();
    task.event = task.detail = Id<void>::kNoneValue;
    task.earliest = {};
    task.step = 0;
    if (task.kind == TaskKind::kCollective) task.name = out_.graph.AddName(from.TaskName(t));
    TaskId added;
    if (row_of_[r][t.index()] != kNoRow) {
      Task arrival = task;
      arrival.kind = TaskKind::kDelay;
      arrival.duration = arrival.gap = {};
      added = out_.arrival[r][t.index()] = out_.graph.Append(arrival);
      task.overlaps = false;
      task.duration = out_.transfer[row_of_[r][t.index()]];
    }
    const TaskId whole = out_.graph.Append(task);
    if (!added.valid()) added = whole;
    if (first || bound > Duration{}) {
      out_.graph.AddEdge({.from = out_.origin[r], .to = added, .lag = bound});
    }
    return whole;
  }

  LaneId LaneOf(uint32_t communicator) {
    if (lanes_.size() <= communicator) lanes_.resize(communicator + 1);
    if (!lanes_[communicator].valid()) {
      Lane lane;
      lane.kind = LaneKind::kChannel;
      lane.name = out_.graph.AddName(fmt::format("group {}", communicator));
      lanes_[communicator] = out_.graph.AddLane({.lane = lane});
    }
    return lanes_[communicator];
  }

  // Pairs of one group are each other's only peers: they have no order among them.
  static bool Ordered(const MatchedRow& row) { return row.kind != CollectiveKind::kSendRecv; }

  void AddMeeting(size_t i) {
    const MatchedRow& row = matched_.rows[i];
    const Meeting& m = meetings_.rows[i];
    out_.meeting.push_back(TaskId());
    std::vector<std::pair<TaskId, TaskId>> members;  // Arrival, transfer
    for (const RowMember& member : row.members) {
      const TaskId own = ranks_[member.rank].all[member.collective].task;
      const TaskId arrival = out_.arrival[member.rank][own.index()];
      if (arrival.valid()) members.emplace_back(arrival, out_.task[member.rank][own.index()]);
    }
    if (members.empty()) return;
    Task task;
    task.lane = LaneOf(row.communicator);
    task.kind = TaskKind::kDelay;
    task.overlaps = !Ordered(row);
    task.name = out_.graph.AddName(
        row.sequence >= 0 ? fmt::format("{} #{}", CollectiveName(row.kind), row.sequence)
                          : std::string(CollectiveName(row.kind)));
    const TaskId meeting = out_.graph.Append(task);
    out_.meeting.back() = meeting;
    for (const auto& [arrival, transfer] : members) {
      out_.graph.AddEdge({.from = arrival, .to = meeting, .lag = {}, .rule = Rule::kCollective});
      out_.graph.AddEdge({.from = meeting, .to = transfer, .lag = {}, .rule = Rule::kCollective});
    }
    if (m.ghost) {
      out_.graph.AddEdge({.from = out_.origin.back(), .to = meeting, .lag = *m.ghost - Instant{}});
    }
  }

  std::span<const Graph* const> graphs_;
  std::span<const RankCollectives> ranks_;
  const MatchedRanks& matched_;
  const Meetings& meetings_;
  JointGraph out_;
  static constexpr uint32_t kNoRow = Id<void>::kNoneValue;
  std::vector<std::vector<uint32_t>> row_of_;  // by rank and task
  std::vector<LaneId> lanes_;                  // by communicator
};

}  // namespace

std::vector<Duration> TransfersOf(const Meetings& meetings, TransferFrom from) {
  std::vector<Duration> transfers;
  for (const Meeting& m : meetings.rows) {
    transfers.push_back(from == TransferFrom::kRow ? m.transfer
                                                   : meetings.classes[m.class_of].transfer);
  }
  return transfers;
}

JointGraph JoinGraphs(std::span<const Graph* const> graphs, std::span<const RankCollectives> ranks,
                      const MatchedRanks& matched, const Meetings& meetings,
                      std::span<const Duration> transfer, std::span<const Duration> shift) {
  return Joiner(graphs, ranks, matched, meetings, transfer).Run(shift);
}

}  // namespace daydream
