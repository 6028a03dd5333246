#include "tools/recording_report.h"

#include <algorithm>
#include <filesystem>

#include "report/format.h"
#include "report/table.h"
#include "trace/importer.h"

namespace daydream {
namespace {

// Fewer steps than this say nothing about an average.
constexpr size_t kFewestSteps = 3;

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
    r.loss += fmt::format("{}{} {}: {}", r.loss.empty() ? "" : "\n", FormatCount(c.count), c.what,
                          c.reason);
  }
}

std::string StepLine(const RecordingReport& r) {
  if (r.cost.steps_with == 0) return "";
  std::string line =
      fmt::format("{} (n={}) while recording", FormatTime(r.cost.with), r.cost.steps_with);
  auto overhead = r.Overhead();
  if (!overhead) return line + "; overhead not measured: too few steps";
  return line + fmt::format(", {} (n={}) otherwise: overhead {}", FormatTime(r.cost.without),
                            r.cost.steps_without, FormatPercent(*overhead));
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
  Add(out, "step time", StepLine(r));
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
    auto overhead = r.Overhead();
    table.AddRow({Printable(std::filesystem::path(r.path).filename().string()),
                  FormatCount(r.kernels), FormatCount(r.calls), FormatCount(r.copies),
                  FormatCount(r.lost), r.cost.steps_with == 0 ? "-" : FormatTime(r.cost.with),
                  overhead ? FormatPercent(*overhead) : "-"});
  }
  return table.Text();
}

}  // namespace

std::optional<double> RecordingReport::Overhead() const {
  bool enough = cost.steps_with >= kFewestSteps && cost.steps_without >= kFewestSteps;
  if (!enough || cost.without.ns <= 0) return std::nullopt;
  return static_cast<double>(cost.with.ns) / static_cast<double>(cost.without.ns) - 1;
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
  for (const auto& [what, version] : trace->provenance.software) {
    // Of the facts about the process those that a report of trouble needs; `info` lists all.
    if (what != "CUDA driver" && what != "CUPTI" && what != "PyTorch") continue;
    r.software += fmt::format("{}{} {}", r.software.empty() ? "" : ", ", what, version);
  }
  r.cost = trace->provenance.cost;
  return r;
}

std::string RecordingScreen(const std::vector<RecordingReport>& reports) {
  if (reports.empty()) return "";
  return "\n" + (reports.size() == 1 ? OneRecording(reports[0]) : ManyRecordings(reports)) + "\n";
}

}  // namespace daydream
