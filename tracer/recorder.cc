#include "tracer/recorder.h"

#include <time.h>
#include <unistd.h>

#include <chrono>
#include <mutex>

#include "tracer/gate.h"
#include "tracer/marks.h"
#include "tracer/message.h"

namespace daydream::tracer {

Recorder& TheRecorder() {
  static Recorder& recorder = *new Recorder;
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
    const bool watch = r.environment.options.capture == Capture::kNvtx;
    // Whatever other texts come, there is room for this one.
    if (watch) MarkName(r.environment.options.range);
    WatchRanges(watch);
    SetMessages(r.environment.speaks, r.environment.options.quiet);
    if (r.environment.session_dir.empty()) {
      r.state = State::kOff;
      CloseGate();
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
    CloseGate();
    return false;
  }
  r.state = State::kOn;
  return true;
}

void RecorderFinish() {
  // In a process that is not recorded yet there is nothing to finish, and will not be.
  State idle = State::kIdle;
  if (TheRecorder().state.compare_exchange_strong(idle, State::kOff)) CloseGate();
  FinishRecorder(RecordingEnd::kExit, 0);
}

void FinishRecorder(RecordingEnd end, int32_t detail) {
  constexpr int64_t kPatienceNs = 10'000'000'000;
  Recorder& r = TheRecorder();
  if (getpid() != r.owner) return;
  TouchThreadLocals();
  const int64_t until = MonotonicNs() + kPatienceNs;
  // A call of CUPTI that hangs in cuInit keeps the door opening for ever.
  while (r.opening && MonotonicNs() < until) usleep(1000);
  std::unique_lock lock(r.mutex, std::chrono::nanoseconds(kPatienceNs));
  if (r.opening || !lock.owns_lock()) {
    Warn("CUPTI did not return from its start within 10 s; the recording is not finished");
    r.state = State::kOff;
    return;
  }
  if (r.state.load() == State::kOn) {
    r.end = end;
    r.end_detail = detail;
    CloseGate();
    r.state = State::kClosing;
    r.wake.Post();
  }
  lock.unlock();
  if (r.state.load() != State::kClosing) return;
  if (r.done.WaitUntil(until)) {
    r.done.Post();  // for others who wait
  } else {
    Warn("the recording could not be finished within 10 s; its last part may be missing");
  }
  r.state = State::kOff;
}

void ForgetInChild(Recorder& r) {
  r.wake.Reset();
  r.done.Reset();
  r.recording.AbandonInChild();
  CloseGate();
  r.owner = 0;
  r.worth_a_file = r.stop_program = r.opening = false;
  r.notes.clear();
  const bool may_start = !r.cuda_door && r.state.load() != State::kOff;
  r.state = may_start ? State::kIdle : State::kOff;
  r.step_source.reset();
  r.profiler_wishes = 1;
  ForgetCaptures();
  r.work_off_ns = 0;
  r.has_graphs = false;
  if (!may_start || !r.environment_read) return;
  r.window.emplace(r.environment.options);
  r.window_open = r.window->open();
  r.cut_short = false;
}

}  // namespace daydream::tracer
