#include "trace/kineto/event.h"

#include "base/text.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <new>
#include <type_traits>

namespace daydream {
namespace {

static_assert(std::is_trivially_destructible_v<KinetoArgs>);

// [4, 5, 6] into three numbers; anything else leaves them alone.
const char* ReadTriple(const char* p, const char* end, std::array<uint32_t, 3>* out) {
  if (*p != '[') return SkipJsonValue(p, end);
  std::array<uint32_t, 3> values{};
  const char* q = p + 1;
  for (size_t i = 0; i < 3; ++i) {
    int64_t v = 0;
    q = SkipBlanks(q);
    if (const char* behind = ReadShortInteger(q, &v); behind != nullptr) {
      q = behind;
    } else if (!ParseInteger(&q, &v) || v < 0 || v > UINT32_MAX) {
      return SkipJsonValue(p, end);
    }
    values[i] = static_cast<uint32_t>(v);
    q = SkipBlanks(q);
    if (*q != (i < 2 ? ',' : ']')) return SkipJsonValue(p, end);
    ++q;
  }
  *out = values;
  return q;
}

const char* ReadRaw(const char* p, const char* end, std::string_view* raw) {
  const char* behind = SkipJsonValue(p, end);
  if (behind != nullptr) *raw = {p, static_cast<size_t>(behind - p)};
  return behind;
}

const char* ReadUnsigned(const char* p, const char* end, uint64_t* value) {
  const char* q = p;
  uint64_t v = 0;
  if (ParseUnsigned(&q, &v) && EndsJsonScalar(*q)) {
    *value = v;
    return q;
  }
  return SkipJsonValue(p, end);
}

const char* ReadTime(const char* p, const char* end, NumberState* state, int64_t* ns) {
  if (const char* behind = ReadShortInteger(p, ns); behind != nullptr) {
    *ns *= 1000;
    *state = NumberState::kOk;
    return behind;
  }
  bool quoted = *p == '"';
  const char* q = ParseMicroseconds(p + (quoted ? 1 : 0), state, ns);
  if (quoted ? *q == '"' : EndsJsonScalar(*q)) return q + (quoted ? 1 : 0);
  *state = NumberState::kNotANumber;
  return SkipJsonValue(p, end);
}

const char* ReadLongIdentity(const char* p, const char* end, JsonIdentity* identity) {
  if (*p != '"') {
    const char* q = p;
    if (ParseInteger(&q, &identity->number) && EndsJsonScalar(*q)) return q;
    identity->present = false;
    return SkipJsonValue(p, end);
  }
  JsonString text;
  const char* behind = ReadJsonString(p, end, &text);
  if (behind == nullptr) return nullptr;
  const char* q = p + 1;
  if (!ParseInteger(&q, &identity->number) || *q != '"') identity->text = text;
  return behind;
}

[[gnu::always_inline]] inline const char* ReadIdentity(const char* p, const char* end,
                                                       JsonIdentity* identity) {
  identity->present = true;
  const char* behind = ReadShortInteger(p, &identity->number);
  return behind != nullptr ? behind : ReadLongIdentity(p, end, identity);
}

// What nobody reads is most often a short number.
[[gnu::always_inline]] inline const char* SkipUnused(const char* p, const char* end) {
  int64_t value = 0;
  const char* behind = ReadShortInteger(p, &value);
  return behind != nullptr ? behind : SkipJsonValue(p, end);
}

// What an argument is read into, and how.
struct Argument {
  std::string_view name;
  int64_t KinetoArgs::*number = nullptr;
  JsonString KinetoArgs::*text = nullptr;
  std::string_view KinetoArgs::*raw = nullptr;
  std::array<uint32_t, 3> KinetoArgs::*triple = nullptr;
  JsonIdentity KinetoArgs::*identity = nullptr;
};

using A = KinetoArgs;
constexpr Argument kArguments[] = {
    {"blocks per SM"},
    {"graph node id"},
    {"Seq", &A::collective_sequence},
    {"bytes", &A::bytes},
    {"Bytes", &A::allocation},
    {"device", &A::device},
    {"stream", &A::stream},
    {"Src Rank", &A::from_rank},
    {"Dst Rank", &A::to_rank},
    {"Device Id", &A::device_id},
    {"Stream Id", &A::stream_id},
    {"Group size", &A::group_size},
    {"correlation", &A::correlation},
    {"Device Type", &A::device_type},
    {"Fwd thread id", &A::forward_thread},
    {"shared memory", &A::shared_memory},
    {"In msg nelems", &A::elements_in},
    {"connection_id", &A::connection},
    {"Out msg nelems", &A::elements_out},
    {"Total Reserved", &A::total_reserved},
    {"wait_on_stream", &A::wait_on_stream},
    {"Sequence number", &A::sequence},
    {"Total Allocated", &A::total_allocated},
    {"registers per thread", &A::registers},
    {"wait_on_cuda_event_id", &A::wait_on_event},
    {"wait_on_cuda_event_record_corr_id", &A::wait_on_record},
    {.name = "name", .text = &A::name},
    {.name = "dtype", .text = &A::dtype},
    {.name = "Task Type", .text = &A::task_type},
    {.name = "cuda_sync_kind", .text = &A::sync_kind},
    {.name = "Collective name", .text = &A::collective},
    {.name = "Process Group Name", .text = &A::process_group},
    {.name = "Input Dims", .raw = &A::shapes},
    {.name = "Input dims", .raw = &A::shapes},
    {.name = "Input type", .raw = &A::types},
    {.name = "Concrete Inputs", .raw = &A::values},
    {.name = "Process Group Ranks", .raw = &A::members},
    {.name = "grid", .triple = &A::grid},
    {.name = "block", .triple = &A::block},
    {.name = "queue", .identity = &A::queue},
    {.name = "l0 queue", .identity = &A::l0_queue},
    {.name = "sycl queue", .identity = &A::sycl_queue},
};
constexpr JsonKeys::Key kBlocks = 0, kGraphNode = 1, kUnknown = 0xfe;
static_assert(std::size(kArguments) < kUnknown && kUnknown < JsonKeys::kClosed);

JsonKeys::Key FindArgument(std::string_view name) {
  const auto* at = std::ranges::find(kArguments, name, &Argument::name);
  return at == std::end(kArguments) ? kUnknown : static_cast<JsonKeys::Key>(at - kArguments);
}

const char* ReadArgument(JsonKeys::Key key, const char* p, const char* end, KinetoArgs* a) {
  if (key == kUnknown) return SkipUnused(p, end);
  const Argument& to = kArguments[key];
  if (to.number != nullptr) return ReadJsonInteger(p, end, &(a->*to.number));
  if (to.text != nullptr) return ReadJsonString(p, end, &(a->*to.text));
  if (to.raw != nullptr) return ReadRaw(p, end, &(a->*to.raw));
  if (to.triple != nullptr) return ReadTriple(p, end, &(a->*to.triple));
  if (to.identity != nullptr) return ReadIdentity(p, end, &(a->*to.identity));
  if (key == kGraphNode) return ReadUnsigned(p, end, &a->graph_node);
  return ReadTime(p, end, &a->blocks_state, &a->blocks_per_multiprocessor);
}
static_assert(kArguments[kBlocks].name == "blocks per SM");

// Python frames are many and their arguments are of no use.
bool UsesArguments(const KinetoEvent& event) { return event.category.text != "python_function"; }

// Events of one category have the same arguments. 0 is the event itself.
size_t ContextOf(std::string_view category) {
  if (category.empty()) return 1;
  const auto first = static_cast<unsigned char>(category.front());
  const auto last = static_cast<unsigned char>(category.back());
  return 1 + (first + 3 * last + category.size()) % (JsonKeys::kContexts - 1);
}

const char* ReadArguments(const char* p, const char* end, KinetoEvent* event, JsonKeys* keys) {
  if (*p != '{' || !UsesArguments(*event)) return SkipJsonValue(p, end);
  JsonKeys::Reader object(*keys, ContextOf(event->category.text), p, end);
  JsonKeys::Key key = 0;
  while (object.NextKey(&key, FindArgument)) {
    if (key != kUnknown) event->has_arguments = true;
    const char* behind = ReadArgument(key, object.value(), end, &event->args);
    if (behind == nullptr) return nullptr;
    object.Resume(behind);
  }
  if (object.closed()) return object.position();
  event->broken_arguments = object.position() < end;
  return nullptr;
}

const char* ReadPhase(const char* p, const char* end, char* phase) {
  if (p[0] == '"' && p[2] == '"' && p[1] != '"' && p[1] != '\\' && p + 2 < end) {
    *phase = p[1];
    return p + 3;
  }
  JsonString text;
  const char* behind = ReadJsonString(p, end, &text);
  if (text.text.size() == 1) *phase = text.text[0];
  return behind;
}

enum class Member : JsonKeys::Key {
  kId,
  kPhase,
  kStart,
  kCategory,
  kProcess,
  kThread,
  kDuration,
  kName,
  kArguments,
  kOther,
};

JsonKeys::Key FindMember(std::string_view name) {
  constexpr std::string_view kNames[] = {"id",  "ph",  "ts",   "cat", "pid",
                                         "tid", "dur", "name", "args"};
  return static_cast<JsonKeys::Key>(std::ranges::find(kNames, name) - std::begin(kNames));
}

const char* ReadMember(Member member, const char* p, const char* end, KinetoEvent* event,
                       JsonKeys* keys) {
  switch (member) {
    case Member::kId:
      return ReadIdentity(p, end, &event->flow);
    case Member::kPhase:
      return ReadPhase(p, end, &event->phase);
    case Member::kStart:
      return ReadTime(p, end, &event->start_state, &event->start_ns);
    case Member::kCategory:
      return ReadJsonString(p, end, &event->category);
    case Member::kProcess:
      return ReadIdentity(p, end, &event->process);
    case Member::kThread:
      return ReadIdentity(p, end, &event->thread);
    case Member::kDuration:
      return ReadTime(p, end, &event->duration_state, &event->duration_ns);
    case Member::kName:
      return ReadJsonString(p, end, &event->name);
    case Member::kArguments:
      return ReadArguments(p, end, event, keys);
    case Member::kOther:
      break;
  }
  return SkipJsonValue(p, end);
}

}  // namespace

namespace {

// The text of an event up to what a glance cannot judge.
struct Glance {
  const char* stop = nullptr;  // behind its brace: a bracket, a backslash or a bar
  bool in_string = false;      // so it is
  bool plain = true;           // no letters of a flow that tells something, see below
};

// Flows "fwdbwd" are counted apart, "HostToDevice" and "async_npu" join calls and tasks: a text
// without 'w', 'D' and "_n" is none of these.
Glance GlanceAt(const char* event, const char* end) {
  Glance glance;
  uint32_t quotes = 0, telling = 0;
  for (const char* p = event + 1; p < end; p += 16) {
    const JsonBlock block(p), next(p + 1);
    const uint32_t stop = block.Structure();
    const uint32_t before = stop == 0 ? 0xffff : (stop & -stop) - 1;
    quotes ^= block.Equal('"') & before;
    telling |= (block.Equal2('w', 'D') | (block.Equal('_') & next.Equal('n'))) & before;
    if (stop == 0) continue;
    glance.stop = p + std::countr_zero(stop);
    break;
  }
  glance.in_string = std::popcount(quotes) % 2 != 0;
  glance.plain = telling == 0;
  return glance;
}

// Flows and instants other than memory marks hold nothing of use and are a third of all events:
// where they are as short as usual and followed by what follows an event, they are skipped in one
// go. Those of Ascend devices join calls and tasks.
const char* SkipShortEvent(const char* begin, const char* end, KinetoEvent* event) {
  constexpr ptrdiff_t kShortBytes = 1024;
  const char* stop = std::min(end, begin + kShortBytes);
  const Glance glance = GlanceAt(begin, stop);
  const bool seen = glance.stop != nullptr && glance.stop < stop;
  if (seen && event->phase == 'i' && end - glance.stop >= std::ssize(kMemoryMark) &&
      std::memcmp(glance.stop, kMemoryMark.data(), kMemoryMark.size()) == 0) {
    return nullptr;
  }
  const bool ends = seen && *glance.stop == '}' && !glance.in_string;
  const char* behind = ends ? glance.stop + 1 : JsonSkipper().Skip(begin, stop);
  if (behind == nullptr) return nullptr;
  const char* next = SkipBlanks(behind);
  if (next >= end || (*next != ',' && *next != ']')) return nullptr;
  if (ends && glance.plain) return behind;
  std::string_view text(begin, static_cast<size_t>(behind - begin));
  if (event->phase == 'i' && Contains(text, kMemoryMark)) return nullptr;
  constexpr std::string_view kForwardBackward = "fwdbwd";
  size_t at = text.find(kForwardBackward);
  if (at != std::string_view::npos) {
    event->category.text = text.substr(at, kForwardBackward.size());
  } else if (!Contains(text, "ac2g") &&
             (Contains(text, "async_npu") || Contains(text, "HostToDevice"))) {
    return nullptr;
  }
  return behind;
}

bool IsSkippedPhase(char phase) {
  return phase == 's' || phase == 'f' || phase == 't' || phase == 'i';
}

// In place, and arguments only where there were some: a new one to copy takes as long as reading
// the keys. One at a time: a copy of what was only just cleared waits until that is written.
void Clear(KinetoEvent* event) {
  if (event->has_arguments) new (&event->args) KinetoArgs;
  event->phase = '\0';
  event->category = {};
  event->name = {};
  event->process = {};
  event->thread = {};
  event->flow = {};
  event->start_state = event->duration_state = NumberState::kMissing;
  event->start_ns = event->duration_ns = 0;
  event->broken_arguments = event->has_arguments = false;
}

}  // namespace

ParseResult ParseKinetoEvent(const char** p, const char* end, KinetoEvent* event, JsonKeys* keys) {
  Clear(event);
  JsonKeys::Reader object(*keys, 0, *p, end);
  JsonKeys::Key key = 0;
  bool first = true;
  while (object.NextKey(&key, FindMember)) {
    const char* behind = ReadMember(Member{key}, object.value(), end, event, keys);
    if (behind == nullptr) {
      return event->broken_arguments ? ParseResult::kMalformed : ParseResult::kIncomplete;
    }
    object.Resume(behind);
    if (first && IsSkippedPhase(event->phase)) {
      behind = SkipShortEvent(*p, end, event);
      if (behind != nullptr) {
        *p = behind;
        return ParseResult::kOk;
      }
    }
    first = false;
  }
  if (object.closed() && object.position() <= end) {
    *p = object.position();
    return ParseResult::kOk;
  }
  return object.position() >= end ? ParseResult::kIncomplete : ParseResult::kMalformed;
}

}  // namespace daydream
