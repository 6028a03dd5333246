// Reads what a Recording wrote by the generated code of proto/daydream_trace.proto, so that tests
// can compare it with what went in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "proto/daydream_trace.pb.h"
#include "trace/ddtrace/format.h"

namespace daydream::tracer {

namespace pb = daydream::trace::v1;

// One row with what its ids stand for. Columns that it does not fill are 0.
struct WrittenRow {
  std::string name;
  pb::Signature signature;
  pb::Lane lane;
  int64_t start = 0;
  uint64_t duration = 0;
  uint32_t columns = 0;
  int64_t correlation = 0, graph_node = 0, graph = 0, event = 0, event_sync = 0;
  int64_t return_code = 0, device_time = 0;
  uint64_t bytes = 0, value = 0, flags = 0;

  pb::Kind kind() const { return signature.kind(); }
  bool has(pb::Column column) const { return (columns >> column & 1) != 0; }
};

struct WrittenFile {
  pb::Header header;
  std::vector<pb::EventChunk> chunks;
  std::vector<WrittenRow> rows;
  std::vector<std::string> strings;
  std::vector<pb::Lane> lanes;
  std::vector<pb::Signature> signatures;
  std::vector<pb::Device> devices;
  std::vector<pb::Context> contexts;
  std::vector<pb::GraphNode> graph_nodes;
  std::vector<pb::ClockSnapshot> clocks;
  pb::Loss loss;  // the last one
  std::optional<pb::Index> index;
  bool has_trailer = false;

  std::vector<WrittenRow> OfKind(pb::Kind kind) const {
    std::vector<WrittenRow> found;
    for (const WrittenRow& row : rows) {
      if (row.kind() == kind) found.push_back(row);
    }
    return found;
  }
};

inline std::string FileBytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

namespace written {

// The columns of one chunk, read row by row.
class Columns {
 public:
  explicit Columns(const pb::Rows& rows) : rows_(rows) {}
  void Read(WrittenRow& row) {
    Delta(row, pb::COLUMN_CORRELATION, rows_.correlation(), row.correlation);
    Plain(row, pb::COLUMN_BYTES, rows_.bytes(), row.bytes);
    Delta(row, pb::COLUMN_GRAPH_NODE, rows_.graph_node(), row.graph_node);
    Delta(row, pb::COLUMN_GRAPH, rows_.graph(), row.graph);
    Delta(row, pb::COLUMN_EVENT, rows_.event(), row.event);
    Delta(row, pb::COLUMN_EVENT_SYNC, rows_.event_sync(), row.event_sync);
    Plain(row, pb::COLUMN_RETURN_CODE, rows_.return_code(), row.return_code);
    Delta(row, pb::COLUMN_DEVICE_TIME, rows_.device_time(), row.device_time);
    Plain(row, pb::COLUMN_VALUE, rows_.value(), row.value);
    Plain(row, pb::COLUMN_FLAGS, rows_.flags(), row.flags);
  }
  bool AllTaken() const {
    const int sizes[] = {rows_.correlation_size(), rows_.bytes_size(),
                         rows_.graph_node_size(),  rows_.graph_size(),
                         rows_.event_size(),       rows_.event_sync_size(),
                         rows_.return_code_size(), rows_.device_time_size(),
                         rows_.value_size(),       rows_.flags_size()};
    int all = 0;
    for (const int size : sizes) all += size;
    return all == taken_;
  }

 private:
  template <class Entries, class Value>
  void Plain(const WrittenRow& row, pb::Column column, const Entries& entries, Value& value) {
    if (!row.has(column)) return;
    ASSERT_LT(next_[column], entries.size());
    value = static_cast<Value>(entries[next_[column]++]);
    ++taken_;
  }
  template <class Entries>
  void Delta(const WrittenRow& row, pb::Column column, const Entries& entries, int64_t& value) {
    int64_t delta = 0;
    Plain(row, column, entries, delta);
    if (!row.has(column)) return;
    last_[column] += static_cast<uint64_t>(delta);
    value = static_cast<int64_t>(last_[column]);
  }

  const pb::Rows& rows_;
  int next_[32] = {};
  uint64_t last_[32] = {};
  int taken_ = 0;
};

template <class From, class To>
void Append(uint32_t first, const From& from, To& to) {
  if (from.empty()) return;
  EXPECT_EQ(first, to.size()) << "ids must count up";
  to.insert(to.end(), from.begin(), from.end());
}

inline void ReadEvents(const pb::EventChunk& chunk, WrittenFile& file) {
  const pb::Definitions& d = chunk.definitions();
  Append(d.first_string(), d.strings(), file.strings);
  Append(d.first_lane(), d.lanes(), file.lanes);
  Append(d.first_signature(), d.signatures(), file.signatures);
  file.devices.insert(file.devices.end(), d.devices().begin(), d.devices().end());
  file.contexts.insert(file.contexts.end(), d.contexts().begin(), d.contexts().end());
  const auto& nodes = chunk.graph_nodes();
  file.graph_nodes.insert(file.graph_nodes.end(), nodes.begin(), nodes.end());
  file.clocks.insert(file.clocks.end(), chunk.clocks().begin(), chunk.clocks().end());
  if (chunk.has_loss()) file.loss = chunk.loss();

  const pb::Rows& rows = chunk.rows();
  ASSERT_EQ(rows.duration_size(), rows.start_size());
  ASSERT_EQ(rows.lane_size(), rows.start_size());
  ASSERT_EQ(rows.signature_size(), rows.start_size());
  ASSERT_EQ(rows.used_columns_size(), rows.used_signature_size());
  Columns columns(rows);
  auto start = static_cast<uint64_t>(chunk.base_ns());
  for (int i = 0; i < rows.start_size(); ++i) {
    start += static_cast<uint64_t>(rows.start(i));
    const auto used = static_cast<int>(rows.signature(i));
    ASSERT_LT(used, rows.used_signature_size());
    ASSERT_LT(rows.used_signature(used), file.signatures.size());
    ASSERT_LT(rows.lane(i), file.lanes.size());
    WrittenRow row{.signature = file.signatures[rows.used_signature(used)],
                   .lane = file.lanes[rows.lane(i)],
                   .start = static_cast<int64_t>(start),
                   .duration = rows.duration(i),
                   .columns = rows.used_columns(used)};
    ASSERT_LT(row.signature.name(), file.strings.size());
    row.name = file.strings[row.signature.name()];
    columns.Read(row);
    file.rows.push_back(std::move(row));
  }
  EXPECT_TRUE(columns.AllTaken());
}

}  // namespace written

// Fails the test when any byte of `bytes` is not as docs/formats.md says.
inline WrittenFile ReadWritten(std::string_view bytes) {
  WrittenFile file;
  EXPECT_TRUE(bytes.starts_with(kDdtraceMagic));
  size_t at = kDdtraceMagic.size(), last_chunk = 0;
  for (uint32_t sequence = 0;; ++sequence) {
    const auto header = DecodeChunkHeader(bytes.substr(std::min(at, bytes.size())));
    if (!header) break;
    EXPECT_EQ(header->sequence, sequence);
    last_chunk = at;
    at += kDdtraceHeaderSize;
    const auto message = UnpackChunk(*header, bytes.substr(at, header->stored_size));
    at += header->stored_size;
    if (!message.ok()) {
      ADD_FAILURE() << Message(message.status());
      break;
    }
    switch (static_cast<DdtraceChunkType>(header->type)) {
      case DdtraceChunkType::kHeader:
        EXPECT_TRUE(file.header.ParseFromString(*message));
        break;
      case DdtraceChunkType::kIndex:
        EXPECT_TRUE(file.index.emplace().ParseFromString(*message));
        break;
      case DdtraceChunkType::kEvents:
        EXPECT_TRUE(file.chunks.emplace_back().ParseFromString(*message));
        written::ReadEvents(file.chunks.back(), file);
        break;
    }
  }
  const std::string_view rest = bytes.substr(std::min(at, bytes.size()));
  file.has_trailer = DecodeTrailer(bytes) == last_chunk && rest.size() == kDdtraceTrailerSize;
  EXPECT_TRUE(rest.empty() || file.has_trailer);
  return file;
}

// A folder of this test that goes away with it.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "daydream_XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(std::string_view name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace daydream::tracer
