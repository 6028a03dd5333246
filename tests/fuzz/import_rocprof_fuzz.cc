// The importer of rocprofv3 JSON on hostile bytes.
#include "tests/fuzz/import_checks.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  daydream::ImportAndCheck(data, size, "rocprof");
  return 0;
}
