#include "tools/running/interrupt.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <thread>
#include <utility>

#include "tools/running/temporary_folder.h"
#include "trace/bytes/atomic_file.h"

namespace daydream {
namespace {

// What a handler can reach is global.
std::atomic<InterruptNote*> interrupt_note = nullptr;
std::atomic<const std::string*> interrupt_line = nullptr;
std::atomic<int> handlers = 0;  // that run
std::atomic<bool> ending = false;

void WriteInHandler(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

void WriteCountInHandler(size_t count) {
  std::array<char, 20> digits{};  // of 64 bits
  size_t begin = digits.size();
  do {
    digits[--begin] = static_cast<char>('0' + count % 10);
    count /= 10;
  } while (count > 0);
  WriteInHandler({digits.data() + begin, digits.size() - begin});
}

void RemoveWhatIsTemporary() {
  AtomicFile::UnlinkTemporary();
  TemporaryFolder::RemoveAll();
}

extern "C" void OnInterrupt(int signal) {
  const int error = errno;  // of whom it interrupts
  ++handlers;
  const bool stops = signal != SIGHUP && InterruptNote::Stop();
  // Two signals at once may be handled on two threads: one of them says it, and ends.
  if (stops || ending.exchange(true)) {
    --handlers;
    errno = error;
    return;
  }
  const std::string* line = interrupt_line.load();
  if (!InterruptNote::Write() && line != nullptr) WriteInHandler(*line);
  RemoveWhatIsTemporary();
  _exit(128 + signal);
}

extern "C" void OnEnd(int /*signal*/) {
  ++handlers;
  RemoveWhatIsTemporary();
  _exit(0);
}

}  // namespace

void InstallInterruptHandler() {
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on sizes of files is told as any failure of a write
  for (int signal : {SIGHUP, SIGINT, SIGTERM}) {
    // Whoever started the process in the background wants it left alone.
    if (std::signal(signal, OnInterrupt) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
}

void AwaitHandlers() {
  while (handlers.load() != 0) std::this_thread::yield();
}

void EndWithInterrupt() {
  if (std::signal(SIGINT, OnEnd) == SIG_IGN) std::signal(SIGINT, SIG_IGN);
}

void SayWhenInterrupted(std::string line) {
  // Never torn down: a handler may be reading it, also after main().
  interrupt_line.store(line.empty() ? nullptr : new std::string(std::move(line)));
}

InterruptNote::InterruptNote(InterruptTexts texts) : stopping_(std::move(texts.stopping)) {
  std::string_view line = texts.line;
  constexpr std::pair<std::string_view, Piece> kPlaces[] = {{"{N}", Piece::kDone},
                                                            {"{ALL}", Piece::kAll}};
  for (const auto& [place, piece] : kPlaces) {
    const size_t at = line.find(place);
    if (at == std::string_view::npos) continue;
    parts_.push_back({Piece::kText, std::string(line.substr(0, at))});
    parts_.push_back({piece, ""});
    line.remove_prefix(at + place.size());
  }
  if (!line.empty()) parts_.push_back({Piece::kText, std::string(line)});
  interrupt_note.store(this);
}

InterruptNote::~InterruptNote() {
  interrupt_note.store(nullptr);
  AwaitHandlers();
}

bool InterruptNote::Stop() {
  InterruptNote* of = interrupt_note.load();
  if (of == nullptr || !of->stopping_.has_value() || of->done_ == 0) return false;
  if (of->stopped_.exchange(true)) return false;
  WriteInHandler(*of->stopping_);
  return true;
}

bool InterruptNote::Write() {
  const InterruptNote* of = interrupt_note.load();
  if (of == nullptr) return false;
  const bool tells_all =
      std::ranges::find(of->parts_, Piece::kAll, &Part::piece) != of->parts_.end();
  if (tells_all && of->all_ == 0) return false;  // none of them is begun
  for (const Part& part : of->parts_) {
    if (part.piece == Piece::kText) WriteInHandler(part.text);
    if (part.piece == Piece::kDone) WriteCountInHandler(of->done_.load(std::memory_order_relaxed));
    if (part.piece == Piece::kAll) WriteCountInHandler(of->all_.load(std::memory_order_relaxed));
  }
  return true;
}

}  // namespace daydream
