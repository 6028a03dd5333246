/* The mark interface is C99: used here as a C program would. */
#include "tracer/daydream_mark.h"

int UseMarksInC(void);

int UseMarksInC(void) {
  daydream_step(0);
  daydream_begin("conv1");
  daydream_end();
  daydream_range("validation");
  daydream_end_range();
  daydream_point("checkpoint");
  return daydream_find_recorder() != NULL;
}
