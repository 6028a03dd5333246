// A picture of points with logarithmic axes, in characters.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace daydream {

struct PlotSeries {
  char mark = '*';
  std::string label;
  std::vector<std::pair<double, double>> points;  // above 0; others are left out
};

struct PlotAxes {
  std::string x, y;  // what is on them
  std::string (*x_text)(double) = nullptr;
  std::string (*y_text)(double) = nullptr;
  size_t width = 60, height = 12;
};

// Later series are drawn over earlier ones. Empty when there is no point.
std::string LogPlot(const std::vector<PlotSeries>& series, const PlotAxes& axes);

}  // namespace daydream
