// Values of a Trace as messages of proto/daydream_trace.proto and back. For the writer and the
// importer of .ddtrace only: no other header shows generated code.
#pragma once

#include <optional>

#include "proto/daydream_trace.pb.h"
#include "trace/trace.h"

namespace daydream {

namespace pb = ::daydream::trace::v1;

// The kinds of both sides; what the other side does not have becomes UNSPECIFIED, kUnknown, a
// thread, or nothing.
pb::LaneKind ToProto(LaneKind kind);
pb::Kind ToProto(EventKind kind);
pb::Memory ToProto(Memory memory);
pb::SyncKind ToProto(SyncKind kind);
void FillCost(const RecordingCost& from, pb::RecordingCost* to);
void FillProvenance(const Provenance& from, pb::Provenance* to);
void FillDevice(const Device& from, pb::Device* to);
void FillLaunch(const KernelDetail& from, pb::Launch* to);
std::optional<EventKind> FromProto(pb::Kind kind);
LaneKind FromProto(pb::LaneKind kind);
Memory FromProto(pb::Memory memory);
SyncKind FromProto(pb::SyncKind kind);
Device FromProto(const pb::Device& from);
RecordingCost FromProto(const pb::RecordingCost& from);
// Lane.flags; a StreamType has the same numbers.
StreamType StreamTypeOf(uint32_t flags);

}  // namespace daydream
