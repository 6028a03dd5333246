#include "report/questions/mark_findings.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "absl/container/flat_hash_map.h"
#include "base/text.h"
#include "report/text/format.h"
#include "trace/step_names.h"

namespace daydream {
namespace {

// Chosen: ranges of one thread lie in each other or apart, and a backward pass follows its forward
// pass in its step. No mark of the recordings beside the repository does otherwise.
constexpr size_t kMarksInOps = 4;          // one in as many
constexpr size_t kBackwardElsewhere = 10;  // one in as many
constexpr size_t kFewMarks = 2, kFewBackward = 10;
constexpr Duration kClockRounds = Duration::Us(1);

// Marks of the program's own. Others are work that repeats, or ends, with the step.
bool AreMarks(const Steps& steps) {
  if (steps.steps.size() < kFewMarks || !steps.lane.valid()) return false;
  return steps.method == StepMethod::kProfilerStep || steps.method == StepMethod::kMark ||
         IsStepName(steps.steps.front().label);
}

class MovedMarks {
 public:
  MovedMarks(const Steps& steps, const Trace& trace) : trace_(trace) {
    for (const Step& step : steps.steps) {
      if (!step.between) marks_.push_back(&step);
    }
    CountMarksInOps(steps.lane);
    CountBackward();
  }

  bool Any() const { return InOps() || Elsewhere(); }

  Finding Tell() const {
    std::string text = "marks of steps do not fit the work: ";
    if (InOps()) {
      text += fmt::format("{} of {} begin in the middle of an operator", FormatCount(in_ops_),
                          FormatCount(marks_.size()));
    }
    if (Elsewhere()) {
      text += fmt::format(
          "{}{} of {} backward operators belong to the forward pass of an earlier "
          "step",
          InOps() ? ", and " : "", FormatCount(elsewhere_), FormatCount(backward_));
    }
    text += "; steps are made of parts of two";
    return {.kind = FindingKind::kMarks,
            .about = About::kStep,
            .text = std::move(text),
            .where = {},
            .time = {},
            .share = 1,
            .fix = "use the file as it was recorded; marks need the clock of the operators"};
  }

 private:
  bool InOps() const { return in_ops_ >= kFewMarks && in_ops_ * kMarksInOps >= marks_.size(); }
  bool Elsewhere() const {
    return backward_ >= kFewBackward && elsewhere_ * kBackwardElsewhere >= backward_;
  }

  size_t NumberOf(const Step* mark) const {
    return static_cast<size_t>(std::ranges::find(marks_, mark) - marks_.begin());
  }

  // The last mark that begins at `t` or before; nullptr: all begin later.
  const Step* MarkAt(Instant t) const {
    const auto next =
        std::ranges::upper_bound(marks_, t, {}, [](const Step* s) { return s->begin; });
    return next == marks_.begin() ? nullptr : *(next - 1);
  }

  // On the thread of the marks an operator may be around whole marks; who called a backward pass
  // waits for its end.
  void CountMarksInOps(LaneId lane) {
    absl::flat_hash_map<NameId, bool> backward;  // by the names of operators
    std::vector<bool> in_op(marks_.size());
    for (size_t row = 0; row < trace_.rows(); ++row) {
      if (trace_.kind[row] != EventKind::kOp) continue;
      const Instant begin = trace_.start[row] + kClockRounds, end = trace_.End(row);
      const Step* mark = MarkAt(end - kClockRounds);
      if (mark == nullptr || begin >= mark->begin) continue;
      if (trace_.lane[row] != lane) {
        const auto [it, fresh] = backward.try_emplace(trace_.name[row], false);
        if (fresh) it->second = Contains(trace_.EventName(row), "Backward");
        if (!it->second) continue;
      } else if (end + kClockRounds >= mark->end) {
        continue;
      }
      in_op[NumberOf(mark)] = true;
    }
    in_ops_ = static_cast<size_t>(std::ranges::count(in_op, true));
  }

  const OpDetail* OpOf(size_t row) const {
    if (trace_.kind[row] != EventKind::kOp || trace_.detail[row] >= trace_.ops.size()) {
      return nullptr;
    }
    return &trace_.ops[trace_.detail[row]];
  }

  void CountBackward() {
    std::vector<std::pair<int64_t, Instant>> forward;  // by number, then begin
    for (size_t row = 0; row < trace_.rows(); ++row) {
      const OpDetail* op = OpOf(row);
      if (op == nullptr || op->sequence < 0 || op->forward_thread > 0) continue;
      forward.emplace_back(op->sequence, trace_.start[row]);
    }
    std::ranges::sort(forward);
    for (size_t row = 0; row < trace_.rows(); ++row) {
      const OpDetail* op = OpOf(row);
      if (op == nullptr || op->sequence < 0 || op->forward_thread <= 0) continue;
      const auto after =
          std::ranges::lower_bound(forward, std::pair(op->sequence, trace_.start[row]));
      if (after == forward.begin() || (after - 1)->first != op->sequence) continue;
      const Step* of_forward = MarkAt((after - 1)->second);
      if (of_forward == nullptr) continue;
      ++backward_;
      elsewhere_ += MarkAt(trace_.start[row]) != of_forward;
    }
  }

  const Trace& trace_;
  std::vector<const Step*> marks_;
  size_t in_ops_ = 0, backward_ = 0, elsewhere_ = 0;
};

}  // namespace

std::vector<Finding> FindingsOfMovedMarks(const Steps& steps, const Trace& trace) {
  if (!AreMarks(steps)) return {};
  const MovedMarks moved(steps, trace);
  return moved.Any() ? std::vector<Finding>{moved.Tell()} : std::vector<Finding>{};
}

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
