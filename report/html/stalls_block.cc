#include "report/html/stalls_block.h"

#include <algorithm>
#include <vector>

#include "report/text/json_writer.h"
#include "report/windows.h"

namespace daydream {

std::string StallsJson(const Graph& graph, const Stalls& stalls) {
  const std::vector<size_t> counted = CountedSteps(graph);
  JsonWriter json;
  json.BeginObject().Key("time_ns").Int(stalls.time.ns).Key("taken_ns").Int(stalls.taken.ns);
  json.Key("all").BeginArray();
  for (const Stall& stall : stalls.all) {
    const size_t step = graph.task(stall.task).step;
    const auto found = std::find(counted.begin(), counted.end(), step);
    json.BeginInlineObject().Key("place");
    if (found != counted.end()) {
      json.Int(found - counted.begin());
    } else if (counted.empty()) {
      json.Int(0);  // the only step
    } else {
      json.Null();
    }
    json.Key("step").UInt(step).Key("kind").String(Name(stall.kind));
    json.Key("what").String(stall.what).Key("time_ns").Int(stall.time.ns);
    json.Key("taken_ns").Int(stall.taken().ns).EndObject();
  }
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

}  // namespace daydream
