// The columns of one chunk of a .ddtrace file, read row by row.
#pragma once

#include <cstdint>

#include "trace/ddtrace/proto.h"

namespace daydream {

// Entries of one column, taken in row order. Entries that are missing read as `absent`.
template <class T>
class DdtraceColumn {
 public:
  explicit DdtraceColumn(const google::protobuf::RepeatedField<T>& entries) : entries_(entries) {}
  // The next entry of a delta-coded column; sums wrap like the writer's differences.
  int64_t NextDelta(int64_t absent) {
    if (next_ >= entries_.size()) return ++missing_, absent;
    last_ += static_cast<uint64_t>(entries_[next_++]);
    return static_cast<int64_t>(last_);
  }
  T Next(T absent) {
    if (next_ >= entries_.size()) return ++missing_, absent;
    return entries_[next_++];
  }
  // Entries that rows asked for in vain, and entries that no row asked for.
  uint64_t mismatch() const { return missing_ + static_cast<uint64_t>(entries_.size() - next_); }

 private:
  const google::protobuf::RepeatedField<T>& entries_;
  int next_ = 0;
  uint64_t last_ = 0;
  uint64_t missing_ = 0;
};

// The entries of one row.
struct DdtraceExtras {
  int64_t correlation = 0, sequence = -1, graph_node = 0, graph = 0, event = -1, event_sync = 0;
  int64_t record_correlation = 0;
  uint64_t bytes = 0, value = 0;
  uint32_t flags = 0;
};

// The columns of one chunk that a reader uses.
class DdtraceColumns {
 public:
  explicit DdtraceColumns(const pb::Rows& rows)
      : correlation_(rows.correlation()),
        sequence_(rows.sequence()),
        graph_node_(rows.graph_node()),
        graph_(rows.graph()),
        event_(rows.event()),
        event_sync_(rows.event_sync()),
        record_correlation_(rows.record_correlation()),
        bytes_(rows.bytes()),
        value_(rows.value()),
        flags_(rows.flags()) {}

  // The entries of the next row, which fills the columns `used`: bit n for Column n.
  DdtraceExtras Take(uint32_t used) {
    DdtraceExtras extras;
    const auto has = [used](pb::Column column) { return (used >> column & 1) != 0; };
    if (has(pb::COLUMN_CORRELATION)) extras.correlation = correlation_.NextDelta(0);
    if (has(pb::COLUMN_BYTES)) extras.bytes = bytes_.Next(0);
    if (has(pb::COLUMN_SEQUENCE)) extras.sequence = sequence_.NextDelta(-1);
    if (has(pb::COLUMN_GRAPH_NODE)) extras.graph_node = graph_node_.NextDelta(0);
    if (has(pb::COLUMN_GRAPH)) extras.graph = graph_.NextDelta(0);
    if (has(pb::COLUMN_EVENT)) extras.event = event_.NextDelta(-1);
    if (has(pb::COLUMN_EVENT_SYNC)) extras.event_sync = event_sync_.NextDelta(0);
    if (has(pb::COLUMN_RECORD_CORRELATION)) {
      extras.record_correlation = record_correlation_.NextDelta(0);
    }
    if (has(pb::COLUMN_VALUE)) extras.value = value_.Next(0);
    if (has(pb::COLUMN_FLAGS)) extras.flags = flags_.Next(0);
    return extras;
  }

  uint64_t mismatch() const {
    return correlation_.mismatch() + sequence_.mismatch() + graph_node_.mismatch() +
           graph_.mismatch() + event_.mismatch() + event_sync_.mismatch() +
           record_correlation_.mismatch() + bytes_.mismatch() + value_.mismatch() +
           flags_.mismatch();
  }

 private:
  DdtraceColumn<int64_t> correlation_, sequence_, graph_node_, graph_, event_, event_sync_;
  DdtraceColumn<int64_t> record_correlation_;
  DdtraceColumn<uint64_t> bytes_, value_;
  DdtraceColumn<uint32_t> flags_;
};

}  // namespace daydream
