#include "tracer/nccl_calls.h"

#include <array>
#include <atomic>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <string>

#include "tracer/marks.h"

namespace daydream::tracer {
namespace {

// What is counted: the calls on a communicator, or from one of its ranks to another.
struct Counter {
  std::atomic<uint64_t> key{0};  // 0: free
  std::atomic<int64_t> calls{0};
  std::atomic<uint64_t> place{0};  // of this process: number of ranks << 32 | rank
};
// Two ranks of one communicator are in this process: whose call one is, nobody can tell.
constexpr uint64_t kSeveral = ~uint64_t{0};
constexpr size_t kCounters = size_t{1} << 14;  // chosen; more are not counted
constinit std::array<Counter, kCounters> counters;

// Mixes all bits (the finalizer of MurmurHash3); not 0.
uint64_t Mix(uint64_t key) {
  key = (key ^ key >> 33) * 0xff51afd7ed558ccd;
  key = (key ^ key >> 33) * 0xc4ceb9fe1a85ec53;
  key ^= key >> 33;
  return key == 0 ? 1 : key;
}

// Null: there are too many.
Counter* CounterOf(uint64_t key) {
  constexpr size_t kMostTries = 64;
  for (size_t i = 0; i < kMostTries; ++i) {
    Counter& counter = counters[(key + i) % kCounters];
    uint64_t found = counter.key.load(std::memory_order_acquire);
    if (found == 0 && counter.key.compare_exchange_strong(found, key)) return &counter;
    if (found == key) return &counter;
  }
  return nullptr;
}

template <class T>
T At(const void* bytes, size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(bytes) + offset, sizeof value);
  return value;
}

// The communicator is known, and the peer of point to point.
void Number(const NcclFunction& function, int32_t peer, NcclCall& call) {
  Counter* counter = CounterOf(Mix(call.communicator));
  if (counter == nullptr) return;
  const uint64_t place = counter->place.load(std::memory_order_relaxed);
  if (place == kSeveral) return;
  call.size = static_cast<int32_t>(place >> 32);
  if (function.sends || function.receives) {
    if (call.size == 0 || peer < 0) return;
    const auto own = static_cast<int32_t>(place & 0xffffffff);
    call.from = function.sends ? own : peer;
    call.to = function.sends ? peer : own;
    const uint64_t pair = uint64_t{static_cast<uint32_t>(peer)} << 1 | uint64_t{function.sends};
    counter = CounterOf(Mix(Mix(call.communicator) + 1 + pair));
    if (counter == nullptr) return;
  }
  call.number = counter->calls.fetch_add(1, std::memory_order_relaxed);
}

void Append(std::string& text, uint64_t number, int base) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, base).ptr;
  text.append(digits.data(), end);
}

}  // namespace

NcclFunction DescribeNccl(std::string_view text) {
  if (text.starts_with("nccl")) text.remove_prefix(4);
  NcclFunction function;
  function.is_gather = text == "AllGather" || text.starts_with("Allto");
  function.has_bytes = function.is_gather;
  for (const std::string_view call : {"AllReduce", "Broadcast", "Bcast", "Reduce", "ReduceScatter",
                                      "Send", "Recv", "Gather", "Scatter"}) {
    function.has_bytes |= text == call;
  }
  function.sends = text == "Send";
  function.receives = text == "Recv";
  // The few names of NCCL's calls have no share to use up.
  const std::string name = std::string("nccl:").append(text);
  function.name = function.has_bytes ? MarkName(name) : NvtxName(name);
  return function;
}

NcclCall CountNcclCall(const NcclFunction& function, const void* payload, size_t size) {
  // Communicator (8 bytes), size (8), then root and reduction or peer (together 8, or none). Before
  // 2.26 the same without the communicator.
  NcclCall call;
  if (!function.has_bytes || payload == nullptr) return call;
  const size_t old_size = function.is_gather ? 8 : 16;
  if (size == old_size) {
    call.bytes = At<int64_t>(payload, 0);
  } else if (size == old_size + 8) {
    call.communicator = At<uint64_t>(payload, 0);
    call.bytes = At<int64_t>(payload, 8);
    const int32_t peer = function.is_gather ? -1 : At<int32_t>(payload, 16);
    if (call.communicator != 0) Number(function, peer, call);
  }
  return call;
}

uint32_t NameOfGroup(const NcclCall& call) {
  constexpr int kHex = 16, kDecimal = 10;
  std::string text;
  Append(text, call.communicator, kHex);
  if (call.size > 0) Append(text += '/', static_cast<uint64_t>(call.size), kDecimal);
  if (call.from >= 0 && call.to >= 0) {
    Append(text += ' ', static_cast<uint64_t>(call.from), kDecimal);
    Append(text += '>', static_cast<uint64_t>(call.to), kDecimal);
  }
  return MarkName(text);
}

void NoteNcclCommunicator(const void* payload, size_t bytes) {
  // ncclCommInitAll: communicator, number of devices, all of this process. ncclCommInitRank and its
  // kin, ncclCommShrink: communicator, number of ranks, rank, and two more. ncclCommSplit has the
  // parent before the number of ranks.
  constexpr size_t kAll = 16, kMade = 24, kSplit = 40;
  if (payload == nullptr || (bytes != kAll && bytes != kMade && bytes != kSplit)) return;
  const size_t at = bytes == kSplit ? 16 : 8;
  const auto communicator = At<uint64_t>(payload, 0);
  const auto size = At<int32_t>(payload, at),
             rank = bytes == kAll ? 0 : At<int32_t>(payload, at + 4);
  if (communicator == 0 || rank < 0 || rank >= size) return;
  Counter* counter = CounterOf(Mix(communicator));
  if (counter == nullptr) return;
  const uint64_t place = uint64_t{static_cast<uint32_t>(size)} << 32 | static_cast<uint32_t>(rank);
  uint64_t before = 0;
  const bool first = counter->place.compare_exchange_strong(before, place);
  if ((!first && before != place) || (bytes == kAll && size > 1)) counter->place = kSeveral;
}

}  // namespace daydream::tracer
