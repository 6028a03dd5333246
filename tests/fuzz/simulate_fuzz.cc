// Bytes choose a small graph; all ways to play it must agree.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "graph/validate.h"
#include "simulator/schedule.h"
#include "simulator/simulate.h"
#include "tests/graph/random_graph.h"
#include "tests/simulator/oracle.h"

namespace {

// The input as numbers, zeros after its end.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), end_(data + size) {}
  uint64_t Next() {
    uint64_t value = 0;
    for (int i = 0; i < 2; ++i) value = value << 8 | (data_ < end_ ? *data_++ : 0);
    return value;
  }

 private:
  const uint8_t* data_;
  const uint8_t* end_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace daydream;
  Bytes bytes(data, size);
  RandomGraphOptions options;
  options.tasks = bytes.Next() % 40;
  options.lanes = 1 + bytes.Next() % 5;
  options.priority_lanes = bytes.Next() % 3 % options.lanes;
  options.longest = static_cast<int64_t>(1 + bytes.Next() % 60);
  const Graph graph = RandomGraph([&] { return bytes.Next(); }, options);
  DD_CHECK(Validate(graph).ok());
  const Timeline oracle = OracleTimeline(graph);
  const auto simulated = Simulate(graph, {.blockers = true});
  const auto scheduled = Schedule(graph);
  DD_CHECK(simulated.ok() && scheduled.ok());
  DD_CHECK(simulated->start == oracle.start && simulated->end == oracle.end);
  DD_CHECK(scheduled->start == oracle.start && scheduled->end == oracle.end);
  return 0;
}
