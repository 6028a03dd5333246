// The dictionaries of a .ddtrace file while it is read, with ids resolved into a TraceBuilder's.
#pragma once

#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "trace/ddtrace/dictionary.h"
#include "trace/ddtrace/proto.h"
#include "trace/recording/counts.h"
#include "trace/recording/marks.h"
#include "trace/trace_builder.h"

namespace daydream {

// A signature with its ids resolved. Details are complete but for what is in the columns.
struct DdtraceSignature {
  std::optional<EventKind> kind;  // nothing: a kind that a Trace has no rows for
  pb::Kind stored_kind = pb::KIND_UNSPECIFIED;
  NameId name;
  bool has_detail = false;
  KernelDetail kernel;
  CopyDetail copy;
  OpDetail op;
  SyncDetail sync;
  uint32_t context = 0;  // syncs and event records: CUDA context
  MarkKind mark = MarkKind::kUnknown;
};

class DdtraceDefinitions {
 public:
  DdtraceDefinitions(TraceBuilder& builder, DdtraceCounts& counts)
      : builder_(builder), counts_(counts) {}

  // Lanes may name ranks below this. Called once, before Read.
  void SetRanks(size_t ranks) { ranks_ = ranks; }
  // The file was recorded, not converted: names of kernels are as compilers make them.
  void SetRecorded(bool recorded) { recorded_ = recorded; }
  void Read(const pb::Definitions& definitions);
  // For recordings, when all is read: names lanes without a name, and knows default streams by
  // their contexts.
  void FinishLanes();
  // nullptr: the id was never defined, or its definition is lost.
  const DdtraceSignature* FindSignature(uint32_t id) { return signatures_.Find(id); }
  const LaneId* FindLane(uint32_t id) { return lanes_.Find(id); }

 private:
  NameId TextOf(uint32_t id);
  NameId TextOf(bool present, uint32_t id) { return present ? TextOf(id) : NameId::None(); }
  LaneId ReadLane(const pb::Lane& from);
  uint32_t ReadCollective(const pb::Collective& from);
  DdtraceSignature ReadSignature(const pb::Signature& from);

  TraceBuilder& builder_;
  DdtraceCounts& counts_;
  DdtraceDictionary<NameId> strings_;
  DdtraceDictionary<LaneId> lanes_;
  DdtraceDictionary<uint32_t> collectives_;  // rows of the builder's table
  DdtraceDictionary<DdtraceSignature> signatures_;
  size_t ranks_ = 0, lane_definitions_ = 0, devices_ = 0;
  bool recorded_ = true;  // unless the header says otherwise
  absl::flat_hash_set<std::pair<int32_t, int64_t>> default_streams_;  // device and number
};

}  // namespace daydream
