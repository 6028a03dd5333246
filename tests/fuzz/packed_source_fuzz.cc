// Any bytes as a packed file: as they are, and behind the magic numbers of gzip and zstd. Reading
// ends, hands out no more than the limit, and says the same thing twice.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "trace/bytes/source.h"

namespace daydream {
namespace {

constexpr int64_t kLimit = 1 << 20;

struct Outcome {
  size_t bytes = 0;
  absl::Status end;
};

Outcome Read(std::string_view bytes) {
  const auto source = OpenBytes(bytes, "fuzz", kLimit);
  Outcome outcome;
  for (;;) {
    const auto chunk = source->Next();
    outcome.end = chunk.status();
    if (!chunk.ok() || chunk->empty()) return outcome;
    outcome.bytes += chunk->size();
    DD_CHECK(outcome.bytes <= static_cast<size_t>(kLimit));
    DD_CHECK(source->consumed() <= source->total());
  }
}

void ReadTwice(std::string_view bytes) {
  const Outcome first = Read(bytes), second = Read(bytes);
  DD_CHECK(first.bytes == second.bytes && first.end == second.end);
  if (first.end.ok()) return;
  const std::string code = DiagnosticOf(first.end).code;
  DD_CHECK(code == "E0205" || code == "E0206" || code == "E0207");
}

}  // namespace
}  // namespace daydream

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  daydream::ReadTwice(bytes);
  daydream::ReadTwice(std::string("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10) + bytes);
  daydream::ReadTwice("\x28\xb5\x2f\xfd" + bytes);
  return 0;
}
