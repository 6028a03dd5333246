/* Marks for daydream's recorder: say where layers, steps and ranges begin and end.
 *
 * Header only, C99 or C++, no library to link. Under `daydream trace` the marks go to the recorder;
 * in any other run every function here is one load and one branch.
 *
 *   daydream_step(i);                                   before every training step, i = 0, 1, ...
 *   daydream_begin("conv1"); ...; daydream_end();       a layer, nested as layers are
 *   daydream_range("validation"); ...; daydream_end_range();   any other named range
 *
 * Names are texts of the program; each distinct one is sent once. To save the look-up in a hot
 * loop, keep the id that daydream_find_recorder()->name() returns and call ->mark() with it.
 * Marks belong to the calling thread and never touch the GPU. Cost: not more than 50 ns.
 * (Or use NVTX ranges: the recorder takes them as ranges, too.)
 */
#ifndef DAYDREAM_MARK_H
#define DAYDREAM_MARK_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a mark says. The numbers are those of MarkKind in proto/daydream_trace.proto. */
enum daydream_mark_kind {
  DAYDREAM_RANGE_BEGIN = 1,    /* name: the range */
  DAYDREAM_RANGE_END = 2,      /* ends the innermost open range of the thread */
  DAYDREAM_STEP = 3,           /* a step begins and the one before ends; value: its number */
  DAYDREAM_POINT = 4,          /* name: what happened here */
  DAYDREAM_LAYER_BEGIN = 5,    /* name: path of the layer, then optionally TAB class name, TAB
                                  number of parameters; forward */
  DAYDREAM_LAYER_END = 6,      /* ends the innermost open layer of the thread */
  DAYDREAM_BACKWARD_ENTER = 7, /* name: layer; value: number of its forward call */
  DAYDREAM_BACKWARD_EXIT = 8,  /* name: layer; value: number of its forward call */
  DAYDREAM_LABELS_BEGIN = 9,   /* from here to LABELS_END layers are marked, which costs time: */
  DAYDREAM_LABELS_END = 10,    /* steps in between lend their layers to the others */
  DAYDREAM_RANK = 11,          /* value: rank << 32 | number of ranks */
  DAYDREAM_NOTE = 12,          /* name: "key=value", a fact about the process ("PyTorch=2.4.0") */
  DAYDREAM_COLLECTIVE = 13     /* of the innermost open range. name: communicator, then optionally
                                  "/" its size, " " sender ">" receiver; value: number of the call
                                  on it, from 0, the same on every rank */
};

/* What the injected library exports (see docs/recorder.md). name() interns a text: ids count up
 * from 1, 0 means "not recording". finish() writes out everything and closes the file; nothing is
 * recorded after it. All may be called from any thread at any time, also twice. */
struct daydream_recorder {
  uint32_t (*name)(const char* text);
  void (*mark)(uint32_t kind, uint32_t name, int64_t value);
  void (*finish)(void);
};

/* The recorder of this process, or NULL outside of `daydream trace`. */
static inline const struct daydream_recorder* daydream_find_recorder(void) {
  static struct daydream_recorder found;
  static int state; /* 0 not looked, 1 absent, 2 there; two threads may both look, same result */
  int now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
  if (now == 0) {
    /* Not in a program that runs with other rights than its caller (setuid): that one chose the
     * variables. */
    const char* path = getauxval(AT_SECURE) != 0 ? NULL : getenv("DAYDREAM_INJECT");
    void* library = path == NULL ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    now = 1;
    if (library != NULL) {
      struct daydream_recorder r;
      *(void**)&r.name = dlsym(library, "daydream_name");
      *(void**)&r.mark = dlsym(library, "daydream_mark");
      *(void**)&r.finish = dlsym(library, "daydream_finish");
      if (r.name != NULL && r.mark != NULL && r.finish != NULL) {
        found = r;
        now = 2;
      }
    }
    __atomic_store_n(&state, now, __ATOMIC_RELEASE);
  }
  return now == 2 ? &found : NULL;
}

static inline void daydream_mark_text(uint32_t kind, const char* text, int64_t value) {
  const struct daydream_recorder* r = daydream_find_recorder();
  if (r != NULL) r->mark(kind, text == NULL ? 0 : r->name(text), value);
}

static inline void daydream_step(int64_t number) {
  daydream_mark_text(DAYDREAM_STEP, NULL, number);
}
static inline void daydream_begin(const char* layer) {
  daydream_mark_text(DAYDREAM_LAYER_BEGIN, layer, 0);
}
static inline void daydream_end(void) { daydream_mark_text(DAYDREAM_LAYER_END, NULL, 0); }
static inline void daydream_range(const char* name) {
  daydream_mark_text(DAYDREAM_RANGE_BEGIN, name, 0);
}
static inline void daydream_end_range(void) { daydream_mark_text(DAYDREAM_RANGE_END, NULL, 0); }
static inline void daydream_point(const char* name) { daydream_mark_text(DAYDREAM_POINT, name, 0); }

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* DAYDREAM_MARK_H */
