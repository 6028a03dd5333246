// The .ddtrace importer on hostile bytes: as a whole file, and, since checksums stop most of
// those, as the message of a chunk whose frame is in order.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "trace/ddtrace/format.h"
#include "trace/ddtrace/writer.h"
#include "trace/importer.h"

namespace daydream {
namespace {

const ImportOptions kOptions = {.max_malformed = 1.0, .max_text_bytes = 16 << 20};

void Import(std::string_view bytes) {
  const auto trace = ImportBytes(bytes, "fuzz", kOptions, "ddtrace");
  if (!trace.ok()) return;
  // What was read can be written, and reads back to the same bytes.
  const auto written = SerializeDdtrace(**trace);
  DD_CHECK(written.ok());
  const auto again = ImportBytes(*written, "fuzz", kOptions, "ddtrace");
  if (!again.ok()) {  // only because the limit of this target is low
    DD_CHECK(absl::IsResourceExhausted(again.status()));
    return;
  }
  DD_CHECK((*again)->rows() == (*trace)->rows());
}

void ImportAsChunk(uint8_t type, std::string_view message) {
  std::string file(kDdtraceMagic);
  ChunkPacker packer;
  uint32_t sequence = 0;
  // Definitions first, then the same message again, so that rows meet known ids.
  for (int i = 0; i < 2; ++i) {
    const auto chunk = packer.Pack({.type = type, .sequence = sequence++}, message);
    if (!chunk.ok()) return;
    file += *chunk;
  }
  Import(file);
}

}  // namespace
}  // namespace daydream

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  daydream::Import(bytes);
  if (!bytes.empty()) daydream::ImportAsChunk(1 + data[0] % 4, bytes.substr(1));
  return 0;
}
