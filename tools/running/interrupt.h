// Ctrl-C, and SIGTERM, which batch systems send before they end a job: what is said then, and what
// is left.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace daydream {

// Removes temporary files and folders when the process is interrupted (HUP, INT, TERM), says what
// is lost, and exits with 128 + n.
void InstallInterruptHandler();

// From now on Ctrl-C is how this command ends: with exit code 0, at once and with nothing half
// written. Whoever started it without Ctrl-C, in the background, keeps that.
void EndWithInterrupt();

// From now on this is said when the process is interrupted where no InterruptNote is; "" = nothing.
// Keeps every line: a handler may be reading it.
void SayWhenInterrupted(std::string line);

// For who takes away what a handler reads, once no handler finds it any more: returns when none
// that found it runs on another thread. Progress is told by a thread of its own, so there is one.
void AwaitHandlers();

struct InterruptTexts {
  std::string line;  // with how much is done for "{N}" and how much there is for "{ALL}"
  // Who has it looks at stopped(), and ends with what is done: where something is, the first Ctrl-C
  // or SIGTERM only says this and asks for that. The second ends the process.
  std::optional<std::string> stopping;
};

// As long as it lives, the handler of InstallInterruptHandler() writes the line, where that is not
// empty, on standard error. One at a time; programs with handlers of their own (Python) say
// nothing.
class InterruptNote {
 public:
  explicit InterruptNote(InterruptTexts texts);
  ~InterruptNote();
  InterruptNote(const InterruptNote&) = delete;
  InterruptNote& operator=(const InterruptNote&) = delete;

  void Done(size_t count) { done_.store(count, std::memory_order_relaxed); }
  void Done(size_t count, size_t all) {
    all_.store(all, std::memory_order_relaxed);
    Done(count);
  }
  bool stopped() const { return stopped_; }

  // For the handler: make system calls only.
  static bool Write();  // false: there is none, or it does not know yet how much there is
  static bool Stop();   // false: the process is to end

 private:
  enum class Piece : uint8_t { kText, kDone, kAll };
  struct Part {
    Piece piece = Piece::kText;
    std::string text;
  };
  std::vector<Part> parts_;
  const std::optional<std::string> stopping_;
  std::atomic<size_t> done_ = 0, all_ = 0;
  std::atomic<bool> stopped_ = false;
};

}  // namespace daydream
