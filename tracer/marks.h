// Marks of the recorded process: who calls what where, from any thread, before, while and after a
// Recording is open. A mark waits in a block of its own thread until Recording::AddMarks() takes
// it. No lock and no system call but the clock; a new name takes a lock once.
//
// All state lives until the process ends and has no destructor. Memory is bounded: marks beyond
// kMaxWaitingMarks, and names beyond the limits of tracer/name_table.h, are dropped and counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace daydream::tracer {

// Marks that no Recording has taken yet, of all threads together (about 48 MiB).
inline constexpr size_t kMaxWaitingMarks = size_t{2} << 20;

// Added to a mark's kind: the value is a number of bytes, not the value of the mark.
inline constexpr uint32_t kMarkBytes = 1u << 31;

// The id of a text; equal texts have equal ids, which count up from 1. 0 for the empty text, and
// when there are too many: marks with further names have the empty name. Ids stay the same in
// forked children.
uint32_t MarkName(std::string_view text);
// The same for a text of NVTX, which has a share of the names for itself.
uint32_t NvtxName(std::string_view text);
// The text of an id that MarkName() gave; empty for any other number.
std::string_view MarkText(uint32_t name);

// Marks this instant of the calling thread. `kind` is one of daydream_mark_kind, perhaps with
// kMarkBytes.
void Mark(uint32_t kind, uint32_t name, int64_t value);

// What Mark() left, oldest first for each thread.
struct MarkRecord {
  int64_t time_ns;  // CLOCK_MONOTONIC
  int64_t value;
  uint32_t name;
  uint32_t kind;
};
// Takes all marks that wait and calls `take(user, thread, marks, count)` for every run of marks of
// one thread (its gettid). One thread at a time may do this.
void TakeMarks(void (*take)(void* user, uint32_t thread, const MarkRecord* marks, size_t count),
               void* user);
// Forgets all marks that wait, as after a recording that is over. As TakeMarks().
void DropMarks();
// Whether a mark waits. As TakeMarks().
bool AnyMarks();
// Marks that were dropped since the process began, and texts for which there was no room.
uint64_t DroppedMarks();
uint64_t DroppedNames();

// Makes the thread-local variables of this library for the calling thread. Their first use takes
// the loader's lock, so it must not be while a lock of the recorder is held (recorder.h).
void TouchThreadLocals();

// For pthread_atfork(): before the fork, after it in the parent, after it in the child. The child
// keeps the names, and none of the marks that waited.
void MarksBeforeFork();
void MarksAfterForkInParent();
void MarksAfterForkInChild();

}  // namespace daydream::tracer
