// The parts of a row that need looking up: names, lanes, correlations, details.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "trace/collective_group.h"
#include "trace/kineto/rows.h"

namespace daydream {
namespace {

constexpr int64_t kAbsent = KinetoArgs::kAbsent;
constexpr uint32_t kNoRow = Id<void>::kNoneValue;

int64_t Or(int64_t value, int64_t fallback) { return value == kAbsent ? fallback : value; }

uint32_t ClampToUnsigned(int64_t value) {
  if (value == kAbsent) return 0;
  return static_cast<uint32_t>(std::clamp<int64_t>(value, 0, UINT32_MAX));
}

int32_t ClampToInt(int64_t value, int32_t fallback) {
  if (value == kAbsent) return fallback;
  return static_cast<int32_t>(std::clamp<int64_t>(value, INT32_MIN, INT32_MAX));
}

Memory MemoryOf(std::string_view word) {
  if (word == "Pageable") return Memory::kPageable;
  if (word == "Pinned") return Memory::kPinned;
  if (word == "Device") return Memory::kDevice;
  if (word == "Managed" || word == "Unified") return Memory::kManaged;
  if (word == "Array") return Memory::kArray;
  return Memory::kUnknown;  // "Host" on AMD: pageable or pinned
}

// "Memcpy HtoD (Pageable -> Device)" -> Pageable, Device.
void ReadDirection(std::string_view name, CopyDetail* detail) {
  size_t open = name.find('('), arrow = name.find(" -> "), close = name.rfind(')');
  if (open == std::string_view::npos || arrow == std::string_view::npos ||
      close == std::string_view::npos || arrow < open || close < arrow) {
    return;
  }
  detail->from = MemoryOf(name.substr(open + 1, arrow - open - 1));
  detail->to = MemoryOf(name.substr(arrow + 4, close - arrow - 4));
}

// "Seq", or the second of the values ["", "337", ...] that came before it.
int64_t SequenceOf(const KinetoArgs& args) {
  if (args.collective_sequence != kAbsent) return std::max<int64_t>(-1, args.collective_sequence);
  const std::string_view values = args.values.data() == nullptr ? "" : args.values;
  const size_t comma = values.find(',');
  const size_t quote = comma == values.npos ? comma : values.find('"', comma);
  if (quote == values.npos) return -1;
  int64_t value = 0;
  const auto [end, error] =
      std::from_chars(values.data() + quote + 1, values.data() + values.size(), value);
  const bool good = error == std::errc() && end < values.data() + values.size() && *end == '"';
  return good && value >= 0 ? value : -1;
}

std::string_view WithoutQuotes(std::string_view text) {
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

SyncKind SyncKindOf(std::string_view text) {
  if (text == "Event Sync" || text == "Event Synchronize") return SyncKind::kEvent;
  if (text == "Stream Wait Event") return SyncKind::kStreamWaitEvent;
  if (text == "Stream Sync" || text == "Stream Synchronize") return SyncKind::kStream;
  if (text == "Context Sync" || text == "Context Synchronize") return SyncKind::kContext;
  return SyncKind::kUnknown;
}

bool AllPlain(std::string_view text) {
  const char* p = text.data();
  const char* end = p + text.size();
  for (; p + 16 <= end; p += 16) {
    if (JsonBlock(p).NotPlain() != 0) return false;
  }
  for (; p < end; ++p) {
    if (static_cast<signed char>(*p) < 0x20) return false;
  }
  return true;
}

}  // namespace

NameId KinetoRows::InternText(const JsonString& text) {
  if (!text.present()) return NameId::None();
  if (text.plain) return builder_.names().Intern(text.text);
  CleanText(text.text, true, &scratch_);
  return builder_.names().Intern(scratch_);
}

NameId KinetoRows::InternName(const JsonString& name, int64_t offset) {
  if (!name.plain) repaired_names_.Add(offset);
  return InternText(name);
}

NameId KinetoRows::InternRaw(std::string_view json) {
  if (json.data() == nullptr) return NameId::None();
  if (AllPlain(json)) return builder_.names().Intern(json);
  CleanText(json, false, &scratch_);
  return builder_.names().Intern(scratch_);
}

uint32_t KinetoRows::CorrelationOf(const KinetoEvent& e, int64_t offset) {
  int64_t id = Or(e.args.correlation, 0);
  if (id >= 0 && id < static_cast<int64_t>(UINT32_MAX)) return static_cast<uint32_t>(id);
  bad_correlations_.Add(offset);
  return 0;
}

void KinetoRows::NoteCall(uint32_t correlation, bool driver, int64_t offset) {
  // 16384 pages of 512 bytes: 8 MiB for 67 million ids, far beyond any honest window.
  constexpr size_t kMaxPages = 16384;
  uint32_t page = correlation / 4096 * 2 + (driver ? 1 : 0);
  if (page != last_page_ || last_bits_ == nullptr) {
    auto it = seen_calls_.find(page);
    if (it == seen_calls_.end()) {
      if (seen_calls_.size() >= kMaxPages) return;
      it = seen_calls_.emplace(page, std::make_unique<Page>()).first;
    }
    last_page_ = page;
    last_bits_ = it->second.get();
  }
  uint64_t& word = (*last_bits_)[correlation % 4096 / 64];
  uint64_t bit = uint64_t{1} << (correlation % 64);
  if ((word & bit) != 0) repeated_correlations_.Add(offset);
  word |= bit;
}

// Negative numbers that no system hands out stand for texts, in order of appearance.
constexpr int64_t kFirstText = -1000000;

int64_t KinetoRows::IdentityOf(const JsonIdentity& identity) {
  if (!identity.text.present()) return identity.number;
  CleanText(identity.text.text, true, &scratch_);
  auto next = kFirstText - static_cast<int64_t>(text_ids_.size());
  return text_ids_.try_emplace(scratch_, next).first->second;
}

std::string KinetoRows::StreamName(int64_t stream) const {
  for (const auto& [text, id] : text_ids_) {
    if (stream <= kFirstText && id == stream) return text;
  }
  return fmt::format("stream {}", stream);
}

void KinetoRows::NoteThreadName(const KinetoEvent& e) {
  if (e.name.text != "thread_name" || !e.args.name.present()) return;
  CleanText(e.args.name.text, true, &scratch_);
  std::string name = scratch_;
  while (!name.empty() && name.back() == ' ') name.pop_back();
  if (name.empty()) return;
  thread_names_[Identity(IdentityOf(e.process), IdentityOf(e.thread))] = std::move(name);
}

LaneId KinetoRows::ThreadLane(const KinetoEvent& e) {
  int64_t process = IdentityOf(e.process), thread = IdentityOf(e.thread);
  auto hash = static_cast<size_t>(process * 31 + thread) * 2;
  KnownLane& known = lanes_[hash % lanes_.size()];
  if (known.lane.valid() && !known.stream && known.process == process && known.number == thread) {
    return known.lane;
  }
  size_t lanes = builder_.lanes();
  known = {process, thread, false, builder_.AddLane(LaneKind::kThread, process, thread, -1)};
  if (builder_.lanes() > lanes) {
    thread_lanes_.emplace_back(known.lane, Identity(process, thread));
    bool named = e.thread.text.present();
    if (named) CleanText(e.thread.text.text, true, &scratch_);
    builder_.NameLane(known.lane, named ? scratch_ : fmt::format("thread {}", thread));
  }
  return known.lane;
}

LaneId KinetoRows::StreamLane(int64_t device, int64_t stream) {
  auto hash = static_cast<size_t>(device * 31 + stream) * 2 + 1;
  KnownLane& known = lanes_[hash % lanes_.size()];
  if (known.lane.valid() && known.stream && known.process == device && known.number == stream) {
    return known.lane;
  }
  size_t lanes = builder_.lanes();
  known = {device, stream, true,
           builder_.AddLane(LaneKind::kStream, 0, stream, ClampToInt(device, -1))};
  if (builder_.lanes() > lanes) builder_.NameLane(known.lane, StreamName(stream));
  return known.lane;
}

uint32_t KinetoRows::CollectiveRow(const KinetoArgs& args) {
  if (!args.collective.present()) return kNoRow;
  const std::string_view name = args.process_group.present() ? args.process_group.text : "";
  const std::string_view members = args.members.data() == nullptr ? "" : args.members;
  const std::string group = FormatCollectiveGroup({.name = name,
                                                   .members = WithoutQuotes(members),
                                                   .sequence = SequenceOf(args),
                                                   .from = ClampToInt(args.from_rank, -1),
                                                   .to = ClampToInt(args.to_rank, -1)});
  return builder_.AddCollective({.name = InternText(args.collective),
                                 .dtype = InternText(args.dtype),
                                 .process_group = group.empty() ? NameId() : InternRaw(group),
                                 .elements_in = Or(args.elements_in, 0),
                                 .elements_out = Or(args.elements_out, 0),
                                 .group_size = ClampToInt(args.group_size, 0)});
}

uint32_t KinetoRows::OpRow(const KinetoArgs& args) {
  OpDetail d{.sequence = Or(args.sequence, -1),
             .forward_thread = Or(args.forward_thread, -1),
             .shapes = InternRaw(args.shapes),
             .types = InternRaw(args.types),
             .collective = CollectiveRow(args)};
  return d == OpDetail() ? kNoRow : builder_.AddOp(d);
}

uint32_t KinetoRows::KernelRow(const KinetoArgs& args) {
  KernelDetail d{.grid = args.grid,
                 .block = args.block,
                 .registers_per_thread = ClampToUnsigned(args.registers),
                 .shared_memory_bytes = ClampToUnsigned(args.shared_memory),
                 .graph_node = args.graph_node,
                 .collective = CollectiveRow(args)};
  return d == KernelDetail() ? kNoRow : builder_.AddKernel(d);
}

// The profiler divides the blocks of a kernel by the multiprocessors of the GPU that it ran on,
// whatever the head of the file says. Below one each the quotient is too coarse.
void KinetoRows::NoteMultiprocessors(const KinetoArgs& args, int64_t device) {
  constexpr int64_t kOne = 1000;
  constexpr size_t kMostKinds = 64;  // of a file: devices, and what single damaged rows say
  if (args.blocks_state != NumberState::kOk || args.blocks_per_multiprocessor < kOne) return;
  const double blocks = static_cast<double>(args.grid[0]) * args.grid[1] * args.grid[2];
  const double each = static_cast<double>(args.blocks_per_multiprocessor) / kOne;
  if (blocks < each || blocks / each > INT32_MAX) return;
  const auto n = static_cast<int64_t>(std::lround(blocks / each));
  for (LaunchedOn& known : launched_on_) {
    if (known.device != device || known.multiprocessors != n) continue;
    ++known.kernels;
    return;
  }
  if (launched_on_.size() < kMostKinds) launched_on_.push_back({device, n, 1});
}

void KinetoRows::FinishDevices() {
  for (Device& device : builder_.devices()) {
    uint64_t most = 0;
    for (const LaunchedOn& seen : launched_on_) {
      if (seen.device != device.id || seen.kernels <= most) continue;
      most = seen.kernels;
      device.launched_multiprocessors = static_cast<int32_t>(seen.multiprocessors);
    }
  }
}

uint32_t KinetoRows::CopyRow(const KinetoEvent& e, bool copy) {
  CopyDetail d{.bytes = static_cast<uint64_t>(std::max<int64_t>(0, Or(e.args.bytes, 0)))};
  if (copy) ReadDirection(e.name.text, &d);
  return d == CopyDetail() ? kNoRow : builder_.AddCopy(d);
}

uint32_t KinetoRows::SyncRow(const KinetoEvent& e) {
  int64_t record = Or(e.args.wait_on_record, 0);
  bool known = record > 0 && record < static_cast<int64_t>(UINT32_MAX);
  std::string_view kind = e.args.sync_kind.present() ? e.args.sync_kind.text : e.name.text;
  return builder_.AddSync({.kind = SyncKindOf(kind),
                           .stream = Or(e.args.stream, -1),
                           .wait_on_stream = Or(e.args.wait_on_stream, -1),
                           .record_correlation = known ? static_cast<uint32_t>(record) : 0,
                           .event = Or(e.args.wait_on_event, -1)});
}

}  // namespace daydream
