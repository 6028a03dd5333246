#include "report/html/timeline_block.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
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
// Recorded runs take 0.7 to 1.5 bytes of the file a slice; lengths that are all drawn at random
// from a wide range, 3.4. So half a million slices, with tables and names, stay below 1.5 MB.
constexpr double kBytesPerSlice = 2.2;
constexpr size_t kLeastRoom = size_t{1} << 18;

struct Bar {
  Instant begin, end;
  size_t name = 0;
  size_t tasks = 1;
  Duration longest;         // of those it stands for
  uint32_t cause = 0;       // of the longest that has one: 1 + its place in TaskCauses, or 0
  Duration longest_edited;  // the length of that one
};

struct BarRow {
  std::string title;
  std::vector<Bar> bars;
  // Of all bars, in their order, as many for each as it stands for; none in the critical path.
  std::vector<TaskId> members;
  std::optional<size_t> like;  // the row of an earlier side, from which this one is told
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
  // A column for each part of the names: alike numbers side by side pack better.
  std::string Json() const {
    JsonWriter json;
    json.BeginInlineObject();
    auto texts = [&](std::string_view key, const Texts& of) {
      json.Key(key).BeginInlineArray();
      for (const std::string& text : of.all()) json.String(text);
      json.EndArray();
    };
    texts("strings", strings_);
    texts("classes", classes_);
    json.Key("names").BeginInlineArray();
    for (size_t part = 0; part < Name().size(); ++part) {
      json.BeginInlineArray();
      for (const Name& name : names_) json.UInt(name[part]);
      json.EndArray();
    }
    json.EndArray().EndObject();
    return json.Take();
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
  BarRow row{.title = "critical path", .bars = {}, .members = {}};
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

std::vector<BarRow> RowsOf(const Side& side, const TaskCauses& causes, BarNames& names) {
  std::vector<BarRow> rows = {PathRow(side, names)};
  TaskNames names_of(*side.graph, names);
  auto lanes = SlicesByLane(*side.graph, *side.timeline);
  for (size_t l = 0; l < lanes.size(); ++l) {
    for (size_t r = 0; r < lanes[l].size(); ++r) {
      BarRow row{.title = LaneTitle(*side.graph, LaneId(l)), .bars = {}, .members = {}};
      if (r > 0) row.title += fmt::format(", row {}", r + 1);
      for (const Slice& s : lanes[l][r]) {
        const bool edited = s.task.index() < causes.of.size() && causes.of[s.task.index()] > 0;
        const Duration length = s.end - s.begin;
        row.bars.push_back({s.begin, s.end, names_of.Of(s.task), 1, length,
                            edited ? causes.of[s.task.index()] : 0, edited ? length : Duration()});
        row.members.push_back(s.task);
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
    if (next.cause > 0 && (last.cause == 0 || next.longest_edited > last.longest_edited)) {
      last.cause = next.cause;
      last.longest_edited = next.longest_edited;
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

int64_t UnitsAt(Instant at, Instant origin) {
  return std::max<int64_t>(0, (at - origin).ns + kUnitNs / 2) / kUnitNs;
}

// Where a task is drawn on an earlier side.
class EarlierBars {
 public:
  struct Place {
    size_t row = 0, bar = 0;
  };

  // With every task that its bars stand for.
  void Add(size_t place, const BarRow& row) {
    size_t member = 0;
    for (size_t i = 0; i < row.bars.size(); ++i) {
      for (size_t t = 0; t < row.bars[i].tasks; ++t) {
        places_.try_emplace(row.members[member++], Place{place, i});
      }
    }
  }
  const Place* Of(TaskId task) const {
    const auto found = places_.find(task);
    return found == places_.end() ? nullptr : &found->second;
  }

 private:
  absl::flat_hash_map<TaskId, Place> places_;
};

// A bar in units: the pause before it, its length.
struct Units {
  int64_t gap = 0, length = 0;
};

std::vector<Units> InUnits(std::span<const Bar> bars, Instant origin) {
  std::vector<Units> units;
  units.reserve(bars.size());
  int64_t at = 0;
  for (const Bar& bar : bars) {
    const int64_t begin = std::max(at, UnitsAt(bar.begin, origin));
    const int64_t end = std::max(begin, UnitsAt(bar.end, origin));
    units.push_back({begin - at, end - begin});
    at = end;
  }
  return units;
}

// The columns of a row. After a change most tasks are what they were before it, so a row that is
// `like` an earlier one has the differences, which are mostly zero.
class RowPacker {
 public:
  explicit RowPacker(Instant origin) : origin_(origin) {}

  // Every row of a side before any of the next.
  void Add(const BarRow& row, const EarlierBars& earlier) {
    std::vector<Units> units = InUnits(row.bars, origin_);
    std::string places, gaps, lengths, names, tasks, causes;
    size_t expected = 0;  // the bar behind the last one that was found
    size_t member = 0;    // the first task of a bar
    for (size_t i = 0; i < row.bars.size(); ++i) {
      const Bar& bar = row.bars[i];
      const auto* was = row.like.has_value() ? earlier.Of(row.members[member]) : nullptr;
      member += bar.tasks;
      if (was != nullptr && was->row != row.like) was = nullptr;
      Units past;
      uint64_t name = bar.name;
      if (was != nullptr) {
        const size_t old = was->bar;
        AppendVarint(1 + ZigZag(static_cast<int64_t>(old) - static_cast<int64_t>(expected)),
                     places);
        expected = old + 1;
        past = rows_[*row.like].units[old];
        name = rows_[*row.like].names[old] == bar.name ? 0 : name + 1;
      } else if (row.like.has_value()) {
        AppendVarint(0, places);
      }
      AppendVarint(ZigZag(units[i].gap - past.gap), gaps);
      AppendVarint(ZigZag(units[i].length - past.length), lengths);
      AppendVarint(name, names);
      AppendVarint(bar.tasks - 1, tasks);
      AppendVarint(bar.cause, causes);
    }
    out_ += places + gaps + lengths + names + tasks + causes;
    Packed packed{.units = std::move(units), .names = {}};
    for (const Bar& bar : row.bars) packed.names.push_back(bar.name);
    rows_.push_back(std::move(packed));
  }
  const std::string& bytes() const { return out_; }

 private:
  struct Packed {
    std::vector<Units> units;
    std::vector<size_t> names;
  };
  Instant origin_;
  std::vector<Packed> rows_;
  std::string out_;
};

// A row of a later side is told from the row of the first with most of its tasks.
EarlierBars FindLikes(std::vector<std::vector<BarRow>>& sides) {
  EarlierBars first;
  if (sides.empty()) return first;
  for (size_t r = 1; r < sides[0].size(); ++r) first.Add(r, sides[0][r]);
  for (size_t s = 1; s < sides.size(); ++s) {
    for (size_t r = 1; r < sides[s].size(); ++r) {
      std::map<size_t, size_t> votes;
      for (const TaskId task : sides[s][r].members) {
        const auto* was = first.Of(task);
        if (was != nullptr) ++votes[was->row];
      }
      size_t most = 0;
      for (const auto& [row, count] : votes) {
        if (count > most) sides[s][r].like = row;
        most = std::max(most, count);
      }
    }
  }
  return first;
}

std::string PackRows(std::vector<std::vector<BarRow>>& sides, Instant origin) {
  const EarlierBars earlier = FindLikes(sides);
  RowPacker packer(origin);
  for (const auto& rows : sides) {
    for (const BarRow& row : rows) packer.Add(row, earlier);
  }
  return absl::Base64Escape(Gzip(packer.bytes()));
}

Instant FirstBegin(const std::vector<std::vector<BarRow>>& sides) {
  std::optional<Instant> first;
  for (const auto& rows : sides) {
    for (const BarRow& row : rows) {
      if (row.bars.empty() || (first.has_value() && *first <= row.bars[0].begin)) continue;
      first = row.bars[0].begin;
    }
  }
  return first.value_or(Instant());
}

void WriteSide(const Side& side, const std::vector<BarRow>& rows, Instant origin,
               JsonWriter& json) {
  json.BeginObject().Key("name").String(side.name).Key("description").String(side.description);
  json.Key("windows").BeginInlineArray();
  Instant drawn = origin;  // one band ends where the next begins
  for (const Window& w : CountedWindows(*side.graph, *side.timeline)) {
    const Instant begin = std::max(w.begin, drawn);
    json.BeginInlineArray().UInt(w.step).Int(UnitsAt(begin, origin)).Int(UnitsAt(w.end, origin));
    json.EndArray();
    drawn = w.end;
  }
  json.EndArray().Key("rows").BeginArray();
  for (const BarRow& row : rows) {
    json.BeginInlineObject().Key("title").String(row.title);
    json.Key("slices").UInt(row.bars.size());
    if (row.like.has_value()) json.Key("like").UInt(*row.like);
    json.EndObject();
  }
  json.EndArray().EndObject();
}

// With how many slices each has: a task that is gone has none.
void WriteCauses(const std::vector<std::vector<BarRow>>& sides, const TaskCauses& causes,
                 JsonWriter& json) {
  std::vector<size_t> slices(causes.causes.size() + 1);
  for (const auto& rows : sides) {
    for (const BarRow& row : rows) {
      for (const Bar& bar : row.bars) ++slices[bar.cause];
    }
  }
  json.Key("causes").BeginArray();
  for (size_t i = 0; i < causes.causes.size(); ++i) {
    const TaskCauses::Cause& cause = causes.causes[i];
    json.BeginInlineObject().Key("what").String(cause.what).Key("opt").String(cause.opt);
    json.Key("slices").UInt(slices[i + 1]).EndObject();
  }
  json.EndArray();
}

}  // namespace

std::string TimelineJson(std::span<const Side> sides, const TaskCauses& causes, size_t most) {
  BarNames names;
  std::vector<std::vector<BarRow>> rows;
  for (const Side& side : sides) rows.push_back(RowsOf(side, causes, names));
  const Instant origin = FirstBegin(rows);
  const size_t room =
      std::max(kLeastRoom, static_cast<size_t>(kBytesPerSlice * static_cast<double>(most)));
  int64_t below = 0;
  std::string data;
  for (bool last = false;; last = below >= int64_t{1} << 61) {
    if (last || Count(rows) <= most) data = PackRows(rows, origin);
    if (last || (Count(rows) <= most && data.size() <= room)) break;
    below = std::max<int64_t>(2 * below, 1024);
    for (auto& of_side : rows) {
      for (BarRow& row : of_side) MergeBars(Duration::Ns(below), row.bars);
    }
  }
  JsonWriter json;
  json.BeginObject().Key("unit_ns").Int(kUnitNs).Key("merged_below_ns").Int(below);
  json.Key("slices").UInt(Count(rows));
  WriteCauses(rows, causes, json);
  json.Key("text").String(absl::Base64Escape(Gzip(names.Json())));
  json.Key("sides").BeginArray();
  for (size_t i = 0; i < sides.size(); ++i) {
    WriteSide(sides[i], rows[i], origin, json);
  }
  json.EndArray().Key("data").String(data).EndObject();
  return json.Take() + "\n";
}

}  // namespace daydream
