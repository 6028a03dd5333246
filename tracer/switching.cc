// Where steps, ranges, the profiler API and captures open and close the window, and CUPTI follows.
#include <algorithm>
#include <bit>
#include <mutex>
#include <string>

#include "tracer/daydream_mark.h"
#include "tracer/gate.h"
#include "tracer/marks.h"
#include "tracer/message.h"
#include "tracer/recorder.h"

namespace daydream::tracer {
namespace {

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

void WarnIfRefused(const Recorder& r) {
  if (!r.cupti_ready || r.activities.refused_again() == CUPTI_SUCCESS) return;
  Warn("CUPTI refuses to record again: " + ResultText(r.api, r.activities.refused_again()) +
       "; GPU work may be missing");
}

void SayThatItIsOver(Recorder& r) {
  const bool stop = r.environment.options.stop_after;
  std::string what = r.cut_short             ? "recording was cut short"
                     : r.window->steps() > 0 ? std::to_string(r.window->steps()) + " steps recorded"
                                             : "the window is recorded";
  Note(what + (stop ? "; the program is ended, as --after stop says"
                    : ", recording has ended; the program goes on"));
  if (stop) {
    r.stop_program = true;
    r.wake.Post();
  }
}

}  // namespace

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

void ApplySwitch(Recorder& r, Switch change) {
  if (change == Switch::kStay) return;
  const bool on = change == Switch::kOn;
  if (r.cupti_ready && r.cupti_error == 0) r.activities.Switch(on);
  if (on) WarnIfRefused(r);
  r.work_off_ns = on ? 0 : MonotonicNs() + kLastWorkNs;
  r.window_open = on;
  OpenGateForWindow(on);
  if (!on && r.window->over()) SayThatItIsOver(r);
  if (!on && r.window->between()) {
    Note(std::to_string(r.window->steps()) + " steps recorded; others follow");
  }
}

void WishProfiler(Recorder& r, bool start) {
  uint64_t now = r.profiler_wishes, next = 0;
  do {
    const bool full = now >> 63 != 0;  // the last one decides, then
    next = (full ? 1 : now) << 1 | uint64_t{start};
  } while (!r.profiler_wishes.compare_exchange_weak(now, next));
  std::unique_lock lock(r.window_mutex, std::try_to_lock);
  lock.owns_lock() ? FollowProfiler(r) : void(r.wake.Post());
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
  lock.owns_lock() ? KeepGraphWork(r) : void(r.wake.Post());
}

void KeepGraphWork(Recorder& r) {
  if (!r.has_graphs || !r.cupti_ready || r.cupti_error != 0) return;
  if (r.activities.work_on() || r.window->over()) return;
  r.activities.SwitchWorkOn();
  WarnIfRefused(r);
}

}  // namespace daydream::tracer
