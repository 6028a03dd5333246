// Any records of CUPTI through the recorder: every field is hostile but for pointers, which CUPTI
// has to get right. What was written can be read.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/check.h"
#include "tests/tracer/activity_buffer.h"
#include "trace/importer.h"
#include "tracer/recording.h"

namespace daydream::tracer {
namespace {

std::string* g_file = nullptr;  // what the recording under test has written

const FileCalls kInMemory = {
    .open = [](const char*, int, mode_t) { return 100; },
    .write =
        [](int, const void* bytes, size_t size) {
          g_file->append(static_cast<const char*>(bytes), size);
          return static_cast<ssize_t>(size);
        },
    .truncate =
        [](int, off_t size) {
          g_file->resize(static_cast<size_t>(size));
          return 0;
        },
    .reserve = [](int, off_t, off_t) { return 0; },
    .sync = [](int) { return 0; },
    .close = [](int) { return 0; },
};

constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                         CUPTI_ACTIVITY_KIND_MEMCPY,
                                         CUPTI_ACTIVITY_KIND_MEMCPY2,
                                         CUPTI_ACTIVITY_KIND_MEMSET,
                                         CUPTI_ACTIVITY_KIND_DRIVER,
                                         CUPTI_ACTIVITY_KIND_RUNTIME,
                                         CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
                                         CUPTI_ACTIVITY_KIND_CUDA_EVENT,
                                         CUPTI_ACTIVITY_KIND_GRAPH_TRACE,
                                         CUPTI_ACTIVITY_KIND_OVERHEAD,
                                         CUPTI_ACTIVITY_KIND_DEVICE,
                                         CUPTI_ACTIVITY_KIND_CONTEXT,
                                         CUPTI_ACTIVITY_KIND_STREAM,
                                         CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};

// Records of the kinds that the bytes choose, filled with the bytes behind.
class HostileBuffer {
 public:
  HostileBuffer(const uint8_t* data, size_t size) {
    while (size > 1) {
      const CUpti_ActivityKind kind = kKinds[data[0] % std::size(kKinds)];
      const size_t take = std::min<size_t>(data[1], std::min(size - 2, RecordSize(kind)));
      const size_t at = bytes_.size() * 8;
      bytes_.resize(bytes_.size() + (RecordSize(kind) + 7) / 8);
      auto* record = reinterpret_cast<uint8_t*>(bytes_.data()) + at;
      std::memcpy(record, data + 2, take);
      std::memcpy(record, &kind, sizeof kind);
      SetPointers(record, kind);
      used_ = at + RecordSize(kind);
      data += 2 + take;
      size -= 2 + take;
    }
  }
  uint8_t* data() { return reinterpret_cast<uint8_t*>(bytes_.data()); }
  size_t size() const { return used_; }

 private:
  static void SetPointers(uint8_t* record, CUpti_ActivityKind kind) {
    static constexpr char kName[] = "_Z3addPf\n\"\xff";
    if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      reinterpret_cast<CUpti_ActivityKernel10*>(record)->name = kName;
    }
    if (kind == CUPTI_ACTIVITY_KIND_DEVICE) {
      reinterpret_cast<CUpti_ActivityDevice5*>(record)->name = kName;
    }
  }
  std::vector<uint64_t> bytes_;
  size_t used_ = 0;
};

}  // namespace
}  // namespace daydream::tracer

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace daydream;
  using namespace daydream::tracer;
  std::string file;
  g_file = &file;
  HostileBuffer buffer(data, size);
  Recording recording(kInMemory);
  DD_CHECK(recording.Open("fuzz", {.clock_origin_ns = 1'000'000, .pid = 7}) == 0);
  recording.SetCupti(HandMadeCupti());
  recording.AddBuffer(buffer.data(), buffer.size());
  DD_CHECK(recording.Close(RecordingEnd::kExit, 0) == 0);
  const auto trace = ImportBytes(file, "fuzz", {.max_malformed = 1.0}, "ddtrace");
  if (!trace.ok()) {
    const std::string code = DiagnosticOf(trace.status()).code;
    DD_CHECK(code == "E0211" || code == "E0214" || code == "E0224" || code == "E0222");
  }
  return 0;
}
