// What is being done while a command works, each second on standard error: from a thread of its
// own, so that work that counts nothing is told, too.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "report/text/progress.h"

namespace daydream {

class ProgressTeller {
 public:
  // What becomes of a line: another one is written over it, on a terminal, or it stays.
  enum class Lines : uint8_t { kOne, kEach };
  struct Pace {
    std::chrono::milliseconds first{1000};  // since the command began
    std::chrono::milliseconds pause{1000};  // between two; 0: with each call, and no others
  };

  ProgressTeller() = default;
  ~ProgressTeller();
  ProgressTeller(const ProgressTeller&) = delete;
  ProgressTeller& operator=(const ProgressTeller&) = delete;

  // Nothing is printed before this, nor without `lines`.
  void Print(std::optional<Lines> lines, Pace pace);

  // From any thread. Another `what` than that of the last call begins another phase, for which this
  // is true.
  bool Tell(const Doing& doing);
  // Nothing is being done from here on; the line of a terminal is gone.
  void End();
  // What was told last, also after End().
  std::string what() const;

  // Takes the line of a terminal away, and keeps others from coming as long as this is held: for
  // who writes there.
  [[nodiscard]] std::unique_lock<std::mutex> Hold();

 private:
  using Clock = std::chrono::steady_clock;
  void Clear();
  // Gives the lock back while it needs memory.
  void Write(std::unique_lock<std::mutex>& lock);
  void Watch();

  // Over all that follows. Work asks for no memory while it holds this: where there is none left,
  // what was being done is asked for, and the line has to go (tools/memory.h).
  mutable std::mutex mutex_;
  std::condition_variable ending_;
  std::optional<Lines> lines_;  // none: nothing is printed
  Pace pace_;
  const Clock::time_point begun_ = Clock::now();
  std::string what_;
  Doing doing_;  // `what` is that of `what_`
  bool at_work_ = false, shown_ = false, over_ = false;
  bool watched_ = false;  // thread_ was begun
  Clock::time_point since_, counted_;
  uint64_t before_ = 0;
  std::thread thread_;
};

}  // namespace daydream
