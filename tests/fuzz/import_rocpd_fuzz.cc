// The importer of rocpd databases on hostile SQLite files.
#include "tests/fuzz/import_checks.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  daydream::ImportAndCheck(data, size, "rocpd");
  return 0;
}
