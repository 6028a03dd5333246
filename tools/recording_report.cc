#include "tools/recording_report.h"

#include <algorithm>
#include <filesystem>

#include "report/format.h"
#include "report/table.h"
#include "trace/importer.h"
#include "trace/steps.h"

namespace daydream {
namespace {

// The first steps load code and grow memory pools (PyTorch's caching allocator, cuDNN's choice of
// algorithms); the same number is left out elsewhere by the step finder's own judgement.
constexpr size_t kFirstSteps = 3;
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
  uint64_t largest = 0;
  for (const ImportCount& c : trace.provenance.counts) {
    if (!c.loss) continue;
    r.lost += c.count;
    if (c.count > largest) r.loss = c.what;
    largest = std::max(largest, c.count);
  }
}

StepTimes TimesOf(std::vector<Duration> periods) {
  StepTimes times{.steps = periods.size(), .median = {}, .spread = {}};
  if (periods.empty()) return times;
  std::sort(periods.begin(), periods.end());
  size_t n = periods.size();
  times.median = Duration((periods[(n - 1) / 2].ns + periods[n / 2].ns) / 2);
  times.spread = Duration((periods[n - 1 - n / 4].ns - periods[n / 4].ns) / 2);
  return times;
}

// The CUDA calls of a step tell whether it was recorded.
std::vector<Instant> CallStarts(const Trace& trace) {
  std::vector<Instant> starts;
  for (size_t row = 0; row < trace.rows(); ++row) {
    if (trace.kind[row] == EventKind::kCall) starts.push_back(trace.start[row]);
  }
  std::sort(starts.begin(), starts.end());
  return starts;
}

void TimeSteps(const Trace& trace, RecordingReport& r) {
  Steps found = FindSteps(trace);
  if (found.method != StepMethod::kProfilerStep && found.method != StepMethod::kAnnotation) return;
  r.marked_steps = found.steps.size();
  std::vector<Instant> calls = CallStarts(trace);
  std::vector<Duration> recorded, before, after;
  for (size_t i = 0; i < found.steps.size(); ++i) {
    const Step& step = found.steps[i];
    auto first = std::lower_bound(calls.begin(), calls.end(), step.begin);
    bool is_recorded = first != calls.end() && *first < step.end;
    Duration period = step.end - step.begin;
    if (is_recorded && step.use == StepUse::kMeasured) recorded.push_back(period);
    if (is_recorded || i < kFirstSteps || i + 1 == found.steps.size()) continue;
    (!calls.empty() && step.begin > calls.back() ? after : before).push_back(period);
  }
  r.recorded = TimesOf(std::move(recorded));
  r.before = before.size() >= kFewestSteps || after.empty();
  r.unrecorded = TimesOf(r.before ? std::move(before) : std::move(after));
}

std::string StepLine(const RecordingReport& r) {
  if (r.recorded.steps == 0) return "";
  std::string line = fmt::format("{} +- {} (n={}) while recording", FormatTime(r.recorded.median),
                                 FormatTime(r.recorded.spread), r.recorded.steps);
  auto overhead = r.Overhead();
  if (!overhead) return line + "; overhead not measured: too few steps";
  return line + fmt::format("; {} (n={}) {}: overhead {}", FormatTime(r.unrecorded.median),
                            r.unrecorded.steps, r.before ? "before" : "after",
                            FormatPercent(*overhead));
}

void Add(std::string& out, std::string_view label, std::string_view text) {
  if (!text.empty()) out += fmt::format("  {:<11} {}\n", label, Printable(text));
}

std::string OneRecording(const RecordingReport& r) {
  std::string out;
  Add(out, "GPU", r.software.empty() ? r.gpu : fmt::format("{}     {}", r.gpu, r.software));
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
                  FormatCount(r.lost), r.recorded.steps == 0 ? "-" : FormatTime(r.recorded.median),
                  overhead ? FormatPercent(*overhead) : "-"});
  }
  return table.Text();
}

}  // namespace

std::optional<double> RecordingReport::Overhead() const {
  bool enough = recorded.steps >= kFewestSteps && unrecorded.steps >= kFewestSteps;
  if (!enough || unrecorded.median.ns <= 0) return std::nullopt;
  return static_cast<double>(recorded.median.ns) / static_cast<double>(unrecorded.median.ns) - 1;
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
    r.software += fmt::format("{}{} {}", r.software.empty() ? "" : ", ", what, version);
  }
  TimeSteps(*trace, r);
  return r;
}

std::string RecordingScreen(const std::vector<RecordingReport>& reports) {
  if (reports.empty()) return "";
  return "\n" + (reports.size() == 1 ? OneRecording(reports[0]) : ManyRecordings(reports)) + "\n";
}

}  // namespace daydream
