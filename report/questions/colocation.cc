#include "report/questions/colocation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/repeat.h"
#include "graph/validate.h"
#include "simulator/simulate.h"

namespace daydream {
namespace {

// Steps of the slower program, and what both together may hold.
constexpr double kSteps = 8;
constexpr double kMostTasks = 6e6;
// A step may differ so much from the recorded one when it is played over and over.
constexpr double kMostOff = 0.10;

// Begin of the GPU work of every step of one of the programs in a timeline of both.
struct Begins {
  std::vector<Instant> begin;
  Instant end;
};

Begins BeginsOf(const Graph& program, const Timeline& timeline, size_t first_task,
                const std::vector<TaskId>* copies) {
  Begins out{.begin = std::vector<Instant>(program.steps().size(),
                                           Instant{std::numeric_limits<int64_t>::max()}),
             .end = {}};
  for (size_t i = 0; i < program.size(); ++i) {
    const Task& task = program.task(TaskId(i));
    if (!IsGpu(task.kind) || task.removed) continue;
    const size_t at = copies != nullptr ? (*copies)[i].index() : first_task + i;
    out.begin[task.step] = std::min(out.begin[task.step], timeline.start[at]);
    out.end = std::max(out.end, timeline.end[at]);
  }
  return out;
}

// Mean distance of the steps that begin in [from, to].
ColocatedProgram Measure(const Begins& begins, Instant from, Instant to) {
  ColocatedProgram program;
  Instant first, last;
  size_t seen = 0;
  for (Instant begin : begins.begin) {
    if (begin < from || to < begin) continue;
    if (seen++ == 0) first = begin;
    last = begin;
  }
  if (seen < 2) return program;
  program.steps = seen - 1;
  program.together = (last - first) / static_cast<int64_t>(seen - 1);
  return program;
}

absl::Status Refuse(std::string what, std::string fix) {
  return MakeStatus(absl::StatusCode::kFailedPrecondition,
                    {.code = "E0812", .what = std::move(what), .fix = std::move(fix)});
}

struct Steady {
  Duration period, recorded;
  double gpu_busy = 0;
};

absl::StatusOr<Steady> PlayAlone(const Graph& graph, uint16_t step) {
  DD_ASSIGN_OR_RETURN(Graph repeated, RepeatStep(graph, step, 6));
  DD_ASSIGN_OR_RETURN(Timeline timeline, Simulate(repeated));
  const Begins begins = BeginsOf(repeated, timeline, 0, nullptr);
  Steady steady;
  steady.period = Measure(begins, begins.begin[2], begins.end).together;
  Duration kernels;
  for (const Task& t : repeated.tasks()) {
    if (t.kind == TaskKind::kKernel && !t.removed && t.step == 3) kernels += t.duration;
  }
  if (steady.period <= Duration{}) {
    return Refuse("colocate: a program has no GPU work whose steps could be repeated",
                  "record some training steps with their GPU work");
  }
  // Where no period was recorded there is nothing to compare with.
  steady.recorded = graph.steps()[step].recorded_period;
  if (steady.recorded <= Duration{}) steady.recorded = steady.period;
  if (const double off = steady.period.seconds() / steady.recorded.seconds() - 1;
      !(std::abs(off) <= kMostOff)) {
    return MakeStatus(
        absl::StatusCode::kFailedPrecondition,
        {.code = "E0814",
         .what = fmt::format("colocate: a step of {:.1f} ms takes {:.1f} ms when it is repeated",
                             steady.recorded.ms(), steady.period.ms()),
         .why = "steps of this program overlap, wait for another, or have work between them; one "
                "that is played over and over by itself is another program",
         .effect = "what it does beside a second program would not be predicted faithfully",
         .fix = "a recording whose steps do not depend on each other, or --opt 'colocate(OTHER)', "
                "which keeps the steps of the trace looked at as they were recorded"});
  }
  steady.gpu_busy = kernels.seconds() / steady.period.seconds();
  return steady;
}

}  // namespace

absl::StatusOr<Colocation> PredictColocation(const Graph& first, const Graph& second,
                                             GpuPolicy policy, const ShareRules& rules) {
  DD_RETURN_IF_ERROR(CheckSameGpu(first, second));
  const std::array<const Graph*, 2> sources = {&first, &second};
  std::array<Steady, 2> alone;
  std::array<uint16_t, 2> step{};
  for (size_t i = 0; i < 2; ++i) {
    step[i] = TypicalStep(*sources[i]);
    DD_ASSIGN_OR_RETURN(alone[i], PlayAlone(*sources[i], step[i]));
  }
  const double length = kSteps * std::max(alone[0].period.seconds(), alone[1].period.seconds());
  std::array<Graph, 2> repeated;
  double tasks = 0;
  for (size_t i = 0; i < 2; ++i) {
    const double times = std::ceil(length / alone[i].period.seconds()) + 2;
    const double steps = std::max<size_t>(sources[i]->steps().size(), 1);
    tasks += times * static_cast<double>(sources[i]->size()) / steps;
    if (tasks > kMostTasks || times > kMostCopies) {
      return Refuse("colocate: the steps of one program are too short beside those of the other",
                    "record less of the longer step");
    }
    DD_ASSIGN_OR_RETURN(repeated[i], RepeatStep(*sources[i], step[i], static_cast<int>(times)));
  }
  Graph both = repeated[0];
  Editor edit(both);
  const std::vector<TaskId> copies = AddProgram(edit, repeated[1]);
  const Turns turns = TakeTurns(edit, policy, rules);
  edit.Finish();
  DD_RETURN_IF_ERROR(ValidateButCycles(both));
  DD_ASSIGN_OR_RETURN(Timeline timeline, Simulate(both));
  const std::array<Begins, 2> begins = {BeginsOf(repeated[0], timeline, 0, nullptr),
                                        BeginsOf(repeated[1], timeline, 0, &copies)};
  const Instant from = std::max(begins[0].begin[1], begins[1].begin[1]);
  const Instant to = std::min(begins[0].end, begins[1].end);
  Colocation result;
  result.kept = turns.time.ns > 0 ? turns.kept.seconds() / turns.time.seconds() : 1;
  for (size_t i = 0; i < 2; ++i) {
    result.programs[i] = Measure(begins[i], from, to);
    result.programs[i].alone = alone[i].period;
    result.programs[i].recorded = alone[i].recorded;
    result.programs[i].gpu_busy = alone[i].gpu_busy;
    if (result.programs[i].steps == 0) {
      return Refuse("colocate: no two steps of a program begin while both run",
                    "the steps differ too much in length");
    }
  }
  return result;
}

}  // namespace daydream
