// Buffers of the fake CUPTI: one open buffer per thread for what happens on the CPU, one for the
// GPU, whose records come when they are complete. As in the real one, a client that calls CUPTI
// in its buffer callbacks deadlocks.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cupti.h>

namespace daydream {

struct FakeClient {  // set before the first record, by the entry points of the same name
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  int64_t clock_offset = 0;  // add to CLOCK_MONOTONIC
  bool zeroed_buffers = false;
};
FakeClient& Client();

// Size of a record in a buffer, 0 if the kind is unknown.
size_t RecordSize(uint32_t kind);

// To be called before there are threads: a child of a fork can go on, whatever they held.
void PrepareForks();
// Adds a record of the calling thread.
void PutRecord(const void* record, size_t size);
// Adds a record of the GPU when the clock reaches `end`. Its times stand at these offsets.
void PutWork(const void* record, size_t size, size_t start_offset, size_t end_offset, int64_t end);
// Forgets GPU work of this kind that has not ended.
void DropRunningWork(uint32_t kind);
// Hands out all buffers. `forced`: also records that are not complete, with end 0.
void FlushBuffers(bool forced);
size_t TakeDropped();
// From now on no record is taken.
void StopRecords();

}  // namespace daydream
