// Memory snapshots, which are pickles, on hostile bytes.
#include "base/check.h"
#include "trace/importer.h"
#include "trace/join/memory_snapshot.h"

namespace daydream {
namespace {

// 4 ms on one stream from the time of the snapshot in the corpus on.
constexpr std::string_view kTrace = R"({"traceEvents": [
  {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1700000000000000, "dur": 4000,
   "args": {"device": 0, "stream": 7}}]})";

}  // namespace
}  // namespace daydream

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace daydream;
  static const auto trace = ImportBytes(kTrace, "trace.json");
  DD_CHECK(trace.ok());
  MemoryFound found;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto with = WithMemoryIn(*trace, bytes, "fuzz", &found);
  if (!with.ok()) return 0;
  DD_CHECK((*with)->allocations.size() == found.in_window && found.in_window <= found.events);
  for (const Allocation& a : (*with)->allocations) {
    DD_CHECK(a.allocated >= 0 && a.reserved >= 0 && a.at >= Instant{});
  }
  return 0;
}
