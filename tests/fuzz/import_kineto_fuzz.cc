// The PyTorch profiler importer on hostile bytes: as they are, and inside a list of events.
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/fuzz/import_checks.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  daydream::ImportAndCheck(bytes, "kineto");
  daydream::ImportAndCheck("{\"traceEvents\": [" + std::string(bytes) + "]}", "kineto");
  return 0;
}
