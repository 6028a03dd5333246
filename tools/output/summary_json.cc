#include "tools/output/summary_json.h"

#include "report/text/json_writer.h"
#include "tools/output/findings_text.h"
#include "tools/output/memory_text.h"
#include "tools/output/whatif_output.h"

namespace daydream {

namespace {

void WriteLength(const Summary& s, const ReplayCheck* replay, JsonWriter& json) {
  json.Key("steps").UInt(s.steps).Key("step_ns").Int(s.step.ns).Key("window_ns").Int(s.window.ns);
  WriteStep(s.step, s.periods, json);
  if (replay != nullptr) WriteReplay(*replay, json);
}

}  // namespace

std::string SummaryJson(const Summary& s, const MemoryProfile& memory, GroupBy by,
                        const ReplayCheck* replay, const std::vector<Finding>& findings) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("daydream.summary/1");
  WriteLength(s, replay, json);
  json.Key("gpu_busy_ns").Int(s.gpu_busy.ns).Key("gpu_idle_ns").Int(s.gpu_idle.ns);
  json.Key("comm_ns").Int(s.comm.ns);
  json.Key("exposed_comm_ns").Int(s.exposed_comm.ns).Key("gpu_time_ns").Int(s.gpu_time.ns);
  json.Key("guessed_ns").Int(s.guessed.ns);
  json.Key("critical_path").BeginInlineObject();
  json.Key("gpu_ns").Int(s.path.gpu.ns).Key("cpu_ns").Int(s.path.cpu.ns);
  json.Key("comm_ns").Int(s.path.comm.ns).Key("data_ns").Int(s.path.data.ns).EndObject();
  WriteFindings(findings, json);
  json.Key("memory");
  WriteMemoryProfile(memory, json);
  json.Key("by").String(Name(by)).Key("groups").BeginArray();
  for (const Group& g : s.groups) {
    json.BeginInlineObject().Key("name").String(g.name).Key("time_ns").Int(g.time.ns);
    json.Key("calls").Rounded(g.calls, 3).Key("critical_path_ns").Int(g.path.ns).EndObject();
  }
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

std::string HostSummaryJson(const std::vector<HostRow>& rows, const Summary& step,
                            const ReplayCheck* replay, const std::vector<Finding>& findings) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("daydream.summary/1");
  WriteLength(step, replay, json);
  WriteFindings(findings, json);
  json.Key("by").String("host").Key("groups").BeginArray();
  for (const HostRow& r : rows) {
    json.BeginInlineObject().Key("name").String(r.what.name).Key("kind").String(Name(r.what.kind));
    json.Key("self_ns").Int(r.self.ns).Key("waiting_ns").Int(r.waiting.ns);
    json.Key("total_ns").Int(r.total.ns).Key("calls").Rounded(r.calls, 3);
    json.Key("critical_path_ns").Int(r.path.ns).EndObject();
  }
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

}  // namespace daydream
