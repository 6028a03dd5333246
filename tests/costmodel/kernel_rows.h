// Products that NVIDIA's AIConfigurator timed inside of three inference engines (Apache-2.0), where
// they lie beside the repository, and what engines differ by.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "costmodel/op_shape.h"
#include "tests/costmodel/costdata.h"

namespace daydream {

inline const std::string kFolder = "../kerneldata/";

using Shape = std::tuple<int64_t, int64_t, int64_t>;
using Rows = std::map<Shape, std::map<std::string, double>>;  // engine and us

inline const std::map<std::string, std::string>& Names() {
  static const std::map<std::string, std::string> names = {{"a100_sxm", "A100-SXM4-80GB"},
                                                           {"h100_sxm", "H100-SXM5-80GB"},
                                                           {"b200_sxm", "B200-SXM-180GB"},
                                                           {"l40s", "L40S"}};
  return names;
}

// By GPU. `format` as in the table: "bfloat16", "fp8", "nvfp4", "int8_wo".
inline std::map<std::string, Rows> ProductsIn(std::string_view format) {
  std::map<std::string, Rows> rows;
  ForEachCostRow(kFolder + "gemm.csv.gz", [&](const CostRow& row) {
    if (row.at("gemm_dtype") != format) return;
    rows[Names().at(row.at("gpu"))][{row.Whole("m"), row.Whole("n"), row.Whole("k")}]
        [row.at("engine")] = row.Number("us");
  });
  return rows;
}

inline const std::map<std::string, Rows>& Products() {
  static const auto* const all = new std::map<std::string, Rows>(ProductsIn("bfloat16"));
  return *all;
}

inline double Median(const std::map<std::string, double>& engines) {
  std::vector<double> logs;
  logs.reserve(engines.size());
  for (const auto& [engine, us] : engines) logs.push_back(std::log(us));
  std::sort(logs.begin(), logs.end());
  const size_t n = logs.size();
  return std::exp((logs[(n - 1) / 2] + logs[n / 2]) / 2);
}

struct ByTime : CostErrors {
  double off = 0;
  void Add(double predicted, double measured) {
    CostErrors::Add(predicted, measured);
    off += std::abs(predicted - measured);
  }
  double by_time() const { return 100 * off / total; }
};

inline GemmShape ShapeOf(const Shape& s) {
  return {.m = std::get<0>(s), .n = std::get<1>(s), .k = std::get<2>(s)};
}

// CRC-32 of "m,n,k", as zlib's: a third of the shapes is left out by it
// (costmodel/fit/surfaces.py).
inline bool IsHeldOut(const Shape& shape) {
  uint32_t crc = ~uint32_t{0};
  for (char c :
       fmt::format("{},{},{}", std::get<0>(shape), std::get<1>(shape), std::get<2>(shape))) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320u : 0u);
  }
  return ~crc % 3 == 0;
}

// Each row of a shape from the mean of the other engines that timed the very same shape.
inline ByTime FromOtherEngines(const Rows& rows) {
  ByTime errors;
  for (const auto& [shape, engines] : rows) {
    if (!IsHeldOut(shape) || engines.size() < 2) continue;
    double logs = 0;
    for (const auto& [engine, us] : engines) logs += std::log(us);
    for (const auto& [engine, us] : engines) {
      const double others = static_cast<double>(engines.size() - 1);
      errors.Add(std::exp((logs - std::log(us)) / others), us);
    }
  }
  return errors;
}

// What an engine takes on another GPU, from what the others gain there on the very same shape.
inline ByTime FromRatiosOfOtherEngines(const Rows& here, const Rows& there) {
  ByTime errors;
  for (const auto& [shape, engines] : here) {
    const auto found = there.find(shape);
    if (found == there.end() || !IsHeldOut(shape)) continue;
    std::map<std::string, std::pair<double, double>> both;  // here, and the logarithm of the ratio
    double logs = 0;
    for (const auto& [engine, us] : engines) {
      const auto other = found->second.find(engine);
      if (other == found->second.end()) continue;
      both[engine] = {us, std::log(other->second / us)};
      logs += both[engine].second;
    }
    if (both.size() < 2) continue;
    for (const auto& [engine, row] : both) {
      const double gain = (logs - row.second) / static_cast<double>(both.size() - 1);
      errors.Add(row.first * std::exp(gain), row.first * std::exp(row.second));
    }
  }
  return errors;
}

}  // namespace daydream
