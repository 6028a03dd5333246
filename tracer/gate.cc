#include "tracer/gate.h"

#include <atomic>
#include <mutex>

#include "tracer/daydream_mark.h"
#include "tracer/marks.h"
#include "tracer/nvtx.h"
#include "tracer/recorder.h"

namespace daydream::tracer {
namespace {

// What RecorderMark() has to do; the rest of the state is looked at only if this is not kAll.
enum class Gate : uint8_t {
  kStart,       // the next mark that is worth a file starts the recorder
  kAll,         // take it
  kEssentials,  // the window is closed: steps and facts only
  kOff,
};
std::atomic<Gate> g_gate{Gate::kStart};
std::atomic<bool> g_watch_ranges{false};  // capture=nvtx:NAME
std::atomic<int> g_captures{0};           // stream captures that run

// Ranges and layers of this thread that began in a capture while the window was closed.
thread_local uint32_t t_open_ranges = 0, t_open_layers = 0;

bool IsFact(uint32_t kind) { return kind == DAYDREAM_NOTE || kind == DAYDREAM_RANK; }

bool IsLabelling(uint32_t kind) {
  return kind == DAYDREAM_LABELS_BEGIN || kind == DAYDREAM_LABELS_END;
}

bool IsEssential(uint32_t kind) {
  return kind == DAYDREAM_STEP || IsFact(kind) || IsLabelling(kind);
}

// The window is closed: whether the mark is taken nevertheless because a graph is being captured.
// What began then is ended then, so that marks stay in pairs.
bool IsOfCapture(uint32_t kind) {
  const bool capturing = g_captures.load(std::memory_order_relaxed) > 0;
  const bool range = kind == DAYDREAM_RANGE_BEGIN || kind == DAYDREAM_RANGE_END;
  uint32_t& open = range ? t_open_ranges : t_open_layers;
  switch (kind) {
    case DAYDREAM_RANGE_BEGIN:
    case DAYDREAM_LAYER_BEGIN:
      open += capturing;
      return capturing;
    case DAYDREAM_RANGE_END:
    case DAYDREAM_LAYER_END:
      return open > 0 && open-- > 0;
    default:
      return capturing;
  }
}

// The first marks of a process. False: this one is not taken, or already was.
bool StartWith(Recorder& r, uint32_t kind, uint32_t name, int64_t value) {
  std::lock_guard lock(r.mutex);
  if (!ReadEnvironmentOnce(r)) return false;
  // Facts wait for a reason to make a file: an interpreter that only imports PyTorch has none.
  if (IsFact(kind) || IsLabelling(kind)) {
    Mark(kind, name, value);
    return false;
  }
  if (!StartRecorder(r)) return false;
  r.worth_a_file = true;
  g_gate = r.window_open ? Gate::kAll : Gate::kEssentials;
  return true;
}

void MarkSlowly(Gate gate, uint32_t kind, uint32_t name, int64_t value) {
  Recorder& r = TheRecorder();
  TouchThreadLocals();
  if (gate == Gate::kStart && !StartWith(r, kind, name, value)) return;
  const uint32_t plain = kind & ~kMarkBytes;
  const bool end = plain == DAYDREAM_RANGE_END;
  if (plain == DAYDREAM_STEP) return OnStep(r, name, value);
  const bool range = g_watch_ranges && (plain == DAYDREAM_RANGE_BEGIN || end);
  if (range && !end) OnRange(r, plain, name);
  if (g_gate.load() == Gate::kAll || IsEssential(plain) || IsOfCapture(plain)) {
    Mark(kind, name, value);
  }
  if (range && end) OnRange(r, plain, name);
}

}  // namespace

bool RecorderTakes(uint32_t kind) {
  switch (g_gate.load(std::memory_order_acquire)) {
    case Gate::kOff:
      return false;
    case Gate::kEssentials:
      return IsEssential(kind) || g_watch_ranges.load(std::memory_order_relaxed) ||
             g_captures.load(std::memory_order_relaxed) > 0 || t_open_ranges + t_open_layers > 0;
    default:
      return true;
  }
}

void RecorderMark(uint32_t kind, uint32_t name, int64_t value) {
  Gate gate = g_gate.load(std::memory_order_acquire);
  if (gate == Gate::kAll && kind != DAYDREAM_STEP &&
      !g_watch_ranges.load(std::memory_order_relaxed)) {
    return Mark(kind, name, value);
  }
  if (!RecorderTakes(kind & ~kMarkBytes)) return;
  MarkSlowly(gate, kind, name, value);
}

uint32_t RecorderName(const char* text) {
  Gate gate = g_gate.load(std::memory_order_relaxed);
  if (gate == Gate::kOff || text == nullptr) return 0;
  if (gate == Gate::kStart) {
    Recorder& r = TheRecorder();
    TouchThreadLocals();
    std::lock_guard lock(r.mutex);
    if (!ReadEnvironmentOnce(r)) return 0;
  }
  return MarkName(text);
}

int OpenNvtxDoor(const void* (*get_export_table)(uint32_t table)) {
  Recorder& r = TheRecorder();
  NvtxOptions options;
  TouchThreadLocals();
  {
    std::lock_guard lock(r.mutex);
    if (!ReadEnvironmentOnce(r)) return 1;
    options.ranges = r.environment.options.nvtx;
    options.nccl = r.environment.options.nccl;
  }
  options.mark = RecorderMark;
  options.takes = RecorderTakes;
  if (!options.ranges && !options.nccl) return 1;
  return AttachNvtx(get_export_table, options);
}

void OpenGate() { g_gate = Gate::kStart; }
void CloseGate() { g_gate = Gate::kOff; }

void OpenGateForWindow(bool open) {
  Gate expected = open ? Gate::kEssentials : Gate::kAll;
  g_gate.compare_exchange_strong(expected, open ? Gate::kAll : Gate::kEssentials);
}

void WatchRanges(bool watch) { g_watch_ranges = watch; }

void CaptureBegan() { ++g_captures; }
void CaptureEnded() {
  int now = g_captures;
  while (now > 0 && !g_captures.compare_exchange_weak(now, now - 1)) {
  }
}
void ForgetCaptures() { g_captures = 0; }

}  // namespace daydream::tracer
