#include "report/questions/pareto.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

namespace daydream {
namespace {

constexpr size_t kMostGoals = 2;
constexpr size_t kRecorded = SIZE_MAX;

// A row, or the recorded step, as what is to be small.
struct Point {
  std::array<int64_t, kMostGoals> cost{};
  size_t row = kRecorded;
};

std::optional<int64_t> CostOf(const SweepRow& r, SweepGoal goal) {
  return goal == SweepGoal::kStep ? std::optional(r.AsRecorded().ns) : r.memory;
}

std::optional<Point> PointOf(const SweepRow& r, size_t row, std::span<const SweepGoal> goals) {
  if (!r.code.empty() || r.bound) return std::nullopt;
  Point p{.row = row};
  for (size_t g = 0; g < goals.size(); ++g) {
    const std::optional<int64_t> cost = CostOf(r, goals[g]);
    if (!cost.has_value()) return std::nullopt;
    p.cost[g] = *cost;
  }
  return p;
}

}  // namespace

absl::StatusOr<std::vector<SweepGoal>> ParseGoals(std::string_view text) {
  std::vector<SweepGoal> goals;
  auto bad = [&](std::string why) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0712",
                       .what = fmt::format("--pareto '{}' cannot be read", text),
                       .why = std::move(why),
                       .fix = "--pareto step,memory"});
  };
  for (std::string_view rest = text;;) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view word = rest.substr(0, comma);
    if (word != "step" && word != "memory") return bad(fmt::format("'{}' is no goal", word));
    const SweepGoal goal = word == "step" ? SweepGoal::kStep : SweepGoal::kMemory;
    if (std::find(goals.begin(), goals.end(), goal) != goals.end()) {
      return bad(fmt::format("{} is there twice", word));
    }
    goals.push_back(goal);
    if (comma == rest.size()) return goals;
    rest.remove_prefix(comma + 1);
  }
}

bool Comparable(const SweepRow& row, std::span<const SweepGoal> goals) {
  return PointOf(row, 0, goals).has_value();
}

std::vector<bool> OnFront(std::span<const SweepRow> rows, Duration baseline,
                          std::span<const SweepGoal> goals) {
  std::vector<Point> points(1);
  for (size_t g = 0; g < goals.size(); ++g) {
    points[0].cost[g] = goals[g] == SweepGoal::kStep ? baseline.ns : 0;
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (auto p = PointOf(rows[i], i, goals); p.has_value()) points.push_back(*p);
  }
  std::stable_sort(points.begin(), points.end(),
                   [](const Point& a, const Point& b) { return a.cost < b.cost; });
  // By the first goal, then the second: a point is beaten when one before it is as good or better
  // in the second; points with the same costs do not beat each other.
  std::vector<bool> front(rows.size(), false);
  int64_t least = std::numeric_limits<int64_t>::max();  // second cost of the points so far
  for (size_t i = 0; i < points.size();) {
    size_t end = i + 1;
    while (end < points.size() && points[end].cost == points[i].cost) ++end;
    const bool on = i == 0 || points[i].cost[1] < least;
    for (; i < end; ++i) {
      if (on && points[i].row != kRecorded) front[points[i].row] = true;
      least = std::min(least, points[i].cost[1]);
    }
  }
  return front;
}

}  // namespace daydream
