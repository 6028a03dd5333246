// CUPTI's buffers as they came, for tests that replay what a real GPU delivered: written beside the
// recording when DAYDREAM_DUMP_RAW=1, up to 10 MB. Little endian:
//
//   file  = "DDCUPTI1" | u32 CUPTI version | u32 0 | block*
//   block = u32 type | u32 0 | u64 size | payload
//   1: texts that the next buffer points to, each u64 address | u64 size | bytes
//   2: the filled part of a buffer
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "tracer/recording.h"

namespace daydream::tracer {

class RawDump {
 public:
  RawDump() = default;
  ~RawDump();
  RawDump(const RawDump&) = delete;
  RawDump& operator=(const RawDump&) = delete;

  // Creates the file. Without it Add() does nothing.
  void Open(const std::string& path, uint32_t cupti_version);
  void Add(uint8_t* buffer, size_t valid, const CuptiDecoding& cupti);

 private:
  void Write(std::string_view bytes);

  int file_ = -1;
  size_t written_ = 0;
};

// Calls `take` for each buffer of a dump, its texts where the records point to. False when `bytes`
// is no dump, or is cut off; the whole buffers before that have been taken.
bool ReplayRaw(
    std::string_view bytes, CuptiDecoding cupti,
    const std::function<void(const CuptiDecoding&, uint8_t* buffer, size_t valid)>& take);

}  // namespace daydream::tracer
