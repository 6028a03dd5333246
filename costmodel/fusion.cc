#include "costmodel/fusion.h"

#include <algorithm>
#include <numeric>

namespace daydream {
namespace {

double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double BytesOf(const FusionNode& node, const FusionRules& rules) {
  const double largest =
      node.inputs.empty() ? node.output : *std::max_element(node.inputs.begin(), node.inputs.end());
  const double moved =
      node.kind == FusionNode::Kind::kRows ? node.passes * largest : Sum(node.inputs) + node.output;
  return rules.element_bytes * moved;
}

// `bytes`: that it moves.
double NodeNs(const MemoryTimes& memory, double bytes, const FusionNode& node,
              const FusionRules& rules) {
  return std::max({memory.Ns(bytes), node.rows_ns, rules.floor_ns});
}

}  // namespace

FusionGroup MergeAll(const DeviceSpec& device, std::span<const FusionNode> nodes,
                     const FusionRules& rules) {
  FusionGroup group{.begin = 0, .end = nodes.size()};
  if (nodes.empty()) return group;
  const MemoryTimes memory(device);
  double elements = 0, longest_row = 0, extra_passes = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const FusionNode& node = nodes[i];
    const double bytes = BytesOf(node, rules);
    group.bytes_before += bytes;
    group.ns_before += NodeNs(memory, bytes, node, rules);
    longest_row = std::max(longest_row, node.rows_ns);
    // Rows that are read again and again are so in a merged kernel, too.
    if (node.kind == FusionNode::Kind::kRows) {
      extra_passes += std::max(node.passes - 2, 0.0) * node.output;
    }
    for (double input : node.inputs) {
      if (i == 0 || input != nodes[i - 1].output) elements += input;
    }
    if (i + 1 < nodes.size()) elements += rules.kept * node.output;
  }
  elements += nodes.back().output + extra_passes;
  group.bytes_after = std::min(group.bytes_before, rules.element_bytes * elements);
  group.ns_after = std::min(group.ns_before,
                            std::max({memory.Ns(group.bytes_after), longest_row, rules.floor_ns}));
  return group;
}

std::vector<FusionGroup> PlanFusion(const DeviceSpec& device, std::span<const FusionNode> nodes,
                                    const FusionRules& rules) {
  std::vector<FusionGroup> groups;
  size_t begin = 0;
  auto close = [&](size_t end) {
    if (end > begin + 1) {
      FusionGroup group = MergeAll(device, nodes.subspan(begin, end - begin), rules);
      group.begin = begin;
      group.end = end;
      groups.push_back(group);
    }
    begin = end;
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    const FusionNode& node = nodes[i];
    const bool fits = node.kind == FusionNode::Kind::kPointwise ||
                      (node.kind == FusionNode::Kind::kRows && rules.rows);
    if (!fits) {
      close(i);
      begin = i + 1;
    } else if (i > begin && node.output != nodes[i - 1].output) {
      close(i);
    }
  }
  close(nodes.size());
  return groups;
}

}  // namespace daydream
