#include "trace/kineto_event.h"

#include <algorithm>

namespace daydream {
namespace {

// A container longer than this that holds events is a sign of a stray quote before it.
constexpr size_t kSuspiciousBytes = 4096;

bool EndsScalar(char c) {
  return c == ',' || c == '}' || c == ']' || static_cast<unsigned char>(c) <= ' ';
}

const char* SkipScalar(const char* p, const char* end) {
  while (!EndsScalar(*p)) ++p;
  return p < end ? p : nullptr;
}

const char* SkipContainer(const char* p, const char* end) {
  if (p[1] == ']' || p[1] == '}') return p + 2;
  const char* behind = JsonSkipper().Skip(p, end);
  if (behind == nullptr || static_cast<size_t>(behind - p) < kSuspiciousBytes) return behind;
  std::string_view text(p, static_cast<size_t>(behind - p));
  return text.find("\"ph\":") == std::string_view::npos ? behind : nullptr;
}

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
  if (ParseUnsigned(&q, &v) && EndsScalar(*q)) {
    *value = v;
    return q;
  }
  return SkipJsonValue(p, end);
}

const char* ReadTime(const char* p, const char* end, NumberState* state, int64_t* ns) {
  bool quoted = *p == '"';
  const char* q = ParseMicroseconds(p + (quoted ? 1 : 0), state, ns);
  if (quoted ? *q == '"' : EndsScalar(*q)) return q + (quoted ? 1 : 0);
  *state = NumberState::kNotANumber;
  return SkipJsonValue(p, end);
}

const char* ReadIdentity(const char* p, const char* end, JsonIdentity* identity) {
  identity->present = true;
  if (*p != '"') {
    const char* q = p;
    if (ParseInteger(&q, &identity->number) && EndsScalar(*q)) return q;
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

bool Is(std::string_view key, std::string_view name) {
  return std::memcmp(key.data(), name.data(), name.size()) == 0;
}

// REQUIRES in all: key.size() is the length of every name compared with.
const char* ReadShortArgument(std::string_view key, const char* p, const char* end, KinetoArgs* a) {
  switch (key.size()) {
    case 4:
      if (Is(key, "grid")) return ReadTriple(p, end, &a->grid);
      if (Is(key, "name")) return ReadJsonString(p, end, &a->name);
      break;
    case 5:
      if (Is(key, "block")) return ReadTriple(p, end, &a->block);
      if (Is(key, "bytes")) return ReadJsonInteger(p, end, &a->bytes);
      if (Is(key, "dtype")) return ReadJsonString(p, end, &a->dtype);
      break;
    case 6:
      if (Is(key, "device")) return ReadJsonInteger(p, end, &a->device);
      if (Is(key, "stream")) return ReadJsonInteger(p, end, &a->stream);
      break;
    case 10:
      if (Is(key, "Input Dims") || Is(key, "Input dims")) return ReadRaw(p, end, &a->shapes);
      if (Is(key, "Input type")) return ReadRaw(p, end, &a->types);
      if (Is(key, "Group size")) return ReadJsonInteger(p, end, &a->group_size);
      break;
    case 11:
      if (Is(key, "correlation")) return ReadJsonInteger(p, end, &a->correlation);
      break;
    default: break;
  }
  return SkipJsonValue(p, end);
}

const char* ReadLongArgument(std::string_view key, const char* p, const char* end, KinetoArgs* a) {
  switch (key.size()) {
    case 13:
      if (Is(key, "Fwd thread id")) return ReadJsonInteger(p, end, &a->forward_thread);
      if (Is(key, "shared memory")) return ReadJsonInteger(p, end, &a->shared_memory);
      if (Is(key, "In msg nelems")) return ReadJsonInteger(p, end, &a->elements_in);
      if (Is(key, "graph node id")) return ReadUnsigned(p, end, &a->graph_node);
      break;
    case 14:
      if (Is(key, "Out msg nelems")) return ReadJsonInteger(p, end, &a->elements_out);
      if (Is(key, "wait_on_stream")) return ReadJsonInteger(p, end, &a->wait_on_stream);
      if (Is(key, "cuda_sync_kind")) return ReadJsonString(p, end, &a->sync_kind);
      break;
    case 15:
      if (Is(key, "Sequence number")) return ReadJsonInteger(p, end, &a->sequence);
      if (Is(key, "Collective name")) return ReadJsonString(p, end, &a->collective);
      break;
    case 18:
      if (Is(key, "Process Group Name")) return ReadJsonString(p, end, &a->process_group);
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
    default: break;
  }
  return SkipJsonValue(p, end);
}

const char* ReadArguments(const char* p, const char* end, KinetoEvent* event) {
  if (*p != '{') return SkipJsonValue(p, end);
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
    default: break;
  }
  return SkipJsonValue(p, end);
}

}  // namespace

const char* SkipJsonValue(const char* p, const char* end) {
  bool plain = true;
  switch (*p) {
    case '"': {
      const char* close = FindStringEnd(p + 1, end, &plain);
      return close == nullptr ? nullptr : close + 1;
    }
    case '{':
    case '[': return SkipContainer(p, end);
    default: return SkipScalar(p, end);
  }
}

const char* ReadJsonString(const char* p, const char* end, JsonString* value) {
  if (*p != '"') return SkipJsonValue(p, end);
  bool plain = true;
  const char* close = FindStringEnd(p + 1, end, &plain);
  if (close == nullptr) return nullptr;
  *value = {{p + 1, static_cast<size_t>(close - p - 1)}, plain};
  return close + 1;
}

const char* ReadJsonInteger(const char* p, const char* end, int64_t* value) {
  bool quoted = *p == '"';
  const char* q = p + (quoted ? 1 : 0);
  int64_t v = 0;
  if (ParseInteger(&q, &v) && (quoted ? *q == '"' : EndsScalar(*q))) {
    *value = v;
    return q + (quoted ? 1 : 0);
  }
  return SkipJsonValue(p, end);
}

bool JsonObjectReader::NextKey(std::string_view* key) {
  if (first_) ++p_;  // the opening brace
  p_ = SkipBlanks(p_);
  bool comma = false;
  while (*p_ == ',') {
    comma = true;
    p_ = SkipBlanks(p_ + 1);
  }
  if (*p_ == '}') {
    ++p_;
    closed_ = true;
    return false;
  }
  if (*p_ != '"' || (!first_ && !comma)) return false;
  first_ = false;
  bool plain = true;
  const char* close = FindStringEnd(p_ + 1, end_, &plain);
  if (close == nullptr) {
    p_ = end_;
    return false;
  }
  *key = {p_ + 1, static_cast<size_t>(close - p_ - 1)};
  p_ = SkipBlanks(close + 1);
  if (*p_ != ':') return false;
  p_ = SkipBlanks(p_ + 1);
  return *p_ != '\0' && *p_ != ',' && *p_ != '}' && *p_ != ']';
}

ParseResult ParseKinetoEvent(const char** p, const char* end, KinetoEvent* event) {
  *event = KinetoEvent();
  JsonObjectReader object(*p, end);
  std::string_view key;
  while (object.NextKey(&key)) {
    const char* behind = ReadMember(key, object.value(), end, event);
    if (behind == nullptr) {
      return event->broken_arguments ? ParseResult::kMalformed : ParseResult::kIncomplete;
    }
    object.Resume(behind);
  }
  if (object.closed() && object.position() <= end) {
    *p = object.position();
    return ParseResult::kOk;
  }
  return object.position() >= end ? ParseResult::kIncomplete : ParseResult::kMalformed;
}

}  // namespace daydream
