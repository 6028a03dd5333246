#include "trace/kineto/rows.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace daydream {

enum class KinetoRows::Kind : uint8_t {
  kUnknown,
  kOp,
  kAnnotation,
  kFrame,
  kRuntimeCall,
  kDriverCall,
  kKernel,
  kMemcpy,
  kMemset,
  kSync,
  kGpuAnnotation,
  kOverhead,
  kTraceSpan,
  kProfilerRange,
};

// What does not become a row, or is repaired on the way. Order = order in the report.
enum KinetoRows::Reason : size_t {
  kUnreadable,
  kNoPhase,
  kNoName,
  kBadStart,
  kNoDuration,
  kBadDuration,
  kNegativeDuration,
  kBadBytes,
  kNoThread,
  kNoStream,
  kFlow,
  kForwardBackwardFlow,
  kInstant,
  kAllocation,
  kCounter,
  kMetadata,
  kBeginEnd,
  kOtherPhase,
  kPythonFunction,
  kGpuAnnotationCopy,
  kOverheadSpan,
  kTraceSpanEvent,
  kProfilerRangeEvent,
  kEventTask,
  kReasons,
};

namespace {

// What a process can address on x86-64 and ARMv8: 48 bits.
constexpr int64_t kMostBytesCopied = int64_t{1} << 48;

struct ReasonText {
  std::string_view what;
  std::string_view reason;
  bool loss;
};

constexpr ReasonText kTexts[] = {
    {"unreadable events", "the text of the event is damaged", true},
    {"events without a phase", "no \"ph\" says what the event is", true},
    {"events without a name", "no \"name\" says what ran", true},
    {"events without a usable start", "\"ts\" is missing, no number, or not microseconds", true},
    {"events without a duration", "\"dur\" is missing: the range was still open", true},
    {"events without a usable duration", "\"dur\" is not a number or out of range", true},
    {"events of negative duration", "they end before they start", true},
    {"copies of an impossible size", "\"bytes\" is below 0, or more than can be addressed", true},
    {"events without a thread", "no \"pid\" or \"tid\" says where it ran", true},
    {"GPU events without a stream", "neither \"stream\" nor a numeric \"tid\" is there", true},
    {"flow events", "launch and GPU work are joined by correlation id", false},
    {"forward-backward flow events", "forward and backward are joined by sequence number", false},
    {"instant events", "they take no time (iteration marks, host memory)", false},
    {"GPU memory marks", "they take no time; the peak of memory is read from them", false},
    {"counter events", "they take no time", false},
    {"metadata events", "names and order of processes and threads", false},
    {"begin and end events", "the PyTorch profiler writes complete (X) events", true},
    {"events of other phases", "not written by the PyTorch profiler", false},
    {"Python frames", "only module frames say to which layer work belongs", false},
    {"GPU copies of annotations", "the annotation itself is on its CPU thread", false},
    {"profiler overhead", "time that the profiler spent on itself", false},
    {"trace spans", "they mark the recorded window", false},
    {"profiler counter ranges", "hardware counters are not read", false},
    {"event tasks of a device", "records and waits of events: they are no work", false},
};

// In 2021, annotations were operator events: only the name tells.
bool NamesAnAnnotation(std::string_view name) {
  if (name.empty()) return false;
  switch (name[0]) {
    case 'P':
      return name.starts_with("ProfilerStep#");
    case 'O':
      return name.starts_with("Optimizer.");
    case 'e':
      return name.starts_with("enumerate(DataLoader)");
    case 'n':
      return name.starts_with("nccl:");
    case '#':
      return name.starts_with("## ");
    default:
      return false;
  }
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return lower;
}

}  // namespace

// Every generation of names that the profiler has used.
uint8_t KinetoRows::KindOfCategory(std::string_view text) {
  static constexpr std::pair<std::string_view, Kind> kNames[] = {
      {"cpu_op", Kind::kOp},
      {"operator", Kind::kOp},
      {"user_annotation", Kind::kAnnotation},
      {"python_function", Kind::kFrame},
      {"kernel", Kind::kKernel},
      {"mtia_ccp_events", Kind::kKernel},
      {"gpu_memcpy", Kind::kMemcpy},
      {"memcpy", Kind::kMemcpy},
      {"gpu_memset", Kind::kMemset},
      {"memset", Kind::kMemset},
      {"cuda_sync", Kind::kSync},
      {"gpu_user_annotation", Kind::kGpuAnnotation},
      {"overhead", Kind::kOverhead},
      {"trace", Kind::kTraceSpan},
      {"cuda_profiler_range", Kind::kProfilerRange},
  };
  std::string lower = Lower(text);
  for (const auto& [name, kind] : kNames) {
    if (lower == name) return static_cast<uint8_t>(kind);
  }
  // cuda_runtime, hip_runtime, xpu_runtime, privateuse1_runtime, ...
  if (lower.ends_with("runtime")) return static_cast<uint8_t>(Kind::kRuntimeCall);
  if (lower.ends_with("driver")) return static_cast<uint8_t>(Kind::kDriverCall);
  return static_cast<uint8_t>(Kind::kUnknown);
}

const KinetoRows::KnownCategory& KinetoRows::Categorise(const JsonString& text) {
  std::string_view t = text.text;
  size_t hash = t.empty() ? 0
                          : t.size() * 7 + static_cast<unsigned char>(t.front()) * 3 +
                                static_cast<unsigned char>(t[t.size() / 2]) * 5 +
                                static_cast<unsigned char>(t.back());
  KnownCategory& slot = categories_[hash % categories_.size()];
  if (slot.used && std::string_view(slot.text.data(), slot.size) == t) return slot;
  slot.used = t.size() <= slot.text.size();
  slot.size = static_cast<uint8_t>(t.size());
  if (slot.used && !t.empty()) std::memcpy(slot.text.data(), t.data(), t.size());
  slot.kind = static_cast<Kind>(KindOfCategory(t));
  slot.unknown = slot.kind == Kind::kUnknown ? UnknownCategory(t) : 0;
  return slot;
}

// A file may hold any number of categories; those beyond the first few share one count.
uint16_t KinetoRows::UnknownCategory(std::string_view text) {
  constexpr size_t kMaxNamed = 50, kMaxLength = 64;
  CleanText(text.substr(0, kMaxLength), true, &scratch_);
  std::string name = text.empty()                             ? "events without a category"
                     : unknown_categories_.size() < kMaxNamed ? "events of category " + scratch_
                                                              : "events of other categories";
  for (size_t i = 0; i < unknown_categories_.size(); ++i) {
    if (unknown_categories_[i].first == name) return static_cast<uint16_t>(i);
  }
  unknown_categories_.emplace_back(std::move(name), Tally());
  return static_cast<uint16_t>(unknown_categories_.size() - 1);
}

void KinetoRows::AddUnreadable(int64_t offset) {
  ++events_;
  ++malformed_;
  tallies_[kUnreadable].Add(offset);
}

bool KinetoRows::Malformed(Reason reason, int64_t offset, std::string_view* why) {
  ++malformed_;
  tallies_[reason].Add(offset);
  *why = kTexts[reason].reason;
  return false;
}

bool KinetoRows::Add(const KinetoEvent& e, int64_t offset, std::string_view* why) {
  ++events_;
  if (e.phase == 'X') return AddSlice(e, Categorise(e.category), offset, why);
  if (e.phase == '\0') return Malformed(kNoPhase, offset, why);
  AddWithoutSlice(e, offset);
  return true;
}

void KinetoRows::AddWithoutSlice(const KinetoEvent& e, int64_t offset) {
  Reason reason = kOtherPhase;
  switch (e.phase) {
    case 's':
    case 't':
    case 'f':
      if (AscendRows::Joins(e.category.text) && e.flow.present &&
          e.start_state == NumberState::kOk) {
        ascend_.AddFlow(e.phase == 's', IdentityOf(e.flow),
                        {IdentityOf(e.process), IdentityOf(e.thread)}, e.start_ns);
      }
      reason = e.category.text.starts_with("fwdbwd") ? kForwardBackwardFlow : kFlow;
      break;
    case 'i':
    case 'I':
    case 'R':
      reason = AddAllocation(e) ? kAllocation : kInstant;
      break;
    case 'C':
      reason = kCounter;
      break;
    case 'B':
    case 'E':
      reason = kBeginEnd;
      break;
    case 'M':
      reason = kMetadata;
      NoteThreadName(e);
      break;
    default:
      break;
  }
  tallies_[reason].Add(offset);
}

bool KinetoRows::AddSlice(const KinetoEvent& e, const KnownCategory& category, int64_t offset,
                          std::string_view* why) {
  Kind kind = category.kind;
  auto skip = [&](Reason reason) {
    tallies_[reason].Add(offset);
    return true;
  };
  const AscendRows::Kind ascend = kind == Kind::kUnknown && e.category.text.empty()
                                      ? AscendRows::KindOf(e)
                                      : AscendRows::Kind::kOther;
  switch (kind) {
    case Kind::kUnknown:
      if (ascend == AscendRows::Kind::kEventTask) return skip(kEventTask);
      if (ascend != AscendRows::Kind::kOther) break;
      unknown_categories_[category.unknown].second.Add(offset);
      return true;
    case Kind::kGpuAnnotation:
      return skip(kGpuAnnotationCopy);
    case Kind::kOverhead:
      return skip(kOverheadSpan);
    case Kind::kTraceSpan:
      return skip(kTraceSpanEvent);
    case Kind::kProfilerRange:
      return skip(kProfilerRangeEvent);
    case Kind::kFrame:
      if (!e.name.text.starts_with("nn.Module: ")) return skip(kPythonFunction);
      break;
    default:
      break;
  }
  if (!e.name.present()) return Malformed(kNoName, offset, why);
  if (e.start_state != NumberState::kOk) return Malformed(kBadStart, offset, why);
  if (e.duration_state == NumberState::kMissing) return Malformed(kNoDuration, offset, why);
  if (e.duration_state != NumberState::kOk) return Malformed(kBadDuration, offset, why);
  if (e.duration_ns < 0) return Malformed(kNegativeDuration, offset, why);
  TraceBuilder::Event row{.start = Instant{e.start_ns}, .duration = Duration{e.duration_ns}};
  if (kind == Kind::kUnknown) return AddAscend(e, ascend, row, offset, why);
  bool gpu = kind == Kind::kKernel || kind == Kind::kMemcpy || kind == Kind::kMemset ||
             kind == Kind::kSync;
  return gpu ? AddGpu(e, kind, row, offset, why) : AddCpu(e, kind, row, offset, why);
}

bool KinetoRows::AddAscend(const KinetoEvent& e, AscendRows::Kind kind, TraceBuilder::Event& row,
                           int64_t offset, std::string_view* why) {
  constexpr int64_t kAbsent = KinetoArgs::kAbsent;
  if (!e.process.present && !e.thread.present) return Malformed(kNoThread, offset, why);
  if (kind == AscendRows::Kind::kCall) {
    row.kind = EventKind::kCall;
    row.lane = ThreadLane(e);
  } else {
    const int64_t stream = e.args.stream_id != kAbsent ? e.args.stream_id : StreamOf(e);
    if (stream == kAbsent) return Malformed(kNoStream, offset, why);
    row.lane = StreamLane(std::max<int64_t>(e.args.device_id, 0), stream);
    const bool copy = kind == AscendRows::Kind::kCopy;
    row.kind = copy ? EventKind::kMemcpy : EventKind::kKernel;
    row.detail = copy ? builder_.AddCopy({}) : KernelRow(e.args);
  }
  row.name = InternName(e.name, offset);
  ascend_.Add(row, e.args.connection, {IdentityOf(e.process), IdentityOf(e.thread)});
  return true;
}

bool KinetoRows::AddCpu(const KinetoEvent& e, Kind kind, TraceBuilder::Event& row, int64_t offset,
                        std::string_view* why) {
  if (!e.process.present && !e.thread.present) return Malformed(kNoThread, offset, why);
  row.lane = ThreadLane(e);
  row.name = InternName(e.name, offset);
  switch (kind) {
    case Kind::kOp:
      row.kind = NamesAnAnnotation(e.name.text) ? EventKind::kAnnotation : EventKind::kOp;
      if (row.kind == EventKind::kOp && DeferCollective(e.args, row)) return true;
      if (row.kind == EventKind::kOp) row.detail = OpRow(e.args);
      if (row.kind == EventKind::kAnnotation) NoteCollectiveRange(e.args, row);
      break;
    case Kind::kAnnotation:
      row.kind = EventKind::kAnnotation;
      NoteCollectiveRange(e.args, row);
      break;
    case Kind::kFrame:
      row.kind = EventKind::kFrame;
      break;
    default:
      row.kind = EventKind::kCall;
      row.correlation = CorrelationOf(e, offset);
      if (row.correlation != 0) NoteCall(row.correlation, kind == Kind::kDriverCall, offset);
  }
  builder_.AddEvent(row);
  return true;
}

// Where work of a GPU ran: CUDA and HIP say "stream", SYCL and Level Zero have queues.
int64_t KinetoRows::StreamOf(const KinetoEvent& e) {
  if (e.args.stream != KinetoArgs::kAbsent) return e.args.stream;
  for (const JsonIdentity* queue : {&e.args.sycl_queue, &e.args.l0_queue, &e.args.queue}) {
    if (queue->present) return IdentityOf(*queue);
  }
  const bool numeric_thread = e.thread.present && !e.thread.text.present();
  return numeric_thread ? e.thread.number : KinetoArgs::kAbsent;
}

bool KinetoRows::AddGpu(const KinetoEvent& e, Kind kind, TraceBuilder::Event& row, int64_t offset,
                        std::string_view* why) {
  constexpr int64_t kAbsent = KinetoArgs::kAbsent;
  int64_t stream = StreamOf(e);
  if (stream == kAbsent) return Malformed(kNoStream, offset, why);
  const bool sized = kind == Kind::kMemcpy || kind == Kind::kMemset;
  const int64_t bytes = e.args.bytes;
  if (sized && bytes != kAbsent && (bytes < 0 || bytes > kMostBytesCopied)) {
    return Malformed(kBadBytes, offset, why);
  }
  int64_t device = e.args.device != kAbsent ? e.args.device : e.process.number;
  row.lane = StreamLane(device, stream);
  row.name = InternName(e.name, offset);
  row.correlation = CorrelationOf(e, offset);
  switch (kind) {
    case Kind::kKernel:
      row.kind = EventKind::kKernel;
      row.detail = KernelRow(e.args);
      NoteMultiprocessors(e.args, device);
      break;
    case Kind::kMemcpy:
    case Kind::kMemset:
      row.kind = kind == Kind::kMemcpy ? EventKind::kMemcpy : EventKind::kMemset;
      row.detail = CopyRow(e, kind == Kind::kMemcpy);
      break;
    default:
      row.kind = EventKind::kSync;
      row.detail = SyncRow(e);
  }
  builder_.AddEvent(row);
  return true;
}

bool KinetoRows::AddAllocation(const KinetoEvent& e) {
  constexpr int64_t kAbsent = KinetoArgs::kAbsent;
  const KinetoArgs& a = e.args;
  const bool gpu = a.device_type > 0 && a.device_id >= 0 && a.device_id <= INT32_MAX;
  if (e.name.text != kMemoryMark || !gpu || a.allocation == kAbsent) return false;
  // More than any device has: damage.
  constexpr int64_t kMost = int64_t{1} << 48;
  if (e.start_state != NumberState::kOk || a.allocation > kMost || a.allocation < -kMost) {
    return false;
  }
  auto total = [](int64_t value) { return value >= 0 && value <= kMost ? value : -1; };
  const Identity thread(IdentityOf(e.process), IdentityOf(e.thread));
  const auto next = LaneId(allocating_threads_.size());
  builder_.AddAllocation({.at = Instant{e.start_ns},
                          .lane = allocating_threads_.try_emplace(thread, next).first->second,
                          .device = static_cast<int32_t>(a.device_id),
                          .bytes = a.allocation,
                          .allocated = total(a.total_allocated),
                          .reserved = total(a.total_reserved)});
  return true;
}

// A thread of which nothing but marks was recorded gets no lane.
void KinetoRows::FinishAllocations() {
  std::vector<LaneId> lanes(allocating_threads_.size());  // by number of the thread
  for (const auto& [lane, identity] : thread_lanes_) {
    const auto it = allocating_threads_.find(identity);
    if (it != allocating_threads_.end()) lanes[it->second.index()] = lane;
  }
  for (Allocation& a : builder_.allocations()) a.lane = lanes[a.lane.index()];
}

void KinetoRows::Finish() {
  ascend_.Finish(builder_);
  FinishAllocations();
  FinishDevices();
  FinishCollectives();
  for (const auto& [lane, identity] : thread_lanes_) {
    auto it = thread_names_.find(identity);
    if (it != thread_names_.end()) builder_.NameLane(lane, it->second);
  }
  static_assert(std::size(kTexts) == kReasons);
  for (size_t i = 0; i < kReasons; ++i) {
    const Tally& tally = tallies_[i];
    const ReasonText& text = kTexts[i];
    if (tally.count == 0) continue;
    builder_.Count(text.what, text.reason, text.loss, tally.count, tally.first_byte);
  }
  for (const auto& [name, tally] : unknown_categories_) {
    builder_.Count(name, "this kind of event is not known", true, tally.count, tally.first_byte);
  }
  auto repaired = [this](const Tally& tally, std::string_view what, std::string_view reason,
                         bool loss) {
    if (tally.count > 0) builder_.Count(what, reason, loss, tally.count, tally.first_byte, false);
  };
  repaired(repaired_names_, "names rewritten", "escapes, control characters or invalid UTF-8",
           false);
  repaired(bad_correlations_, "correlation ids out of range",
           "the link from call to GPU work is lost", true);
  repaired(repeated_correlations_, "repeated correlation ids",
           "several calls of one kind carry the same id", false);
}

}  // namespace daydream
