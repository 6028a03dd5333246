// The worker: takes what CUPTI and the program's threads left, every flush period or when a buffer
// is full, and writes it. The only thread that touches the file; when the disk stalls, it waits,
// and nobody else does.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <string>

#include "tracer/cupti_clock.h"
#include "tracer/gate.h"
#include "tracer/marks.h"
#include "tracer/message.h"
#include "tracer/raw_dump.h"
#include "tracer/recorder.h"

namespace daydream::tracer {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kClockPeriodNs = 10 * kSecondNs;
// When CUPTI runs out of device buffers, GPU records come without times (parcagpu#23): so many of
// them in one flush period are no accident.
constexpr uint64_t kManyWithoutTime = 10'000;
// The rest of a flush period, in percent, is for waking up and for writing, so that a program that
// is killed loses no more than the period.
constexpr int64_t kOfPeriod = 80;
// How often the worker looks when recording has ended and its last work has come in.
constexpr int64_t kIdlePeriodNs = kSecondNs;

class Worker {
 public:
  explicit Worker(Recorder& r)
      : r_(r), period_ns_(r.environment.options.flush_ms * 1'000'000 * kOfPeriod / 100) {}

  // Until the recording is over.
  void Run();

 private:
  void WaitUntil(int64_t time);
  void Pass(bool last);
  void TakeCupti();
  void TakeBuffers();
  bool TakeMarksAndOpen();
  bool Open();
  void NoteCupti();
  void SettleClock(const BufferPool::Full& full, const CuptiDecoding& decoding);
  void Close(bool error);
  void CountLosses();
  void AddClock();
  void FollowWindow();
  void SeeWindow();
  bool TakesWork();
  void CheckLimits();
  void EndRecording(Switch change, const std::string& why);
  void StopProgram();
  void WarnIfNothingCame();
  void LeaveReason(int error);
  void LookForSession();

  Recorder& r_;
  const int64_t period_ns_;
  bool header_has_cupti_ = false;
  bool ended_ = false, idle_ = false;  // recording is over; CUPTI was flushed since then
  bool cupti_known_ = false, clock_settled_ = false;
  bool failed_ = false, write_failed_ = false, limit_met_ = false;
  int64_t next_clock_ = 0, stop_at_ = 0;
  bool window_seen_ = false;
  bool session_over_ = false;
  uint64_t without_time_ = 0;
  uint64_t rows_before_ = 0;  // the window, which do not count
  std::string path_;
  RawDump dump_;
};

void Worker::WaitUntil(int64_t time) {
  r_.wake.WaitUntil(time);
  r_.wake.Reset();
}

int64_t RealtimeNs() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return t.tv_sec * kSecondNs + t.tv_nsec;
}

// Facts that the process asks CUDA about; by now cuInit has returned. Not with a lock held.
uint32_t DriverVersion() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return 0;
  auto get = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDriverGetVersion"));
  int version = 0;
  return get != nullptr && get(&version) == 0 ? static_cast<uint32_t>(version) : 0;
}

bool Worker::Open() {
  RecordingFacts facts = ProcessFacts(r_.start_ns, r_.environment.options.whole_command);
  header_has_cupti_ = r_.cupti_ready;
  if (r_.cupti_ready) {
    facts.cupti_version = r_.api.version;
    facts.cupti_path = r_.api.path;
    facts.enabled_kinds = r_.activities.kinds();
    for (Lack& lack : r_.activities.Lacks()) facts.lacks.emplace_back(lack.what, lack.effect);
  }
  if (!r_.opening) facts.cuda_driver_version = DriverVersion();
  path_ = r_.environment.session_dir + "/" + RecordingName(r_.start_ns) + ".ddtrace";
  // The name appears when the header is in the file: a file of that name can always be read.
  const std::string unnamed = path_ + ".new";
  int error = r_.recording.Open(unnamed.c_str(), facts);
  if (error == 0 && rename(unnamed.c_str(), path_.c_str()) != 0) error = errno;
  if (error != 0) {
    Warn("cannot write " + path_ + ": " + strerror(error) + "; nothing is recorded");
    LeaveReason(error);
    failed_ = true;
    return false;
  }
  AddClock();
  return true;
}

// For `daydream trace`, which would only see that there is no file: an empty one, whose name says
// why. It needs no room on the disk but that of a name.
void Worker::LeaveReason(int error) {
  constexpr int kNewFile = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const std::string path = path_ + ".errno" + std::to_string(error);
  if (const int file = open(path.c_str(), kNewFile, 0644); file >= 0) {
    close(file);
  }
}

// Facts that came up after the header was written: marks may come long before cuInit.
void Worker::NoteCupti() {
  if (header_has_cupti_ || !r_.cupti_ready) return;
  header_has_cupti_ = true;
  r_.recording.AddNote("CUPTI=" + std::to_string(r_.api.version), MonotonicNs());
  r_.recording.AddNote("CUPTI library=" + r_.api.path, MonotonicNs());
  for (const Lack& lack : r_.activities.Lacks()) {
    r_.recording.AddNote("lacks " + lack.what + "=" + lack.effect, MonotonicNs());
  }
  const uint32_t driver = DriverVersion();
  if (driver == 0) return;
  const std::string text = std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10);
  r_.recording.AddNote("CUDA driver=" + text, MonotonicNs());
}

void Worker::AddClock() {
  ClockReading now;
  const int64_t before = MonotonicNs();
  now.realtime_ns = RealtimeNs();
  uint64_t cupti = 0;
  if (r_.cupti_ready && r_.cupti_error == 0 && r_.api.GetTimestamp != nullptr &&
      r_.api.GetTimestamp(&cupti) == CUPTI_SUCCESS) {
    now.cupti_ns = static_cast<int64_t>(cupti);
  }
  const int64_t after = MonotonicNs();
  now.monotonic_ns = before + (after - before) / 2;
  now.uncertainty_ns = static_cast<uint32_t>(std::min<int64_t>((after - before) / 2, kSecondNs));
  r_.recording.AddClock(now);
  next_clock_ = after + kClockPeriodNs;
}

// The first times decide. What GPU work says counts where one of the clocks fits it: a call is not
// misunderstood.
void Worker::SettleClock(const BufferPool::Full& full, const CuptiDecoding& decoding) {
  const std::optional<CuptiTime> first = FirstTime(decoding, full.buffer, full.valid);
  const int64_t now = MonotonicNs();
  const auto fits = first ? OffsetThatFits(first->start_ns, r_.start_ns - kSecondNs, now,
                                           r_.cupti_offset_ns, RealtimeNs() - now)
                          : std::nullopt;
  clock_settled_ = fits.has_value() || (first && first->call);
  if (!fits && clock_settled_) {
    Warn("CUPTI's clock is none of those that are known; GPU work stands at wrong times");
  }
  const bool ours = !clock_settled_ && r_.activities.uses_our_clock();
  r_.recording.SetCuptiOffset(fits.value_or(ours ? 0 : r_.cupti_offset_ns));
}

void Worker::TakeBuffers() {
  if (!r_.cupti_ready) return;
  const CuptiDecoding decoding = {r_.api.version, r_.api.ActivityGetNextRecord,
                                  r_.api.GetCallbackName};
  for (BufferPool::Full full = r_.pool.Next(); full.buffer != nullptr; full = r_.pool.Next()) {
    if (!r_.recording.is_open() && !failed_) Open();
    if (!cupti_known_ && !failed_) {
      cupti_known_ = true;
      r_.recording.SetCupti(decoding);
      if (r_.environment.dump_raw) dump_.Open(path_ + ".cuptibuf", r_.api.version);
    }
    if (!clock_settled_ && !failed_) SettleClock(full, decoding);
    if (!failed_ && TakesWork()) {
      dump_.Add(full.buffer, full.valid, decoding);
      r_.recording.AddBuffer(full.buffer, full.valid);
    }
    r_.pool.Recycle(full);
  }
}

// Has CUPTI hand out what is complete, and counts what it dropped.
void Worker::TakeCupti() {
  if (!r_.cupti_ready || !r_.cupti_asked || r_.cupti_error != 0) return;
  // At the end also what is not complete, without its times.
  const bool last = r_.state.load() == State::kClosing;
  if (ended_ && !last && idle_) return;
  idle_ = ended_;
  r_.api.ActivityFlushAll(last ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
  if (!idle_ || last) return;
  std::lock_guard lock(r_.window_mutex);
  if (r_.cupti_error == 0) r_.activities.Detach();
}

void Worker::CountLosses() {
  Losses losses;
  size_t dropped = 0;
  if (r_.cupti_ready && r_.cupti_asked && r_.cupti_error == 0 &&
      r_.api.ActivityGetNumDroppedRecords != nullptr &&
      r_.api.ActivityGetNumDroppedRecords(nullptr, 0, &dropped) == CUPTI_SUCCESS) {
    losses.cupti_dropped = dropped;
  }
  losses.no_buffer = r_.pool.TakeRefused() + r_.pool.TakeOverwritten();
  if (!(losses == Losses{})) r_.recording.AddLosses(losses);
}

// False: there is no file, for there is nothing worth one, or there cannot be one.
bool Worker::TakeMarksAndOpen() {
  if (failed_) {
    DropMarks();
    return false;
  }
  // While CUPTI starts, the header waits for what is known about it then.
  if (!r_.recording.is_open() && (!r_.worth_a_file || r_.opening || !Open())) return false;
  r_.recording.AddMarks();
  std::vector<std::string> notes;
  {
    std::lock_guard lock(r_.mutex);
    notes.swap(r_.notes);
  }
  NoteCupti();
  for (const std::string& note : notes) r_.recording.AddNote(note, MonotonicNs());
  return true;
}

// The window that was asked for has the limit of events for itself. The caller holds window_mutex.
void Worker::SeeWindow() {
  if (window_seen_ || !r_.window->ever_open()) return;
  window_seen_ = true;
  rows_before_ = r_.recording.is_open() ? r_.recording.rows() : 0;
  limit_met_ = false;
}

// Whether a buffer that has come is recorded. What happened in the window comes after it opened.
bool Worker::TakesWork() {
  if (!limit_met_) return true;
  std::lock_guard lock(r_.window_mutex);
  SeeWindow();
  return !limit_met_;
}

void Worker::FollowWindow() {
  std::lock_guard lock(r_.window_mutex);
  SeeWindow();
  ApplySwitch(r_, r_.window->OnTime((MonotonicNs() - r_.start_ns) / 1'000'000));
  FollowProfiler(r_);
  KeepGraphWork(r_);
  if (r_.work_off_ns == 0 || MonotonicNs() < r_.work_off_ns) return;
  // A graph that is made while its kernels are not recorded may never have them recorded.
  const bool keep = r_.has_graphs && !r_.window->over();
  if (!keep && r_.cupti_ready && r_.cupti_error == 0) r_.activities.SwitchWorkOff();
  r_.work_off_ns = 0;
  r_.window->OnDetached();
  ended_ = r_.window->over();
}

void Worker::CheckLimits() {
  const uint64_t without_time = r_.recording.losses().invalid_time;
  const bool no_room = without_time - without_time_ > kManyWithoutTime;
  without_time_ = without_time;
  if (limit_met_) return;
  const uint64_t rows = r_.recording.rows() - rows_before_;
  std::lock_guard lock(r_.window_mutex);
  if (no_room) {
    EndRecording(r_.window->Close(),
                 "CUPTI has no room left on the GPU and gives no times any more; recording ends "
                 "here (a window of fewer steps avoids this)");
  } else if (rows >= static_cast<uint64_t>(r_.environment.options.max_events)) {
    const std::string limit = std::to_string(rows) + " events recorded, which is the limit; ";
    const bool waits = r_.window->awaits_steps();
    const Switch change = r_.window->OnLimit();
    EndRecording(change, limit + (waits ? "no step has come yet, and nothing more is recorded "
                                          "until the steps that were asked for"
                                        : "recording ends here (a smaller window or a larger "
                                          "--max-events avoids this)"));
  }
}

// The caller holds window_mutex.
void Worker::EndRecording(Switch change, const std::string& why) {
  limit_met_ = true;
  Warn(why);
  r_.cut_short = r_.window->over();
  ApplySwitch(r_, change);
}

// --after stop: when the last GPU work of the window has had its time. That nothing came in for a
// while says nothing: CUPTI keeps buffers while work in them runs.
void Worker::StopProgram() {
  const int64_t now = MonotonicNs();
  if (stop_at_ == 0) stop_at_ = now + kLastWorkNs;
  if (now < stop_at_) return;
  r_.stop_program = false;
  kill(getpid(), SIGTERM);
}

void Worker::Pass(bool last) {
  FollowWindow();
  TakeCupti();
  TakeBuffers();
  if (!TakeMarksAndOpen()) return;
  CountLosses();
  if (last || MonotonicNs() >= next_clock_) {
    AddClock();
    LookForSession();
  }
  if (int error = r_.recording.Flush(); error != 0 && !write_failed_) {
    write_failed_ = true;
    Warn("cannot write " + path_ + ": " + strerror(error) +
         "; what does not fit is lost, and counted");
  }
  CheckLimits();
  if (r_.stop_program) StopProgram();
}

// A program that ends before its window opens leaves a trace without GPU work.
void Worker::WarnIfNothingCame() {
  std::lock_guard lock(r_.window_mutex);
  if (!r_.cupti_ready || failed_ || r_.window->open() || r_.window->ever_open()) return;
  switch (r_.environment.options.capture) {
    case Capture::kSteps:
      if (r_.window->awaits_steps()) break;  // closed by the limit, which was said
      Warn("the program ended before the step at which recording begins; try a smaller --warmup");
      break;
    case Capture::kProfiler:
      Warn("the program never called cudaProfilerStart");
      break;
    case Capture::kNvtx:
      Warn("no range was called " + r_.environment.options.range +
           ", so nothing was recorded (nvtxRangeStart is not "
           "followed, nvtxRangePush is)");
      break;
    default:
      Warn("the program ended before recording began");
  }
}

// A program that goes on after its session (a daemon) ends its recording with it: `daydream trace`
// has moved the file away, or there will be nobody to do so.
void Worker::LookForSession() {
  if (access(r_.environment.session_dir.c_str(), F_OK) != 0 && errno == ENOENT) {
    session_over_ = true;
  }
}

void Worker::Close(bool error) {
  r_.pool.Close();
  WarnIfNothingCame();
  if (!r_.recording.is_open()) return;
  int failure = error ? r_.recording.Close(RecordingEnd::kError, r_.cupti_error)
                      : r_.recording.Close(r_.end, r_.end_detail);
  // After Close(), which writes what was left, or fails to.
  const Losses losses = r_.recording.losses();
  if (failure != 0 && !write_failed_) {
    Warn("cannot write " + path_ + ": " + strerror(failure) + "; it has no index");
  }
  std::string lost;
  const auto add = [&](uint64_t count, const char* what) {
    if (count == 0) return;
    lost += (lost.empty() ? "" : ", ") + std::to_string(count) + what;
  };
  add(losses.cupti_dropped + losses.writer_backpressure, " events were lost");
  add(losses.not_written, " events could not be written");
  add(losses.unnamed, " marks have no name, for there were too many different texts");
  add(losses.no_buffer, " buffers or records found no memory");
  add(losses.lost_bytes, " bytes could not be read");
  if (!lost.empty()) Warn(lost + "; see the summary of the trace");
}

void Worker::Run() {
  bool last = false;
  for (int64_t next = r_.start_ns + period_ns_; !last;) {
    // A full buffer is taken at once, the rest when the period is over.
    while (MonotonicNs() < next && r_.state.load() == State::kOn && r_.cupti_error == 0) {
      WaitUntil(next);
      // A wish of a callback that found the lock taken may be why this thread woke.
      FollowWindow();
      TakeBuffers();
    }
    last = r_.state.load() != State::kOn || r_.cupti_error != 0 || session_over_;
    next = MonotonicNs() + (idle_ ? kIdlePeriodNs : period_ns_);
    Pass(last);
  }
  const bool error = r_.cupti_error != 0;
  if (session_over_) r_.end = RecordingEnd::kDetach;
  if (error) {
    Warn("CUPTI ended itself after a fatal error (" + std::to_string(r_.cupti_error) +
         "); the trace ends here");
  }
  Close(error);
}

}  // namespace

void RunWorker(Recorder& r) {
  {
    // The thread that started this one still holds it.
    TouchThreadLocals();
    std::lock_guard lock(r.mutex);
  }
  try {
    Worker(r).Run();
  } catch (const std::exception& e) {
    Warn(std::string("recording ends here: ") + e.what());
  }
  CloseGate();
  r.pool.Close();
  r.done.Post();
}

}  // namespace daydream::tracer
