// The CPU's side of an Nsight Systems file: calls and NVTX ranges.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "trace/nsys/collectives.h"
#include "trace/nsys/file.h"
#include "trace/nsys/gpu.h"
#include "trace/nsys/payload.h"
#include "trace/nsys/range_text.h"

namespace daydream {

// RUNTIME, which holds calls of the runtime and of the driver. Tells `waits` what they waited for.
absl::Status ReadNsysCalls(NsysFile& file, NsysWaits& waits);

// NVTX_EVENTS: ranges of threads become ops or annotations.
class NsysRanges {
 public:
  // What NCCL says about its calls goes to `collectives`.
  NsysRanges(NsysFile& file, NsysCollectives& collectives)
      : file_(file), collectives_(collectives) {}
  absl::Status Read();

 private:
  void AddRange(const SqliteRows& rows);
  // Of a domain other than the default one: its name may come later.
  struct InDomain {
    TraceBuilder::Event event;
    uint32_t process = 0;
    int64_t domain = 0;
    NsysPayload payload;
  };
  void AddOp(TraceBuilder::Event event, uint32_t process, std::string_view text);
  void NoteProducers(const NsysRangeText& range, uint32_t process);
  void FinishDomains();
  void FinishDependencies();

  NsysFile& file_;
  NsysCollectives& collectives_;
  NsysPayloads payloads_;
  std::vector<InDomain> in_domains_;
  absl::flat_hash_map<std::pair<uint32_t, int64_t>, std::string> domains_;
  // An op, or an argument: `event`, a place among the events of the builder, reads what op `id` of
  // its process has made. Ids beyond 32 bits are not kept.
  struct Op {
    uint32_t id = 0, event = 0;
  };
  struct ProcessOps {
    std::vector<Op> ops, arguments;
  };
  std::vector<ProcessOps> ops_;  // by process; only where ranges name the ops of their arguments
  std::string scratch_;
};

}  // namespace daydream
