#include "report/html/timeline_block.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "report/html/packed.h"
#include "report/lane_rows.h"
#include "report/summary.h"
#include "report/text/format.h"
#include "report/text/json_writer.h"
#include "report/windows.h"
#include "simulator/critical_path.h"

namespace daydream {
namespace {

constexpr int64_t kUnitNs = 100;
constexpr size_t kLongestName = 200;

struct Bar {
  Instant begin, end;
  size_t name = 0;
  size_t tasks = 1;
  Duration longest;  // of those it stands for
};

struct BarRow {
  std::string title;
  std::vector<Bar> bars;
};

// Texts of all sides, each once.
class Texts {
 public:
  size_t Of(std::string text) {
    auto [it, is_new] = places_.try_emplace(std::move(text), texts_.size());
    if (is_new) texts_.push_back(it->first);
    return it->second;
  }
  const std::vector<std::string>& all() const { return texts_; }

 private:
  std::map<std::string, size_t> places_;
  std::vector<std::string> texts_;
};

// What slices are called: name, op, layer and class.
class BarNames {
 public:
  using Name = std::array<size_t, 4>;

  size_t Of(std::string_view name, std::string op, std::string layer, std::string kind) {
    const Name key = {strings_.Of(CutMiddle(name, kLongestName)), strings_.Of(std::move(op)),
                      strings_.Of(std::move(layer)), classes_.Of(std::move(kind))};
    auto [it, is_new] = places_.try_emplace(key, names_.size());
    if (is_new) names_.push_back(key);
    return it->second;
  }
  void Write(JsonWriter& json) const {
    auto texts = [&](std::string_view key, const Texts& of) {
      json.Key(key).BeginInlineArray();
      for (const std::string& text : of.all()) json.String(text);
      json.EndArray();
    };
    texts("strings", strings_);
    texts("classes", classes_);
    json.Key("names").BeginInlineArray();
    for (const Name& name : names_) {
      json.BeginInlineArray();
      for (size_t place : name) json.UInt(place);
      json.EndArray();
    }
    json.EndArray();
  }

 private:
  Texts strings_, classes_;
  std::map<Name, size_t> places_;
  std::vector<Name> names_;
};

// Names of the tasks of one graph; each combination of ids is looked up once.
class TaskNames {
 public:
  TaskNames(const Graph& graph, BarNames& names)
      : graph_(graph), classes_(graph, GroupBy::kClass), names_(names) {}

  size_t Of(TaskId id) {
    const Task& task = graph_.task(id);
    const auto key = std::tuple(task.name, task.scope, task.layer, task.kind);
    auto [it, is_new] = places_.try_emplace(key, 0);
    if (is_new) {
      const bool on_gpu = IsGpu(task.kind) || task.kind == TaskKind::kDelay;
      it->second = names_.Of(graph_.TaskName(id), GroupOf(graph_, id, GroupBy::kOp),
                             GroupOf(graph_, id, GroupBy::kLayer),
                             on_gpu ? classes_.Of(id) : std::string(Name(task.kind)));
    }
    return it->second;
  }

 private:
  const Graph& graph_;
  Grouper classes_;
  BarNames& names_;
  std::map<std::tuple<NameId, ScopeId, LayerId, TaskKind>, size_t> places_;
};

BarRow PathRow(const Side& side, BarNames& names) {
  BarRow row{.title = "critical path", .bars = {}};
  if (side.timeline->start_blocker.empty()) return row;
  for (const PathSegment& s : PathOfSteps(*side.graph, *side.timeline)) {
    const std::string resource(Name(s.resource));
    const size_t name = names.Of(resource, "", "", resource);
    std::vector<Bar>& bars = row.bars;
    if (!bars.empty() && bars.back().name == name && bars.back().end == s.begin) {
      bars.back().end = s.end;
      bars.back().longest += s.end - s.begin;
    } else {
      bars.push_back({s.begin, s.end, name, 1, s.end - s.begin});
    }
  }
  return row;
}

std::vector<BarRow> RowsOf(const Side& side, BarNames& names) {
  std::vector<BarRow> rows = {PathRow(side, names)};
  TaskNames names_of(*side.graph, names);
  auto lanes = LaneRows(*side.graph, *side.timeline);
  for (size_t l = 0; l < lanes.size(); ++l) {
    for (size_t r = 0; r < lanes[l].size(); ++r) {
      BarRow row{.title = LaneTitle(*side.graph, LaneId(l)), .bars = {}};
      if (r > 0) row.title += fmt::format(", row {}", r + 1);
      for (const Slice& s : lanes[l][r]) {
        row.bars.push_back({s.begin, s.end, names_of.Of(s.task), 1, s.end - s.begin});
      }
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

// Joins neighbours that take no longer than `below` together.
void MergeBars(Duration below, std::vector<Bar>& bars) {
  size_t kept = 0;
  for (size_t i = 1; i < bars.size(); ++i) {
    Bar& last = bars[kept];
    const Bar& next = bars[i];
    if (next.end - last.begin > below) {
      bars[++kept] = next;
      continue;
    }
    if (next.longest > last.longest) {
      last.longest = next.longest;
      last.name = next.name;
    }
    last.end = next.end;
    last.tasks += next.tasks;
  }
  if (!bars.empty()) bars.resize(kept + 1);
}

size_t Count(const std::vector<std::vector<BarRow>>& sides) {
  size_t sum = 0;
  for (const auto& rows : sides) {
    for (const BarRow& row : rows) sum += row.bars.size();
  }
  return sum;
}

uint64_t Units(Instant at, Instant origin) {
  return static_cast<uint64_t>(std::max<int64_t>(0, (at - origin).ns + kUnitNs / 2) / kUnitNs);
}

void Pack(const std::vector<Bar>& bars, Instant origin, std::string& out) {
  std::string lengths, names, tasks;
  uint64_t at = 0;
  for (const Bar& bar : bars) {
    const uint64_t begin = std::max(at, Units(bar.begin, origin));
    const uint64_t end = std::max(begin, Units(bar.end, origin));
    AppendVarint(begin - at, out);
    AppendVarint(end - begin, lengths);
    AppendVarint(bar.name, names);
    AppendVarint(bar.tasks - 1, tasks);
    at = end;
  }
  out += lengths + names + tasks;
}

void WriteSide(const Side& side, const std::vector<BarRow>& rows, Instant origin,
               JsonWriter& json) {
  json.BeginObject().Key("name").String(side.name).Key("description").String(side.description);
  json.Key("windows").BeginInlineArray();
  Instant drawn = origin;  // one band ends where the next begins
  for (const Window& w : CountedWindows(*side.graph, *side.timeline)) {
    const Instant begin = std::max(w.begin, drawn);
    json.BeginInlineArray().UInt(w.step).UInt(Units(begin, origin)).UInt(Units(w.end, origin));
    json.EndArray();
    drawn = w.end;
  }
  json.EndArray().Key("rows").BeginArray();
  for (const BarRow& row : rows) {
    json.BeginInlineObject().Key("title").String(row.title);
    json.Key("slices").UInt(row.bars.size()).EndObject();
  }
  json.EndArray().EndObject();
}

}  // namespace

std::string TimelineJson(std::span<const Side> sides, size_t most) {
  BarNames names;
  std::vector<std::vector<BarRow>> rows;
  for (const Side& side : sides) rows.push_back(RowsOf(side, names));
  int64_t below = 0;
  while (Count(rows) > most && below < int64_t{1} << 61) {
    below = std::max<int64_t>(2 * below, 1024);
    for (auto& of_side : rows) {
      for (BarRow& row : of_side) MergeBars(Duration::Ns(below), row.bars);
    }
  }
  std::optional<Instant> first;
  for (const auto& of_side : rows) {
    for (const BarRow& row : of_side) {
      if (row.bars.empty() || (first.has_value() && *first <= row.bars[0].begin)) continue;
      first = row.bars[0].begin;
    }
  }
  const Instant origin = first.value_or(Instant());
  std::string packed;
  JsonWriter json;
  json.BeginObject().Key("unit_ns").Int(kUnitNs).Key("merged_below_ns").Int(below);
  json.Key("slices").UInt(Count(rows));
  names.Write(json);
  json.Key("sides").BeginArray();
  for (size_t i = 0; i < sides.size(); ++i) {
    WriteSide(sides[i], rows[i], origin, json);
    for (const BarRow& row : rows[i]) Pack(row.bars, origin, packed);
  }
  json.EndArray().Key("data").String(absl::Base64Escape(Gzip(packed))).EndObject();
  return json.Take() + "\n";
}

}  // namespace daydream
