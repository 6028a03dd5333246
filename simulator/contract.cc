#include "simulator/contract.h"

#include <utility>

#include "graph/large_pages.h"

namespace daydream {
namespace {

// Its end is read, its start is read; it stays a row.
constexpr uint8_t kEnd = 1, kRow = 2, kStart = 4;

// What each task is needed for. On a lane the next task begins when the one before it has ended and
// its gap is over: a sum, but behind an overlap or a negative gap, where it is the later of two.
std::vector<uint8_t> NeedsOf(const Graph& graph, std::span<const TaskId> starts,
                             std::span<const TaskId> ends) {
  std::vector<uint8_t> needs(graph.size());
  for (const Edge& e : graph.edges()) {
    needs[e.from.index()] |= e.from_anchor == Anchor::kEnd ? kRow | kEnd : kRow;
    needs[e.to.index()] |= kRow;
  }
  for (TaskId t : starts) needs[t.index()] |= kRow | kStart;
  for (TaskId t : ends) needs[t.index()] |= kRow | kEnd;
  for (const GraphLane& lane : graph.lanes()) {
    if (lane.first.valid()) needs[lane.first.index()] |= kRow;
  }
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& t = graph.tasks()[i];
    const bool sum = !t.overlaps && t.gap >= Duration{};
    if (!sum || t.earliest != Instant{}) needs[i] |= kRow;
    if (!sum && t.lane_next.valid()) needs[t.lane_next.index()] |= kRow;
    if (t.overlaps && t.lane_prev.valid()) needs[t.lane_prev.index()] |= kRow;
  }
  return needs;
}

// What row `row` reads; `more` is the place of its entry there, where it has one.
template <class Each>
void ForEachSource(Program& p, uint32_t row, size_t& more, Each each) {
  for (Source& s : p.into[row].source) each(s);
  if ((p.rows[row].lane_and_flags & Row::kMore) == 0) return;
  const More& m = p.more[more++];
  for (uint32_t e = m.starts_begin; e < m.ends_end; ++e) each(p.more_edges[e].source);
}

// Turns rows into places of instants: a row's start and end are kept in one that is free again
// after the last row that reads them. Few are needed at a time, and those stay in the cache: a pass
// takes two thirds of what it takes with a place for each row.
void PlaceInstants(Program& p, std::span<const TaskId> starts, std::span<const TaskId> ends,
                   std::vector<uint32_t>& place_of) {
  constexpr uint32_t kNobody = 0xffffffff, kLater = 0xfffffffe;
  const auto rows = static_cast<uint32_t>(p.rows.size());
  std::vector<uint32_t> last(size_t{rows} + 1, kNobody), place(size_t{rows} + 1), free;
  size_t more = 0;
  for (uint32_t r = 0; r < rows; ++r) {
    ForEachSource(p, r, more, [&](Source s) { last[s >> 1] = r; });
  }
  for (std::span<const TaskId> watched : {starts, ends}) {
    for (TaskId t : watched) last[place_of[t.index()]] = kLater;
  }
  last[rows] = kLater;
  place[rows] = Contracted::kNothing;
  p.tasks = Contracted::kNothing + 1;
  more = 0;
  for (uint32_t r = 0; r < rows; ++r) {
    ForEachSource(p, r, more, [&](Source& s) {
      const uint32_t row = s >> 1;
      if (last[row] == r) free.push_back(place[row]), last[row] = kNobody;
      s = 2 * place[row] + (s & 1);
    });
    Row& row = p.rows[r];
    row.task = Contracted::kNothing;
    if (last[r] == kNobody) {
      row.lane_and_flags &= ~(Row::kStartIsRead | Row::kEndIsRead);
      continue;
    }
    if (free.empty()) free.push_back(static_cast<uint32_t>(p.tasks++));
    row.task = place[r] = free.back();
    free.pop_back();
  }
  for (uint32_t& at : place_of) at = place[at];
}

}  // namespace

Contracted Contract(const Graph& graph, const Program& whole, std::span<const TaskId> starts,
                    std::span<const TaskId> ends) {
  Contracted out;
  Program& p = out.program;
  p.lanes = whole.lanes;
  p.more = whole.more;
  p.more_edges = whole.more_edges;
  const std::vector<uint8_t> needs = NeedsOf(graph, starts, ends);
  out.place_of.resize(graph.size());
  out.sums_of.resize(graph.size());
  std::vector<uint32_t> last(graph.lanes().size());  // row of the lane
  uint32_t rows = 0;
  for (const Row& row : whole.rows) {  // tasks of a lane in their order
    uint32_t& own = last[row.lane_and_flags >> Row::kLaneShift];
    if ((needs[row.task] & kRow) == 0) {
      out.sums_of[row.task] = {2 * own + 1, 2 * own + 1};
      continue;
    }
    out.place_of[row.task] = own = rows++;
    out.sums_of[row.task] = {2 * own, 2 * own + 1};
  }
  const auto source = [&, none = 2 * static_cast<Source>(graph.size())](Source s) {
    return s == none ? 2 * rows : 2 * out.place_of[s >> 1] + (s & 1);
  };
  ReserveLarge(p.rows, rows);
  ReserveLarge(p.into, rows);
  const Source nothing = 2 * static_cast<Source>(rows);
  const Into none{.source = {nothing, nothing, nothing}, .lag = {0, 0, 0}};
  size_t with_edges = 0;
  for (Row row : whole.rows) {
    const uint8_t need = needs[row.task];
    const bool edges = (row.lane_and_flags & Row::kEdges) != 0;
    if ((need & kRow) == 0) continue;  // none of these has edges
    p.into.push_back(edges ? whole.into[with_edges++] : none);
    if (edges) {
      for (Source& s : p.into.back().source) s = source(s);
    }
    row.lane_and_flags |= Row::kEdges;
    // A removed task takes nothing, but what was added to its gap does.
    row.lane_and_flags &= ~Row::kRemoved;
    if ((need & kEnd) != 0) row.lane_and_flags |= Row::kEndIsRead;
    if ((need & kStart) != 0) row.lane_and_flags |= Row::kStartIsRead;
    row.task = out.place_of[row.task];
    p.rows.push_back(row);
  }
  for (More::In& in : p.more_edges) in.source = source(in.source);
  PlaceInstants(p, starts, ends, out.place_of);
  out.sums.resize(2 * size_t{rows} + 1);
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& t = graph.tasks()[i];
    Contracted::Sums& sums = out.sums_of[i];
    if (t.removed) {
      sums = {out.nowhere(), out.nowhere()};
      continue;
    }
    out.sums[sums.duration] += t.duration.ns;
    out.sums[sums.gap] += t.gap.ns;
  }
  return out;
}

Contracted PlaceOfEach(const Graph& graph) {
  Contracted each;
  each.program.tasks = 1;
  each.sums.reserve(2 * graph.size() + 1);
  for (const Task& task : graph.tasks()) {
    const auto place = static_cast<uint32_t>(each.sums.size());
    each.sums_of.push_back({place, place + 1});
    each.sums.insert(each.sums.end(), {task.duration.ns, task.gap.ns});
  }
  each.sums.push_back(0);
  return each;
}

}  // namespace daydream
