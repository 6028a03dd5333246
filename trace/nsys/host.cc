#include "trace/nsys/host.h"

#include <algorithm>

#include "trace/json/text.h"
#include "trace/nsys/names.h"

namespace daydream {
namespace {

// Values of eventType (ENUM_NSYS_EVENT_TYPE).
enum RangeType : int64_t {
  kCategory = 33,
  kMark = 34,
  kThreadName = 39,
  kPushPop = 59,
  kStartEnd = 60,
  kDomainBegin = 75,
  kDomainEnd = 76,
};

struct KnownCall {
  NameId name;
  SyncKind kind = SyncKind::kUnknown;
  bool query = false;
};

}  // namespace

absl::Status ReadNsysCalls(NsysFile& file, NsysWaits& waits) {
  // Records of where in the program a call was made, with the call's own times.
  constexpr int64_t kBacktrace = 67, kBacktraceOfDriver = 68;
  SqliteRows rows(file.db, "CUPTI_ACTIVITY_KIND_RUNTIME",
                  {"start", "end", "globalTid", "correlationId", "nameId", "eventClass"});
  absl::flat_hash_map<int64_t, KnownCall> names;
  while (rows.Next()) {
    file.NoteRow();
    const int64_t type = rows.Int(5, 0);
    if (type == kBacktrace || type == kBacktraceOfDriver) {
      file.Skip("backtraces of calls", "the call itself is there, too");
      continue;
    }
    TraceBuilder::Event event{.kind = EventKind::kCall};
    if (!file.Times(rows, 0, 1, event)) continue;
    const int64_t thread = rows.Int(2, 0), id = rows.Int(3, 0);
    auto [name, fresh] = names.try_emplace(rows.Int(4, -1));
    if (fresh) {
      name->second.name = file.CallName(rows.Int(4, -1));
      const std::string_view text = file.builder.names().Get(name->second.name);
      name->second.kind = NsysWaitOf(text);
      name->second.query = IsNsysQuery(text);
    }
    const uint32_t process = file.lanes.Process(thread);
    if (name->second.kind != SyncKind::kUnknown || name->second.query) {
      waits.NoteCall(process, id, name->second.kind, name->second.query);
    }
    event.lane = file.lanes.Thread(thread);
    event.name = name->second.name;
    event.correlation = file.lanes.Correlation(process, id == int64_t{UINT32_MAX} ? 0 : id);
    file.builder.AddEvent(event);
  }
  return rows.status();
}

absl::Status NsysRanges::Read() {
  DD_RETURN_IF_ERROR(payloads_.ReadLayouts(file_.db));
  SqliteRows rows(file_.db, "NVTX_EVENTS",
                  {"start", "end", "eventType", "globalTid", "domainId", "text", "textId",
                   "binaryData", "uint64Value"});
  while (rows.Next()) {
    file_.NoteRow();
    switch (rows.Int(2, -1)) {
      case kPushPop:
        AddRange(rows);
        break;
      case kStartEnd:
        file_.Skip("NVTX start/end ranges", "they may overlap and end on another thread");
        break;
      case kMark:
        file_.Skip("NVTX marks", "they take no time");
        break;
      case kDomainBegin: {
        const uint32_t process = file_.lanes.Process(rows.Int(3, 0));
        CleanText(rows.Text(5), false, &scratch_);
        domains_.try_emplace({process, rows.Int(4, 0)}, scratch_);
        [[fallthrough]];
      }
      case kDomainEnd:
      case kCategory:
      case kThreadName:
        file_.Skip("NVTX names", "names of domains, categories and threads");
        break;
      default:
        file_.Skip("other NVTX rows", "they are no ranges of a thread");
    }
  }
  DD_RETURN_IF_ERROR(rows.status());
  FinishDomains();
  FinishDependencies();
  return absl::OkStatus();
}

void NsysRanges::AddRange(const SqliteRows& rows) {
  TraceBuilder::Event event{.kind = EventKind::kAnnotation};
  if (!file_.Times(rows, 0, 1, event)) return;
  const int64_t thread = rows.Int(3, 0), domain = rows.Int(4, 0);
  const uint32_t process = file_.lanes.Process(thread);
  event.lane = file_.lanes.Thread(thread);
  if (rows.Empty(5)) {
    event.name = file_.Text(rows.Int(6, -1));
    scratch_ = file_.builder.names().Get(event.name);
  } else {
    CleanText(rows.Text(5), false, &scratch_);
  }
  if (domain == 0) return AddOp(event, process, scratch_);
  event.name = file_.builder.names().Intern(scratch_);
  NsysPayload payload = payloads_.Decode(rows.Text(7));
  // NCCL before 2.18 gives the bytes alone.
  if (payload.bytes < 0) payload.bytes = std::max<int64_t>(rows.Int(8, -1), -1);
  in_domains_.push_back({event, process, domain, payload});
}

void NsysRanges::AddOp(TraceBuilder::Event event, uint32_t process, std::string_view text) {
  StringPool& names = file_.builder.names();
  const NsysRangeText range = ParseRangeText(text);
  event.name = names.Intern(range.name);
  if (range.is_op() && !IsAnnotationName(range.name)) {
    event.kind = EventKind::kOp;
    OpDetail detail;
    detail.sequence = range.sequence;
    if (!range.shapes.empty()) detail.shapes = names.Intern(range.shapes);
    if (detail != OpDetail()) event.detail = file_.builder.AddOp(detail);
  }
  NoteProducers(range, process);
  file_.builder.AddEvent(event);
}

void NsysRanges::NoteProducers(const NsysRangeText& range, uint32_t process) {
  // Recorded with shapes, or not at all.
  if (range.shapes.empty() && range.producers.empty()) return;
  constexpr int64_t kMaxId = UINT32_MAX;
  const auto place = static_cast<uint32_t>(file_.builder.events());
  if (ops_.size() <= process) ops_.resize(process + 1);
  ProcessOps& known = ops_[process];
  if (range.op >= 0 && range.op <= kMaxId) {
    known.ops.push_back({static_cast<uint32_t>(range.op), place});
  }
  std::string_view producers = range.producers;
  for (int64_t op = NextProducer(producers); op >= 0; op = NextProducer(producers)) {
    if (op > 0 && op <= kMaxId) known.arguments.push_back({static_cast<uint32_t>(op), place});
  }
}

void NsysRanges::FinishDomains() {
  StringPool& names = file_.builder.names();
  for (InDomain& range : in_domains_) {
    const auto it = domains_.find({range.process, range.domain});
    const std::string domain = it == domains_.end() || it->second.empty()
                                   ? fmt::format("domain {}", range.domain)
                                   : it->second;
    if (domain == "NCCL") {
      range.event.detail =
          collectives_.Add(range.process, names.Get(range.event.name), range.payload);
    }
    range.event.name = names.Intern(fmt::format("{}:{}", domain, names.Get(range.event.name)));
    file_.builder.AddEvent(range.event);
  }
}

void NsysRanges::FinishDependencies() {
  for (ProcessOps& process : ops_) {
    std::stable_sort(process.ops.begin(), process.ops.end(),
                     [](const Op& a, const Op& b) { return a.id < b.id; });
    for (const Op& argument : process.arguments) {
      const auto op = std::partition_point(process.ops.begin(), process.ops.end(),
                                           [&](const Op& o) { return o.id < argument.id; });
      if (op != process.ops.end() && op->id == argument.id) {
        file_.builder.AddDependency(op->event, argument.event);
      }
    }
  }
}

}  // namespace daydream
