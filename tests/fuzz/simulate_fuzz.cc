// Random graphs shaped by the input: the simulator agrees with the definition, on lanes of fixed
// order and on lanes that may reorder.
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "graph/validate.h"
#include "simulator/simulate.h"
#include "tests/oracle.h"
#include "tests/random_graph.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  daydream::RandomGraphOptions options;
  options.tasks = 1 + data[0] % 48;
  options.lanes = 1 + data[1] % 6;
  options.priority_lanes = data[2] % (options.lanes + 1);
  options.longest = 1 + data[3] % 100;
  // The rest of the input are the random bits, repeated when they run out.
  size_t at = 4;
  uint64_t turn = 0;
  auto random = [&] {
    uint64_t bits = 0;
    for (int i = 0; i < 8; ++i, ++at) bits = bits << 8 | (at < size ? data[at] : at * 131 + turn);
    turn += 0x9e3779b97f4a7c15;
    return bits ^ turn;
  };
  const daydream::Graph graph = daydream::RandomGraph(random, options);
  if (!daydream::Validate(graph).ok()) return 0;
  const auto timeline = daydream::Simulate(graph);
  DD_CHECK(timeline.ok());
  const daydream::Timeline expected = daydream::OracleTimeline(graph);
  DD_CHECK(timeline->start == expected.start);
  DD_CHECK(timeline->end == expected.end);
  return 0;
}
