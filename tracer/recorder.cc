#include "tracer/recorder.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <mutex>

#include "tracer/daydream_mark.h"
#include "tracer/marks.h"
#include "tracer/message.h"
#include "tracer/nvtx.h"

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

// Of several sources of steps one counts: PyTorch's marks, whose steps have the layers; then
// daydream_step(); then NVTX ranges. A better one replaces another until recording has begun.
int RankOfSource(std::string_view source) {
  return source == "torch" ? 3 : source == "nvtx" ? 1 : 2;
}

// False: steps come from somewhere else.
bool TakesStepsFrom(Recorder& r, uint32_t name) {
  if (r.step_source == name) return true;
  const bool first = !r.step_source.has_value();
  if (!first && (r.window->steps() > 0 ||
                 RankOfSource(MarkText(name)) <= RankOfSource(MarkText(*r.step_source)))) {
    return false;
  }
  r.step_source = name;
  if (!first) r.window->RestartSteps();
  return true;
}

void OnStep(Recorder& r, uint32_t name, int64_t number) {
  std::lock_guard lock(r.window_mutex);
  if (!TakesStepsFrom(r, name)) return;
  Switch change = r.window->OnStep(number);
  // The time that switching takes belongs to the steps that are not recorded.
  if (change == Switch::kOn) ApplySwitch(r, change);
  Mark(DAYDREAM_STEP, name, number);
  if (change == Switch::kOff) ApplySwitch(r, change);
  if (change != Switch::kOn) return;
  const std::string_view source = MarkText(name);
  Note("recording from step " + std::to_string(number) + " (steps: " +
       (source == "torch"  ? "PyTorch"
        : source == "nvtx" ? "NVTX ranges"
                           : "daydream_step") +
       ")");
}

// Opens and closes the window of capture=nvtx:NAME; ranges nest on each thread.
void OnRange(Recorder& r, uint32_t kind, uint32_t name) {
  static thread_local int64_t depth = 0;  // of ranges in the outermost one with the name
  if (kind == DAYDREAM_RANGE_BEGIN) {
    if (depth == 0 && MarkText(name) != r.environment.options.range) return;
    if (++depth != 1) return;
  } else {
    if (depth == 0 || --depth != 0) return;
  }
  std::lock_guard lock(r.window_mutex);
  ApplySwitch(r, r.window->OnRange(kind == DAYDREAM_RANGE_BEGIN));
}

void MarkSlowly(Gate gate, uint32_t kind, uint32_t name, int64_t value) {
  Recorder& r = TheRecorder();
  if (gate == Gate::kStart) {
    std::lock_guard lock(r.mutex);
    if (!ReadEnvironmentOnce(r)) return;
    // Facts wait for a reason to make a file: an interpreter that only imports PyTorch has none.
    if (IsFact(kind) || IsLabelling(kind)) return Mark(kind, name, value);
    if (!StartRecorder(r)) return;
    r.worth_a_file = true;
    g_gate = r.window_open ? Gate::kAll : Gate::kEssentials;
  }
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

void WarnIfRefused(const Recorder& r) {
  if (!r.cupti_ready || r.activities.refused_again() == CUPTI_SUCCESS) return;
  Warn("CUPTI refuses to record again: " + ResultText(r.api, r.activities.refused_again()) +
       "; GPU work may be missing");
}

}  // namespace

Recorder& TheRecorder() {
  static Recorder& recorder = *[] {
    auto* r = new Recorder;
    sem_init(&r->wake, 0, 0);
    sem_init(&r->done, 0, 0);
    return r;
  }();
  return recorder;
}

int64_t MonotonicNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * int64_t{1'000'000'000} + t.tv_nsec;
}

bool ReadEnvironmentOnce(Recorder& r) {
  if (!r.environment_read) {
    r.environment_read = true;
    r.environment = ReadEnvironment();
    r.window.emplace(r.environment.options);
    r.window_open = r.window->open();
    g_watch_ranges = r.environment.options.capture == Capture::kNvtx;
    SetMessages(r.environment.speaks, r.environment.options.quiet);
    if (r.environment.session_dir.empty()) {
      r.state = State::kOff;
      g_gate = Gate::kOff;
    }
  }
  return r.state.load() != State::kOff;
}

bool StartRecorder(Recorder& r) {
  if (r.state.load() == State::kOn) return true;
  if (r.state.load() != State::kIdle) return false;
  r.owner = getpid();
  r.start_ns = MonotonicNs();
  for (const std::string& problem : r.environment.problems) Warn(problem);
  WatchExits(r);
  if (!StartThread(RunWorker)) {
    Warn("cannot start a thread, so nothing is recorded");
    r.state = State::kOff;
    g_gate = Gate::kOff;
    return false;
  }
  r.state = State::kOn;
  return true;
}

void RecorderFinish() {
  // In a process that is not recorded yet there is nothing to finish, and will not be.
  State idle = State::kIdle;
  if (TheRecorder().state.compare_exchange_strong(idle, State::kOff)) g_gate = Gate::kOff;
  FinishRecorder(RecordingEnd::kExit, 0);
}

void FinishRecorder(RecordingEnd end, int32_t detail) {
  constexpr int64_t kPatienceNs = 10'000'000'000;
  Recorder& r = TheRecorder();
  if (getpid() != r.owner) return;
  const int64_t until = MonotonicNs() + kPatienceNs;
  // A call of CUPTI that hangs in cuInit keeps it for ever.
  std::unique_lock lock(r.mutex, std::chrono::nanoseconds(kPatienceNs));
  if (!lock.owns_lock()) {
    Warn("CUPTI did not return from its start within 10 s; the recording is not finished");
    r.state = State::kOff;
    return;
  }
  if (r.state.load() == State::kOn) {
    r.end = end;
    r.end_detail = detail;
    g_gate = Gate::kOff;
    r.state = State::kClosing;
    sem_post(&r.wake);
  }
  lock.unlock();
  if (r.state.load() != State::kClosing) return;
  timespec t{until / 1'000'000'000, until % 1'000'000'000};
  int result = 0;
  while ((result = sem_clockwait(&r.done, CLOCK_MONOTONIC, &t)) != 0 && errno == EINTR) {
  }
  if (result == 0) {
    sem_post(&r.done);  // for others who wait
  } else {
    Warn("the recording could not be finished within 10 s; its last part may be missing");
  }
  r.state = State::kOff;
}

void ForgetInChild(Recorder& r) {
  sem_init(&r.wake, 0, 0);
  sem_init(&r.done, 0, 0);
  r.recording.AbandonInChild();
  g_gate = Gate::kOff;
  r.owner = 0;
  r.worth_a_file = r.stop_program = false;
  r.notes.clear();
  const bool may_start = !r.cuda_door && r.state.load() != State::kOff;
  r.state = may_start ? State::kIdle : State::kOff;
  r.step_source.reset();
  r.profiler_wishes = 1;
  g_captures = 0;
  r.work_off_ns = 0;
  r.has_graphs = false;
  if (!may_start || !r.environment_read) return;
  r.window.emplace(r.environment.options);
  r.window_open = r.window->open();
  r.cut_short = false;
}

void OpenGate() { g_gate = Gate::kStart; }
void CloseGate() { g_gate = Gate::kOff; }

void ApplySwitch(Recorder& r, Switch change) {
  if (change == Switch::kStay) return;
  const bool on = change == Switch::kOn;
  if (r.cupti_ready && r.cupti_error == 0) r.activities.Switch(on);
  if (on) WarnIfRefused(r);
  r.work_off_ns = on ? 0 : MonotonicNs() + kLastWorkNs;
  r.window_open = on;
  Gate expected = on ? Gate::kEssentials : Gate::kAll;
  g_gate.compare_exchange_strong(expected, on ? Gate::kAll : Gate::kEssentials);
  if (on || !r.window->over()) return;
  const bool stop = r.environment.options.stop_after;
  std::string what = r.cut_short             ? "recording was cut short"
                     : r.window->steps() > 0 ? std::to_string(r.window->steps()) + " steps recorded"
                                             : "the window is recorded";
  Note(what + (stop ? "; the program is ended, as --after stop says"
                    : ", recording has ended; the program goes on"));
  if (stop) {
    r.stop_program = true;
    sem_post(&r.wake);
  }
}

void WishProfiler(Recorder& r, bool start) {
  uint64_t now = r.profiler_wishes, next = 0;
  do {
    const bool full = now >> 63 != 0;  // the last one decides, then
    next = (full ? 1 : now) << 1 | uint64_t{start};
  } while (!r.profiler_wishes.compare_exchange_weak(now, next));
  std::unique_lock lock(r.window_mutex, std::try_to_lock);
  lock.owns_lock() ? FollowProfiler(r) : void(sem_post(&r.wake));
}

void FollowProfiler(Recorder& r) {
  const uint64_t wishes = r.profiler_wishes.exchange(1);
  for (int i = std::bit_width(wishes) - 1; i-- > 0;) {
    ApplySwitch(r, r.window->OnProfiler((wishes >> i & 1) != 0));
  }
}

void RecordGraphs(Recorder& r) {
  r.has_graphs = true;
  std::unique_lock lock(r.window_mutex, std::try_to_lock);
  lock.owns_lock() ? KeepGraphWork(r) : void(sem_post(&r.wake));
}

void KeepGraphWork(Recorder& r) {
  if (!r.has_graphs || !r.cupti_ready || r.cupti_error != 0) return;
  if (r.activities.work_on() || r.window->over()) return;
  r.activities.SwitchWorkOn();
  WarnIfRefused(r);
}

void CaptureBegan() { ++g_captures; }
void CaptureEnded() {
  int now = g_captures;
  while (now > 0 && !g_captures.compare_exchange_weak(now, now - 1)) {
  }
}

int OpenNvtxDoor(const void* (*get_export_table)(uint32_t table)) {
  Recorder& r = TheRecorder();
  NvtxOptions options;
  {
    std::lock_guard lock(r.mutex);
    if (!ReadEnvironmentOnce(r)) return 1;
    options.ranges = r.environment.options.nvtx;
    options.nccl = r.environment.options.nccl;
  }
  options.mark = RecorderMark;
  if (!options.ranges && !options.nccl) return 1;
  return AttachNvtx(get_export_table, options);
}

uint32_t RecorderName(const char* text) {
  Gate gate = g_gate.load(std::memory_order_relaxed);
  if (gate == Gate::kOff || text == nullptr) return 0;
  if (gate == Gate::kStart) {
    Recorder& r = TheRecorder();
    std::lock_guard lock(r.mutex);
    if (!ReadEnvironmentOnce(r)) return 0;
  }
  return MarkName(text);
}

void RecorderMark(uint32_t kind, uint32_t name, int64_t value) {
  Gate gate = g_gate.load(std::memory_order_acquire);
  if (gate == Gate::kAll && kind != DAYDREAM_STEP &&
      !g_watch_ranges.load(std::memory_order_relaxed)) {
    return Mark(kind, name, value);
  }
  if (gate == Gate::kOff) return;
  if (gate == Gate::kEssentials && !IsEssential(kind & ~kMarkBytes) &&
      !g_watch_ranges.load(std::memory_order_relaxed) &&
      g_captures.load(std::memory_order_relaxed) == 0 && t_open_ranges + t_open_layers == 0) {
    return;
  }
  MarkSlowly(gate, kind, name, value);
}

}  // namespace daydream::tracer
