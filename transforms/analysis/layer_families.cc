#include "transforms/analysis/layer_families.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "graph/scopes.h"

namespace daydream {
namespace {

struct Numbered {
  std::string_view family;
  int64_t number = 0;
};

// "layers.3" -> layers, 3; "Linear_12" -> Linear, 12.
std::optional<Numbered> Split(std::string_view name) {
  const size_t at = name.find_last_of("._");
  if (at == std::string_view::npos || at == 0 || at + 1 == name.size()) return std::nullopt;
  Numbered n{.family = name.substr(0, at)};
  const char* end = name.data() + name.size();
  const auto [next, error] = std::from_chars(name.data() + at + 1, end, n.number);
  if (error != std::errc() || next != end || n.number < 0) return std::nullopt;
  return n;
}

}  // namespace

LayerFamilies::LayerFamilies(const Graph& graph)
    : layers_(graph.layers().begin(), graph.layers().end()) {
  const size_t layers = layers_.size();
  own_.resize(layers);
  std::map<std::pair<uint32_t, std::string>, int> index;
  for (size_t i = 0; i < layers; ++i) {
    const Layer& layer = layers_[i];
    const auto n = Split(graph.Name(layer.name));
    if (!n) continue;
    const auto [it, inserted] = index.try_emplace({layer.parent.value, std::string(n->family)},
                                                  static_cast<int>(families_.size()));
    if (inserted) families_.push_back({.name = it->first.second});
    own_[i] = {it->second, n->number};
    families_[static_cast<size_t>(it->second)].numbers.push_back(n->number);
  }
  for (LayerFamily& f : families_) {
    std::sort(f.numbers.begin(), f.numbers.end());
    f.numbers.erase(std::unique(f.numbers.begin(), f.numbers.end()), f.numbers.end());
  }
  for (const Task& task : graph.tasks()) {
    if (!IsGpu(task.kind) || task.removed) continue;
    for (LayerId l : LayersAround(graph, task.layer)) {
      const int f = own_[l.index()].family;
      if (f >= 0) families_[static_cast<size_t>(f)].gpu += task.duration;
    }
  }
  // The longest first; single members are no family.
  std::vector<int> order(families_.size());
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](int f) { return families_[static_cast<size_t>(f)].numbers.size() < 2; });
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return families_[static_cast<size_t>(a)].gpu > families_[static_cast<size_t>(b)].gpu;
  });
  std::vector<int> renamed(families_.size(), -1);
  std::vector<LayerFamily> sorted;
  for (int f : order) {
    renamed[static_cast<size_t>(f)] = static_cast<int>(sorted.size());
    sorted.push_back(std::move(families_[static_cast<size_t>(f)]));
  }
  families_ = std::move(sorted);
  for (Place& place : own_) {
    if (place.family >= 0) place.family = renamed[static_cast<size_t>(place.family)];
  }
}

int LayerFamilies::Find(std::string_view name) const {
  for (const bool whole : {true, false}) {
    for (size_t f = 0; f < families_.size(); ++f) {
      const std::string& own = families_[f].name;
      if (whole ? own == name : own.ends_with(name)) return static_cast<int>(f);
    }
  }
  return -1;
}

int LayerFamilies::MemberOf(size_t f, LayerId layer) const {
  for (LayerId l : Ancestry<Layer, LayerId>(layers_, layer)) {
    const Place& place = own_[l.index()];
    if (place.family == static_cast<int>(f)) {
      const std::vector<int64_t>& numbers = families_[f].numbers;
      const auto at = std::lower_bound(numbers.begin(), numbers.end(), place.number);
      return static_cast<int>(at - numbers.begin());
    }
  }
  return -1;
}

}  // namespace daydream
