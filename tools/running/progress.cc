#include "tools/running/progress.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <system_error>
#include <utility>

namespace daydream {
namespace {

constexpr char kGone[] = "\r\033[K";
constexpr size_t kLongestPhase = 512;  // of a phase, as it is printed

double SecondsBetween(std::chrono::steady_clock::time_point a,
                      std::chrono::steady_clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

}  // namespace

ProgressTeller::~ProgressTeller() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ending_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ProgressTeller::Print(std::optional<Lines> lines, Pace pace) {
  const std::lock_guard lock(mutex_);
  lines_ = lines;
  pace_ = pace;
}

bool ProgressTeller::Tell(const Doing& doing) {
  std::string what(doing.what);
  std::unique_lock lock(mutex_);
  const Clock::time_point now = Clock::now();
  const bool another = !at_work_ || what != what_;
  if (another) {
    what_.swap(what);
    since_ = counted_ = now;
    before_ = doing.done;
  } else if (doing.done != doing_.done) {
    counted_ = now;
  }
  doing_ = doing;
  doing_.what = what_;
  at_work_ = true;
  if (!lines_.has_value()) return another;
  if (pace_.pause.count() == 0) {
    Write(lock);
  } else if (!std::exchange(watched_, true)) {
    lock.unlock();
    try {
      thread_ = std::thread([this] { Watch(); });
    } catch (const std::system_error&) {
      // The system has no more of them: the work is what counts.
    }
  }
  return another;
}

void ProgressTeller::End() {
  const std::lock_guard lock(mutex_);
  at_work_ = false;
  Clear();
}

std::string ProgressTeller::what() const {
  const std::lock_guard lock(mutex_);
  return what_;
}

std::unique_lock<std::mutex> ProgressTeller::Hold() {
  std::unique_lock lock(mutex_);
  Clear();
  return lock;
}

void ProgressTeller::Clear() {
  if (shown_) std::fputs(kGone, stderr);
  shown_ = false;
}

void ProgressTeller::Write(std::unique_lock<std::mutex>& lock) {
  const Clock::time_point now = Clock::now();
  const DoingSince since{.before = before_,
                         .seconds = SecondsBetween(since_, now),
                         .still = SecondsBetween(counted_, now)};
  std::array<char, kLongestPhase> name{};
  const size_t length = what_.copy(name.data(), name.size());
  Doing doing = doing_;
  doing.what = {name.data(), length};
  const bool one = lines_ == Lines::kOne;
  lock.unlock();
  const std::string text = ProgressText(doing, since);
  const std::string line = one ? kGone + text : text + "\n";
  lock.lock();
  if (!at_work_ || !lines_.has_value()) return;
  shown_ = one;
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

void ProgressTeller::Watch() {
  std::unique_lock lock(mutex_);
  for (Clock::time_point next = begun_ + pace_.first;; next += pace_.pause) {
    if (ending_.wait_until(lock, next, [this] { return over_; })) return;
    if (at_work_ && lines_.has_value()) Write(lock);
    next = std::max(next, Clock::now() - pace_.pause);  // none is made up for
  }
}

}  // namespace daydream
