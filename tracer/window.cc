#include "tracer/window.h"

#include <algorithm>

namespace daydream::tracer {

Window::Window(const Options& o)
    : capture_(o.capture),
      first_(o.warmup - o.labels),
      timed_(o.warmup),
      end_(o.warmup + o.steps),
      steps_each_(o.steps),
      windows_left_(o.windows - 1),
      every_(o.every),
      delay_ms_(o.delay_ms),
      end_ms_(o.duration_ms == 0 ? 0 : o.delay_ms + o.duration_ms),
      open_(o.capture == Capture::kSteps || o.capture == Capture::kNone ||
            (o.capture == Capture::kTime && o.delay_ms == 0)),
      ever_open_(o.capture == Capture::kNone || (o.capture == Capture::kTime && o.delay_ms == 0)),
      stop_after_(o.stop_after) {}

Switch Window::Set(bool open, bool for_good) {
  ever_open_ |= open && !over_;
  if (over_ || open == open_) return Switch::kStay;
  open_ = open;
  over_ = for_good;
  return open ? Switch::kOn : Switch::kOff;
}

Switch Window::OnStep(int64_t number) {
  if (capture_ != Capture::kSteps) {
    if (open_ && (!any_step_ || number != last_number_)) ++steps_;
    any_step_ = true;
    last_number_ = number;
    return Switch::kStay;
  }
  if (any_step_ && number == last_number_) return Switch::kStay;
  position_ = any_step_ ? position_ + 1 : std::min<int64_t>(std::max<int64_t>(number, 0), 1);
  any_step_ = true;
  last_number_ = number;
  if (between_ && MayReopen()) {
    between_ = false;
    timed_ = first_ = position_;
    end_ = position_ + steps_each_;
  }
  const bool inside = !between_ && position_ >= first_ && position_ < end_;
  const bool past = !between_ && position_ >= end_;
  Switch result = Set(inside, past && windows_left_ == 0);
  if (past && windows_left_ > 0) {
    --windows_left_;
    between_ = true;
    detached_at_ = -1;
  }
  if (open_ && position_ >= timed_) ++steps_;
  return result;
}

bool Window::MayReopen() const {
  return detached_at_ >= 0 && position_ > detached_at_ + kDetachedSteps &&
         position_ >= timed_ + every_;
}

void Window::OnDetached() {
  if (between_) detached_at_ = position_;
}

void Window::RestartSteps() {
  any_step_ = false;
  position_ = steps_ = 0;
}

Switch Window::OnProfiler(bool start) {
  if (capture_ != Capture::kProfiler) return Switch::kStay;
  return Set(start, !start && stop_after_);
}

Switch Window::OnRange(bool begin) {
  if (capture_ != Capture::kNvtx) return Switch::kStay;
  depth_ = std::max<int64_t>(depth_ + (begin ? 1 : -1), 0);
  return Set(depth_ > 0, depth_ == 0 && stop_after_);
}

Switch Window::OnTime(int64_t ms) {
  if (capture_ != Capture::kTime) return Switch::kStay;
  bool past = end_ms_ != 0 && ms >= end_ms_;
  return Set(ms >= delay_ms_ && !past, past);
}

Switch Window::OnLimit() { return awaits_steps() ? Set(false, false) : Close(); }

Switch Window::Close() {
  Switch result = Set(false, true);
  over_ = true;
  return result;
}

}  // namespace daydream::tracer
