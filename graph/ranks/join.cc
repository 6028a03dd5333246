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
    FindMerged();
    Reserve();
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
  // Work of a thread that nothing waits for is one task with what came before it: most of what a
  // host does is such. Whether by merging or not, each step of a rank begins and ends when it did.
  void FindMerged() {
    for (const Graph* g : graphs_) {
      std::vector<char> alone(g->size(), 1);
      for (const Edge& e : g->edges()) alone[e.from.index()] = alone[e.to.index()] = 0;
      const auto plain = [&](TaskId t) {
        const Task& task = g->task(t);
        const bool beside = task.lane_next.valid() && g->task(task.lane_next).overlaps;
        return alone[t.index()] != 0 && IsHost(task.kind) && !task.removed && !task.overlaps &&
               !beside && g->lane(task.lane).order == LaneOrder::kFixed;
      };
      std::vector<char>& merged = merged_.emplace_back(g->size(), 0);
      for (size_t i = 0; i < g->size(); ++i) {
        const Task& task = g->tasks()[i];
        if (!task.lane_prev.valid() || task.earliest > Instant{} || !plain(TaskId(i))) continue;
        const Task& before = g->task(task.lane_prev);
        merged[i] = before.step == task.step && before.phase == task.phase &&
                    before.gap >= Duration{} && plain(task.lane_prev);
      }
    }
  }

  // As much as there can be: to grow would take twice as much for a while.
  void Reserve() {
    size_t tasks = matched_.rows.size() + graphs_.size() + 1, edges = 0;
    for (const MatchedRow& row : matched_.rows) {
      tasks += row.members.size();          // Arrivals
      edges += 2 * row.members.size() + 1;  // and a Ghost
    }
    for (size_t r = 0; r < graphs_.size(); ++r) {
      const Graph* const g = graphs_[r];
      tasks += static_cast<size_t>(std::count(merged_[r].begin(), merged_[r].end(), char{0}));
      edges += g->edges().size() + g->lanes().size();
      for (const Task& t : g->tasks()) edges += t.earliest > Instant{};
    }
    out_.graph.Reserve(tasks, edges);
  }

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
    JointGraph::Part part{.task = out_.graph.size(), .edge = out_.graph.edges().size()};
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
        if (merged_[r][t.index()] != 0) {
          place[t.index()] = out_.graph.lanes()[id.index()].last;
          Task& whole = out_.graph.mutable_task(place[t.index()]);
          whole.duration += whole.gap + from.task(t).duration;
          whole.gap = from.task(t).gap;
          continue;
        }
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
    part.task_end = out_.graph.size();
    part.edge_end = out_.graph.edges().size();
    out_.part.push_back(part);
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
  std::vector<std::vector<char>> merged_;      // the same: with the one before it on its lane
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

RankAlone TakeAlone(const JointGraph& joint, size_t rank) {
  const JointGraph::Part& part = joint.part[rank];
  const Graph& from = joint.graph;
  RankAlone out;
  out.graph.Reserve(part.task_end - part.task + 1, part.edge_end - part.edge);
  out.graph.AddStep({.label = "alone", .measured = true, .recorded_period = {}});
  LaneId lane, lane_was;
  const auto append = [&](Task task) {
    if (task.lane != lane_was) {
      lane_was = task.lane;
      GraphLane copy = from.lane(task.lane);
      copy.first = copy.last = TaskId();
      copy.lane.name = NameId();
      lane = out.graph.AddLane(copy);
    }
    task.lane = lane;
    task.name = NameId();
    return out.graph.Append(task);
  };
  append(from.task(joint.origin[rank]));
  for (size_t t = part.task; t < part.task_end; ++t) append(from.tasks()[t]);
  const auto placed = [&](TaskId t) {
    return !t.valid() ? t : t == joint.origin[rank] ? TaskId(0) : TaskId(t.index() - part.task + 1);
  };
  for (size_t e = part.edge; e < part.edge_end; ++e) {
    Edge edge = from.edges()[e];
    if (edge.rule == Rule::kCollective) continue;
    edge.from = placed(edge.from), edge.to = placed(edge.to);
    out.graph.AddEdge(edge);
  }
  out.task.reserve(joint.task[rank].size());
  for (TaskId t : joint.task[rank]) out.task.push_back(placed(t));
  return out;
}

}  // namespace daydream
