// What a collective does, from any of the names that it goes by.
#pragma once

#include <cstdint>
#include <string_view>

namespace daydream {

enum class CollectiveKind : uint8_t {
  kUnknown,
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
  kReduce,
  kSendRecv,  // point to point
};

// "all_reduce", as torch.distributed calls it.
std::string_view CollectiveName(CollectiveKind kind);

// Of "nccl:all_reduce", "_allgather_base", "reduce_scatter_tensor_coalesced", "all_to_allv",
// "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "ncclBroadcast". kUnknown for barriers (no data), for
// waits, and for names that say nothing, like RCCL's generic kernel.
CollectiveKind CollectiveNamed(std::string_view name);

// True for "nccl:send": the name of one side of a transfer between two ranks.
bool IsSide(std::string_view name);

}  // namespace daydream
