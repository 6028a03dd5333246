#include "report/text/log_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace daydream {
namespace {

struct PlotRange {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  void Add(double value) { low = std::min(low, value), high = std::max(high, value); }
  // 0 to 1; a range of one value has it in the middle.
  double Place(double value) const {
    return low == high ? 0.5 : std::log(value / low) / std::log(high / low);
  }
};

size_t Cell(double place, size_t cells) {
  return static_cast<size_t>(std::lround(place * static_cast<double>(cells - 1)));
}

}  // namespace

std::string LogPlot(const std::vector<PlotSeries>& series, const PlotAxes& axes) {
  PlotRange x, y;
  auto good = [](const std::pair<double, double>& p) {
    return p.first > 0 && p.second > 0 && std::isfinite(p.first) && std::isfinite(p.second);
  };
  for (const PlotSeries& s : series) {
    for (const auto& p : s.points) {
      if (good(p)) x.Add(p.first), y.Add(p.second);
    }
  }
  if (x.high <= 0) return "";
  std::vector<std::string> rows(axes.height, std::string(axes.width, ' '));
  std::string legend;
  for (const PlotSeries& s : series) {
    for (const auto& p : s.points) {
      if (!good(p)) continue;
      rows[axes.height - 1 - Cell(y.Place(p.second), axes.height)]
          [Cell(x.Place(p.first), axes.width)] = s.mark;
    }
    legend += fmt::format("{}{} {}", legend.empty() ? "" : "   ", s.mark, s.label);
  }
  const std::string top = axes.y_text(y.high), bottom = axes.y_text(y.low);
  const size_t margin = std::max(top.size(), bottom.size());
  std::string out = fmt::format("  {}\n", axes.y);
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string& label = i == 0 ? top : i + 1 == rows.size() ? bottom : "";
    while (rows[i].ends_with(' ')) rows[i].pop_back();
    out += fmt::format("  {:>{}} |{}\n", label, margin, rows[i]);
  }
  const std::string left = axes.x_text(x.low), right = axes.x_text(x.high);
  const size_t used = left.size() + right.size();
  out += fmt::format("  {:>{}} +{}\n", "", margin, std::string(axes.width, '-'));
  out += fmt::format("  {:>{}}  {}{}{}   {}\n", "", margin, left,
                     std::string(axes.width > used ? axes.width - used : 1, ' '), right, axes.x);
  return out + fmt::format("  {:>{}}  {}\n", "", margin, legend);
}

}  // namespace daydream
