#include "tracer/nvtx.h"

#define NVTX_NO_IMPL  // types only: we are the other end
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "tracer/daydream_mark.h"
#include "tracer/marks.h"
#include "tracer/nccl_calls.h"

namespace daydream::tracer {
namespace {

enum class Filter : uint8_t { kIgnore, kRanges, kNccl };

// A registered domain; its handle is a pointer to one. The default domain has the handle NULL.
struct Domain {
  Filter filter;
};

// A registered string; its handle is a pointer to one. It gets its name when a mark needs it: a
// program may register more strings than there are names, and use none while it is recorded.
struct Registered {
  Filter filter;
  std::string text;
  int64_t step = -1;  // as StepOf()
  NcclFunction nccl;  // Filter::kNccl
  std::atomic<uint32_t> name{0};
  Registered* next = nullptr;  // in `registered`
};
constinit std::atomic<size_t> registered_bytes{0};
constinit std::atomic<Registered*> registered{nullptr};  // all of them: they live with the process
constexpr size_t kMaxRegisteredBytes = size_t{64} << 20;

struct Settings {
  bool ranges = true;
  void (*mark)(uint32_t kind, uint32_t name, int64_t value) = Mark;
  bool nccl = true;
  bool (*takes)(uint32_t kind) = [](uint32_t) { return true; };
};
constinit Settings settings;

// Larger payloads and texts than these are not ours, or not sane.
constexpr size_t kMaxText = 64 << 10;

// ---- Texts ----

std::string FromWide(const wchar_t* wide) {
  std::string text;
  for (; *wide != 0 && text.size() < kMaxText; ++wide) {
    const auto c = std::bit_cast<uint32_t>(*wide);  // UTF-32 on Linux
    const auto tail = [c](int shift) { return static_cast<char>(0x80 | (c >> shift & 0x3f)); };
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else if (c < 0x800) {
      text += static_cast<char>(0xc0 | c >> 6);
      text += tail(0);
    } else if (c < 0x10000) {
      text += static_cast<char>(0xe0 | c >> 12);
      (text += tail(6)) += tail(0);
    } else {
      text += static_cast<char>(0xf0 | (c >> 18 & 0x7));
      ((text += tail(12)) += tail(6)) += tail(0);
    }
  }
  return text;
}

// 12 for "step 12", "Step_12", "iteration: 12"; -1 for anything else. Reads no more of the text
// than it needs: this runs for every range, also of those that are not recorded.
template <class Char>
int64_t StepOf(const Char* text) {
  constexpr std::string_view kWords[] = {"step", "iteration", "iter"};  // the longer one first
  constexpr int kMostDigits = 18;                                       // fit into 63 bits
  if (text == nullptr) return -1;
  for (const std::string_view word : kWords) {
    size_t at = 0;
    const auto same = [&](size_t i) {
      const auto c = std::bit_cast<std::make_unsigned_t<Char>>(text[i]);
      const auto want = std::bit_cast<unsigned char>(word[i]);
      return c == want || (i == 0 && c == want - 'a' + uint32_t{'A'});
    };
    while (at < word.size() && same(at)) ++at;
    if (at < word.size()) continue;
    const size_t separators = at;
    while (text[at] == ' ' || text[at] == '_' || text[at] == ':' || text[at] == '#' ||
           text[at] == '=' || text[at] == '-') {
      ++at;
    }
    int64_t step = 0;
    int digits = 0;
    for (; text[at] >= '0' && text[at] <= '9' && digits <= kMostDigits; ++at, ++digits) {
      if (digits < kMostDigits) step = step * 10 + (text[at] - '0');
    }
    const bool whole = text[at] == 0 && digits > 0 && digits <= kMostDigits;
    return whole && at - static_cast<size_t>(digits) > separators ? step : -1;
  }
  return -1;
}

int64_t StepOf(const Registered* text) { return text == nullptr ? -1 : text->step; }

uint32_t NameOf(const char* text) {
  return text == nullptr ? 0 : NvtxName({text, strnlen(text, kMaxText)});
}

uint32_t NameOf(const wchar_t* text) { return text == nullptr ? 0 : NvtxName(FromWide(text)); }

uint32_t NameOf(Registered* text) {
  if (text == nullptr) return 0;
  uint32_t name = text->name.load(std::memory_order_relaxed);
  if (name == 0) {
    name = NvtxName(text->text);
    text->name.store(name, std::memory_order_relaxed);
  }
  return name;
}

NcclFunction NcclOf(const char* text) {
  return text == nullptr ? NcclFunction() : DescribeNccl({text, strnlen(text, kMaxText)});
}

NcclFunction NcclOf(const wchar_t* text) {
  return text == nullptr ? NcclFunction() : DescribeNccl(FromWide(text));
}

NcclFunction NcclOf(const Registered* text) {
  if (text == nullptr) return {};
  return text->filter == Filter::kNccl ? text->nccl : DescribeNccl(text->text);
}

// Calls `use` with the text of an event, whatever its type; a Result of nothing if it has none.
template <class Result, class Use>
Result WithText(const nvtxEventAttributes_t* event, Result otherwise, Use use) {
  constexpr size_t kNeeded = offsetof(nvtxEventAttributes_t, message) + sizeof(event->message);
  if (event == nullptr || event->size < kNeeded) return otherwise;
  switch (event->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII:
      return use(event->message.ascii);
    case NVTX_MESSAGE_TYPE_UNICODE:
      return use(event->message.unicode);
    case NVTX_MESSAGE_TYPE_REGISTERED:
      return use(reinterpret_cast<Registered*>(event->message.registered));
    default:
      return otherwise;
  }
}

uint32_t NameOf(const nvtxEventAttributes_t* event) {
  return WithText(event, uint32_t{0}, [](auto* text) { return NameOf(text); });
}

NcclFunction NcclOf(const nvtxEventAttributes_t* event) {
  return WithText(event, NcclFunction(), [](auto* text) { return NcclOf(text); });
}

int64_t StepOf(const nvtxEventAttributes_t* event) {
  return WithText(event, int64_t{-1}, [](auto* text) { return StepOf(text); });
}

// ---- What the slots do ----

Filter FilterOf(nvtxDomainHandle_t handle) {
  if (handle != nullptr) return reinterpret_cast<const Domain*>(handle)->filter;
  return settings.ranges ? Filter::kRanges : Filter::kIgnore;
}

// Open ranges of a thread, and which of them is the step: a range in it that is called
// "iteration 3", too, counts an inner loop (micro-batches, a solver), not the program's steps.
thread_local uint32_t t_depth = 0, t_step = 0;

void BeginStep(int64_t step) {
  if (t_step != 0) return;
  t_step = t_depth;
  static const uint32_t source = MarkName("nvtx");
  settings.mark(DAYDREAM_STEP, source, step);
}

const nvtxPayloadData_t* PayloadOf(const nvtxEventAttributes_t* event) {
  if (event == nullptr || event->payloadType != NVTX_PAYLOAD_TYPE_EXT || event->reserved0 < 1) {
    return nullptr;
  }
  return std::bit_cast<const nvtxPayloadData_t*>(event->payload.ullValue);
}

// Also what is not recorded is counted: numbers of calls are the same on every rank.
int PushNccl(const nvtxEventAttributes_t* event) {
  const NcclFunction function = NcclOf(event);
  const nvtxPayloadData_t* data = PayloadOf(event);
  const NcclCall call =
      data == nullptr ? NcclCall() : CountNcclCall(function, data->payload, data->size);
  if (!settings.takes(DAYDREAM_RANGE_BEGIN)) return NVTX_NO_PUSH_POP_TRACKING;
  if (call.bytes < 0) {
    settings.mark(DAYDREAM_RANGE_BEGIN, function.name, 0);
    return NVTX_NO_PUSH_POP_TRACKING;
  }
  settings.mark(DAYDREAM_RANGE_BEGIN | kMarkBytes, function.name, call.bytes);
  if (call.number >= 0) settings.mark(DAYDREAM_COLLECTIVE, NameOfGroup(call), call.number);
  return NVTX_NO_PUSH_POP_TRACKING;
}

template <class Any>
int Push(Filter filter, const Any* any) {
  if (filter != Filter::kRanges) return NVTX_NO_PUSH_POP_TRACKING;
  ++t_depth;
  if (const int64_t step = StepOf(any); step >= 0) BeginStep(step);
  // Before anything is done with the text: most ranges are not recorded.
  if (!settings.takes(DAYDREAM_RANGE_BEGIN)) return NVTX_NO_PUSH_POP_TRACKING;
  settings.mark(DAYDREAM_RANGE_BEGIN, NameOf(any), 0);
  return NVTX_NO_PUSH_POP_TRACKING;
}

template <class Any>
int PushText(const Any* any) {
  return Push(FilterOf(nullptr), any);
}

int PushIn(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  const Filter filter = FilterOf(domain);
  return filter == Filter::kNccl ? PushNccl(event) : Push(filter, event);
}

int PushEvent(const nvtxEventAttributes_t* event) { return PushIn(nullptr, event); }

int PopIn(nvtxDomainHandle_t domain) {
  const Filter filter = FilterOf(domain);
  if (filter == Filter::kIgnore) return NVTX_NO_PUSH_POP_TRACKING;
  if (settings.takes(DAYDREAM_RANGE_END)) settings.mark(DAYDREAM_RANGE_END, 0, 0);
  if (filter == Filter::kRanges && t_depth > 0) {
    if (t_step == t_depth) t_step = 0;
    --t_depth;
  }
  return NVTX_NO_PUSH_POP_TRACKING;
}

int Pop() { return PopIn(nullptr); }

// NCCL 2.26 and newer ends the ranges in which it makes communicators so.
int PopWithPayload(nvtxDomainHandle_t domain, const nvtxPayloadData_t* payload, size_t count) {
  if (FilterOf(domain) == Filter::kNccl && payload != nullptr && count > 0) {
    NoteNcclCommunicator(payload->payload, payload->size);
  }
  return PopIn(domain);
}

template <class Any>
void Point(Filter filter, const Any* any) {
  if (filter == Filter::kIgnore || !settings.takes(DAYDREAM_POINT)) return;
  settings.mark(DAYDREAM_POINT, filter == Filter::kNccl ? NcclOf(any).name : NameOf(any), 0);
}

template <class Any>
void PointText(const Any* any) {
  Point(FilterOf(nullptr), any);
}

void PointIn(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  Point(FilterOf(domain), event);
}

std::string TextOf(const char* text) { return {text, strnlen(text, kMaxText)}; }
std::string TextOf(const wchar_t* text) { return FromWide(text); }

template <class Any>
nvtxStringHandle_t Register(nvtxDomainHandle_t domain, const Any* any) {
  const Filter filter = FilterOf(domain);
  if (filter == Filter::kIgnore || any == nullptr) return nullptr;
  std::string text = TextOf(any);
  const size_t bytes = sizeof(Registered) + text.size();
  if (registered_bytes.fetch_add(bytes, std::memory_order_relaxed) > kMaxRegisteredBytes) {
    registered_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    return nullptr;
  }
  auto* made = new Registered{.filter = filter, .text = std::move(text), .step = StepOf(any)};
  if (filter == Filter::kNccl) made->nccl = DescribeNccl(made->text);
  made->next = registered.load(std::memory_order_relaxed);
  while (!registered.compare_exchange_weak(made->next, made, std::memory_order_relaxed)) {
  }
  return reinterpret_cast<nvtxStringHandle_t>(made);
}

Filter FilterOfName(std::string_view name) {
  if (name == "NCCL") return settings.nccl ? Filter::kNccl : Filter::kIgnore;
  const bool ours = name == "daydream" || name == "TSL";
  return ours && settings.ranges ? Filter::kRanges : Filter::kIgnore;
}

nvtxDomainHandle_t DomainOf(Filter filter) {
  // One per filter is enough: nothing else of a domain is kept.
  static constinit Domain domains[] = {{Filter::kIgnore}, {Filter::kRanges}, {Filter::kNccl}};
  return reinterpret_cast<nvtxDomainHandle_t>(&domains[static_cast<size_t>(filter)]);
}

nvtxDomainHandle_t CreateDomain(const char* name) {
  return DomainOf(name == nullptr ? Filter::kIgnore : FilterOfName(name));
}

nvtxDomainHandle_t CreateWideDomain(const wchar_t* name) {
  return DomainOf(name == nullptr ? Filter::kIgnore : FilterOfName(FromWide(name)));
}

// ---- The tables ----

struct Slot {
  unsigned int id;
  NvtxFunctionPointer function;
};

template <class Function>
NvtxFunctionPointer Erase(Function* function) {
  return reinterpret_cast<NvtxFunctionPointer>(function);
}

template <size_t kSize>
bool Fill(const NvtxExportTableCallbacks& callbacks, NvtxCallbackModule module,
          const Slot (&slots)[kSize]) {
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (callbacks.GetModuleFunctionTable(module, &table, &size) == 0 || table == nullptr) {
    return false;
  }
  for (const Slot& slot : slots) {
    // An older header has fewer slots.
    if (slot.id < size && table[slot.id] != nullptr) *table[slot.id] = slot.function;
  }
  return true;
}

bool FillCore(const NvtxExportTableCallbacks& callbacks) {
  const Slot slots[] = {
      {NVTX_CBID_CORE_MarkEx,
       Erase(+[](const nvtxEventAttributes_t* event) { PointIn(nullptr, event); })},
      {NVTX_CBID_CORE_MarkA, Erase(PointText<char>)},
      {NVTX_CBID_CORE_MarkW, Erase(PointText<wchar_t>)},
      {NVTX_CBID_CORE_RangePushEx, Erase(PushEvent)},
      {NVTX_CBID_CORE_RangePushA, Erase(PushText<char>)},
      {NVTX_CBID_CORE_RangePushW, Erase(PushText<wchar_t>)},
      {NVTX_CBID_CORE_RangePop, Erase(Pop)},
  };
  return Fill(callbacks, NVTX_CB_MODULE_CORE, slots);
}

bool FillDomains(const NvtxExportTableCallbacks& callbacks) {
  const Slot slots[] = {
      {NVTX_CBID_CORE2_DomainMarkEx, Erase(PointIn)},
      {NVTX_CBID_CORE2_DomainRangePushEx, Erase(PushIn)},
      {NVTX_CBID_CORE2_DomainRangePop, Erase(PopIn)},
      {NVTX_CBID_CORE2_DomainRegisterStringA, Erase(Register<char>)},
      {NVTX_CBID_CORE2_DomainRegisterStringW, Erase(Register<wchar_t>)},
      {NVTX_CBID_CORE2_DomainCreateA, Erase(CreateDomain)},
      {NVTX_CBID_CORE2_DomainCreateW, Erase(CreateWideDomain)},
  };
  return Fill(callbacks, NVTX_CB_MODULE_CORE2, slots);
}

Settings SettingsOf(const NvtxOptions& options) {
  return {.ranges = options.ranges,
          .mark = options.mark != nullptr ? options.mark : Mark,
          .nccl = options.nccl,
          .takes = options.takes != nullptr ? options.takes : Settings().takes};
}

}  // namespace

int AttachNvtx(const void* (*get_export_table)(uint32_t table), const NvtxOptions& options) {
  [[maybe_unused]] static const bool first = [&] {
    settings = SettingsOf(options);
    return true;
  }();
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(NvtxExportTableCallbacks)) return 0;
  return FillCore(*callbacks) && FillDomains(*callbacks) ? 1 : 0;
}

int AttachNvtxExtension(nvtxExtModuleInfo_t* module) {
  if (module == nullptr || module->structSize < sizeof(nvtxExtModuleInfo_t)) return 0;
  // One that is not known keeps its no-ops.
  if (module->moduleId != NVTX_EXT_PAYLOAD_MODULEID || module->segmentsCount == 0) return 1;
  const nvtxExtModuleSegment_t& slots = module->segments[0];
  if (slots.functionSlots == nullptr) return 1;
  if (slots.slotCount > NVTX3EXT_CBID_nvtxRangePopPayload) {
    slots.functionSlots[NVTX3EXT_CBID_nvtxRangePopPayload] =
        reinterpret_cast<intptr_t>(&PopWithPayload);
  }
  return 1;
}

}  // namespace daydream::tracer
