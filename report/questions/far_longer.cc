#include "report/questions/far_longer.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "absl/container/flat_hash_map.h"
#include "base/median.h"
#include "base/text.h"
#include "report/text/format.h"
#include "report/windows.h"
#include "simulator/simulate.h"
#include "transforms/analysis/loader.h"

namespace daydream {
namespace {

// As of stalls.
constexpr int64_t kTimesUsual = 20;
constexpr double kOfStep = 0.10;

struct Piece {
  TaskId task;
  size_t step;    // among those that count
  size_t number;  // of its name, within the step
};

// What a thread does under one name.
struct OfName {
  std::vector<size_t> counts;  // by step
  std::vector<Duration> times;
  std::vector<Piece> long_ones;
};

class PlaceSearch {
 public:
  explicit PlaceSearch(const Graph& graph) : graph_(graph), loader_(graph) {
    const std::vector<size_t> counted = CountedSteps(graph);
    place_.assign(graph.steps().size(), kNotCounted);
    Duration steps;
    for (size_t s : counted) {
      place_[s] = steps_++;
      steps += graph.steps()[s].recorded_period;
    }
    if (steps_ > 1) {
      least_ = std::min(kLongOp, (steps / static_cast<int64_t>(steps_)).Scaled(kOfStep));
    }
  }

  std::vector<Stall> Run() {
    if (least_ <= Duration{}) return {};  // steps without a length
    if (steps_ < 2) return {};
    for (const GraphLane& lane : graph_.lanes()) {
      if (lane.lane.kind == LaneKind::kThread) SearchThread(lane.first);
    }
    return std::move(found_);
  }

 private:
  static constexpr size_t kNotCounted = SIZE_MAX;
  // Chosen: each is compared with each, and so many are no rare thing.
  static constexpr size_t kMostLong = 4096;

  void SearchThread(TaskId first) {
    absl::flat_hash_map<NameId, OfName> names;
    std::vector<NameId> in_order;
    for (TaskId id = first; id.valid(); id = graph_.task(id).lane_next) {
      const Task& t = graph_.task(id);
      const bool works = t.kind == TaskKind::kCall ||
                         (t.kind == TaskKind::kHost && !IsOutsideOfOperators(graph_, id));
      if (!works || t.removed || t.step >= place_.size() || place_[t.step] == kNotCounted) continue;
      if (loader_.Around(t.scope).valid()) continue;
      const auto [known, fresh] = names.try_emplace(t.name);
      OfName& name = known->second;
      if (fresh) {
        name.counts.resize(steps_);
        in_order.push_back(t.name);
      }
      const size_t step = place_[t.step];
      if (t.duration >= least_) name.long_ones.push_back({id, step, name.counts[step]});
      ++name.counts[step];
      name.times.push_back(t.duration);
    }
    for (const NameId name : in_order) {
      if (!names[name].long_ones.empty()) FindOfName(names[name]);
    }
  }

  void FindOfName(OfName& name) {
    if (WaitsForOthers(graph_.TaskName(name.long_ones.front().task))) return;
    const Duration usual = Median(name.times);
    std::erase_if(name.long_ones, [&](const Piece& p) {
      const Duration time = graph_.task(p.task).duration;
      return time < usual * kTimesUsual || time - usual < least_;
    });
    if (name.long_ones.size() > kMostLong) return;
    const auto [fewest, most] = std::ranges::minmax(name.counts);
    const size_t off = most - fewest;
    for (const Piece& p : name.long_ones) {
      std::set<size_t> steps;
      for (const Piece& other : name.long_ones) {
        const size_t apart = std::max(p.number, other.number) - std::min(p.number, other.number);
        if (apart <= off) steps.insert(other.step);
      }
      if (steps.size() * 2 <= steps_) Add(p.task, usual);
    }
  }

  void Add(TaskId id, Duration usual) {
    const Task& t = graph_.task(id);
    found_.push_back({.task = id,
                      .kind = t.kind == TaskKind::kCall ? StallKind::kCall : StallKind::kOp,
                      .what = std::string(graph_.TaskName(id)),
                      .time = t.duration,
                      .kept = usual,
                      .far = true});
  }

  const Graph& graph_;
  const LoaderScopes loader_;
  std::vector<size_t> place_;  // by step: among those that count
  size_t steps_ = 0;
  Duration least_;
  std::vector<Stall> found_;
};

}  // namespace

std::vector<Stall> FindFarLonger(const Graph& graph) { return PlaceSearch(graph).Run(); }

absl::Status TakeWhatItCosts(std::vector<Stall>& waits, Graph& graph) {
  std::vector<Stall> far;
  Duration taken;
  for (const Stall& s : waits) {
    if (!s.far) continue;
    far.push_back(s);
    taken += s.taken();
  }
  if (taken <= Duration{}) return absl::OkStatus();
  DD_ASSIGN_OR_RETURN(const Timeline recorded, Simulate(graph));
  TakeOut(far, graph);
  DD_ASSIGN_OR_RETURN(const Timeline without, Simulate(graph));
  const auto steps = static_cast<int64_t>(CountedSteps(graph).size());
  const Duration cost = (StepTime(graph, recorded) - StepTime(graph, without)) * steps;
  const double share = std::clamp(cost.seconds() / taken.seconds(), 0.0, 1.0);
  for (Stall& s : waits) {
    if (!s.far) continue;
    s.time = s.kept + s.taken().Scaled(share);
    graph.mutable_task(s.task).duration = s.time;
  }
  return absl::OkStatus();
}

std::optional<Finding> FindingOfFarLonger(const Graph& graph, const Stalls& stalls) {
  Duration taken;
  std::vector<Stall> far;
  std::ranges::copy_if(stalls.waits, std::back_inserter(far), &Stall::far);
  for (const Stall& s : far) taken += s.taken();
  if (far.empty()) return std::nullopt;
  const size_t count = far.size();
  const auto first = std::ranges::max_element(far, {}, &Stall::taken);
  Duration recorded;
  for (size_t s : CountedSteps(graph)) recorded += graph.steps()[s].recorded_period;
  const bool much = IdleMeanwhile(far, graph) >= recorded.Scaled(kOfStep);
  return Finding{
      .kind = FindingKind::kOpStalls,
      .about = much ? About::kStep : About::kPredictions,
      .text = fmt::format("{} in some steps {} {} longer than the same work in others ({}: {}); "
                          "predictions keep what steps are longer for it, and no option "
                          "saves any of it",
                          Plural(count, "call"), count == 1 ? "takes" : "take", FormatTime(taken),
                          Printable(first->what), FormatTime(first->time)),
      .where = fmt::format("{}: {}, usually {}", first->what, FormatTime(first->time),
                           FormatTime(first->kept)),
      .time = taken,
      .share = std::min(taken.seconds() / std::max(recorded.seconds(), 1e-9), 1.0),
      .fix =
          "see what the program does there (garbage collection, a busy core); if it happens "
          "once, record later"};
}

}  // namespace daydream
