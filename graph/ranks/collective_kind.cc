#include "graph/ranks/collective_kind.h"

#include <cctype>
#include <string>
#include <utility>

#include "base/text.h"

namespace daydream {
namespace {

// Letters and digits only, in lower case: "_allgather_base" -> "allgatherbase".
std::string Plain(std::string_view name) {
  std::string plain;
  for (unsigned char c : name) {
    if (std::isalnum(c) != 0) plain += static_cast<char>(std::tolower(c));
  }
  return plain;
}

// The first that a name holds counts: "reducescatter" before "reduce".
constexpr std::pair<std::string_view, CollectiveKind> kWords[] = {
    {"allreduce", CollectiveKind::kAllReduce}, {"reducescatter", CollectiveKind::kReduceScatter},
    {"allgather", CollectiveKind::kAllGather}, {"alltoall", CollectiveKind::kAllToAll},
    {"broadcast", CollectiveKind::kBroadcast}, {"sendrecv", CollectiveKind::kSendRecv},
    {"reduce", CollectiveKind::kReduce},       {"gather", CollectiveKind::kAllGather},
    {"send", CollectiveKind::kSendRecv},       {"recv", CollectiveKind::kSendRecv},
};

}  // namespace

std::string_view CollectiveName(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kUnknown:
      return "collective";
    case CollectiveKind::kAllReduce:
      return "all_reduce";
    case CollectiveKind::kAllGather:
      return "all_gather";
    case CollectiveKind::kReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::kAllToAll:
      return "all_to_all";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kReduce:
      return "reduce";
    case CollectiveKind::kSendRecv:
      return "sendrecv";
  }
  return "collective";
}

CollectiveKind CollectiveNamed(std::string_view name) {
  const std::string plain = Plain(name);
  for (const auto& [word, kind] : kWords) {
    if (Contains(plain, word)) return kind;
  }
  return CollectiveKind::kUnknown;
}

bool IsSide(std::string_view name) {
  const std::string plain = Plain(name);
  return !Contains(plain, "sendrecv") && (Contains(plain, "send") || Contains(plain, "recv"));
}

}  // namespace daydream
