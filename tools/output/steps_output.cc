#include "tools/output/steps_output.h"

#include <algorithm>

#include "report/step_lengths.h"
#include "report/text/format.h"
#include "report/text/json_writer.h"
#include "report/unequal_steps.h"
#include "tools/output/findings_text.h"
#include "tools/output/prediction_text.h"

namespace daydream {
namespace {

std::string LabelOf(const StepsReport& report, const StepSummary& s) {
  const auto steps = report.graph->steps();
  if (s.step >= steps.size() || steps[s.step].label.empty()) return fmt::format("{}", s.step);
  return steps[s.step].label;
}

// What happened once, in this step.
struct StepStalls {
  Duration time;
  std::string longest;
};

StepStalls StallsIn(const StepsReport& report, const StepSummary& s) {
  StepStalls out;
  for (const Stall& stall : report.stalls.all) {
    if (report.graph->task(stall.task).step != s.step) continue;
    out.time += stall.taken();
    if (out.longest.empty()) out.longest = stall.what;
  }
  return out;
}

std::string ShareOf(Duration part, const StepSummary& s) {
  if (s.window.ns <= 0) return "-";
  return FormatPercent(static_cast<double>(part.ns) / static_cast<double>(s.window.ns));
}

StepSummary MeanOf(const std::vector<StepSummary>& steps) {
  StepSummary sum;
  for (const StepSummary& s : steps) {
    sum.recorded += s.recorded;
    sum.window += s.window;
    sum.gpu_busy += s.gpu_busy;
    sum.exposed_comm += s.exposed_comm;
    sum.gpu_idle += s.gpu_idle;
    sum.path.gpu += s.path.gpu;
    sum.path.cpu += s.path.cpu;
    sum.path.comm += s.path.comm;
    sum.path.data += s.path.data;
  }
  const auto n = static_cast<int64_t>(std::max<size_t>(steps.size(), 1));
  for (Duration* d : {&sum.recorded, &sum.window, &sum.gpu_busy, &sum.exposed_comm, &sum.gpu_idle,
                      &sum.path.gpu, &sum.path.cpu, &sum.path.comm, &sum.path.data}) {
    *d = *d / n;
  }
  return sum;
}

}  // namespace

Table StepsTable(const StepsReport& report, TimeUnit wish) {
  Table table({{"step", Align::kLeft},
               {"measured"},
               {"replayed"},
               {"GPU busy"},
               {"comm not hidden", Align::kRight, 3},
               {"GPU idle"},
               {"path: GPU", Align::kRight, 1},
               {"CPU", Align::kRight, 1},
               {"comm", Align::kRight, 2},
               {"data", Align::kRight, 2},
               {"stalls"},
               {"", Align::kLeft}});
  const StepSummary mean = MeanOf(report.steps);
  const TimeUnit unit = UnitFor(mean.window, wish);
  auto add = [&](const std::string& label, const StepSummary& s, const StepStalls& stalls) {
    table.AddRow({Printable(label), s.recorded.ns > 0 ? FormatTime(s.recorded, unit) : "-",
                  FormatTime(s.window, unit), ShareOf(s.gpu_busy, s), ShareOf(s.exposed_comm, s),
                  ShareOf(s.gpu_idle, s), ShareOf(s.path.gpu, s), ShareOf(s.path.cpu, s),
                  ShareOf(s.path.comm, s), ShareOf(s.path.data, s),
                  stalls.time.ns > 0 ? FormatTime(stalls.time, unit) : "",
                  Printable(stalls.longest)});
  };
  for (const StepSummary& s : report.steps) add(LabelOf(report, s), s, StallsIn(report, s));
  table.AddRule();
  add("mean", mean, {});
  return table;
}

bool WaitsWhileBusy(const StepSummary& s) {
  constexpr double kMuch = 0.10;  // of the step
  return s.gpu_idle + s.window.Scaled(kMuch) < s.path.data;
}

std::string StepsRemarks(const StepsReport& report, TimeUnit wish) {
  std::vector<Duration> lengths;
  for (const StepSummary& s : report.steps) lengths.push_back(s.window);
  std::string out;
  if (lengths.size() > 1) {
    const StepLengths l = LengthsOf(lengths);
    out += fmt::format("  one after the other {}   {} to {}, median {}\n", Sparkline(lengths),
                       FormatTime(l.shortest, wish), FormatTime(l.longest, wish),
                       FormatTime(l.median, wish));
    if (l.uneven()) {
      if (const auto work = WhatMakesStepsUnequal(*report.graph); work.has_value()) {
        out += fmt::format("  {} explains {} of the differences: {} to {} a step\n",
                           Printable(work->name), FormatPercent(work->share, 0),
                           FormatTime(work->least, wish), FormatTime(work->most, wish));
      }
    }
  }
  // The path is one for all steps: a late batch is on it while the GPU works on the one before.
  if (std::any_of(report.steps.begin(), report.steps.end(), WaitsWhileBusy)) {
    out += Wrapped(
        "path: what decides how long all steps take together; a batch that comes late is made "
        "while the GPU still works on the step before");
  }
  std::string left_out;
  for (size_t i = 0; i < report.graph->steps().size(); ++i) {
    const auto is_it = [&](const StepSummary& s) { return s.step == i; };
    if (std::any_of(report.steps.begin(), report.steps.end(), is_it)) continue;
    left_out += (left_out.empty() ? "" : ", ") + LabelOf(report, {.step = i});
  }
  if (!left_out.empty()) {
    out += fmt::format("  not counted: {} (warm-up, or not whole)\n",
                       CutMiddle(Printable(left_out), 80));
  }
  return out;
}

std::string StepsJson(const StepsReport& report) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("daydream.summary/1");
  json.Key("steps").UInt(report.steps.size());
  WriteFindings(report.findings, json);
  json.Key("by").String("step").Key("per_step").BeginArray();
  for (const StepSummary& s : report.steps) {
    const StepStalls stalls = StallsIn(report, s);
    json.BeginInlineObject().Key("step").String(LabelOf(report, s));
    json.Key("measured_ns").Int(s.recorded.ns).Key("replayed_ns").Int(s.window.ns);
    json.Key("gpu_busy_ns").Int(s.gpu_busy.ns).Key("gpu_idle_ns").Int(s.gpu_idle.ns);
    json.Key("exposed_comm_ns").Int(s.exposed_comm.ns);
    json.Key("critical_path").BeginInlineObject();
    json.Key("gpu_ns").Int(s.path.gpu.ns).Key("cpu_ns").Int(s.path.cpu.ns);
    json.Key("comm_ns").Int(s.path.comm.ns).Key("data_ns").Int(s.path.data.ns).EndObject();
    json.Key("once_ns").Int(stalls.time.ns).Key("once").String(stalls.longest).EndObject();
  }
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

std::string StepsCsv(const StepsReport& report) {
  Table table({{"step", Align::kLeft},
               {"measured_ns"},
               {"replayed_ns"},
               {"gpu_busy_ns"},
               {"exposed_comm_ns"},
               {"gpu_idle_ns"},
               {"path_gpu_ns"},
               {"path_cpu_ns"},
               {"path_comm_ns"},
               {"path_data_ns"},
               {"once_ns"}});
  for (const StepSummary& s : report.steps) {
    std::vector<std::string> cells = {LabelOf(report, s)};
    for (Duration d : {s.recorded, s.window, s.gpu_busy, s.exposed_comm, s.gpu_idle, s.path.gpu,
                       s.path.cpu, s.path.comm, s.path.data, StallsIn(report, s).time}) {
      cells.push_back(fmt::format("{}", d.ns));
    }
    table.AddRow(std::move(cells));
  }
  return table.Csv();
}

}  // namespace daydream
