#include "report/questions/mark_findings.h"

#include <algorithm>

#include <fmt/format.h>

#include "report/text/format.h"

namespace daydream {

std::vector<Finding> FindingsOfMarks(const Steps& steps) {
  std::vector<Finding> out;
  const auto add = [&](std::string text, std::string where, double share) {
    out.push_back({.kind = FindingKind::kMarks,
                   .about = About::kPredictions,
                   .text = std::move(text),
                   .where = std::move(where),
                   .time = {},
                   .share = share,
                   .fix = "mark every step from its begin to its end; steps that were taken are "
                          "listed by daydream info"});
  };
  size_t between = 0, first = 0;
  for (size_t i = 0; i < steps.steps.size(); ++i) {
    if (steps.steps[i].between && between++ == 0) first = i;
  }
  if (between > 0 && first > 0) {
    add(fmt::format("as much GPU work as of a step lies between marks of steps ({}): marks may be "
                    "missing, and what lies there counts for no step",
                    Plural(between, "time")),
        fmt::format("first behind {}", steps.steps[first - 1].label),
        static_cast<double>(between) / static_cast<double>(steps.steps.size()));
  }
  if (steps.behind_marks > 0) {
    add(fmt::format("marks of steps end early: {} of the launches from one mark to the next lie "
                    "behind its end; steps are taken from mark to mark",
                    FormatPercent(steps.behind_marks, 0)),
        "", steps.behind_marks);
  }
  return out;
}

}  // namespace daydream
