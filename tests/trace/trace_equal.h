// Says where two traces differ. Names and details are compared by value: their row numbers are
// no part of what a trace says.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "trace/trace.h"

namespace daydream {

namespace trace_equal_internal {

inline std::string Text(const Trace& t, NameId id) {
  return id.valid() ? fmt::format("\"{}\"", t.names->Get(id)) : "none";
}

inline std::string Text(const Trace& t, const CollectiveDetail& d) {
  return fmt::format("{} {} {} {} {} {}", Text(t, d.name), Text(t, d.dtype),
                     Text(t, d.process_group), d.elements_in, d.elements_out, d.group_size);
}

inline std::string CollectiveText(const Trace& t, uint32_t row) {
  return row == Id<void>::kNoneValue ? "none" : Text(t, t.collectives[row]);
}

inline std::string DetailText(const Trace& t, size_t row) {
  const uint32_t id = t.detail[row];
  if (id == Id<void>::kNoneValue) return "none";
  switch (t.kind[row]) {
    case EventKind::kKernel: {
      const KernelDetail& d = t.kernels[id];
      return fmt::format("grid {} {} {} block {} {} {} regs {} smem {} node {} {} {} {}", d.grid[0],
                         d.grid[1], d.grid[2], d.block[0], d.block[1], d.block[2],
                         d.registers_per_thread, d.shared_memory_bytes, d.graph_node,
                         CollectiveText(t, d.collective), Text(t, d.layer), d.backward);
    }
    case EventKind::kMemcpy:
    case EventKind::kMemset: {
      const CopyDetail& d = t.copies[id];
      return fmt::format("{} B {} {}", d.bytes, int(d.from), int(d.to));
    }
    case EventKind::kOp: {
      const OpDetail& d = t.ops[id];
      return fmt::format("{} {} {} {} {}", d.sequence, d.forward_thread, Text(t, d.shapes),
                         Text(t, d.types), CollectiveText(t, d.collective));
    }
    case EventKind::kSync: {
      const SyncDetail& d = t.syncs[id];
      return fmt::format("{} {} {} {} {}", int(d.kind), d.stream, d.wait_on_stream,
                         d.record_correlation, d.event);
    }
    default:
      return "none";
  }
}

inline std::string RowText(const Trace& t, size_t row) {
  return fmt::format("{} +{} lane {} {} kind {} correlation {} detail {}", t.start[row].ns,
                     t.duration[row].ns, t.lane[row].value, Text(t, t.name[row]), int(t.kind[row]),
                     t.correlation[row], DetailText(t, row));
}

inline std::string LaneText(const Trace& t, const Lane& lane) {
  return fmt::format("{} \"{}\" rank {} device {} process {} number {} type {}", int(lane.kind),
                     t.Name(lane.name), lane.rank, lane.device, lane.process, lane.number,
                     int(lane.stream));
}

inline std::string DeviceText(const Device& d) {
  return fmt::format("{} {} {} {}.{} {} {} {} {} {} {} {} {}", d.id, d.name, d.memory_bytes,
                     d.compute_major, d.compute_minor, d.multiprocessors, d.warp_size,
                     d.max_threads_per_multiprocessor, d.registers_per_multiprocessor,
                     d.shared_memory_per_multiprocessor, d.clock_khz, d.memory_bandwidth_kbps,
                     d.launched_multiprocessors);
}

inline std::string CostText(const RecordingCost& cost) {
  std::string text = fmt::format("\ncost {} {} {} {}", cost.steps_with, cost.with.ns,
                                 cost.steps_without, cost.without.ns);
  text += fmt::format(" {} {}", cost.drift.ns, cost.hidden.ns);
  for (const auto& each : {cost.call, cost.work, cost.layer_mark}) {
    text += each ? fmt::format(" {}/{}", each->ns, each->error_ns) : " -";
  }
  return text;
}

inline std::string ProvenanceText(const Provenance& p) {
  std::string text = fmt::format("{} | {} | {} | {} | {}", p.importer, p.format, p.source,
                                 p.synthetic, p.input_events);
  for (const auto& [what, version] : p.software) text += fmt::format("\n{}={}", what, version);
  for (const ImportCount& c : p.counts) {
    text += fmt::format("\n{} {} {} {} {} {}", c.what, c.count, c.loss, c.reason, c.first_byte,
                        c.repair);
  }
  for (const auto& [name, rows] : p.tables_not_read) text += fmt::format("\n{}: {}", name, rows);
  text += fmt::format("\nno waits {} planned {}", p.no_waits, p.planned);
  text += CostText(p.cost);
  for (const RecordingCost& cost : p.rank_costs) text += CostText(cost);
  return text;
}

}  // namespace trace_equal_internal

// Empty when the traces are equal, else the first difference.
inline std::string TraceDifference(const Trace& a, const Trace& b) {
  using namespace trace_equal_internal;
  if (ProvenanceText(a.provenance) != ProvenanceText(b.provenance)) {
    return fmt::format("provenance:\n{}\nagainst:\n{}", ProvenanceText(a.provenance),
                       ProvenanceText(b.provenance));
  }
  if (a.clock_origin_ns != b.clock_origin_ns) {
    return fmt::format("clock origin {} against {}", a.clock_origin_ns, b.clock_origin_ns);
  }
  if (a.ranks.size() != b.ranks.size()) return "number of ranks";
  for (size_t i = 0; i < a.ranks.size(); ++i) {
    if (a.ranks[i].rank != b.ranks[i].rank || a.ranks[i].world_size != b.ranks[i].world_size) {
      return fmt::format("rank {}", i);
    }
  }
  if (a.devices.size() != b.devices.size()) return "number of devices";
  for (size_t i = 0; i < a.devices.size(); ++i) {
    if (DeviceText(a.devices[i]) != DeviceText(b.devices[i])) return fmt::format("device {}", i);
  }
  if (a.lanes.size() != b.lanes.size()) return "number of lanes";
  for (size_t i = 0; i < a.lanes.size(); ++i) {
    if (LaneText(a, a.lanes[i]) != LaneText(b, b.lanes[i])) {
      return fmt::format("lane {}: {} against {}", i, LaneText(a, a.lanes[i]),
                         LaneText(b, b.lanes[i]));
    }
  }
  if (a.rows() != b.rows()) return fmt::format("{} rows against {}", a.rows(), b.rows());
  if (a.lane_begin != b.lane_begin) return "rows of the lanes";
  for (size_t row = 0; row < a.rows(); ++row) {
    const std::string left = RowText(a, row), right = RowText(b, row);
    if (left != right) return fmt::format("row {}: {}\nagainst {}", row, left, right);
  }
  if (a.allocations != b.allocations) return "allocations";
  if (a.dependencies != b.dependencies) return "dependencies";
  return "";
}

}  // namespace daydream
