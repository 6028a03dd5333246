#include "tools/output/sweep_output.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "report/fields.h"
#include "report/text/format.h"
#include "report/text/json_writer.h"
#include "tools/output/findings_text.h"
#include "tools/output/prediction_text.h"
#include "tools/output/whatif_output.h"

namespace daydream {
namespace {

// Matrices with more columns are unreadable.
constexpr size_t kMostColumns = 12;

std::optional<double> Speedup(const SweepResult& result, const SweepRow& r) {
  if (!r.code.empty() || r.step.ns <= 0) return std::nullopt;
  return static_cast<double>(result.head.baseline.ns) / static_cast<double>(r.step.ns);
}

// Examples a second against the recorded step.
std::optional<double> ThroughputGain(const SweepResult& result, const SweepRow& r) {
  const auto speedup = Speedup(result, r);
  return speedup.has_value() ? std::optional(*speedup * r.examples) : std::nullopt;
}

std::string SpeedupCell(const SweepResult& result, const SweepRow& r) {
  const auto speedup = Speedup(result, r);
  if (!speedup.has_value()) return r.code.empty() ? "no limit" : "-";
  return (r.bound ? "<= " : "") + FormatSpeedup(*speedup);
}

std::string ThroughputCell(const SweepResult& result, const SweepRow& r) {
  const auto gain = ThroughputGain(result, r);
  return gain.has_value() ? (r.bound ? "<= " : "") + FormatSpeedup(*gain) : "-";
}

// Rows of one --opt.
std::vector<const SweepRow*> RowsOf(const SweepResult& result, size_t sweep) {
  std::vector<const SweepRow*> rows;
  for (const SweepRow& r : result.rows) {
    if (result.plan.points[r.index].sweep == sweep) rows.push_back(&r);
  }
  return rows;
}

bool AnyMemory(std::span<const SweepRow* const> rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [](const SweepRow* r) { return r->memory.value_or(0) != 0; });
}

bool AnyOtherBatch(std::span<const SweepRow* const> rows) {
  return std::any_of(rows.begin(), rows.end(), [](const SweepRow* r) { return r->examples != 1; });
}

bool AnyLeftOut(std::span<const SweepRow* const> rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [](const SweepRow* r) { return !r->left_out.empty(); });
}

std::string MemoryCell(const SweepRow& r) {
  return r.memory.has_value() ? SignedBytes(*r.memory) : "";
}

// One row per scenario; `axes` say where its values go. Without a prediction it has the code of the
// error, and its text where that is not told below.
enum class Errors : uint8_t { kInRow, kBelow };
Table LongTable(const SweepResult& result, std::span<const SweepRow* const> rows,
                std::span<const SweepAxis> axes, Errors errors, TimeUnit wish) {
  std::vector<Column> columns;
  for (const SweepAxis& axis : axes) columns.push_back({axis.name});
  if (columns.empty()) columns.push_back({"scenario", Align::kLeft});
  for (const char* name : {"step time", "90 % interval", "speed-up"}) columns.push_back({name});
  const bool throughput = AnyOtherBatch(rows), memory = AnyMemory(rows),
             left_out = AnyLeftOut(rows);
  if (throughput) columns.push_back({"throughput"});
  if (memory) columns.push_back({"memory"});
  columns.push_back({"confidence", Align::kLeft});
  if (left_out) columns.push_back({"without", Align::kLeft});
  Table table(std::move(columns));
  const TimeUnit unit = UnitFor(result.head.baseline, wish);
  for (const SweepRow* r : rows) {
    const SweepPoint& point = result.plan.points[r->index];
    std::vector<std::string> cells;
    if (axes.empty()) {
      cells.push_back(point.spec);
    } else {
      cells = point.values;
    }
    if (!r->code.empty()) {
      cells.insert(cells.end(), {"-", "", "-"});
      if (throughput) cells.emplace_back("-");
      if (memory) cells.emplace_back();
      const std::string text = errors == Errors::kInRow ? ": " + Printable(r->error) : "";
      cells.push_back(r->code + text);
    } else {
      cells.push_back(FormatTime(r->step, unit));
      cells.push_back(RangeText(r->low, r->high, unit));
      cells.push_back(SpeedupCell(result, *r));
      if (throughput) cells.push_back(ThroughputCell(result, *r));
      if (memory) cells.push_back(MemoryCell(*r));
      cells.emplace_back(r->bound ? "a limit" : Name(r->confidence));
    }
    if (left_out) cells.push_back(Printable(r->left_out));
    table.AddRow(std::move(cells));
  }
  return table;
}

// Why some rows have no prediction, each reason once.
std::string ErrorLines(std::span<const SweepRow* const> rows) {
  std::set<std::string> told;
  std::string out;
  for (const SweepRow* r : rows) {
    if (r->code.empty() || !told.insert(r->code + r->error).second) continue;
    out += Wrapped(fmt::format("{}: {}", r->code, Printable(r->error)));
  }
  return out;
}

// One cell for each pair of values of two axes: one to the right, one down.
Table Matrix(const SweepResult& result, size_t sweep, std::string corner,
             const std::function<std::string(const SweepRow&)>& cell) {
  const std::vector<SweepAxis>& axes = result.plan.axes[sweep];
  std::vector<Column> columns = {{std::move(corner), Align::kLeft}};
  for (const std::string& value : axes[1].values) {
    const bool first = &value == &axes[1].values.front();
    columns.push_back({first ? fmt::format("{}={}", axes[1].name, value) : value});
  }
  std::map<std::pair<std::string, std::string>, std::string> cells;
  for (const SweepRow* r : RowsOf(result, sweep)) {
    const auto& values = result.plan.points[r->index].values;
    cells[{values[0], values[1]}] = r->code.empty() ? cell(*r) : "-";
  }
  Table table(std::move(columns));
  for (const std::string& down : axes[0].values) {
    std::vector<std::string> row = {fmt::format("{}={}", axes[0].name, down)};
    for (const std::string& right : axes[1].values) row.push_back(cells[{down, right}]);
    table.AddRow(std::move(row));
  }
  return table;
}

// Step times, with a star where a part was left out, and what the peak of memory changes by.
std::string Matrices(const SweepResult& result, size_t sweep, const Session& session) {
  const TableStyle style = session.table_style();
  const std::vector<const SweepRow*> rows = RowsOf(result, sweep);
  const TimeUnit unit = UnitFor(result.head.baseline, session.unit());
  std::string out =
      Matrix(result, sweep, fmt::format("step time, {}", UnitName(unit)), [&](const SweepRow& r) {
        return TimeIn(r.step, unit, 2) + (r.left_out.empty() ? "" : " *");
      }).Text(style);
  if (AnyLeftOut(rows)) {
    std::set<std::string> parts;
    for (const SweepRow* r : rows) parts.insert(Printable(r->left_out));
    parts.erase("");
    out += fmt::format("  * without {}, which finds nothing to change\n",
                       fmt::join(parts, " or without "));
  }
  if (AnyMemory(rows)) out += "\n" + Matrix(result, sweep, "peak memory", MemoryCell).Text(style);
  return out;
}

// The rows of --pareto, of all sweeps.
std::vector<const SweepRow*> FrontRows(const SweepResult& result) {
  std::vector<const SweepRow*> rows;
  for (size_t i = 0; i < result.front.size(); ++i) {
    if (result.front[i]) rows.push_back(&result.rows[i]);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const SweepRow* a, const SweepRow* b) {
    return a->AsRecorded() < b->AsRecorded();
  });
  return rows;
}

std::string FrontTitle(const SweepResult& result) {
  return fmt::format("no other one, nor the recorded step, beats these in {}", result.pareto);
}

// Why no row is on the front.
std::string NoFront(const SweepResult& result) {
  if (result.compared) return "  none: the recorded step beats them all\n";
  return fmt::format("  none: no row has a known {}\n",
                     fmt::join(Split(result.pareto, ','), " and "));
}

bool IsMatrix(const std::vector<SweepAxis>& axes) {
  return axes.size() == 2 && axes[1].values.size() <= kMostColumns && axes[0].values.size() > 1 &&
         axes[1].values.size() > 1;
}

// Whose intervals were not played.
std::string BetweenText(std::span<const SweepRow* const> rows) {
  const auto between = std::ranges::count_if(rows, [](const SweepRow* r) { return r->between; });
  if (between == 0) return "";
  return fmt::format("{} of {} intervals lie between those of neighbours that were played",
                     FormatCount(static_cast<size_t>(between)), FormatCount(rows.size()));
}

std::string BetweenLine(std::span<const SweepRow* const> rows) {
  const std::string text = BetweenText(rows);
  return text.empty() ? "" : Wrapped(text);
}

std::string Best(const SweepResult& result, size_t sweep, TimeUnit wish) {
  const std::vector<const SweepRow*> rows = RowsOf(result, sweep);
  const SweepRow* best = nullptr;
  for (const SweepRow* r : rows) {
    if (r->code.empty() && (best == nullptr || r->AsRecorded() < best->AsRecorded())) best = r;
  }
  if (best == nullptr) return "  none of them could be predicted\n";
  if (AnyOtherBatch(rows)) {
    return fmt::format("  most examples a second: {}, {} the throughput\n",
                       result.plan.points[best->index].spec, ThroughputCell(result, *best));
  }
  return fmt::format("  shortest: {}, {} ({})\n", result.plan.points[best->index].spec,
                     FormatTime(best->step, UnitFor(result.head.baseline, wish)),
                     SpeedupCell(result, *best));
}

// The step as it was recorded, and the one that rows are compared with.
std::string StepsOf(const SweepHead& head, TimeUnit wish) {
  const std::string step = FormatTime(head.baseline, wish);
  if (head.measured <= Duration{}) return fmt::format("ranks played together, {} per step", step);
  const std::string recorded = FormatTime(head.measured, wish);
  return head.step_name == "step"
             ? fmt::format("{} per step, {} replayed", recorded, step)
             : fmt::format("{} {}, recorded {}", head.step_name, step, recorded);
}

}  // namespace

std::string SweepTables(const SweepResult& result, const Session& session) {
  const TableStyle style = session.table_style();
  const TimeUnit wish = session.unit();
  std::string out =
      fmt::format("{}: {}; {} of {}\n", Printable(result.head.trace), StepsOf(result.head, wish),
                  FormatCount(result.rows.size()), Plural(result.plan.points.size(), "scenario"));
  const std::string findings = FindingsText(result.head.findings);
  if (!findings.empty()) out += "\n" + findings.substr(0, findings.size() - 1);
  for (size_t sweep = 0; sweep < result.plan.axes.size(); ++sweep) {
    if (RowsOf(result, sweep).empty()) continue;
    const bool matrix = IsMatrix(result.plan.axes[sweep]);
    out += fmt::format("\n{}\n", Printable(result.head.specs[sweep]));
    out += matrix ? Matrices(result, sweep, session)
                  : LongTable(result, RowsOf(result, sweep), result.plan.axes[sweep],
                              Errors::kBelow, wish)
                            .Text(style) +
                        ErrorLines(RowsOf(result, sweep)) + BetweenLine(RowsOf(result, sweep));
    out += Best(result, sweep, wish);
  }
  if (result.pareto.empty()) return out;
  const std::vector<const SweepRow*> front = FrontRows(result);
  out += fmt::format("\n{}\n", FrontTitle(result));
  return out + (front.empty() ? NoFront(result)
                              : LongTable(result, front, {}, Errors::kInRow, wish).Text(style));
}

std::string SweepMarkdown(const SweepResult& result, const Session& session) {
  const TimeUnit wish = session.unit();
  std::string out = FindingsMarkdown(result.head.findings);
  for (size_t sweep = 0; sweep < result.plan.axes.size(); ++sweep) {
    const std::vector<const SweepRow*> rows = RowsOf(result, sweep);
    out += fmt::format(
        "{}{}", sweep == 0 ? "" : "\n",
        LongTable(result, rows, result.plan.axes[sweep], Errors::kInRow, wish).Markdown());
    if (const std::string text = BetweenText(rows); !text.empty()) out += "\n" + text + "\n";
  }
  if (result.pareto.empty()) return out;
  return out +
         fmt::format("\n{}\n\n{}", FrontTitle(result),
                     LongTable(result, FrontRows(result), {}, Errors::kInRow, wish).Markdown());
}

std::string SweepJson(const SweepResult& result) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("daydream.sweep/1");
  if (result.interrupted) json.Key("interrupted").Bool(true);
  json.Key("trace")
      .String(result.head.trace)
      .Key("key")
      .String(fmt::format("{:016x}", result.head.key));
  json.Key("measured_ns");
  result.head.measured > Duration{} ? json.Int(result.head.measured.ns) : json.Null();
  json.Key("baseline_ns").Int(result.head.baseline.ns);
  json.Key("measured_ms");
  result.head.measured > Duration{} ? json.Double(result.head.measured.ms()) : json.Null();
  WriteStep(result.head.baseline, result.head.steps, json);
  WriteFindings(result.head.findings, json);
  WriteSweepRows(result, json);
  json.EndObject();
  return json.Take() + "\n";
}

void WriteSweepRows(const SweepResult& result, JsonWriter& json) {
  json.Key("scenarios").UInt(result.plan.points.size()).Key("rows").BeginArray();
  for (const SweepRow& r : result.rows) {
    const SweepPoint& point = result.plan.points[r.index];
    const std::vector<SweepAxis>& axes = result.plan.axes[point.sweep];
    json.BeginInlineObject().Key("row").UInt(r.index).Key("opt").String(point.spec);
    json.Key("values").BeginInlineObject();
    for (size_t a = 0; a < axes.size(); ++a) json.Key(axes[a].name).String(point.values[a]);
    json.EndObject();
    auto number = [&](std::string_view key, std::optional<int64_t> value) {
      json.Key(key);
      if (value.has_value()) {
        json.Int(*value);
      } else {
        json.Null();
      }
    };
    const bool ok = r.code.empty();
    WriteStep(r.step, r.steps, json);
    json.Key("interval_ms");
    if (r.low.has_value()) {
      json.BeginInlineArray().Double(r.low->ms()).Double(r.high->ms()).EndArray();
    } else {
      json.Null();
    }
    if (r.between) json.Key("interval_between").Bool(true);
    json.Key("speedup_interval");
    if (r.least_speedup.has_value()) {
      json.BeginInlineArray().Rounded(*r.least_speedup, 6).Rounded(*r.most_speedup, 6).EndArray();
    } else {
      json.Null();
    }
    number("step_ns", ok ? std::optional(r.step.ns) : std::nullopt);
    number("low_ns", r.low.has_value() ? std::optional(r.low->ns) : std::nullopt);
    number("high_ns", r.high.has_value() ? std::optional(r.high->ns) : std::nullopt);
    json.Key("speedup");
    if (auto speedup = Speedup(result, r)) {
      json.Rounded(*speedup, 6);
    } else {
      json.Null();
    }
    json.Key("throughput_gain");
    if (auto gain = ThroughputGain(result, r)) {
      json.Rounded(*gain, 6);
    } else {
      json.Null();
    }
    json.Key("bound").Bool(r.bound);
    if (ok) json.Key("confidence").String(Name(r.confidence));
    number("memory_change_bytes", r.memory);
    if (!result.front.empty()) json.Key("pareto").Bool(result.front[&r - result.rows.data()]);
    json.Key("left_out").String(r.left_out);
    if (!ok) json.Key("error").String(r.code).Key("what").String(r.error);
    json.EndObject();
  }
  json.EndArray();
}

std::string SweepCsv(const SweepResult& result) {
  std::vector<std::string> names;
  for (const auto& axes : result.plan.axes) {
    for (const SweepAxis& axis : axes) {
      if (std::find(names.begin(), names.end(), axis.name) == names.end()) {
        names.push_back(axis.name);
      }
    }
  }
  std::string out = "row,opt";
  for (const std::string& name : names) out += "," + CsvField(name);
  out +=
      ",baseline_ns,step_ns,low_ns,high_ns,speedup,throughput_gain,bound,confidence,"
      "memory_change_bytes,left_out,error";
  // Where some were not played.
  const bool between = std::ranges::any_of(result.rows, &SweepRow::between);
  if (between) out += ",interval_between";
  out += result.front.empty() ? "\n" : ",pareto\n";
  for (const SweepRow& r : result.rows) {
    const SweepPoint& point = result.plan.points[r.index];
    const std::vector<SweepAxis>& axes = result.plan.axes[point.sweep];
    out += fmt::format("{},{}", r.index, CsvField(point.spec));
    for (const std::string& name : names) {
      std::string value;
      for (size_t a = 0; a < axes.size(); ++a) {
        if (axes[a].name == name) value = point.values[a];
      }
      out += "," + CsvField(value);
    }
    const bool ok = r.code.empty();
    const auto speedup = Speedup(result, r);
    const auto gain = ThroughputGain(result, r);
    out += fmt::format(",{},{},{},{},{},{},{},{},{},{},{}", result.head.baseline.ns,
                       ok ? fmt::format("{}", r.step.ns) : "",
                       r.low.has_value() ? fmt::format("{}", r.low->ns) : "",
                       r.high.has_value() ? fmt::format("{}", r.high->ns) : "",
                       speedup.has_value() ? fmt::format("{:.6f}", *speedup) : "",
                       gain.has_value() ? fmt::format("{:.6f}", *gain) : "", r.bound ? 1 : 0,
                       ok ? Name(r.confidence) : "",
                       r.memory.has_value() ? fmt::format("{}", *r.memory) : "",
                       CsvField(r.left_out), r.code);
    if (between) out += r.between ? ",1" : ",0";
    if (!result.front.empty()) out += result.front[&r - result.rows.data()] ? ",1" : ",0";
    out += "\n";
  }
  return out;
}

}  // namespace daydream
