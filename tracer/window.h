// When to record: decides by steps, ranges, the profiler API or time whether the window is open.
// Not thread-safe.
#pragma once

#include <cstdint>

#include "tracer/options.h"

namespace daydream::tracer {

enum class Switch { kStay, kOn, kOff };

// Between two windows of steps nothing is recorded for so many at least, so that they can be
// compared with those inside (trace/recording/cost.cc takes as many).
inline constexpr int64_t kDetachedSteps = 6;

class Window {
 public:
  explicit Window(const Options& options);

  bool open() const { return open_; }
  // The window of steps is closed and another one comes.
  bool between() const { return between_; }
  // GPU work is not recorded any more either, while between(): steps count as detached from now on.
  void OnDetached();
  // It was open and will never be again.
  bool over() const { return over_; }
  // It was opened by a step, a range, the profiler API or time; or it is never closed.
  bool ever_open() const { return ever_open_; }
  // No step came yet that it waits for: what is recorded is there in case that none comes.
  bool awaits_steps() const { return capture_ == Capture::kSteps && !any_step_; }
  // Steps that began while it was open, without those that are only labelled.
  int64_t steps() const { return steps_; }

  // A step begins. Steps are counted, whatever their numbers: the first mark begins step 1 (step 0
  // when that is its number); a number that comes twice in a row is one step.
  Switch OnStep(int64_t number);
  // Steps are counted anew: they come from another source from now on.
  void RestartSteps();
  Switch OnProfiler(bool start);
  Switch OnRange(bool begin);  // the range that options.range names
  Switch OnTime(int64_t ms);   // since the recorder started
  // The limit of events is met: closes. For good, unless steps are still waited for.
  Switch OnLimit();
  Switch Close();  // for good

 private:
  Switch Set(bool open, bool for_good);
  bool MayReopen() const;

  Capture capture_;
  int64_t first_ = 0, timed_ = 0, end_ = 0;  // positions of steps: [first_, end_) is recorded
  int64_t steps_each_ = 0, windows_left_ = 0, every_ = 0;
  int64_t detached_at_ = -1;  // position at OnDetached(); -1: it has not come since the last window
  int64_t delay_ms_ = 0, end_ms_ = 0;  // 0: no end
  bool open_ = false, over_ = false, ever_open_ = false, stop_after_ = false;
  bool any_step_ = false, between_ = false;
  int64_t last_number_ = 0, position_ = 0, steps_ = 0, depth_ = 0;
};

}  // namespace daydream::tracer
