// One event of a Chrome trace as the PyTorch profiler writes it, picked out of the text without
// copying it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "trace/json/keys.h"
#include "trace/json/reader.h"

namespace daydream {

// pid and tid come as numbers or as strings, with or without a number in them.
struct JsonIdentity {
  int64_t number = 0;
  JsonString text;  // present when it was a string that is not a number
  bool present = false;
};

struct KinetoArgs {
  static constexpr int64_t kAbsent = INT64_MIN;

  int64_t device = kAbsent, stream = kAbsent, correlation = kAbsent, bytes = kAbsent;
  int64_t registers = kAbsent, shared_memory = kAbsent;
  int64_t sequence = kAbsent, forward_thread = kAbsent;
  int64_t wait_on_stream = kAbsent, wait_on_record = kAbsent, wait_on_event = kAbsent;
  // Of memory marks: what "bytes" and "device" are to copies and kernels.
  int64_t allocation = kAbsent, device_type = kAbsent, device_id = kAbsent;
  int64_t total_allocated = kAbsent, total_reserved = kAbsent;
  int64_t elements_in = kAbsent, elements_out = kAbsent, group_size = kAbsent;
  int64_t collective_sequence = kAbsent, from_rank = kAbsent, to_rank = kAbsent;
  JsonIdentity sycl_queue, l0_queue, queue;  // what Intel GPUs and others have for streams
  uint64_t graph_node = 0;
  // In thousandths.
  NumberState blocks_state = NumberState::kMissing;
  int64_t blocks_per_multiprocessor = 0;
  std::array<uint32_t, 3> grid{}, block{};
  std::string_view shapes, types, values;  // raw JSON; values: of arguments that are no tensors
  std::string_view members;                // raw JSON: a list, or a string of one
  JsonString collective, dtype, process_group, sync_kind, name;
  // Of Ascend devices (ascend.h).
  JsonString task_type;
  int64_t stream_id = kAbsent, connection = kAbsent;
};

struct KinetoEvent {
  char phase = '\0';  // '\0' = missing
  JsonString category, name;
  JsonIdentity process, thread, flow;  // flow: "id"
  NumberState start_state = NumberState::kMissing, duration_state = NumberState::kMissing;
  int64_t start_ns = 0, duration_ns = 0;
  bool broken_arguments = false;
  bool has_arguments = false;  // known ones; else `args` are as they begin
  KinetoArgs args;
};

// Name of the instant events that note an allocation.
inline constexpr std::string_view kMemoryMark = "[memory]";

enum class ParseResult : uint8_t {
  kOk,
  kMalformed,   // this is not an event
  kIncomplete,  // the text ends before the event does
};

// Reads the object at `*p` (a '{') and moves `*p` behind it. On kMalformed and kIncomplete `*p`
// does not move. `keys` remember how events are written; what is read does not depend on them.
// REQUIRES: kJsonPadding readable bytes behind `end`.
ParseResult ParseKinetoEvent(const char** p, const char* end, KinetoEvent* event, JsonKeys* keys);

}  // namespace daydream
