/* The mark header in a program that runs with other rights than its caller: the kernel says so to a
 * program that is setuid, which a test without privileges cannot make. */
#include <sys/auxv.h>

static unsigned long TellsSetuid(unsigned long type) {
  return type == AT_SECURE ? 1 : getauxval(type);
}
#define getauxval TellsSetuid
#include "tracer/daydream_mark.h"

int FindsARecorderAsSetuid(void);

int FindsARecorderAsSetuid(void) { return daydream_find_recorder() != NULL; }
