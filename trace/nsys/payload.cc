#include "trace/nsys/payload.h"

#include <algorithm>

namespace daydream {
namespace {

// Types of fields, as nvToolsExtPayload.h numbers them: int, unsigned, and those with their size in
// the name; long and size_t are of 8 bytes on all systems with GPUs that NCCL runs on.
size_t SizeOfType(int64_t type) {
  switch (type) {
    case 5:
    case 6:
    case 15:
    case 16:
      return 4;
    case 7:
    case 8:
    case 9:
    case 10:
    case 17:
    case 18:
    case 22:
      return 8;
    default:
      return 0;
  }
}

uint64_t LittleEndian(std::string_view bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

}  // namespace

absl::Status NsysPayloads::ReadLayouts(SqliteFile& db) {
  SqliteRows rows(db, "NVTX_PAYLOAD_SCHEMA_ENTRIES",
                  {"domainId", "schemaId", "type", "name", "offset"});
  while (rows.Next()) {
    const std::string_view name = rows.Text(3);
    Entry entry;
    if (name.starts_with("Message size")) {
      entry.field = Field::kBytes;
    } else if (name == "NCCL communicator ID") {
      entry.field = Field::kCommunicator;
    } else if (name == "No. of ranks") {
      entry.field = Field::kRanks;
    } else if (name == "Rank") {
      entry.field = Field::kRank;
    } else {
      continue;
    }
    constexpr int64_t kFurthest = 4096;
    entry.size = SizeOfType(rows.Int(2, -1));
    const int64_t offset = rows.Int(4, 0);  // the first field has none
    if (entry.size == 0 || offset < 0 || offset > kFurthest) continue;
    entry.offset = static_cast<size_t>(offset);
    std::vector<Entry>& layout = layouts_[{rows.Int(0, -1), rows.Int(1, -1)}];
    // Each process registers the same layouts.
    const bool known = std::any_of(layout.begin(), layout.end(),
                                   [&](const Entry& e) { return e.field == entry.field; });
    if (!known) layout.push_back(entry);
  }
  return rows.status();
}

NsysPayload NsysPayloads::Decode(std::string_view data) const {
  constexpr size_t kHeader = 32;
  NsysPayload payload;
  if (data.size() < kHeader) return payload;
  const auto domain = static_cast<int64_t>(LittleEndian(data, 0, 4));
  const auto number = static_cast<int64_t>(LittleEndian(data, 8, 4));
  const auto layout = layouts_.find({domain, number});
  if (layout == layouts_.end()) return payload;
  data.remove_prefix(kHeader);
  for (const Entry& entry : layout->second) {
    if (entry.offset + entry.size > data.size()) continue;
    const uint64_t value = LittleEndian(data, entry.offset, entry.size);
    const auto number_of = static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX));
    switch (entry.field) {
      case Field::kBytes:
        payload.bytes = number_of;
        break;
      case Field::kCommunicator:
        payload.communicator = value;
        break;
      case Field::kRanks:
        payload.ranks = std::min<int64_t>(number_of, INT32_MAX);
        break;
      case Field::kRank:
        payload.rank = std::min<int64_t>(number_of, INT32_MAX);
        break;
    }
  }
  return payload;
}

}  // namespace daydream
