#include "transforms/analysis/checkpoint_segments.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "graph/scopes.h"

namespace daydream {
namespace {

bool IsDigits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "layer1.0" of "layer1.0.conv1": up to the first number, when something comes after it.
std::string_view BlockOfPath(std::string_view path) {
  size_t begin = 0;
  for (size_t dot = path.find('.'); dot != path.npos; dot = path.find('.', begin)) {
    if (begin > 0 && IsDigits(path.substr(begin, dot - begin))) return path.substr(0, dot);
    begin = dot + 1;
  }
  return {};
}

// "BertLayer_3", "Bottleneck_0": classes of blocks, with the number of the instance.
bool IsBlockClass(std::string_view name) {
  const size_t line = name.rfind('_');
  if (line == name.npos || !IsDigits(name.substr(line + 1))) return false;
  name = name.substr(0, line);
  return name.ends_with("Layer") || name.ends_with("Block") || name == "Bottleneck";
}

// Layers of a pass in units: blocks, or single layers.
class Units {
 public:
  explicit Units(const Graph& graph) : graph_(graph) {}

  struct Unit {
    uint32_t number = 0;
    bool block = false;
  };
  Unit Of(LayerId layer) {
    auto [it, fresh] = units_.try_emplace(layer, Unit{});
    if (!fresh) return it->second;
    Unit unit;
    const std::string name = BlockOf(graph_, layer, &unit.block);
    unit.number = numbers_.try_emplace(name, static_cast<uint32_t>(numbers_.size())).first->second;
    units_[layer] = unit;
    return unit;
  }

 private:
  const Graph& graph_;
  absl::flat_hash_map<LayerId, Unit> units_;
  absl::flat_hash_map<std::string, uint32_t> numbers_;
};

class SegmentFinder {
 public:
  SegmentFinder(const Graph& graph, const std::vector<ForwardOp>& ops, const SegmentRules& rules)
      : ops_(ops), rules_(rules), units_(graph) {}

  std::vector<Segment> Run() {
    for (size_t begin = 0; begin < ops_.size();) {
      size_t end = begin;
      while (end < ops_.size() && SamePass(ops_[begin], ops_[end])) ++end;
      AddPass(begin, end);
      begin = end;
    }
    std::erase_if(segments_, [](const Segment& s) { return !s.backward.valid(); });
    return std::move(segments_);
  }

 private:
  struct Run_ {
    size_t begin = 0, end = 0;
    Units::Unit unit;
    uint16_t copy = 0;
  };

  static bool SamePass(const ForwardOp& a, const ForwardOp& b) {
    return a.step == b.step && a.pass == b.pass;
  }

  bool Wanted(const ForwardOp& op) const {
    if (!op.layer.valid()) return false;
    return rules_.wanted == nullptr || (*rules_.wanted)[op.first.index()];
  }

  // Runs of wanted ops of one unit.
  std::vector<Run_> RunsOf(size_t begin, size_t end, bool* blocks) {
    std::vector<Run_> runs;
    bool joined = false;
    for (size_t i = begin; i < end; ++i) {
      if (!Wanted(ops_[i])) {
        joined = false;
        continue;
      }
      const Units::Unit unit = units_.Of(ops_[i].layer);
      *blocks |= unit.block;
      if (joined && runs.back().unit.number == unit.number && runs.back().copy == ops_[i].copy) {
        runs.back().end = i + 1;
      } else {
        runs.push_back({i, i + 1, unit, ops_[i].copy});
      }
      joined = true;
    }
    return runs;
  }

  void AddPass(size_t begin, size_t end) {
    bool blocks = false;
    std::vector<Run_> runs = RunsOf(begin, end, &blocks);
    const bool chosen = rules_.wanted != nullptr;
    if (blocks && !chosen) std::erase_if(runs, [](const Run_& r) { return !r.unit.block; });
    size_t every = rules_.every;
    const bool by_root = every == 0 && !blocks;
    if (every == 0) every = 1;
    if (by_root) {
      every = static_cast<size_t>(std::ceil(std::sqrt(static_cast<double>(runs.size()))));
    }
    for (size_t i = 0; i < runs.size();) {
      size_t last = i;
      while (last + 1 < runs.size() && last + 1 < i + every &&
             runs[last + 1].begin == runs[last].end) {
        ++last;
      }
      const bool at_the_end = last + 1 == runs.size();
      if (!(by_root && !chosen && at_the_end)) Add(runs[i].begin, runs[last].end);
      i = last + 1;
    }
  }

  void Add(size_t begin, size_t end) {
    Segment s{.begin = begin, .end = end};
    size_t order = SIZE_MAX;
    // Ops that keep nothing, such as counters of batches, have no backward work; layers that are
    // told apart by numbers only may give them some.
    const bool keeps = std::any_of(ops_.begin() + static_cast<std::ptrdiff_t>(begin),
                                   ops_.begin() + static_cast<std::ptrdiff_t>(end),
                                   [](const ForwardOp& op) { return op.needed > 0; });
    for (size_t i = begin; i < end; ++i) {
      const ForwardOp& op = ops_[i];
      s.kept += op.kept;
      if (s.input == 0 && op.shape.known()) {
        const double width = op.change != nullptr ? op.change->width : 1;
        s.input = op.elements * DTypeBytes(op.shape.dtype) * width;
      }
      if (keeps && op.needed <= 0) continue;
      if (op.backward.valid() && op.backward_order < order) {
        order = op.backward_order;
        s.backward = op.backward;
      }
    }
    segments_.push_back(s);
  }

  const std::vector<ForwardOp>& ops_;
  const SegmentRules& rules_;
  Units units_;
  std::vector<Segment> segments_;
};

}  // namespace

std::string BlockOf(const Graph& graph, LayerId layer, bool* block) {
  *block = true;
  const std::string_view own = graph.Name(graph.layers()[layer.index()].name);
  if (std::string_view path = BlockOfPath(own); !path.empty()) return std::string(path);
  // Modules have numbers of their own: the outermost block around the layer names it.
  LayerId found;
  for (LayerId at : LayersAround(graph, layer)) {
    if (IsBlockClass(graph.Name(graph.layers()[at.index()].name))) found = at;
  }
  if (found.valid()) return std::string(graph.Name(graph.layers()[found.index()].name));
  *block = false;
  return std::string(own);
}

std::vector<Segment> SegmentsOf(const Graph& graph, const std::vector<ForwardOp>& ops,
                                const SegmentRules& rules) {
  return SegmentFinder(graph, ops, rules).Run();
}

}  // namespace daydream
