// The five exported functions of libdaydream_inject.so.
#include <cstdint>

#define DAYDREAM_EXPORT extern "C" __attribute__((visibility("default")))

DAYDREAM_EXPORT int InitializeInjection() { return 1; }
