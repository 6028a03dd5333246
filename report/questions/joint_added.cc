#include "report/questions/joint_added.h"

#include <algorithm>

#include "base/median.h"

namespace daydream {
namespace {

// Added collectives of one rank, by stream, in the order of the stream: where it chooses what goes
// next, in that in which they were added.
std::vector<std::vector<TaskId>> AddedTo(const Graph& before, const Graph& after) {
  std::vector<std::vector<TaskId>> streams;
  if (after.size() == before.size()) return streams;
  for (const GraphLane& lane : after.lanes()) {
    if (lane.lane.kind != LaneKind::kStream) continue;
    std::vector<TaskId> added;
    for (TaskId t = lane.first; t.valid(); t = after.task(t).lane_next) {
      const Task& task = after.task(t);
      const bool collective = task.kind == TaskKind::kCollective && !task.removed;
      if (collective && t.index() >= before.size()) added.push_back(t);
    }
    if (!added.empty()) streams.push_back(std::move(added));
  }
  return streams;
}

bool OneGroup(const JointRun& run) {
  return std::all_of(run.matched.rows.begin(), run.matched.rows.end(), [&](const MatchedRow& row) {
    return row.size == static_cast<int32_t>(run.built.size());
  });
}

}  // namespace

std::optional<AddedRows> MatchAdded(const JointRun& run, std::span<const Graph* const> graphs,
                                    std::span<const Duration> transfer) {
  std::vector<std::vector<std::vector<TaskId>>> added;
  for (size_t r = 0; r < graphs.size(); ++r) {
    added.push_back(AddedTo(run.built[r].graph, *graphs[r]));
    const auto same = [](const auto& a, const auto& b) { return a.size() == b.size(); };
    if (!std::equal(added[r].begin(), added[r].end(), added[0].begin(), added[0].end(), same)) {
      return std::nullopt;
    }
  }
  if (added.empty() || added[0].empty() || !OneGroup(run)) return std::nullopt;
  AddedRows out{.ranks = run.ranks,
                .matched = run.matched,
                .meetings = run.meetings,
                .transfer = {transfer.begin(), transfer.end()}};
  for (size_t s = 0; s < added[0].size(); ++s) {
    uint32_t group = out.matched.communicators++;
    const Graph& first = *graphs[0];
    const bool chooses =
        first.lane(first.task(added[0][s].front()).lane).order != LaneOrder::kFixed;
    for (size_t k = 0; k < added[0][s].size(); ++k) {
      // Those that are chosen have no order: each meets its peers by itself.
      if (chooses && k > 0) group = out.matched.communicators++;
      MatchedRow row{.communicator = group, .kind = CollectiveKind::kAllReduce};
      row.size = static_cast<int32_t>(graphs.size());
      std::vector<Duration> times;
      for (uint32_t r = 0; r < graphs.size(); ++r) {
        const TaskId t = added[r][s][k];
        std::vector<RankCollective>& all = out.ranks[r].all;
        row.members.push_back({r, static_cast<uint32_t>(all.size())});
        all.push_back({.task = t, .kind = row.kind});
        times.push_back(std::min(graphs[r]->Transfer(t), graphs[r]->task(t).duration));
      }
      out.matched.rows.push_back(std::move(row));
      out.meetings.rows.push_back({.transfer = Median(times)});
      out.transfer.push_back(out.meetings.rows.back().transfer);
    }
  }
  return out;
}

}  // namespace daydream
