#include "transforms/parallel/transfers.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "graph/ranks/match.h"
#include "graph/ranks/meetings.h"

namespace daydream {
namespace {

constexpr double kSmallUs = 20;

}  // namespace

RankCollectives CollectivesOf(const Graph& graph) {
  const Trace* trace = graph.tables().trace.get();
  return DescribeCollectives(graph,
                             trace == nullptr || trace->ranks.empty() ? Rank{} : trace->ranks[0]);
}

SizeCurve TransfersBySize(const Graph& graph, const RankCollectives& collectives) {
  std::map<uint64_t, Duration> least;
  for (const RankCollective& c : collectives.all) {
    if (c.bytes == 0) continue;
    const Duration transfer = graph.Transfer(c.task);
    const auto [known, fresh] = least.try_emplace(c.bytes, transfer);
    if (!fresh) known->second = std::min(known->second, transfer);
  }
  std::vector<SizePoint> points;
  points.reserve(least.size());
  for (const auto& [bytes, transfer] : least) {
    points.push_back({static_cast<double>(bytes), transfer.us()});
  }
  if (points.size() == 1) {
    const double us = points[0].us, small = std::min(kSmallUs, us);
    return {.a_us = small, .us_per_byte = (us - small) / points[0].bytes, .points = points};
  }
  return FitSizeCurve(points);
}

absl::StatusOr<LongMessages> MeasureLongMessages(
    const std::function<absl::StatusOr<Duration>(double bytes)>& time) {
  constexpr double kLong = 64 << 20;
  DD_ASSIGN_OR_RETURN(const Duration one, time(kLong));
  DD_ASSIGN_OR_RETURN(const Duration two, time(2 * kLong));
  DD_ASSIGN_OR_RETURN(const Duration latency, time(4));
  // Times that are taken from what was recorded need not grow with the size.
  const double rate = two > one ? static_cast<double>((two - one).ns) / kLong
                                : static_cast<double>(two.ns) / (2 * kLong);
  return LongMessages{.ns_per_byte = rate, .latency = latency};
}

bool IsSlice(const Graph& graph, TaskId t) {
  return graph.task(t).kind == TaskKind::kCollective && graph.TaskName(t) == kSliceName;
}

void DropWaits(Graph& graph) {
  const RankCollectives own[] = {CollectivesOf(graph)};
  const MatchedRanks matched = MatchCollectives(own);
  const Duration shift[] = {Duration{}};
  const Meetings meetings = FindMeetings(own, matched, shift);
  Editor edit(graph);
  edit.BeginCause("nobody waits for other ranks");
  for (size_t i = 0; i < matched.rows.size(); ++i) {
    const Duration transfer = meetings.classes[meetings.rows[i].class_of].transfer;
    for (const RowMember& m : matched.rows[i].members) {
      const TaskId t = own[m.rank].all[m.collective].task;
      edit.SetDuration(t, transfer);
      edit.SetTransfer(t, transfer);
    }
  }
  for (TaskId t : edit.Select(
           [](const Graph&g, TaskId task) { return g.task(task).kind == TaskKind::kCollective; })) {
    edit.SetDuration(t, std::min(graph.task(t).duration, graph.Transfer(t)));
  }
  edit.Finish();
}

size_t RetimeTransfers(
    Editor& edit, const RankCollectives& collectives,
    const std::function<Duration(const RankCollective& c, Duration transfer)>& time) {
  size_t changed = 0, unknown = 0;
  for (const RankCollective& c : collectives.all) {
    const Duration duration = edit.graph().task(c.task).duration;
    const Duration transfer = std::min(edit.graph().Transfer(c.task), duration);
    if (c.bytes == 0) {
      ++unknown;
      continue;
    }
    const Duration then = std::max(Duration{}, time(c, transfer));
    if (then == transfer) continue;
    edit.SetDuration(c.task, duration - transfer + then);
    edit.SetTransfer(c.task, then);
    ++changed;
  }
  if (unknown > 0) {
    edit.changes().warnings.push_back(
        fmt::format("{} collectives have no recorded size and keep their times", unknown));
  }
  if (collectives.all.empty()) edit.changes().notes.push_back("no collective in this trace");
  return changed;
}

}  // namespace daydream
