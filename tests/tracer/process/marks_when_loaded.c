/* A library that uses NVTX in its constructor: it enters the recorder under the loader's lock. */
#include <nvtx3/nvToolsExt.h>

__attribute__((constructor)) static void MarkThatItIsLoaded(void) { nvtxMarkA("loaded"); }
