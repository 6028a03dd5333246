#include "report/questions/sweep.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "report/fields.h"
#include "report/predict/predict.h"
#include "report/predict/told_rows.h"
#include "report/predict/wanted.h"
#include "report/questions/sweep_values.h"
#include "simulator/simulate.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

constexpr std::string_view kFirstLine = "daydream-sweep 9";
constexpr std::string_view kFormat = "daydream-sweep ";  // of any version
constexpr size_t kFields = 15;                           // of a row
constexpr uint64_t kFnvBasis = 14695981039346656037u, kFnvPrime = 1099511628211u;

template <class T>
bool ReadInt(std::string_view text, T& out, int base = 10) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

template <class T>
bool ReadOptional(std::string_view text, std::optional<T>& out) {
  if (text == "-") return true;
  int64_t value = 0;
  if (!ReadInt(text, value)) return false;
  if constexpr (std::is_same_v<T, Duration>) {
    out = Duration::Ns(value);
  } else {
    out = value;
  }
  return true;
}

// Of rows: no speed-up is below nothing.
bool ReadSpeedup(std::string_view text, std::optional<double>& out) {
  if (text == "-") return true;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0)) return false;
  out = value;
  return true;
}

// Far outside of what batches are multiplied by.
bool ReadRatio(std::string_view text, double& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && out >= 1e-6 && out <= 1e6;
}

std::string OptionalText(const std::optional<Duration>& d) {
  return d.has_value() ? fmt::format("{}", d->ns) : "-";
}

std::string OptionalText(const std::optional<double>& d) {
  return d.has_value() ? fmt::format("{}", *d) : "-";
}

std::string PeriodsText(std::span<const Duration> periods) {
  std::string text;
  for (Duration d : periods) text += fmt::format("{}{}", text.empty() ? "" : " ", d.ns);
  return text;
}

constexpr std::string_view kBeginAnew = "remove the journal to begin anew, or name another one";

absl::Status Bad(std::string_view file, size_t line, std::string what,
                 std::string_view fix = kBeginAnew) {
  return MakeStatus(absl::StatusCode::kDataLoss, {.code = "E0703",
                                                  .what = std::move(what),
                                                  .where = fmt::format("{}:{}", file, line),
                                                  .effect = "the journal stays as it is",
                                                  .fix = std::string(fix)});
}

absl::Status BadRow(std::string_view file, size_t line, std::string what) {
  return Bad(file, line, std::move(what),
             fmt::format("delete line {} to have that row made again; where all are refused, the "
                         "lines above them were changed: remove the journal to begin anew",
                         line));
}

uint32_t SealOf(std::string_view line, uint64_t with) {
  return static_cast<uint32_t>(HashOf(line, kFnvBasis ^ with));
}

// Takes the checksum away. False: there is none, or it is of another line.
bool Unseal(std::string_view& line, uint64_t with) {
  const size_t tab = line.rfind('\t');
  uint32_t seal = 0;
  if (tab == std::string_view::npos || !ReadInt(line.substr(tab + 1), seal, 16)) return false;
  line = line.substr(0, tab);
  return seal == SealOf(line, with);
}

absl::Status NoJournal(std::string_view file, std::string_view line) {
  if (line.starts_with(kFormat)) {
    return Bad(file, 1, "this journal is of another version of the program",
               "end the sweep with the version that began it, or name another journal");
  }
  return MakeStatus(absl::StatusCode::kDataLoss,
                    {.code = "E0703",
                     .what = "this is no journal of a sweep",
                     .where = std::string(file),
                     .why = fmt::format("its first line is not '{}'", kFirstLine),
                     .effect = "it stays as it is",
                     .fix = "name another file"});
}

std::string LeftOut(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + Field(part);
  return text;
}

SweepRow RowOfError(size_t index, const absl::Status& error) {
  const Diagnostic d = DiagnosticOf(error);
  return {.index = index,
          .code = Field(d.code.empty() ? "E0300" : d.code),
          .error = Field(d.why.empty() ? d.what : fmt::format("{} ({})", d.what, d.why))};
}

std::string FindingLine(const Finding& f) {
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}", Name(f.kind), Name(f.about), f.time.ns, f.share,
                     Field(f.text), Field(f.where), Field(f.fix));
}

// The one of this name among `last` and those before it.
template <class Enum>
bool ReadName(std::string_view name, Enum last, Enum& out) {
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    if (Name(static_cast<Enum>(i)) != name) continue;
    out = static_cast<Enum>(i);
    return true;
  }
  return false;
}

bool ReadFinding(std::string_view line, std::vector<Finding>& out) {
  const std::vector<std::string_view> f = Split(line, '\t');
  if (f.size() != 7) return false;
  Finding& finding = out.emplace_back();
  const auto [end, error] = std::from_chars(f[3].data(), f[3].data() + f[3].size(), finding.share);
  finding.text = f[4], finding.where = f[5], finding.fix = f[6];
  return ReadName(f[0], FindingKind::kOther, finding.kind) &&
         ReadName(f[1], About::kProgram, finding.about) && ReadInt(f[2], finding.time.ns) &&
         error == std::errc() && end == f[3].data() + f[3].size() && std::isfinite(finding.share);
}

bool ReadPeriods(std::string_view line, std::vector<Duration>& out) {
  if (line.empty()) return true;
  return std::ranges::all_of(Split(line, ' '), [&](std::string_view text) {
    return ReadInt(text, out.emplace_back().ns);
  });
}

// One line of the head. False: it is no such line.
bool ReadHeadLine(std::string_view line, SweepHead& head) {
  const size_t tab = line.find('\t');
  if (tab == std::string_view::npos) return false;
  const std::string_view key = line.substr(0, tab), value = line.substr(tab + 1);
  if (key == "key") return ReadInt(value, head.key, 16);
  if (key == "measured_ns") return ReadInt(value, head.measured.ns);
  if (key == "baseline_ns") return ReadInt(value, head.baseline.ns);
  if (key == "steps_ns") return ReadPeriods(value, head.steps);
  if (key == "finding") return ReadFinding(value, head.findings);
  if (key == "step_name") head.step_name = std::string(value);
  if (key == "trace") head.trace = std::string(value);
  if (key == "opt") head.specs.emplace_back(value);
  if (key != "part") return key == "trace" || key == "opt" || key == "step_name";
  const size_t space = value.find(' ');
  SweepPart part;
  if (space == std::string_view::npos || !ReadInt(value.substr(0, space), part.hash, 16)) {
    return false;
  }
  part.name = std::string(value.substr(space + 1));
  head.parts.push_back(std::move(part));
  return true;
}

}  // namespace

std::string WhatDiffers(const SweepHead& one, const SweepHead& other) {
  std::vector<std::string> names;
  const auto compare = [&](const SweepHead& a, const SweepHead& b) {
    for (const SweepPart& part : a.parts) {
      if (std::ranges::find(b.parts, part) != b.parts.end()) continue;
      if (std::ranges::find(names, part.name) == names.end()) names.push_back(part.name);
    }
  };
  compare(other, one);
  compare(one, other);
  if (one.trace != other.trace) {
    names.push_back(fmt::format("the name of the trace ({}, then {})", one.trace, other.trace));
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() && one != other ? "the recorded or replayed step" : text;
}

std::string SealLine(std::string_view line, uint64_t seal) {
  return fmt::format("{}\t{:08x}\n", line, SealOf(line, seal));
}

uint64_t SealOfRows(std::string_view head) { return HashOf(head, kFnvBasis); }

std::string FormatSweepHead(const SweepHead& head) {
  std::string out = fmt::format("{}\n", kFirstLine);
  out += SealLine(fmt::format("key\t{:016x}", head.key));
  out += SealLine(fmt::format("trace\t{}", Field(head.trace)));
  out += SealLine(fmt::format("measured_ns\t{}", head.measured.ns));
  out += SealLine(fmt::format("baseline_ns\t{}", head.baseline.ns));
  out += SealLine(fmt::format("step_name\t{}", Field(head.step_name)));
  out += SealLine(fmt::format("steps_ns\t{}", PeriodsText(head.steps)));
  for (const Finding& f : head.findings) out += SealLine("finding\t" + FindingLine(f));
  for (const std::string& spec : head.specs) out += SealLine(fmt::format("opt\t{}", Field(spec)));
  for (const SweepPart& part : head.parts) {
    out += SealLine(fmt::format("part\t{:016x} {}", part.hash, Field(part.name)));
  }
  return out + "\n";
}

std::string FormatSweepRow(const SweepRow& r) {
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}", r.index,
                     r.step.ns, OptionalText(r.low), OptionalText(r.high), r.bound ? 1 : 0,
                     Name(r.confidence), r.memory.has_value() ? fmt::format("{}", *r.memory) : "-",
                     r.examples, Field(r.left_out), Field(r.code), Field(r.error),
                     PeriodsText(r.steps), OptionalText(r.least_speedup),
                     OptionalText(r.most_speedup), r.between ? 1 : 0);
}

std::optional<SweepRow> ParseSweepRow(std::string_view line) {
  const std::vector<std::string_view> f = Split(line, '\t');
  SweepRow r;
  if (f.size() != kFields || !ReadInt(f[0], r.index) || r.index >= kMostSweepPoints ||
      !ReadInt(f[1], r.step.ns) || r.step < Duration{} || !ReadOptional(f[2], r.low) ||
      !ReadOptional(f[3], r.high) || (f[4] != "0" && f[4] != "1") ||
      !ReadOptional(f[6], r.memory) || !ReadRatio(f[7], r.examples) ||
      !ReadPeriods(f[11], r.steps) || !ReadSpeedup(f[12], r.least_speedup) ||
      !ReadSpeedup(f[13], r.most_speedup) || (f[14] != "0" && f[14] != "1")) {
    return std::nullopt;
  }
  r.bound = f[4] == "1";
  r.between = f[14] == "1";
  bool known = false;
  for (Confidence c : {Confidence::kMeasured, Confidence::kGiven, Confidence::kHigh,
                       Confidence::kMedium, Confidence::kLow}) {
    if (Name(c) != f[5]) continue;
    r.confidence = c;
    known = true;
  }
  r.left_out = std::string(f[8]);
  r.code = std::string(f[9]);
  r.error = std::string(f[10]);
  return known ? std::optional(std::move(r)) : std::nullopt;
}

absl::StatusOr<SweepText> ParseSweep(std::string_view text, std::string_view file) {
  SweepText out;
  bool in_head = true;
  size_t line_number = 0;
  uint64_t seal = 0;
  while (out.whole < text.size()) {
    const size_t end = text.find('\n', out.whole);
    if (end == std::string_view::npos) break;
    std::string_view line = text.substr(out.whole, end - out.whole);
    out.whole = end + 1;
    if (++line_number == 1) {
      if (line != kFirstLine) return NoJournal(file, line);
    } else if (in_head && line.empty()) {
      in_head = false;
      seal = SealOfRows(text.substr(0, out.whole));
    } else if (!Unseal(line, seal)) {
      if (in_head) return Bad(file, line_number, "this line was changed since it was written");
      return BadRow(file, line_number,
                    "this line was changed since it was written, or is of another sweep");
    } else if (in_head) {
      if (!ReadHeadLine(line, out.head)) return Bad(file, line_number, "no line of a sweep's head");
    } else if (auto row = ParseSweepRow(line)) {
      out.rows.push_back(*std::move(row));
    } else {
      return BadRow(file, line_number, "no row of a sweep");
    }
  }
  if (in_head) return Bad(file, line_number + 1, "the head of the journal is cut off");
  return out;
}

uint64_t HashOf(std::string_view text, uint64_t hash) {
  for (unsigned char c : text) hash = (hash ^ c) * kFnvPrime;
  return (hash ^ 0xff) * kFnvPrime;  // so that "ab", "c" differs from "a", "bc"
}

uint64_t HashOf(const Graph& graph) {
  uint64_t hash = kFnvBasis;
  auto add = [&hash](uint64_t v) { hash = (hash ^ v) * kFnvPrime, hash ^= hash >> 29; };
  for (const Task& t : graph.tasks()) {
    add(static_cast<uint64_t>(t.duration.ns));
    add(static_cast<uint64_t>(t.gap.ns));
    add(static_cast<uint64_t>(t.earliest.ns));
    add(uint64_t{t.lane.value} << 32 | t.name.value);
    add(uint64_t{t.layer.value} << 32 | t.scope.value);
    add(uint64_t{t.step} << 24 | static_cast<uint64_t>(t.kind) << 16 |
        static_cast<uint64_t>(t.phase) << 8 | static_cast<uint64_t>(t.removed) << 1 |
        static_cast<uint64_t>(t.overlaps));
  }
  for (const Edge& e : graph.edges()) {
    add(uint64_t{e.from.value} << 32 | e.to.value);
    add(static_cast<uint64_t>(e.lag.ns));
    add(static_cast<uint64_t>(e.rule) << 16 | static_cast<uint64_t>(e.from_anchor) << 8 |
        static_cast<uint64_t>(e.to_anchor));
  }
  for (const GraphStep& s : graph.steps()) {
    hash = HashOf(s.label, hash ^ static_cast<uint64_t>(s.measured));
  }
  return hash;
}

struct SweepRunner::Impl {
  Baseline base;
  const ReplayCheck& replay;
  WhatIfOptions options;
  // The same for rows that are looked at side by side, with and without an interval.
  WhatIfOptions beside, without_interval;
};

SweepRunner::SweepRunner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SweepRunner::SweepRunner(SweepRunner&&) noexcept = default;
SweepRunner::~SweepRunner() = default;

absl::StatusOr<SweepRunner> SweepRunner::Make(const BuiltGraph& built, const ReplayCheck& replay,
                                              const WhatIfOptions& options) {
  DD_ASSIGN_OR_RETURN(Timeline timeline, Simulate(built.graph, {.path = true}));
  WhatIfOptions asked = options;
  asked.explain = asked.why = asked.path = false;
  asked.row = true;
  Baseline base = MakeBaseline(built.graph, std::move(timeline), asked);
  WhatIfOptions beside = asked;
  beside.work = true;
  WhatIfOptions quick = beside;
  quick.intervals = false;
  return SweepRunner(std::make_unique<Impl>(
      Impl{std::move(base), replay, std::move(asked), std::move(beside), std::move(quick)}));
}

Duration SweepRunner::baseline() const { return impl_->base.step; }
const std::vector<Duration>& SweepRunner::steps() const { return impl_->base.steps; }
bool SweepRunner::intervals() const { return impl_->options.intervals; }

SweepRow RowOf(size_t index, const JointPrediction& p) {
  if (!p.error.ok()) return RowOfError(index, p.error);
  const auto against = [&](const std::optional<Duration>& end) -> std::optional<double> {
    if (!end.has_value() || *end <= Duration{}) return std::nullopt;
    return p.speedup * p.answer.step.seconds() / end->seconds();
  };
  return {.index = index,
          .step = p.answer.step,
          .low = p.low,
          .high = p.high,
          .least_speedup = against(p.low) ? against(p.high) : std::nullopt,
          .most_speedup = against(p.low),
          .bound = p.bound,
          .confidence = p.confidence,
          .examples = p.changes.samples > 0 ? std::clamp(p.changes.samples, 1e-6, 1e6) : 1,
          .left_out = LeftOut(p.left_out)};
}

namespace {

PlayedRow PlayedRowOf(size_t index, const Prediction& p) {
  if (!p.error.ok()) return {RowOfError(index, p.error), std::nullopt};
  SweepRow row{.index = index};
  row.step = p.step;
  row.steps = p.steps;
  row.least_speedup = p.least_speedup;
  row.most_speedup = p.most_speedup;
  row.low = p.low;
  row.high = p.high;
  row.bound = p.bound;
  row.confidence = p.confidence;
  row.memory = p.memory_change;
  if (p.speedup > 0 && std::isfinite(p.speedup)) {
    row.examples = std::clamp(p.throughput_gain / p.speedup, 1e-6, 1e6);
  }
  row.left_out = LeftOut(p.left_out);
  return {std::move(row), p.work};
}

}  // namespace

SweepRow SweepRunner::Run(size_t index, const std::vector<Application>& scenario) const {
  const Impl& m = *impl_;
  return PlayedRowOf(index, Predict(m.base, m.replay, scenario, m.options)).row;
}

PlayedRow SweepRunner::Play(size_t index, const std::vector<Application>& scenario,
                            bool interval) const {
  const Impl& m = *impl_;
  const WhatIfOptions& options = interval ? m.beside : m.without_interval;
  return PlayedRowOf(index, Predict(m.base, m.replay, scenario, options));
}

size_t SweepRunner::most_told(std::span<const Application> scenario) const {
  // Chosen.
  constexpr size_t kTimes = 2'000'000, kMost = 64, kMostScaled = 128;
  // Scaled once, times of all rows are a factor each.
  if (scenario.size() == 1) return kMostScaled;
  return std::min(kTimes / std::max<size_t>(impl_->base.graph->size(), 1), kMost);
}

std::unique_ptr<ToldRows> SweepRunner::Tell(
    std::span<const std::vector<Application>* const> rows) const {
  const Impl& m = *impl_;
  const EditNotes notes = Wanted(*rows.front(), m.replay, m.without_interval).Notes();
  return ToldRows::Make({.graph = *m.base.graph,
                         .copies = *m.base.copies,
                         .memory = m.base.memory,
                         .replays = *m.base.replays,
                         .notes = notes,
                         .limits_hold = m.options.limits_hold,
                         .graphs = intervals() && rows.front()->size() == 1},
                        rows);
}

PlayedRow SweepRunner::PlayTold(size_t index, const std::vector<Application>& scenario,
                                bool interval, ToldRows& told, size_t nth) const {
  DD_CHECK(!interval || scenario.size() == 1);
  const Impl& m = *impl_;
  const ToldRows::Row row = interval ? told.TakeGraph(nth) : told.Take(nth);
  const WhatIfOptions& options = interval ? m.beside : m.without_interval;
  return PlayedRowOf(index, Predict(m.base, m.replay, scenario, options, row.get()));
}

}  // namespace daydream
