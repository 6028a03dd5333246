#include "report/questions/scale.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
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
// Less than this share of a step is no reason why it got longer.
constexpr double kMatters = 0.001;

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

struct PlayedStep {
  Duration step, exposed, work;
  Changes changes;
  std::optional<double> slowest;  // times as long, in the mean, as ranks that differ take
};

// What a GPU does in a step: work, and collectives that no work hides.
void ReadGpuTimes(const Graph& graph, const Timeline& timeline, PlayedStep& out) {
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
  out.work = CoveredBy(work, Instant{}, end) / count;
  out.exposed = CoveredBy(all, Instant{}, end) / count - out.work;
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

absl::StatusOr<PlayedStep> PlayStep(const BuiltGraph& built, const std::string& spec, int ranks,
                                    double sd) {
  Graph graph = built.graph;
  PlayedStep out;
  if (!spec.empty()) {
    DD_ASSIGN_OR_RETURN(const std::vector<Application> scenario, ParseScenario(spec));
    DD_RETURN_IF_ERROR(
        ApplyAll(scenario, graph, [&](const Application& a, Applied* applied) -> absl::Status {
          Changes& all = out.changes;
          if (applied == nullptr) {
            all.warnings.push_back(
                fmt::format("{} finds nothing to change here", a.transform->name));
            return absl::OkStatus();
          }
          const Changes& one = applied->changes;
          all.notes.insert(all.notes.end(), one.notes.begin(), one.notes.end());
          all.warnings.insert(all.warnings.end(), one.warnings.begin(), one.warnings.end());
          all.conditions.insert(all.conditions.end(), one.conditions.begin(), one.conditions.end());
          return absl::OkStatus();
        }));
  }
  DD_ASSIGN_OR_RETURN(const Timeline timeline, Simulate(graph));
  out.step = StepOf(graph, timeline);
  ReadGpuTimes(graph, timeline, out);
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

using PlayedRank = absl::StatusOr<PlayedStep>;

// The mean over the recorded ranks, each of which stands for all.
PlayedRank MeanOfRanks(std::span<PlayedRank> ranks) {
  PlayedStep mean;
  const auto count = static_cast<int64_t>(ranks.size());
  double slowest = 0;
  size_t drawn = 0;
  for (PlayedRank& r : ranks) {
    if (!r.ok()) return r.status();
    mean.step += r->step, mean.exposed += r->exposed, mean.work += r->work;
    if (r->slowest) slowest += *r->slowest, ++drawn;
  }
  mean.step = mean.step / count, mean.exposed = mean.exposed / count, mean.work = mean.work / count;
  if (drawn == ranks.size()) mean.slowest = slowest / static_cast<double>(drawn);
  mean.changes = std::move(ranks.front()->changes);
  return mean;
}

// What recorded ranks tell of how ranks differ: the standard deviation of their own steps.
double DifferenceOf(std::span<const PlayedRank> alone, Duration mean) {
  double square = 0;
  for (const PlayedRank& p : alone) square += std::pow(static_cast<double>((p->step - mean).ns), 2);
  const auto free = static_cast<double>(alone.size() - 1);
  return mean.ns > 0 ? std::sqrt(square / free) / static_cast<double>(mean.ns) : 0;
}

// What most of the step is, and where most of what n ranks take longer than one comes from.
void ExplainPoint(const PlayedStep& played, Duration one, ScalePoint& p) {
  struct Part {
    std::string_view name;
    Duration time;
  };
  const auto longest = [](std::initializer_list<Part> parts) {
    return *std::max_element(parts.begin(), parts.end(),
                             [](const Part& a, const Part& b) { return a.time < b.time; });
  };
  const Duration busy = played.work + played.exposed;
  const Part waits{"the slowest rank", p.step - p.alike};
  p.bound_by = longest({{"compute", played.work},
                        {"host", p.alike - std::min(p.alike, busy)},
                        {"exposed communication", p.exposed},
                        waits})
                   .name;
  // A host that is late anyway does not see all of what is exposed.
  const Duration more = std::max(Duration{}, p.alike - one);
  const Duration exposed = std::min(p.exposed, more);
  const Part lost = longest(
      {{"exposed communication", exposed}, waits, {"buckets and sharing the GPU", more - exposed}});
  if (p.ranks > 1 && lost.time > p.step.Scaled(kMatters)) p.lost_to = lost.name;
}

void Spread(const PlayedStep& played, size_t recorded, double sd, ScalePoint& p) {
  const Maximum most = MaximumOf(p.ranks);
  const Duration own = played.step - std::min(played.step, played.exposed);
  const double draws = 1.0 / static_cast<double>(recorded) + most.variance;
  const double ranks = kTail * std::sqrt(draws) * sd * static_cast<double>(own.ns);
  const double fabric = kFabricError * static_cast<double>(played.exposed.ns);
  const Duration wide = Duration::FromDouble(std::hypot(ranks, fabric));
  p.alike = played.step;
  p.exposed = played.exposed;
  p.step = played.slowest ? played.step.Scaled(std::max(1.0, *played.slowest))
                          : played.step + own.Scaled(sd * most.mean);
  p.low = std::max(Duration{}, p.step - wide), p.high = p.step + wide;
}

// Steps that are played here or in another process, which tells times only: what else the curve
// needs of one of those is found out here.
class SharedSteps {
 public:
  using Play = std::function<PlayedRank(size_t)>;
  SharedSteps(size_t count, Play play)
      : played(count, absl::UnknownError("")), play_(std::move(play)), here_(count, 0) {}

  absl::Status Run(unsigned jobs, const ScaleShare& share, const std::function<bool()>& stopped) {
    const auto work = [&](size_t i) {
      played[i] = play_(i);
      here_[i] = 1;
      return Told(i);
    };
    if (share == nullptr) {
      ForEachParallel(played.size(), jobs, [&](size_t i) { work(i); });
      return absl::OkStatus();
    }
    DD_RETURN_IF_ERROR(
        share(played.size(), work, [&](const std::string& line) { return Hear(line); }));
    if (stopped && stopped()) return absl::OkStatus();
    for (size_t i = 0; i < played.size(); ++i) {
      if (!played[i].ok()) MakeWhole(i);
    }
    return absl::OkStatus();
  }
  // Whether `count` from `first` on have a step or a reason why there is none.
  bool Known(size_t first, size_t count) const {
    for (size_t i = first; i < first + count; ++i) {
      if (here_[i] == 0 && !played[i].ok()) return false;
    }
    return true;
  }
  // With what was changed, or with why there is none.
  void MakeWhole(size_t i) {
    if (here_[i] == 0) played[i] = play_(i);
    here_[i] = 1;
  }

  std::vector<PlayedRank> played;

 private:
  std::string Told(size_t i) const {
    if (!played[i].ok()) return fmt::format("{}", i);
    const PlayedStep& p = *played[i];
    // 17 digits are the same double again.
    return fmt::format("{} {} {} {} {}", i, p.step.ns, p.exposed.ns, p.work.ns,
                       p.slowest ? fmt::format("{:.17g}", *p.slowest) : "-");
  }
  absl::Status Hear(const std::string& line) {
    std::istringstream in(line);
    size_t i = 0;
    if (!(in >> i) || i >= played.size()) return absl::InternalError("a rank sent no step");
    PlayedStep p;
    std::string slowest;
    if (here_[i] != 0 || !(in >> p.step.ns)) return absl::OkStatus();
    if (!(in >> p.exposed.ns >> p.work.ns >> slowest)) {
      return absl::InternalError("a rank sent half of a step");
    }
    if (slowest != "-") p.slowest = std::strtod(slowest.c_str(), nullptr);
    played[i] = std::move(p);
    return absl::OkStatus();
  }

  Play play_;
  std::vector<char> here_;
};

}  // namespace

absl::StatusOr<ScaleCurve> ScaleOver(std::span<const BuiltGraph* const> recorded,
                                     std::span<const int> ranks, const ScaleOptions& options,
                                     unsigned jobs, const ScaleShare& share) {
  ScaleCurve curve;
  const size_t each = recorded.size();
  std::vector<PlayedRank> alone(each, absl::UnknownError(""));
  ForEachParallel(each, jobs, [&](size_t r) {
    alone[r] = PlayStep(*recorded[r], SpecOf(*recorded[r], 1, options), 1, 0);
  });
  DD_ASSIGN_OR_RETURN(const PlayedStep one, MeanOfRanks(std::span(alone)));
  curve.one = one.step;
  curve.jitter = options.jitter.value_or(each > 1 ? DifferenceOf(alone, one.step) : kUsualJitter);
  SharedSteps steps(ranks.size() * each, [&](size_t i) {
    const BuiltGraph& rank = *recorded[i % each];
    const int n = ranks[i / each];
    return PlayStep(rank, SpecOf(rank, n, options), n, curve.jitter);
  });
  DD_RETURN_IF_ERROR(steps.Run(jobs, share, options.stopped));
  // Changes are told of the last point that has an answer.
  for (size_t i = ranks.size(); i-- > 0;) {
    const auto of = std::span(steps.played).subspan(i * each, each);
    if (!std::ranges::all_of(of, [](const PlayedRank& r) { return r.ok(); })) continue;
    steps.MakeWhole(i * each);
    break;
  }
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (!steps.Known(i * each, each)) {
      ++curve.unplayed;
      continue;
    }
    ScalePoint& p = curve.points.emplace_back(ScalePoint{.ranks = ranks[i]});
    PlayedRank mean = MeanOfRanks(std::span(steps.played).subspan(i * each, each));
    if (!mean.ok()) {
      p.error = mean.status();
      continue;
    }
    Spread(*mean, each, curve.jitter, p);
    ExplainPoint(*mean, options.fixed_global ? one.step / ranks[i] : one.step, p);
    curve.changes = std::move(mean->changes);
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
