// What NCCL tells of a call in the payload of its NVTX range: how many bytes, on which
// communicator, to or from whom; and which of the calls on that communicator it is. That number is
// the same on every rank, which is how the ranks of a run are joined.
//
// Layouts: nvtx_payload_schemas.h of NCCL 2.26 and newer; collectives.cc of those before, which
// have no communicator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace daydream::tracer {

// A function of NCCL, by the name of its range.
struct NcclFunction {
  uint32_t name = 0;                     // "nccl:AllReduce", "nccl:GroupEnd"
  bool has_bytes = false;                // a size is in its payload ...
  bool is_gather = false;                // ... and neither reduction nor root nor peer
  bool sends = false, receives = false;  // from one rank to another
};
NcclFunction DescribeNccl(std::string_view range);

struct NcclCall {
  int64_t bytes = -1;          // -1: not told
  int64_t number = -1;         // of its communicator, or of the pair of ranks; -1: not told
  uint64_t communicator = 0;   // a hash, the same on every rank
  int32_t size = 0;            // of the communicator; 0: not told
  int32_t from = -1, to = -1;  // ranks in it, of point to point
};

// Reads and counts one call; `payload` is null where there is none. For every call of the process,
// whether it is recorded or not. No lock.
NcclCall CountNcclCall(const NcclFunction& function, const void* payload, size_t size);
// The name of "8f03a1e55c/8", or "8f03a1e55c/8 0>3": communicator, its size, sender > receiver.
uint32_t NameOfGroup(const NcclCall& call);

// A communicator was made: the payload says of how many ranks, and which of them this one is.
void NoteNcclCommunicator(const void* payload, size_t size);

}  // namespace daydream::tracer
