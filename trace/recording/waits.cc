#include "trace/recording/waits.h"

#include <algorithm>
#include <tuple>

#include "absl/container/flat_hash_map.h"

namespace daydream {
namespace {

// The last record of the wait's event before the wait, or nullptr.
const EventRecord* LastBefore(std::span<const EventRecord> sorted, const EventWait& wait) {
  const auto key = std::make_tuple(wait.context, wait.detail->event);
  const auto of_event = [](const EventRecord& r) { return std::make_tuple(r.context, r.event); };
  auto first = std::partition_point(sorted.begin(), sorted.end(),
                                    [&](const EventRecord& r) { return of_event(r) < key; });
  auto last = std::partition_point(first, sorted.end(),
                                   [&](const EventRecord& r) { return of_event(r) == key; });
  if (first == last) return nullptr;
  auto after = std::partition_point(
      first, last, [&](const EventRecord& r) { return r.correlation < wait.correlation; });
  // Before the first of all comes the last: the count of correlations starts over at 2^32.
  const EventRecord& record = after == first ? *(last - 1) : *(after - 1);
  const uint32_t distance = wait.correlation - record.correlation;
  return distance != 0 && distance < uint32_t{1} << 31 ? &record : nullptr;
}

}  // namespace

uint64_t JoinWaits(std::vector<EventRecord> records, std::span<const EventWait> waits) {
  std::sort(records.begin(), records.end(), [](const EventRecord& a, const EventRecord& b) {
    return std::tie(a.context, a.event, a.correlation) <
           std::tie(b.context, b.event, b.correlation);
  });
  absl::flat_hash_map<uint64_t, const EventRecord*> by_number;
  for (const EventRecord& record : records) {
    if (record.event_sync != 0) by_number.try_emplace(record.event_sync, &record);
  }
  uint64_t without = 0;
  for (const EventWait& wait : waits) {
    const EventRecord* record = nullptr;
    if (wait.event_sync == 0 || by_number.empty()) {
      record = LastBefore(records, wait);
    } else if (auto it = by_number.find(wait.event_sync); it != by_number.end()) {
      record = it->second;
    }
    if (record == nullptr) {
      ++without;
      continue;
    }
    wait.detail->record_correlation = record->correlation;
    wait.detail->wait_on_stream = record->stream;
  }
  return without;
}

}  // namespace daydream
