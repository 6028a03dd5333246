/* A stand-in for libdaydream_inject.so: keeps marks in memory, for tests to read.
 *
 * MARK_LOG=PATH: daydream_finish() appends them to PATH, one line each: pid, thread, nanoseconds,
 * kind, value, name, separated by TAB (a name may hold further TABs).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kNames = 1 << 16, kMarks = 1 << 21 };

struct mark {
  int64_t time, value;
  uint32_t kind, name, thread, pad;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char* names[kNames];
static uint32_t name_count = 1;
static struct mark* marks;
static uint32_t mark_count;

uint32_t daydream_name(const char* text) {
  pthread_mutex_lock(&lock);
  uint32_t id = 1;
  while (id < name_count && strcmp(names[id], text) != 0) ++id;
  if (id == kNames) abort();
  if (id == name_count) names[name_count++] = strdup(text);
  pthread_mutex_unlock(&lock);
  return id;
}

/* A STEP mark that waits for another thread, but not longer than 5 s. */
static int held; /* 1: the next one shall wait, 2: it waits, 3: it may go on */

void mark_log_hold_step(void) { __atomic_store_n(&held, 1, __ATOMIC_SEQ_CST); }
int mark_log_step_is_awaited(void) { return __atomic_load_n(&held, __ATOMIC_SEQ_CST) == 1; }

/* Whether a mark waits. */
int mark_log_release_step(void) {
  int waits = 2;
  return __atomic_compare_exchange_n(&held, &waits, 3, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

void daydream_mark(uint32_t kind, uint32_t name, int64_t value) {
  static __thread uint32_t thread;
  if (kind == 3 && __atomic_load_n(&held, __ATOMIC_SEQ_CST) == 1) {
    __atomic_store_n(&held, 2, __ATOMIC_SEQ_CST);
    for (int i = 0; i < 5000 && __atomic_load_n(&held, __ATOMIC_SEQ_CST) != 3; ++i) usleep(1000);
    __atomic_store_n(&held, 0, __ATOMIC_SEQ_CST);
  }
  if (thread == 0) thread = (uint32_t)gettid();
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  uint32_t at = __atomic_fetch_add(&mark_count, 1, __ATOMIC_RELAXED);
  if (marks == NULL) {
    pthread_mutex_lock(&lock);
    if (marks == NULL) marks = calloc(kMarks, sizeof *marks);
    pthread_mutex_unlock(&lock);
  }
  marks[at % kMarks] =
      (struct mark){now.tv_sec * 1000000000 + now.tv_nsec, value, kind, name, thread, 0};
}

/* For tests in the same process. */
uint32_t mark_log_count(void) { return mark_count; }
const struct mark* mark_log_get(uint32_t i) { return &marks[i]; }
const char* mark_log_name(uint32_t id) { return id < name_count && id > 0 ? names[id] : ""; }
void mark_log_clear(void) { mark_count = 0; }

/* Ranks write to one file: all at once, or their lines would mix. */
void daydream_finish(void) {
  const char* path = getenv("MARK_LOG");
  if (path == NULL) return;
  char* text = NULL;
  size_t size = 0;
  FILE* lines = open_memstream(&text, &size);
  if (lines == NULL) return;
  for (uint32_t i = 0; i < mark_count && i < kMarks; ++i) {
    const struct mark* m = &marks[i];
    fprintf(lines, "%d\t%u\t%lld\t%u\t%lld\t%s\n", getpid(), m->thread, (long long)m->time, m->kind,
            (long long)m->value, mark_log_name(m->name));
  }
  fclose(lines);
  const int file = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
  if (file >= 0) {
    if (write(file, text, size) != (ssize_t)size) perror(path);
    close(file);
  }
  free(text);
}
