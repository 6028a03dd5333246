#include "tracer/cupti_clock.h"

namespace daydream::tracer {
namespace {

template <class Record>
int64_t StartOf(const CUpti_Activity* record) {
  return static_cast<int64_t>(reinterpret_cast<const Record*>(record)->start);
}

// 0: it has no time, or is of another kind.
int64_t StartOfWork(const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return StartOf<CUpti_ActivityKernel10>(record);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return StartOf<CUpti_ActivityMemcpy6>(record);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return StartOf<CUpti_ActivityMemset4>(record);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return StartOf<CUpti_ActivityGraphTrace2>(record);
    default:
      return 0;
  }
}

}  // namespace

std::optional<CuptiTime> FirstTime(const CuptiDecoding& cupti, uint8_t* buffer, size_t valid) {
  std::optional<CuptiTime> work;
  CUpti_Activity* record = nullptr;
  while (cupti.next_record(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_RUNTIME || record->kind == CUPTI_ACTIVITY_KIND_DRIVER) {
      return CuptiTime{StartOf<CUpti_ActivityAPI>(record), true};
    }
    const int64_t start = work.has_value() ? 0 : StartOfWork(record);
    if (start != 0) work = CuptiTime{start, false};
  }
  return work;
}

std::optional<int64_t> OffsetThatFits(int64_t time_ns, int64_t begin_ns, int64_t now_ns,
                                      int64_t offset_ns, int64_t realtime_ahead_ns) {
  for (const int64_t offset : {int64_t{0}, offset_ns, -realtime_ahead_ns}) {
    if (time_ns + offset >= begin_ns && time_ns + offset <= now_ns) return offset;
  }
  return std::nullopt;
}

}  // namespace daydream::tracer
