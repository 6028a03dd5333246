#include <cmath>

#include "report/step_lengths.h"
#include "report/text/format.h"
#include "report/text/json_writer.h"
#include "tools/output/describe.h"
#include "tools/output/findings_text.h"
#include "tools/output/memory_text.h"
#include "tools/output/refused.h"
#include "tools/output/whatif_output.h"

namespace daydream {
namespace {

double Percent(double share) { return share * 100; }

void WriteBoundBy(const BoundBy& path, JsonWriter& json) {
  Duration sum = path.gpu + path.cpu + path.comm + path.data;
  auto share = [&](Duration d) {
    return sum.ns > 0 ? static_cast<double>(d.ns) / static_cast<double>(sum.ns) : 0;
  };
  json.Key("bound_by").BeginInlineObject();
  json.Key("gpu").Rounded(share(path.gpu), 6).Key("cpu").Rounded(share(path.cpu), 6);
  json.Key("comm").Rounded(share(path.comm), 6).Key("data").Rounded(share(path.data), 6);
  json.EndObject();
}

void WriteChanges(const Changes& c, JsonWriter& json) {
  json.Key("changed").BeginInlineObject();
  json.Key("scaled").UInt(c.scaled).Key("set").UInt(c.set).Key("inserted").UInt(c.inserted);
  json.Key("removed").UInt(c.removed).Key("fused").UInt(c.fused).Key("moved").UInt(c.moved);
  json.Key("edges").UInt(c.edges).EndObject();
  WriteTexts("notes", c.notes, json);
  WriteTexts("warnings", c.warnings, json);
  WriteTexts("conditions", c.conditions, json);
}

void WriteLimiter(const Limiter& l, JsonWriter& json) {
  json.Key("resource").String(Name(l.resource)).Key("what").String(l.what);
  if (!l.lane.empty()) json.Key("lane").String(l.lane);
  json.Key("path_ns").Int(l.time.ns).Key("count").Rounded(l.count, 3);
}

void WriteExplanation(const std::optional<Explanation>& e, JsonWriter& json) {
  json.Key("explanation");
  if (!e.has_value()) {
    json.Null();
    return;
  }
  json.BeginObject().Key("text").String(e->text);
  json.Key("cause").String(e->cause).Key("opt").String(e->opt);
  json.Key("side").String(e->gpu ? "gpu" : "host");
  json.Key("work_ns").Int(e->work.ns).Key("gained_ns").Int(e->gained.ns);
  json.Key("exposed").BeginArray();
  for (const Exposure& x : e->exposed) {
    json.BeginInlineObject();
    WriteLimiter(x.limiter, json);
    json.Key("path_before_ns").Int(x.before.ns).Key("count_before").Rounded(x.count_before, 3);
    json.EndObject();
  }
  json.EndArray();
  json.Key("next_limiter");
  if (e->next.has_value()) {
    json.BeginInlineObject();
    WriteLimiter(*e->next, json);
    json.EndObject();
  } else {
    json.Null();
  }
  json.Key("enough_speedup");
  if (e->enough.has_value() && std::isfinite(*e->enough)) {
    json.Rounded(*e->enough, 3);
  } else {
    json.Null();
  }
  json.EndObject();
}

void WriteCauses(const Prediction& p, JsonWriter& json) {
  json.Key("causes").BeginArray();
  for (const CauseShare& c : p.causes) {
    json.BeginInlineObject().Key("what").String(c.what).Key("opt").String(OptOf(c));
    json.Key("delta_ms").Rounded(c.delta.ms(), 6).Key("delta_ns").Int(c.delta.ns);
    json.Key("gpu_ns").Int(c.gpu.ns).Key("host_ns").Int(c.host.ns).EndObject();
  }
  json.EndArray();
  WriteExplanation(p.why_not, json);
  json.Key("unchecked_pct");
  if (p.unchecked.has_value()) {
    json.Rounded(Percent(*p.unchecked), 3);
  } else {
    json.Null();
  }
  json.Key("learned").BeginInlineObject().Key("rows").UInt(p.learned.rows);
  json.Key("correction_pct").Rounded(Percent(p.learned.share), 4).EndObject();
}

// The same keys for all, with null where there is no number.
void WriteRate(std::string_view key, std::optional<double> rate, JsonWriter& json) {
  json.Key(key);
  if (rate.has_value() && std::isfinite(*rate)) {
    json.Rounded(*rate, 6);
  } else {
    json.Null();
  }
}

void WriteThroughput(const Prediction& p, JsonWriter& json) {
  const bool ok = p.error.ok();
  const std::optional<double> steps =
      ok && p.step.ns > 0 ? std::optional(1 / p.step.seconds()) : std::nullopt;
  WriteRate("throughput_gain", ok ? std::optional(p.throughput_gain) : std::nullopt, json);
  WriteRate("steps_per_s", steps, json);
  WriteRate("samples_per_s",
            steps.has_value() && p.samples > 0 ? std::optional(p.samples * *steps) : std::nullopt,
            json);
}

void WriteTest(std::string_view key, const std::optional<StepTest>& test, JsonWriter& json) {
  json.Key(key);
  if (!test.has_value()) {
    json.Null();
    return;
  }
  json.BeginInlineObject().Key("error_pct").Rounded(Percent(test->error), 4);
  json.Key("steps").UInt(test->steps).Key("worst_step").String(test->worst_step);
  json.Key("worst_error_pct").Rounded(Percent(test->worst), 4);
  if (test->runs.has_value()) {
    json.Key("runs_error_pct").Rounded(Percent(test->runs->error), 4);
    json.Key("steps_of_run").UInt(test->runs->steps);
  }
  json.EndObject();
}

// The checks beside the unchanged replay, and the one of all that is furthest off.
void WriteChecks(const ReplayCheck& r, JsonWriter& json) {
  const ReplayCheck::Worst worst = r.worst();
  json.Key("checks").BeginObject().Key("unexplained_pct");
  if (r.unexplained.has_value()) {
    json.Rounded(Percent(*r.unexplained), 4);
  } else {
    json.Null();
  }
  WriteTest("repeated", r.repeated, json);
  WriteTest("crossed", r.crossed, json);
  json.Key("worst_pct").Rounded(Percent(worst.error), 4).Key("worst").String(worst.what);
  json.EndObject();
}

void WriteLengths(const StepLengths& l, JsonWriter& json) {
  json.Key("median_ms").Double(l.median.ms()).Key("quartiles_ms").BeginInlineArray();
  json.Double(l.lower.ms()).Double(l.upper.ms()).EndArray();
}

void WriteExtras(const WhatIfReport& report, JsonWriter& json) {
  if (report.true_step != nullptr) {
    const TrueStep& t = *report.true_step;
    json.Key("true_step").BeginObject().Key("step_ms").Double(t.target.ms());
    json.Key("asked_ms").Double(t.asked.ms());
    json.Key("recorded_ms").Double(t.recorded.ms()).Key("per_event_ns").Int(t.per_event.ns);
    json.Key("events_per_step").Rounded(t.tasks, 3).Key("host_share").Rounded(t.share, 6);
    json.EndObject();
  }
  if (!report.breakdown.empty()) {
    json.Key("breakdown").BeginObject();
    json.Key("scenario").String(report.result.predictions[report.result.main].name);
    json.Key("by").String(report.by).Key("groups").BeginArray();
    for (const BreakdownRow& r : report.breakdown) {
      json.BeginInlineObject().Key("name").String(r.name);
      if (report.by != "resource") {
        json.Key("gpu_before_ns").Int(r.before.ns).Key("gpu_after_ns").Int(r.after.ns);
      }
      json.Key("path_before_ns").Int(r.path_before.ns).Key("path_after_ns").Int(r.path_after.ns);
      json.EndObject();
    }
    json.EndArray().EndObject();
  }
  WriteGates(report.gates, json);
  if (report.score.has_value()) {
    const Score& s = *report.score;
    json.Key("measured").BeginObject().Key("file").String(s.file);
    json.Key("scenario").String(report.result.predictions[report.result.main].name);
    json.Key("step_ms").Double(s.measured.ms()).Key("error_pct").Rounded(Percent(s.error), 4);
    json.Key("inside_interval").Bool(s.inside);
    json.Key("misses").BeginArray();
    for (const Miss& m : s.misses) {
      json.BeginInlineObject().Key("by").String(m.by).Key("name").String(m.name);
      json.Key("before_ns").Int(m.before.ns).Key("predicted_ns").Int(m.predicted.ns);
      json.Key("measured_ns").Int(m.measured.ns).EndObject();
    }
    json.EndArray().EndObject();
  }
}

}  // namespace

void WriteGates(std::span<const Verdict> gates, JsonWriter& json) {
  if (gates.empty()) return;
  json.Key("gates").BeginArray();
  for (const Verdict& v : gates) {
    json.BeginInlineObject().Key("fail_if").String(v.text).Key("holds");
    (v.holds.has_value() ? json.Bool(*v.holds) : json.Null()).EndObject();
  }
  json.EndArray();
}

void WriteUnrecorded(const Unrecorded& u, JsonWriter& json) {
  json.Key("recording_cost").BeginObject().Key("text").String(UnrecordedText(u));
  json.Key("step_ms").Double(u.step.ms()).Key("shortest_ms").Double(u.shortest.ms());
  json.Key("longest_ms").Double(u.longest.ms()).Key("not_recorded_ms");
  if (u.measured.has_value()) {
    json.Double(u.measured->ms());
  } else {
    json.Null();
  }
  json.Key("host_ns_per_step").Int(u.taken.in_step.ns).Key("not_taken_ns");
  json.Int(u.taken.not_taken.ns).Key("call_ns").Double(u.taken.each.call);
  json.Key("gpu_work_ns").Double(u.taken.each.work).Key("layer_mark_ns");
  json.Double(u.taken.each.layer_mark).EndObject();
}

void WriteTrace(const Trace& t, std::string_view file, const BuildReport& build, JsonWriter& json) {
  json.Key("trace").BeginObject();
  json.Key("file").String(file).Key("format").String(t.provenance.format);
  json.Key("synthetic").Bool(t.provenance.synthetic);
  json.Key("events").UInt(t.rows()).Key("input_events").UInt(t.provenance.input_events);
  json.Key("device").String(t.devices.empty() ? "" : t.devices[0].name);
  constexpr std::string_view kMethods[] = {"mark", "ProfilerStep", "annotation", "period",
                                           "window"};
  static_assert(std::size(kMethods) == static_cast<size_t>(StepMethod::kWindow) + 1);
  json.Key("step_method").String(kMethods[static_cast<size_t>(build.steps.method)]);
  json.Key("kernel_time_ns").Int(build.kernel_time.ns);
  json.Key("mapped_kernel_time_ns").Int(build.mapped_kernel_time.ns);
  json.Key("steps_left_out").BeginArray();
  for (const Step& step : build.steps.steps) {
    if (step.use == StepUse::kMeasured) continue;
    json.BeginInlineObject().Key("step").String(step.label).Key("why");
    json.String(fmt::format("{}{}{}", UseText(step.use), step.why.empty() ? "" : ", ", step.why));
    json.EndObject();
  }
  json.EndArray().EndObject();
}

void WriteReplay(const ReplayCheck& r, JsonWriter& json) {
  json.Key("replay").BeginObject();
  json.Key("measured_ms").Double(r.measured.ms()).Key("simulated_ms").Double(r.simulated.ms());
  WriteLengths(LengthsOf(r.measured_steps), json);
  json.Key("error_pct");
  r.no_step.ok() ? json.Rounded(Percent(r.error()), 4) : json.Null();
  if (auto typical = r.typical_error()) {
    json.Key("typical_ms").Double(r.typical->ms());
    json.Key("typical_error_pct").Rounded(Percent(*typical), 4);
  } else {
    json.Key("typical_error_pct").Null();
  }
  json.Key("median_step_error_pct").Rounded(Percent(r.median_step_error()), 4);
  json.Key("spread_pct").Rounded(Percent(r.spread()), 4);
  json.Key("per_step").BeginArray();
  for (size_t i = 0; i < r.measured_steps.size(); ++i) {
    json.BeginInlineObject();
    if (i < r.step_names.size()) json.Key("step").String(r.step_names[i]);
    json.Key("measured_ns").Int(r.measured_steps[i].ns);
    json.Key("simulated_ns").Int(r.simulated_steps[i].ns).EndObject();
  }
  json.EndArray();
  WriteChecks(r, json);
  if (r.unrecorded.has_value()) WriteUnrecorded(*r.unrecorded, json);
  json.Key("samples_per_step");
  if (r.batch.samples > 0) {
    json.Rounded(r.batch.samples, 6);
  } else {
    json.Null();
  }
  json.EndObject();
}

void WriteStep(Duration step, std::span<const Duration> steps, JsonWriter& json) {
  json.Key("step_ms");
  step > Duration{} || !steps.empty() ? json.Double(step.ms()) : json.Null();
  json.Key("median_ms");
  steps.empty() ? json.Null() : json.Double(LengthsOf(steps).median.ms());
  json.Key("steps_ms").BeginInlineArray();
  for (Duration d : steps) json.Double(d.ms());
  json.EndArray();
}

void WritePrediction(const Prediction& p, JsonWriter& json) {
  json.BeginObject().Key("name").String(p.name);
  json.Key("opts").BeginInlineArray();
  for (const std::string& opt : p.opts) json.String(opt);
  json.EndArray();
  const bool ok = p.error.ok();
  if (ok) {
    json.Key("step_ms").Double(p.step.ms()).Key("step_ns").Int(p.step.ns);
    json.Key("median_ms").Double(LengthsOf(p.steps).median.ms()).Key("window_ms");
    p.window.has_value() ? json.Double(p.window->ms()) : json.Null();
  } else {
    WriteError(p.error, json);
    json.Key("step_ms").Null().Key("step_ns").Null().Key("median_ms").Null();
    json.Key("window_ms").Null();
  }
  json.Key("steps_ms").BeginInlineArray();
  for (Duration d : p.steps) json.Double(d.ms());
  json.EndArray();
  json.Key("interval_ms");
  if (ok && p.low.has_value()) {
    json.BeginInlineArray().Double(p.low->ms()).Double(p.high->ms()).EndArray();
  } else {
    json.Null();
  }
  json.Key("speedup");
  if (ok) {
    json.Rounded(p.speedup, 6);
  } else {
    json.Null();
  }
  json.Key("speedup_interval");
  if (ok && p.least_speedup.has_value()) {
    json.BeginInlineArray().Rounded(*p.least_speedup, 6).Rounded(*p.most_speedup, 6).EndArray();
  } else {
    json.Null();
  }
  WriteThroughput(p, json);
  json.Key("bound").Bool(p.bound).Key("confidence");
  // Only the baseline is measured, and what plays as it does: what saves too little to be a row is
  // not judged.
  if (ok && (p.opts.empty() || p.confidence != Confidence::kMeasured || !p.why.empty())) {
    json.String(Name(p.confidence));
  } else {
    json.Null();
  }
  json.Key("confidence_why").String(p.why);
  json.Key("confidence_raise").String(p.raise).Key("expected_error");
  p.expected_error ? json.Rounded(*p.expected_error, 6) : json.Null();
  WriteCauses(p, json);
  WriteBoundBy(p.path, json);
  WriteMemoryChange(p, json);
  WriteTexts("left_out", p.left_out, json);
  WriteChanges(p.changes, json);
  json.EndObject();
}

std::string WhatIfJson(const WhatIfReport& report) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("daydream.whatif/1");
  WriteNotDone(report.missing, json);
  WriteTrace(*report.trace, report.file, *report.build, json);
  json.Key("steps").UInt(report.result.replay.steps);
  WriteReplay(report.result.replay, json);
  WriteFindings(report.findings, json);
  json.Key("memory");
  WriteMemoryProfile(report.result.memory, json);
  json.Key("scenarios").BeginArray();
  for (const Prediction& p : report.result.predictions) WritePrediction(p, json);
  json.EndArray();
  json.Key("main");
  report.result.main_done ? json.UInt(report.result.main) : json.Null();
  WriteExtras(report, json);
  WriteTexts("warnings", report.warnings, json);
  json.EndObject();
  return json.Take() + "\n";
}

std::string WhatIfCsv(const WhatIfReport& report) {
  std::string out = "scenario,metric,value\n";
  auto row = [&](const std::string& scenario, std::string_view metric, const std::string& value) {
    out += fmt::format("{},{},{}\n", CsvField(scenario), metric, value);
  };
  const ReplayCheck& r = report.result.replay;
  row("baseline", "measured_ns", fmt::format("{}", r.measured.ns));
  row("baseline", "replay_error", fmt::format("{:.6f}", r.error()));
  for (const Prediction& p : report.result.predictions) {
    if (!p.error.ok()) {
      row(p.name, "error", DiagnosticOf(p.error).code);
      continue;
    }
    row(p.name, "step_ns", fmt::format("{}", p.step.ns));
    if (p.low.has_value()) {
      row(p.name, "interval_low_ns", fmt::format("{}", p.low->ns));
      row(p.name, "interval_high_ns", fmt::format("{}", p.high->ns));
    }
    if (std::isfinite(p.speedup)) row(p.name, "speedup", fmt::format("{:.6f}", p.speedup));
    row(p.name, "bound", p.bound ? "1" : "0");
    row(p.name, "critical_path_gpu_ns", fmt::format("{}", p.path.gpu.ns));
    row(p.name, "critical_path_cpu_ns", fmt::format("{}", p.path.cpu.ns));
    row(p.name, "critical_path_comm_ns", fmt::format("{}", p.path.comm.ns));
    row(p.name, "critical_path_data_ns", fmt::format("{}", p.path.data.ns));
  }
  for (const std::string& name : report.missing.scenarios) row(name, "not_done", "1");
  return out;
}

}  // namespace daydream
