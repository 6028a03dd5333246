// The importer of Nsight Systems exports on hostile SQLite files.
#include "tests/fuzz/import_checks.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  daydream::ImportAndCheck(data, size, "nsys");
  return 0;
}
