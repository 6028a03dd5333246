// For packages only. The libstdc++ of Debian 12 asks glibc for arc4random, which came with 2.36;
// the C library of Ubuntu 22.04 is 2.35. Nothing of ours draws from it.
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

extern "C" uint32_t arc4random(void) {
  uint32_t number = 0;
  // Four bytes are never cut short (getrandom(2)); without a source of chance nothing can go on.
  if (getrandom(&number, sizeof number, 0) != sizeof number) abort();
  return number;
}
