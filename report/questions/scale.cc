#include "report/questions/scale.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "report/parallel.h"
#include "report/predict/what_if.h"
#include "report/questions/slowest_rank.h"
#include "simulator/simulate.h"
#include "transforms/parallel/jitter.h"
#include "transforms/parallel/transfers.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

// 10 % of a normal distribution lie beyond.
constexpr double kTail = 1.2816;
constexpr double kFabricError = 0.2;
// Less than this share of a step is no reason for anything.
constexpr double kMatters = 0.02;

using Spans = std::vector<std::pair<Instant, Instant>>;

Duration CoveredBy(Spans& spans, Instant begin, Instant end) {
  std::sort(spans.begin(), spans.end());
  Duration covered;
  Instant at = begin;
  for (const auto& [from, to] : spans) {
    const Instant b = std::max(from, at), e = std::min(to, end);
    if (e > b) covered += e - b, at = e;
  }
  return covered;
}

// Collective time that no other GPU work hides, a step: busy with either, less busy with work.
Duration ExposedOf(const Graph& graph, const Timeline& timeline) {
  Spans all, work;
  std::set<uint16_t> steps;  // with GPU work
  Instant end;
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& task = graph.task(TaskId(i));
    if (task.removed || !IsGpu(task.kind)) continue;
    all.emplace_back(timeline.start[i], timeline.end[i]);
    steps.insert(task.step);
    if (task.kind != TaskKind::kCollective) work.push_back(all.back());
    end = std::max(end, timeline.end[i]);
  }
  const auto count = static_cast<int64_t>(std::max<size_t>(steps.size(), 1));
  return (CoveredBy(all, Instant{}, end) - CoveredBy(work, Instant{}, end)) / count;
}

// The mean period of recorded steps; of a single one all that was recorded of it, with the host, as
// for ranks that are played together.
Duration StepOf(const Graph& graph, const Timeline& timeline) {
  std::set<uint16_t> steps;
  Instant first{std::numeric_limits<int64_t>::max()}, last;
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& task = graph.task(TaskId(i));
    if (task.removed) continue;
    if (IsGpu(task.kind)) steps.insert(task.step);
    first = std::min(first, timeline.start[i]);
    last = std::max(last, timeline.end[i]);
  }
  return steps.size() > 1 || last < first ? StepTime(graph, timeline) : last - first;
}

struct PlayedStep {
  Duration step, exposed;
  Changes changes;
  std::optional<double> slowest;  // times as long, in the mean, as ranks that differ take
};

absl::StatusOr<PlayedStep> PlayStep(const BuiltGraph& built, const std::string& spec, int ranks,
                                    double sd) {
  Graph graph = built.graph;
  PlayedStep out;
  if (!spec.empty()) {
    DD_ASSIGN_OR_RETURN(const std::vector<Application> scenario, ParseScenario(spec));
    DD_RETURN_IF_ERROR(
        ApplyAll(scenario, graph, [&](const Application&, Applied* applied) -> absl::Status {
          if (applied != nullptr) out.changes = applied->changes;
          return absl::OkStatus();
        }));
  }
  DD_ASSIGN_OR_RETURN(const Timeline timeline, Simulate(graph));
  out.step = StepOf(graph, timeline);
  out.exposed = ExposedOf(graph, timeline);
  if (sd > 0 && ranks > 1) out.slowest = SlowestOf(graph, ranks, sd);
  return out;
}

// One GPU of a run of one is the recorded program; of a run that has collectives, without them.
std::string SpecOf(const BuiltGraph& built, int ranks, const ScaleOptions& o) {
  const bool alone = ranks == 1;
  if (alone && CollectivesOf(built.graph).all.empty()) return "";
  std::string spec;
  if (o.fixed_global && !alone) spec = fmt::format("batch(x{:.12g}),", 1.0 / ranks);
  spec += fmt::format("{}({},fabric={}{}{})", o.strategy, ranks, o.fabric,
                      o.more.empty() ? "" : ",", o.more);
  // What changes an exchange finds none on one GPU.
  return alone || o.also.empty() ? spec : spec + "," + o.also;
}

void Spread(const PlayedStep& played, double sd, ScalePoint& p) {
  const Maximum most = MaximumOf(p.ranks);
  const Duration own = played.step - std::min(played.step, played.exposed);
  const double ranks = kTail * std::sqrt(1 + most.variance) * sd * static_cast<double>(own.ns);
  const double fabric = kFabricError * static_cast<double>(played.exposed.ns);
  const Duration wide = Duration::FromDouble(std::hypot(ranks, fabric));
  p.alike = played.step;
  p.exposed = played.exposed;
  p.step = played.slowest ? played.step.Scaled(std::max(1.0, *played.slowest))
                          : played.step + own.Scaled(sd * most.mean);
  p.low = std::max(Duration{}, p.step - wide), p.high = p.step + wide;
  const Duration waits = p.step - p.alike;
  const Duration matters = p.step.Scaled(kMatters);
  p.bound_by = std::max(p.exposed, waits) < matters ? "compute"
               : p.exposed >= waits                 ? "exposed communication"
                                                    : "the slowest rank";
}

}  // namespace

absl::StatusOr<ScaleCurve> ScaleOver(const BuiltGraph& built, std::span<const int> ranks,
                                     const ScaleOptions& options, unsigned jobs) {
  ScaleCurve curve;
  std::vector<absl::StatusOr<PlayedStep>> played(ranks.size() + 1, absl::UnknownError(""));
  ForEachParallel(played.size(), jobs, [&](size_t i) {
    const int n = i < ranks.size() ? ranks[i] : 1;
    played[i] = PlayStep(built, SpecOf(built, n, options), n, options.jitter);
  });
  if (!played.back().ok()) return played.back().status();
  curve.one = played.back()->step;
  for (size_t i = 0; i < ranks.size(); ++i) {
    ScalePoint& p = curve.points.emplace_back(ScalePoint{.ranks = ranks[i]});
    if (!played[i].ok()) {
      p.error = played[i].status();
      continue;
    }
    Spread(*played[i], options.jitter, p);
    curve.changes = std::move(played[i]->changes);
    const double share = options.fixed_global ? ranks[i] : 1.0;
    if (p.step > Duration{}) {
      p.efficiency = static_cast<double>(curve.one.ns) / (share * static_cast<double>(p.step.ns));
    }
  }
  for (const ScalePoint& p : curve.points) {
    if (p.error.ok()) return curve;
  }
  return curve.points.empty() ? absl::StatusOr<ScaleCurve>(curve) : curve.points[0].error;
}

}  // namespace daydream
