// Every way out of the process that can be seen coming: exit(), quick_exit(), SIGTERM, SIGHUP and
// SIGINT with the default action; and fork(). For the others (_exit, exec, SIGKILL, a crash) the
// file is flushed every 100 ms.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <new>

#include "tracer/graph_nodes.h"
#include "tracer/marks.h"
#include "tracer/recorder.h"

namespace daydream::tracer {
namespace {

constexpr std::array kSignals = {SIGTERM, SIGHUP, SIGINT};

// A supervisor that signals the whole process group reaches the program twice: directly, and by
// `daydream trace`, which passes on what it gets. That is one signal.
constexpr int64_t kOneSignalNs = 100'000'000;

std::atomic<int> g_signal{0};         // the first that came
std::atomic<int64_t> g_signal_ns{0};  // 0: not yet
std::atomic<pid_t> g_handling{0};     // the process that has the thread for it
Wake g_signal_came;

void DieOf(int number) {
  signal(number, SIG_DFL);
  raise(number);  // blocked until the handler returns
}

// Only functions that are safe in a signal handler.
void OnSignal(int number) {
  int saved = errno;
  const int64_t now = MonotonicNs();
  int first = 0;
  // A child of fork has no thread for it; a second signal shall not wait.
  if (getpid() != g_handling) {
    DieOf(number);
  } else if (g_signal.compare_exchange_strong(first, number)) {
    g_signal_ns = now;
    g_signal_came.Post();
  } else if (g_signal_ns != 0 && now - g_signal_ns > kOneSignalNs) {
    DieOf(number);
  }
  errno = saved;
}

void FinishAndDieOf(int number) {
  FinishRecorder(RecordingEnd::kSignal, number);
  signal(number, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  kill(getpid(), number);
}

void WaitForSignal(Recorder&) {
  while (!g_signal_came.WaitUntil(INT64_MAX)) {
  }
  FinishAndDieOf(g_signal);
}

bool IsDefault(int number) {
  struct sigaction now {};
  if (sigaction(number, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0) return false;
  return now.sa_handler == SIG_DFL;
}

void HandleSignals() {
  g_signal_came.Reset();
  g_signal = 0;
  g_signal_ns = 0;
  if (!StartThread(WaitForSignal)) return;
  g_handling = getpid();
  for (int number : kSignals) {
    if (!IsDefault(number)) continue;
    struct sigaction ours {};
    ours.sa_handler = OnSignal;
    ours.sa_flags = SA_RESTART | SA_ONSTACK;
    sigaction(number, &ours, nullptr);
  }
}

// A program that raised a signal which ends it does not get away with exit() meanwhile.
void FinishBy(int status) {
  const int number = g_signal;
  if (number != 0 && getpid() == g_handling) return FinishAndDieOf(number);
  FinishRecorder(RecordingEnd::kExit, status);
}
void OnExit(int status, void*) { FinishBy(status & 0xff); }
void OnQuickExit() { FinishBy(0); }

// What this thread locked for its fork.
thread_local bool t_mutex_locked = false, t_window_locked = false;

// The order is that of everybody. A thread that forks within CUPTI may hold the second one: it does
// not wait for the first, whose holder may be waiting for it.
void BeforeFork() {
  Recorder& r = TheRecorder();
  TouchThreadLocals();
  t_mutex_locked = r.mutex.LockForFork(/*wait=*/!r.window_mutex.IsMine());
  t_window_locked = r.window_mutex.LockForFork(/*wait=*/true);
  r.pool.BeforeFork();
  MarksBeforeFork();
  GraphNodesBeforeFork();
}

void AfterForkInParent() {
  Recorder& r = TheRecorder();
  GraphNodesAfterForkInParent();
  MarksAfterForkInParent();
  r.pool.AfterForkInParent();
  if (t_window_locked) r.window_mutex.unlock();
  if (t_mutex_locked) r.mutex.unlock();
}

void AfterForkInChild() {
  Recorder& r = TheRecorder();
  GraphNodesAfterForkInChild();
  MarksAfterForkInChild();
  r.pool.AfterForkInChild();
  ForgetInChild(r);
  if (t_window_locked) r.window_mutex.unlock();
  if (t_mutex_locked) {
    r.mutex.unlock();
  } else if (!r.mutex.IsMine()) {
    new (&r.mutex) ForkMutex;  // its holder is not in this process
  }
  g_handling = 0;
  g_signal = 0;
  for (int number : kSignals) {
    struct sigaction now {};
    sigaction(number, nullptr, &now);
    if (now.sa_handler == OnSignal) signal(number, SIG_DFL);
  }
}

}  // namespace

bool StartThread(void (*run)(Recorder&)) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);  // the thread inherits it
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  int error = pthread_create(
      &thread, &attributes,
      [](void* f) -> void* {
        prctl(PR_SET_NAME, "daydream");  // pthread_setname_np is in another library before 2.34
        reinterpret_cast<void (*)(Recorder&)>(f)(TheRecorder());
        return nullptr;
      },
      reinterpret_cast<void*>(run));
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error == 0;
}

void WatchExits(Recorder&) {
  // Handlers run in the reverse order: also after the driver has registered its own, so that it
  // still works when ours runs.
  on_exit(OnExit, nullptr);
  at_quick_exit(OnQuickExit);
  static std::atomic<bool> forks_watched{false};
  if (!forks_watched.exchange(true)) {
    pthread_atfork(BeforeFork, AfterForkInParent, AfterForkInChild);
  }
  if (g_handling != getpid()) HandleSignals();
}

}  // namespace daydream::tracer
