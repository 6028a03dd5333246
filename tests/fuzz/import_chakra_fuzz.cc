// The importer of Chakra traces on hostile bytes, and the graph of what it makes of them.
#include "graph/build.h"
#include "graph/validate.h"
#include "tests/fuzz/import_checks.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace daydream;
  ImportAndCheck(data, size, "chakra");
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto trace = ImportBytes(bytes, "fuzz.3.et", {.max_malformed = 1.0}, "chakra");
  if (!trace.ok()) return 0;
  const auto built = BuildGraph(*std::move(trace));
  if (built.ok()) DD_CHECK(Validate(built->graph).ok());
  return 0;
}
