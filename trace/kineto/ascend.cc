#include "trace/kineto/ascend.h"

#include <algorithm>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "base/text.h"

namespace daydream {

AscendRows::Kind AscendRows::KindOf(const KinetoEvent& e) {
  const std::string_view type = e.args.task_type.text;
  if (e.args.task_type.present()) {
    if (type.starts_with("EVENT_") || type.starts_with("NOTIFY_")) return Kind::kEventTask;
    return Contains(type, "MEMCPY") || Contains(type, "SDMA") ? Kind::kCopy : Kind::kKernel;
  }
  const bool named = Contains(e.name.text, "@");
  return named && e.args.connection != KinetoArgs::kAbsent ? Kind::kCall : Kind::kOther;
}

bool AscendRows::Joins(std::string_view category) {
  return category == "HostToDevice" || category == "async_npu";
}

void AscendRows::AddFlow(bool begins, int64_t id, Place place, int64_t at_ns) {
  (begins ? begins_ : ends_).push_back({id, place, at_ns});
}

void AscendRows::Add(const TraceBuilder::Event& row, int64_t connection, Place place) {
  (row.kind == EventKind::kCall ? calls_ : tasks_).push_back({row, connection, place});
}

// The correlation of the call that runs there: of several, the one that began last. 0: none does.
uint32_t AscendRows::CallAt(Place place, int64_t at_ns) const {
  constexpr int kDeepest = 64;  // calls inside of calls
  auto it = std::upper_bound(
      calls_.begin(), calls_.end(), std::pair(place, at_ns),
      [](const auto& at, const Row& row) { return at < std::pair(row.place, row.event.start.ns); });
  for (int depth = 0; depth < kDeepest && it != calls_.begin(); ++depth) {
    --it;
    if (it->place != place) return 0;
    if (at_ns <= (it->event.start + it->event.duration).ns) return it->event.correlation;
  }
  return 0;
}

void AscendRows::Finish(TraceBuilder& builder) {
  if (tasks_.empty() && calls_.empty()) return;
  std::stable_sort(calls_.begin(), calls_.end(), [](const Row& a, const Row& b) {
    return std::tie(a.place, a.event.start) < std::tie(b.place, b.event.start);
  });
  absl::flat_hash_map<int64_t, uint32_t> by_connection;  // calls of one connection are one launch
  uint32_t next = 0;
  for (Row& call : calls_) {
    const auto [it, added] = by_connection.try_emplace(call.connection, next + 1);
    next += added;
    call.event.correlation = it->second;
    builder.AddEvent(call.event);
  }
  using At = std::pair<Place, int64_t>;
  absl::flat_hash_map<int64_t, At> begin_of;  // by id of the flow
  for (const FlowEnd& f : begins_) begin_of.try_emplace(f.id, f.place, f.at_ns);
  absl::flat_hash_map<At, int64_t> flow_at;
  for (const FlowEnd& f : ends_) flow_at.try_emplace(At(f.place, f.at_ns), f.id);
  uint64_t alone = 0;
  for (Row& task : tasks_) {
    const auto call = by_connection.find(task.connection);
    if (task.connection != KinetoArgs::kAbsent && call != by_connection.end()) {
      task.event.correlation = call->second;
    } else if (const auto end = flow_at.find(At(task.place, task.event.start.ns));
               end != flow_at.end()) {
      const auto begin = begin_of.find(end->second);
      if (begin != begin_of.end()) {
        task.event.correlation = CallAt(begin->second.first, begin->second.second);
      }
    }
    alone += task.event.correlation == 0;
    builder.AddEvent(task.event);
  }
  builder.provenance().no_waits = true;
  if (alone > 0) {
    builder.Count("device tasks without a call", "no connection_id and no flow event names it",
                  false, alone, -1, /*count_as_event=*/false);
  }
}

}  // namespace daydream
