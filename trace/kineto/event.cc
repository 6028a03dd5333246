#include "trace/kineto/event.h"

#include "base/text.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <type_traits>

namespace daydream {
namespace {

static_assert(std::is_trivially_destructible_v<KinetoEvent>);

// [4, 5, 6] into three numbers; anything else leaves them alone.
const char* ReadTriple(const char* p, const char* end, std::array<uint32_t, 3>* out) {
  if (*p != '[') return SkipJsonValue(p, end);
  std::array<uint32_t, 3> values{};
  const char* q = p + 1;
  for (size_t i = 0; i < 3; ++i) {
    int64_t v = 0;
    q = SkipBlanks(q);
    if (!ParseInteger(&q, &v) || v < 0 || v > UINT32_MAX) return SkipJsonValue(p, end);
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
  bool quoted = *p == '"';
  const char* q = ParseMicroseconds(p + (quoted ? 1 : 0), state, ns);
  if (quoted ? *q == '"' : EndsJsonScalar(*q)) return q + (quoted ? 1 : 0);
  *state = NumberState::kNotANumber;
  return SkipJsonValue(p, end);
}

const char* ReadIdentity(const char* p, const char* end, JsonIdentity* identity) {
  identity->present = true;
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

// In words that overlap: of lengths like 11 the compiler would call memcmp().
template <size_t kWithZero>
bool Is(std::string_view key, const char (&name)[kWithZero]) {
  constexpr size_t kSize = kWithZero - 1;
  constexpr size_t kWord = kSize >= 8 ? 8 : kSize >= 4 ? 4 : kSize >= 2 ? 2 : 1;
  for (size_t i = 0; i + kWord < kSize; i += kWord) {
    if (std::memcmp(key.data() + i, name + i, kWord) != 0) return false;
  }
  return std::memcmp(key.data() + kSize - kWord, name + kSize - kWord, kWord) == 0;
}

// REQUIRES in all: key.size() is the length of every name compared with.
const char* ReadShortArgument(std::string_view key, const char* p, const char* end, KinetoArgs* a) {
  switch (key.size()) {
    case 3:
      if (Is(key, "Seq")) return ReadJsonInteger(p, end, &a->collective_sequence);
      break;
    case 4:
      if (Is(key, "grid")) return ReadTriple(p, end, &a->grid);
      if (Is(key, "name")) return ReadJsonString(p, end, &a->name);
      break;
    case 5:
      if (Is(key, "block")) return ReadTriple(p, end, &a->block);
      if (Is(key, "bytes")) return ReadJsonInteger(p, end, &a->bytes);
      if (Is(key, "Bytes")) return ReadJsonInteger(p, end, &a->allocation);
      if (Is(key, "dtype")) return ReadJsonString(p, end, &a->dtype);
      if (Is(key, "queue")) return ReadIdentity(p, end, &a->queue);
      break;
    case 6:
      if (Is(key, "device")) return ReadJsonInteger(p, end, &a->device);
      if (Is(key, "stream")) return ReadJsonInteger(p, end, &a->stream);
      break;
    case 8:
      if (Is(key, "l0 queue")) return ReadIdentity(p, end, &a->l0_queue);
      if (Is(key, "Src Rank")) return ReadJsonInteger(p, end, &a->from_rank);
      if (Is(key, "Dst Rank")) return ReadJsonInteger(p, end, &a->to_rank);
      break;
    case 9:
      if (Is(key, "Device Id")) return ReadJsonInteger(p, end, &a->device_id);
      if (Is(key, "Stream Id")) return ReadJsonInteger(p, end, &a->stream_id);
      if (Is(key, "Task Type")) return ReadJsonString(p, end, &a->task_type);
      break;
    case 10:
      if (Is(key, "Input Dims") || Is(key, "Input dims")) return ReadRaw(p, end, &a->shapes);
      if (Is(key, "Input type")) return ReadRaw(p, end, &a->types);
      if (Is(key, "sycl queue")) return ReadIdentity(p, end, &a->sycl_queue);
      if (Is(key, "Group size")) return ReadJsonInteger(p, end, &a->group_size);
      break;
    case 11:
      if (Is(key, "correlation")) return ReadJsonInteger(p, end, &a->correlation);
      if (Is(key, "Device Type")) return ReadJsonInteger(p, end, &a->device_type);
      break;
    default:
      break;
  }
  return SkipJsonValue(p, end);
}

const char* ReadLongArgument(std::string_view key, const char* p, const char* end, KinetoArgs* a) {
  switch (key.size()) {
    case 13:
      if (Is(key, "Fwd thread id")) return ReadJsonInteger(p, end, &a->forward_thread);
      if (Is(key, "shared memory")) return ReadJsonInteger(p, end, &a->shared_memory);
      if (Is(key, "blocks per SM")) {
        return ReadTime(p, end, &a->blocks_state, &a->blocks_per_multiprocessor);
      }
      if (Is(key, "In msg nelems")) return ReadJsonInteger(p, end, &a->elements_in);
      if (Is(key, "connection_id")) return ReadJsonInteger(p, end, &a->connection);
      if (Is(key, "graph node id")) return ReadUnsigned(p, end, &a->graph_node);
      break;
    case 14:
      if (Is(key, "Out msg nelems")) return ReadJsonInteger(p, end, &a->elements_out);
      if (Is(key, "Total Reserved")) return ReadJsonInteger(p, end, &a->total_reserved);
      if (Is(key, "wait_on_stream")) return ReadJsonInteger(p, end, &a->wait_on_stream);
      if (Is(key, "cuda_sync_kind")) return ReadJsonString(p, end, &a->sync_kind);
      break;
    case 15:
      if (Is(key, "Sequence number")) return ReadJsonInteger(p, end, &a->sequence);
      if (Is(key, "Total Allocated")) return ReadJsonInteger(p, end, &a->total_allocated);
      if (Is(key, "Collective name")) return ReadJsonString(p, end, &a->collective);
      if (Is(key, "Concrete Inputs")) return ReadRaw(p, end, &a->values);
      break;
    case 18:
      if (Is(key, "Process Group Name")) return ReadJsonString(p, end, &a->process_group);
      break;
    case 19:
      if (Is(key, "Process Group Ranks")) return ReadRaw(p, end, &a->members);
      break;
    case 20:
      if (Is(key, "registers per thread")) return ReadJsonInteger(p, end, &a->registers);
      break;
    case 21:
      if (Is(key, "wait_on_cuda_event_id")) return ReadJsonInteger(p, end, &a->wait_on_event);
      break;
    case 33:
      if (Is(key, "wait_on_cuda_event_record_corr_id")) {
        return ReadJsonInteger(p, end, &a->wait_on_record);
      }
      break;
    default:
      break;
  }
  return SkipJsonValue(p, end);
}

// Python frames are many and their arguments are of no use.
bool UsesArguments(const KinetoEvent& event) { return event.category.text != "python_function"; }

const char* ReadArguments(const char* p, const char* end, KinetoEvent* event) {
  if (*p != '{' || !UsesArguments(*event)) return SkipJsonValue(p, end);
  JsonObjectReader object(p, end);
  std::string_view key;
  while (object.NextKey(&key)) {
    const char* value = object.value();
    const char* behind = key.size() < 12 ? ReadShortArgument(key, value, end, &event->args)
                                         : ReadLongArgument(key, value, end, &event->args);
    if (behind == nullptr) return nullptr;
    object.Resume(behind);
  }
  if (object.closed()) return object.position();
  event->broken_arguments = object.position() < end;
  return nullptr;
}

const char* ReadPhase(const char* p, const char* end, char* phase) {
  JsonString text;
  const char* behind = ReadJsonString(p, end, &text);
  if (text.text.size() == 1) *phase = text.text[0];
  return behind;
}

const char* ReadMember(std::string_view key, const char* p, const char* end, KinetoEvent* event) {
  switch (key.size()) {
    case 2:
      if (Is(key, "id")) return ReadIdentity(p, end, &event->flow);
      if (Is(key, "ph")) return ReadPhase(p, end, &event->phase);
      if (Is(key, "ts")) return ReadTime(p, end, &event->start_state, &event->start_ns);
      break;
    case 3:
      if (Is(key, "cat")) return ReadJsonString(p, end, &event->category);
      if (Is(key, "pid")) return ReadIdentity(p, end, &event->process);
      if (Is(key, "tid")) return ReadIdentity(p, end, &event->thread);
      if (Is(key, "dur")) return ReadTime(p, end, &event->duration_state, &event->duration_ns);
      break;
    case 4:
      if (Is(key, "name")) return ReadJsonString(p, end, &event->name);
      if (Is(key, "args")) return ReadArguments(p, end, event);
      break;
    default:
      break;
  }
  return SkipJsonValue(p, end);
}

}  // namespace

namespace {

// Flows and instants other than memory marks hold nothing of use and are a third of all events:
// where they are as short as usual and followed by what follows an event, they are skipped in one
// go. Those of Ascend devices join calls and tasks.
const char* SkipShortEvent(const char* begin, const char* end, KinetoEvent* event) {
  constexpr ptrdiff_t kShortBytes = 1024;
  const char* behind = JsonSkipper().Skip(begin, std::min(end, begin + kShortBytes));
  if (behind == nullptr) return nullptr;
  const char* next = SkipBlanks(behind);
  if (next >= end || (*next != ',' && *next != ']')) return nullptr;
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

}  // namespace

ParseResult ParseKinetoEvent(const char** p, const char* end, KinetoEvent* event) {
  new (event) KinetoEvent;  // in place: a new one to copy takes as long as reading the keys
  JsonObjectReader object(*p, end);
  std::string_view key;
  bool first = true;
  while (object.NextKey(&key)) {
    const char* behind = ReadMember(key, object.value(), end, event);
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
