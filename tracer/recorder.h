// The recorder of this process: its state, and what moves it. The map:
//
//   inject.cc      the six exports: three doors (the driver, NVTX, daydream_mark.h), names, finish
//   gate.cc        whether a mark is taken; the mark that starts the recorder
//   cuda_door.cc   cuInit: loads and starts CUPTI; what CUPTI calls
//   switching.cc   steps, ranges, the profiler API, captures: they open and close the window
//   window.cc, activities.cc   when to record; which activity, and switching it
//   worker.cc      the one thread that decodes and writes: recording.cc and what is below it
//   exits.cc       exit, signals, fork
//   recorder.cc    start and finish
//   environment.cc, options.cc, message.cc   what it was told; what it says
//
// Order of locks; whoever holds one may take those behind it and no other:
//
//   the loader's lock > mutex > window_mutex > CUPTI's own > those of pool, names, graph nodes
//
// The loader's lock comes first because constructors of libraries run under it and make marks
// (NVTX). So nobody loads or looks up a library, uses a thread-local variable for the first time
// (TouchThreadLocals) or calls CUPTI for its start while holding a lock of ours. A CUPTI callback
// only tries window_mutex. LoaderStorm in recorder_locks_test holds this.
//
// Everything lives until the process ends and has no destructor: a destructor at exit() would wait
// for ever in a forked child, which has none of the parent's threads.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tracer/activities.h"
#include "tracer/buffer_pool.h"
#include "tracer/cupti_api.h"
#include "tracer/environment.h"
#include "tracer/fork_mutex.h"
#include "tracer/recording.h"
#include "tracer/wake.h"
#include "tracer/window.h"

namespace daydream::tracer {

enum class State : int {
  kIdle,     // nothing happened yet that is worth recording
  kOn,       // the worker runs
  kClosing,  // the worker shall write the rest and end
  kOff,      // nothing is recorded any more, or never was
};

// Who may change what: `mutex` guards starting; `window_mutex` guards the window and switching
// CUPTI; the worker alone uses `recording`. A CUPTI callback only tries window_mutex, for those
// who hold it may wait for a lock of CUPTI.
struct Recorder {
  std::atomic<State> state{State::kIdle};
  ForkMutex mutex;
  bool environment_read = false;
  Environment environment;
  pid_t owner = 0;       // the process that started the worker
  int64_t start_ns = 0;  // CLOCK_MONOTONIC

  CuptiApi api;
  Activities activities;
  BufferPool pool;
  bool cuda_door = false;                // it was opened; guarded by `mutex`
  std::atomic<bool> opening{false};      // it is being opened: CUPTI starts, without a lock
  std::atomic<bool> cupti_ready{false};  // api, activities and pool are set up
  std::atomic<bool> cupti_asked{false};  // it asked for a buffer: it has something to flush
  std::atomic<int> cupti_error{0};       // of a fatal error
  int64_t cupti_offset_ns = 0;           // set before cupti_ready
  std::vector<std::string> notes;        // for the file; guarded by `mutex`

  ForkMutex window_mutex;
  std::optional<Window> window;
  bool cut_short = false;               // the worker closed it, and said why
  std::optional<uint32_t> step_source;  // name of the marks that count as steps
  // When the window is closed: GPU work is recorded until then, for what the last calls launched
  // has not all run; 0: it is switched already, or the window is open.
  std::atomic<int64_t> work_off_ns{0};
  std::atomic<bool> has_graphs{false};  // the program makes CUDA graphs
  std::atomic<bool> window_open{true};
  // cudaProfilerStart (1) and Stop (0) that nobody has followed yet, oldest first behind a
  // leading 1.
  std::atomic<uint64_t> profiler_wishes{1};
  std::atomic<bool> worth_a_file{false};
  std::atomic<bool> stop_program{false};

  Recording recording;
  Wake wake, done;                         // the worker has something to do; it has ended
  RecordingEnd end = RecordingEnd::kExit;  // set before kClosing
  int32_t end_detail = 0;
};

// The one of this process.
Recorder& TheRecorder();

int64_t MonotonicNs();

// GPU work that the calls of a window launched may need so long to run.
inline constexpr int64_t kLastWorkNs = 2'000'000'000;

// The doors; none throws. The others are in gate.h.
void OpenCudaDoor();
void RecorderFinish();

// Reads the environment the first time. The caller holds recorder.mutex. False: this process shall
// not be recorded.
bool ReadEnvironmentOnce(Recorder& recorder);

// Starts the worker unless it runs. The caller holds recorder.mutex. False: nothing is recorded.
bool StartRecorder(Recorder& recorder);

// Has everything written, and waits for it for 10 s at most. The first call decides about the end
// that the file names.
void FinishRecorder(RecordingEnd end, int32_t detail);

// A step begins; a range of capture=nvtx:NAME begins or ends (ranges nest on each thread).
void OnStep(Recorder& recorder, uint32_t name, int64_t number);
void OnRange(Recorder& recorder, uint32_t kind, uint32_t name);

// Switches CUPTI after the window changed. The caller holds window_mutex.
void ApplySwitch(Recorder& recorder, Switch change);

// cudaProfilerStart or Stop was called. The calling thread may hold a lock of CUPTI.
void WishProfiler(Recorder& recorder, bool start);
// Follows the wishes that wait. The caller holds window_mutex.
void FollowProfiler(Recorder& recorder);

// The program is about to make a CUDA graph, on a thread as above: its kernels are recorded, from
// now on until the window is over.
void RecordGraphs(Recorder& recorder);
// The same. The caller holds window_mutex.
void KeepGraphWork(Recorder& recorder);

// Threads of the recorder: all signals blocked, name "daydream". False if there can be none.
bool StartThread(void (*run)(Recorder&));

// In a forked child: nothing of the parent's recording is left. Only a CUDA door that was not open
// in the parent starts another.
void ForgetInChild(Recorder& recorder);

// The worker (worker.cc), and what happens at the end of the process (exits.cc).
void RunWorker(Recorder& recorder);
void WatchExits(Recorder& recorder);

}  // namespace daydream::tracer
