// The importer of RPD databases on hostile bytes.
#include "tests/fuzz/import_checks.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  daydream::ImportAndCheck(data, size, "rpd");
  return 0;
}
