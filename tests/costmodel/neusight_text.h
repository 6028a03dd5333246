// The notation of NeuSight's operator graphs (ASPLOS 2025), as costdata.h reads them.
#pragma once

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "costmodel/op_shape.h"

namespace daydream {

// "[['Linear', (8, 16, 32)], ['MEM', ((1, 2), (3,))]]".
struct Primitive {
  std::string name;
  std::vector<Dims> sizes;
};
inline std::vector<Primitive> ParsePrimitives(const std::string& text) {
  std::vector<Primitive> all;
  for (size_t i = text.find('\''); i != std::string::npos; i = text.find('\'', i)) {
    const size_t end = text.find('\'', i + 1);
    Primitive p{.name = text.substr(i + 1, end - i - 1), .sizes = {}};
    i = std::min(text.find('\'', end + 1), text.size());
    bool open = false;
    for (size_t k = end; k < i; ++k) {
      if (text[k] == '(' || text[k] == '[') open = true;
      if (std::isdigit(static_cast<unsigned char>(text[k])) == 0) continue;
      if (open) p.sizes.emplace_back();
      open = false;
      size_t length = 0;
      p.sizes.back().push_back(std::stoll(text.substr(k), &length));
      k += length - 1;
    }
    all.push_back(std::move(p));
  }
  return all;
}
// "[(2, 512, 1024), (1,)]" or "(2, 512)".
inline std::vector<Dims> ParseTensors(const std::string& text) {
  return ParsePrimitives("''" + text)[0].sizes;
}

inline bool IsUnary(const std::string& op) {
  static const std::set<std::string> unary = {"addu", "mulu", "divu", "powu",
                                              "relu", "gelu", "tanh"};
  return unary.contains(op);
}

// Reads and writes of the output in backward, where NeuSight names other kernels than PyTorch
// launches: counted on V100 and H100 (time x bandwidth / size). -1: as NeuSight lists them.
inline double BackwardPasses(const std::string& op) {
  static const std::map<std::string, double> passes = {
      {"VECsoftmax", 6}, {"dropout", 7}, {"VECln", 6},  {"VECgelu", 3},
      {"VECtanh", 3},    {"VECpowu", 8}, {"VECmul", 6}, {"VECmulu", 2},
      {"VECdivu", 2},    {"VECadd", 0},  {"VECaddu", 0}};
  const auto it = passes.find(op);
  return it == passes.end() ? -1 : it->second;
}

// Two kernels of OPT are missing in its graph: the maximum with a constant, and the copy that a
// reshape of a transposed tensor makes.
inline bool MissesKernel(std::string_view name, std::string_view op, std::string_view before) {
  const bool copy = before.starts_with("transpose") && name.starts_with("reshape");
  return op == "misc" && (name.starts_with("max_") || copy);
}

// PyTorch on a host launches no faster than this: the models ran without any launch ahead of time.
inline constexpr double kLaunchNs = 10e3;

}  // namespace daydream
