// What NCCL says about its calls in the payloads of its NVTX ranges.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "trace/sqlite/database.h"

namespace daydream {

struct NsysPayload {
  int64_t bytes = -1;             // "Message size [bytes]"; -1: not in it
  uint64_t communicator = 0;      // "NCCL communicator ID"; 0: not in it
  int64_t ranks = -1, rank = -1;  // "No. of ranks", "Rank"
};

// The layouts that NVTX_PAYLOAD_SCHEMA_ENTRIES describes.
class NsysPayloads {
 public:
  absl::Status ReadLayouts(SqliteFile& db);
  // Of the column binaryData, which begins with 32 bytes: domain, 0, layout, 0 (4 bytes each), the
  // size of the payload and the size of all (8 each); 2024 to 2026, as nsys-ai reads them. Any
  // other bytes are an empty payload.
  NsysPayload Decode(std::string_view data) const;

 private:
  enum class Field : uint8_t { kBytes, kCommunicator, kRanks, kRank };
  struct Entry {
    Field field = Field::kBytes;
    size_t offset = 0, size = 0;
  };
  std::map<std::pair<int64_t, int64_t>, std::vector<Entry>> layouts_;  // by domain and number
};

}  // namespace daydream
