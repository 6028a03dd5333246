// Checks for our own mistakes. They stay on in release builds, print file, line and the failed
// condition, and abort. Input data never reaches them: that is what base/status.h is for.
#pragma once

#include <cstdio>
#include <cstdlib>

#define DD_CHECK(condition)                                                              \
  do {                                                                                   \
    if (!(condition)) [[unlikely]] {                                                     \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (0)

// For inner loops: checked in debug builds only.
#ifdef NDEBUG
#define DD_DCHECK(condition) \
  do {                       \
  } while (0)
#else
#define DD_DCHECK(condition) DD_CHECK(condition)
#endif
