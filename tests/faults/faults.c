/* The one door through which tests make system calls fail: loaded into a program with LD_PRELOAD, it
 * counts the calls that change files and does to the N-th one what DAYDREAM_FAULT says:
 *
 *   DAYDREAM_FAULT=N:ENOSPC   (or EIO, EDQUOT, EROFS, EACCES, or a number)   fails with that
 *   DAYDREAM_FAULT=N:kill     the process is killed in its place
 *   DAYDREAM_FAULT=N:term     the process gets SIGTERM in its place, and may clean up
 *   DAYDREAM_FAULT=N:short    half of the bytes of a write are written; others are let through
 *
 * N = 0 only counts. With DAYDREAM_FAULT_COUNT=FILE the number of calls is left in that file. Writes
 * to standard output and error do not count.
 *
 *   DAYDREAM_FAULT_CUT=N:PATH half of the file at PATH is cut off before it is read for the N-th time;
 *                             then it is these reads that are counted
 *   DAYDREAM_FAULT_THREADS=N  after N threads no more can be made
 *   DAYDREAM_FAULT_NAMED=1    a file system on which no file can be without a name */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long calls, reads;

static long wanted(const char** what) {
  const char* fault = getenv("DAYDREAM_FAULT");
  char* colon = NULL;
  if (fault == NULL) return 0;
  const long n = strtol(fault, &colon, 10);
  *what = *colon == ':' ? colon + 1 : "";
  return n;
}

static int number_of(const char* name) {
  if (strcmp(name, "ENOSPC") == 0) return ENOSPC;
  if (strcmp(name, "EIO") == 0) return EIO;
  if (strcmp(name, "EDQUOT") == 0) return EDQUOT;
  if (strcmp(name, "EROFS") == 0) return EROFS;
  if (strcmp(name, "EACCES") == 0) return EACCES;
  return atoi(name);
}

/* 0: let it through; 1: a short write; else the errno to fail with, negative. */
static int decide(void) {
  const char* what = "";
  const long n = wanted(&what);
  if (atomic_fetch_add(&calls, 1) + 1 != n || n == 0) return 0;
  if (strcmp(what, "kill") == 0) kill(getpid(), SIGKILL);
  if (strcmp(what, "term") == 0) kill(getpid(), SIGTERM);
  if (strcmp(what, "short") == 0) return 1;
  return -number_of(what);
}

__attribute__((destructor)) static void leave_count(void) {
  const char* path = getenv("DAYDREAM_FAULT_COUNT");
  if (path == NULL) return;
  FILE* file = fopen(path, "w");
  if (file == NULL) return;
  fprintf(file, "%ld\n", getenv("DAYDREAM_FAULT_CUT") == NULL ? (long)calls : (long)reads);
  fclose(file);
}

#define REAL(name, type) \
  static __typeof__(type) real; \
  if (real == NULL) real = (__typeof__(real))dlsym(RTLD_NEXT, #name)
#define FAIL_IF_WANTED         \
  const int fault = decide();  \
  if (fault < 0) {             \
    errno = -fault;            \
    return -1;                 \
  }

ssize_t write(int fd, const void* bytes, size_t size) {
  REAL(write, ssize_t (*)(int, const void*, size_t));
  struct stat info;
  if (fd <= STDERR_FILENO || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    return real(fd, bytes, size);
  }
  FAIL_IF_WANTED
  return real(fd, bytes, fault == 1 && size > 1 ? size / 2 : size);
}

static void cut_if_wanted(int fd) {
  struct stat here, there;
  char* path = NULL;
  const char* cut = getenv("DAYDREAM_FAULT_CUT");
  if (cut == NULL) return;
  const long n = strtol(cut, &path, 10);
  if (*path != ':' || stat(path + 1, &there) != 0 || fstat(fd, &here) != 0) return;
  if (here.st_dev != there.st_dev || here.st_ino != there.st_ino) return;
  if (atomic_fetch_add(&reads, 1) + 1 != n) return;
  if (truncate(path + 1, there.st_size / 2) != 0) abort();
}

ssize_t read(int fd, void* bytes, size_t size) {
  REAL(read, ssize_t (*)(int, void*, size_t));
  cut_if_wanted(fd);
  return real(fd, bytes, size);
}

ssize_t __read_chk(int fd, void* bytes, size_t size, size_t room) {
  REAL(__read_chk, ssize_t (*)(int, void*, size_t, size_t));
  cut_if_wanted(fd);
  return real(fd, bytes, size, room);
}

ssize_t pread(int fd, void* bytes, size_t size, off_t at) {
  REAL(pread, ssize_t (*)(int, void*, size_t, off_t));
  cut_if_wanted(fd);
  return real(fd, bytes, size, at);
}

ssize_t pread64(int fd, void* bytes, size_t size, off64_t at) {
  REAL(pread64, ssize_t (*)(int, void*, size_t, off64_t));
  cut_if_wanted(fd);
  return real(fd, bytes, size, at);
}

static int opens_to_write(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

#define OPEN(name)                                                \
  int name(const char* path, int flags, ...) {                    \
    REAL(name, int (*)(const char*, int, ...));                   \
    va_list list;                                                 \
    va_start(list, flags);                                        \
    const int mode = va_arg(list, int);                           \
    va_end(list);                                                 \
    if (opens_to_write(flags) && strncmp(path, "/dev/", 5) != 0) { \
      FAIL_IF_WANTED                                              \
    }                                                             \
    if ((flags & O_TMPFILE) == O_TMPFILE && getenv("DAYDREAM_FAULT_NAMED") != NULL) { \
      errno = EOPNOTSUPP;                                         \
      return -1;                                                  \
    }                                                             \
    return real(path, flags, mode);                               \
  }
OPEN(open)
OPEN(open64)

int fsync(int fd) {
  REAL(fsync, int (*)(int));
  FAIL_IF_WANTED
  return real(fd);
}

int fchmod(int fd, mode_t mode) {
  REAL(fchmod, int (*)(int, mode_t));
  FAIL_IF_WANTED
  return real(fd, mode);
}

int rename(const char* from, const char* to) {
  REAL(rename, int (*)(const char*, const char*));
  FAIL_IF_WANTED
  return real(from, to);
}

int linkat(int a, const char* from, int b, const char* to, int flags) {
  REAL(linkat, int (*)(int, const char*, int, const char*, int));
  FAIL_IF_WANTED
  return real(a, from, b, to, flags);
}

int link(const char* from, const char* to) {
  REAL(link, int (*)(const char*, const char*));
  FAIL_IF_WANTED
  return real(from, to);
}

int ftruncate(int fd, off_t size) {
  REAL(ftruncate, int (*)(int, off_t));
  FAIL_IF_WANTED
  return real(fd, size);
}

int ftruncate64(int fd, off64_t size) {
  REAL(ftruncate64, int (*)(int, off64_t));
  FAIL_IF_WANTED
  return real(fd, size);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
  static atomic_long made;
  REAL(pthread_create, int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*));
  const char* most = getenv("DAYDREAM_FAULT_THREADS");
  if (most != NULL && atomic_fetch_add(&made, 1) >= atol(most)) return EAGAIN;
  return real(thread, attributes, run, argument);
}
