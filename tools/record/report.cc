#include "tools/record/report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "report/text/format.h"
#include "report/text/table.h"
#include "trace/importer.h"
#include "trace/recording/lacks.h"

namespace daydream {
namespace {

// Fewer steps than this say nothing about how much steps differ.
constexpr size_t kFewestSteps = 5;

void Count(const Trace& trace, RecordingReport& r) {
  for (EventKind kind : trace.kind) {
    r.kernels += kind == EventKind::kKernel;
    r.copies += kind == EventKind::kMemcpy || kind == EventKind::kMemset;
    r.calls += kind == EventKind::kCall;
    r.syncs += kind == EventKind::kSync;
    r.ranges += kind == EventKind::kAnnotation || kind == EventKind::kFrame;
  }
  for (const ImportCount& c : trace.provenance.counts) {
    if (!c.loss || c.count == 0) continue;
    r.lost += c.count;
    r.disk_full |= c.what == kNotWritten;
    r.loss += fmt::format("{}{} {}: {}", r.loss.empty() ? "" : "\n", FormatCount(c.count), c.what,
                          c.reason);
  }
}

// Standard error of a median of `n` steps whose median distance from it is `spread`, as a share of
// `median`. For normal errors: sigma = 1.4826 median distances, and 1.2533 sigma / sqrt(n).
double ErrorOf(Duration median, Duration spread, uint64_t n) {
  return 1.4826 * 1.2533 * spread.seconds() / median.seconds() / std::sqrt(static_cast<double>(n));
}

std::string StepsText(Duration median, Duration spread, uint64_t n) {
  return fmt::format("{} ± {} (n={})", FormatTime(median), FormatTime(spread), n);
}

void Add(std::string& out, std::string_view label, std::string_view text) {
  if (!text.empty()) out += fmt::format("  {:<11} {}\n", label, Printable(text));
}

std::string OneRecording(const RecordingReport& r) {
  std::string out;
  const bool both = !r.gpu.empty() && !r.software.empty();
  Add(out, "GPU", r.gpu + (both ? "     " : "") + r.software);
  Add(out, "events",
      fmt::format("kernels {}   calls {}   copies {}   syncs {}   ranges {}   lost {}",
                  FormatCount(r.kernels), FormatCount(r.calls), FormatCount(r.copies),
                  FormatCount(r.syncs), FormatCount(r.ranges), FormatCount(r.lost)));
  if (r.cost.steps_with > 0) Add(out, "step time", CostText(r.cost));
  Add(out, "cost of", CostOfEachText(r.cost));
  return out;
}

std::string ManyRecordings(const std::vector<RecordingReport>& reports) {
  Table table({{"recording", Align::kLeft},
               {"kernels"},
               {"calls"},
               {"copies"},
               {"lost"},
               {"step time"},
               {"overhead"}});
  for (const RecordingReport& r : reports) {
    const auto overhead = OverheadOf(r.cost);
    table.AddRow({Printable(std::filesystem::path(r.path).filename().string()),
                  FormatCount(r.kernels), FormatCount(r.calls), FormatCount(r.copies),
                  FormatCount(r.lost), r.cost.steps_with == 0 ? "-" : FormatTime(r.cost.with),
                  overhead ? FormatPercent(overhead->share) : "-"});
  }
  return table.Text();
}

void WriteCostOfEach(std::string_view what, const std::optional<RecordingCost::Each>& each,
                     JsonWriter& json) {
  if (!each) return;
  json.Key(fmt::format("{}_ns", what)).Double(each->ns);
  json.Key(fmt::format("{}_error_ns", what)).Double(each->error_ns);
}

}  // namespace

std::optional<Overhead> OverheadOf(const RecordingCost& cost) {
  const bool enough = cost.steps_with >= kFewestSteps && cost.steps_without >= kFewestSteps;
  if (!enough || cost.without.ns <= 0 || cost.with.ns <= 0) return std::nullopt;
  Overhead overhead;
  overhead.share = static_cast<double>(cost.with.ns) / static_cast<double>(cost.without.ns) - 1;
  // Two standard errors: 95 of 100 times it is not further off.
  overhead.error = 2 * std::hypot(ErrorOf(cost.with, cost.with_spread, cost.steps_with),
                                  ErrorOf(cost.without, cost.without_spread, cost.steps_without));
  // What the program itself changed between the steps before and after.
  overhead.error = std::hypot(overhead.error, cost.drift.seconds() / 2 / cost.without.seconds());
  // Recording makes no step shorter: then the program did something else there. Chosen: 2 % are
  // what the speed of a machine wanders by.
  constexpr double kWandering = 0.02;
  if (overhead.share + std::max(overhead.error, kWandering) < 0) return std::nullopt;
  return overhead;
}

std::string CostText(const RecordingCost& cost) {
  std::string text;
  if (cost.steps_with > 0) {
    text = StepsText(cost.with, cost.with_spread, cost.steps_with) + " while recording, ";
  }
  if (cost.steps_without > 0) {
    text += StepsText(cost.without, cost.without_spread, cost.steps_without) + " otherwise";
  } else {
    text += "none otherwise";
  }
  if (const auto overhead = OverheadOf(cost)) {
    return text + fmt::format(": overhead {} ± {}", FormatPercent(overhead->share),
                              FormatPercent(overhead->error));
  }
  const uint64_t fewest = std::min(cost.steps_with, cost.steps_without);
  if (fewest < kFewestSteps) {
    return text + fmt::format(": overhead not measurable on {}", Plural(fewest, "step"));
  }
  return text + ": overhead not measurable, the program does something else in these steps";
}

std::string CostOfEachText(const RecordingCost& cost) {
  const auto time = [](double ns) { return FormatTime(Duration::FromDouble(ns)); };
  const auto text = [&](std::string_view what, const RecordingCost::Each& each) {
    return fmt::format("{} {} ± {}", what, time(each.ns), time(each.error_ns));
  };
  std::string out;
  if (cost.call && cost.work) {
    const RecordingCost::Each launch = {cost.call->ns + cost.work->ns,
                                        std::hypot(cost.call->error_ns, cost.work->error_ns)};
    out = fmt::format("{} ({}, {})", text("a launch", launch), text("its call", *cost.call),
                      text("its GPU work", *cost.work));
  } else if (cost.call) {
    out = text("a call with its GPU work", *cost.call);
  }
  if (!out.empty() && cost.hidden.ns > 0) {
    out += fmt::format("; up to {} a step more may hide behind the GPU", FormatTime(cost.hidden));
  }
  if (cost.layer_mark) {
    out += (out.empty() ? "" : "; ") + text("a mark of a layer", *cost.layer_mark);
  }
  return out;
}

absl::StatusOr<RecordingReport> ReadRecording(const std::string& path) {
  DD_ASSIGN_OR_RETURN(auto trace, ImportFile(path, {}, "ddtrace"));
  RecordingReport r{.path = path};
  std::error_code error;
  r.bytes = std::filesystem::file_size(path, error);
  if (!trace->ranks.empty() && trace->ranks[0].world_size != 1) r.rank = trace->ranks[0].rank;
  Count(*trace, r);
  for (const Device& d : trace->devices) {
    if (!d.name.empty()) r.gpu += fmt::format("{}{}", r.gpu.empty() ? "" : ", ", d.name);
  }
  constexpr std::string_view kAbsent = "absent: ";  // "cupti=absent: REASON", says the recorder
  for (const auto& [what, version] : trace->provenance.software) {
    if (what == "cupti" && version.starts_with(kAbsent)) {
      r.without_cupti = version.substr(kAbsent.size());
    }
    // Of the facts about the process those that a report of trouble needs; `info` lists all.
    if (what != "CUDA driver" && what != "CUPTI" && what != "PyTorch") continue;
    r.software += fmt::format("{}{} {}", r.software.empty() ? "" : ", ", what, version);
  }
  r.cost = trace->provenance.cost;
  return r;
}

void WriteCost(const RecordingCost& cost, JsonWriter& json) {
  json.Key("recording").BeginInlineObject();
  json.Key("steps_with").UInt(cost.steps_with).Key("with_ns").Int(cost.with.ns);
  json.Key("steps_without").UInt(cost.steps_without).Key("without_ns").Int(cost.without.ns);
  if (const auto overhead = OverheadOf(cost)) {
    json.Key("overhead_pct").Double(overhead->share * 100);
    json.Key("overhead_error_pct").Double(overhead->error * 100);
  }
  WriteCostOfEach("call", cost.call, json);
  WriteCostOfEach("gpu_work", cost.work, json);
  WriteCostOfEach("layer_mark", cost.layer_mark, json);
  json.Key("hidden_ns").Int(cost.hidden.ns).EndObject();
}

std::string RecordingScreen(const std::vector<RecordingReport>& reports) {
  if (reports.empty()) return "";
  return "\n" + (reports.size() == 1 ? OneRecording(reports[0]) : ManyRecordings(reports)) + "\n";
}

}  // namespace daydream
