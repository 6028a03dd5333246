#include "report/questions/far_longer.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "absl/container/flat_hash_set.h"
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

// A piece of work of a thread, and where it is among those of its name.
struct Piece {
  NameId name;
  uint32_t step = 0;    // among those that count
  uint32_t number = 0;  // within the step
  TaskId task;
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
    std::vector<Piece> pieces;
    absl::flat_hash_set<NameId> takes_long;
    for (TaskId id = first; id.valid(); id = graph_.task(id).lane_next) {
      const Task& t = graph_.task(id);
      const bool works = t.kind == TaskKind::kCall ||
                         (t.kind == TaskKind::kHost && !IsOutsideOfOperators(graph_, id));
      if (!works || t.removed || t.step >= place_.size() || place_[t.step] == kNotCounted) continue;
      if (loader_.Around(t.scope).valid()) continue;
      pieces.push_back({t.name, static_cast<uint32_t>(place_[t.step]), 0, id});
      if (t.duration >= least_) takes_long.insert(t.name);
    }
    std::erase_if(pieces, [&](const Piece& p) { return !takes_long.contains(p.name); });
    std::ranges::stable_sort(pieces, {}, [](const Piece& p) { return std::pair(p.name, p.step); });
    for (auto next = pieces.begin(); next != pieces.end();) {
      const auto begin = next;
      while (next != pieces.end() && next->name == begin->name) ++next;
      FindOfName({begin, next});
    }
  }

  // In the order of steps.
  void FindOfName(std::span<Piece> pieces) {
    if (WaitsForOthers(graph_.Name(pieces[0].name))) return;
    std::vector<Duration> times;
    for (const Piece& p : pieces) times.push_back(graph_.task(p.task).duration);
    const Duration usual = Median(std::move(times));
    size_t steps_with = 0, fewest = SIZE_MAX, most = 0;
    for (size_t i = 0, begin = 0; i < pieces.size(); ++i) {
      if (pieces[i].step != pieces[begin].step) begin = i;
      pieces[i].number = static_cast<uint32_t>(i - begin);
      if (i + 1 < pieces.size() && pieces[i + 1].step == pieces[i].step) continue;
      ++steps_with;
      fewest = std::min(fewest, i + 1 - begin);
      most = std::max(most, i + 1 - begin);
    }
    const size_t off = most - (steps_with < steps_ ? 0 : fewest);
    std::vector<Piece> long_ones;
    for (const Piece& p : pieces) {
      const Duration time = graph_.task(p.task).duration;
      if (time >= usual * kTimesUsual && time - usual >= least_) long_ones.push_back(p);
    }
    if (long_ones.size() > kMostLong) return;
    for (const Piece& p : long_ones) {
      std::set<uint32_t> steps;
      for (const Piece& other : long_ones) {
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

std::optional<Finding> FindingOfSomeSteps(const Graph& graph, const Stalls& stalls,
                                          bool steps_differ) {
  std::vector<Stall> told;
  std::ranges::copy_if(stalls.waits, std::back_inserter(told), [](const Stall& s) {
    // Where many were held up, a finding of their own tells (op_stalls).
    return s.kind != StallKind::kBatch && s.kind != StallKind::kHeldUp;
  });
  Duration recorded, taken;
  for (size_t s : CountedSteps(graph)) recorded += graph.steps()[s].recorded_period;
  const bool much = steps_differ && IdleMeanwhile(told, graph) >= recorded.Scaled(kOfStep);
  if (!much) std::erase_if(told, [](const Stall& s) { return !s.far; });
  if (told.empty()) return std::nullopt;
  const Stall first = *std::ranges::max_element(told, {}, &Stall::taken);
  std::erase_if(told, [&](const Stall& s) { return s.taken() * 10 < first.taken(); });
  for (const Stall& s : told) taken += s.taken();
  const size_t count = told.size();
  const bool pauses = std::ranges::none_of(told, &Stall::is_operator);
  return Finding{
      .kind = FindingKind::kSomeSteps,
      .about = much ? About::kStep : About::kPredictions,
      .text = fmt::format("{} in some steps {} {} longer than the same work in others ({}: {}); "
                          "predictions keep what steps are longer for it, and no option "
                          "saves any of it",
                          Plural(count, pauses ? "pause" : "call"), count == 1 ? "takes" : "take",
                          FormatTime(taken), Printable(first.what), FormatTime(first.time)),
      .where = fmt::format("{}: {}, usually {}", first.what, FormatTime(first.time),
                           FormatTime(first.kept)),
      .time = taken,
      .share = std::min(taken.seconds() / std::max(recorded.seconds(), 1e-9), 1.0),
      .fix = pauses ? "see what the program does there (a log, a checkpoint, a validation); if it "
                      "is no part of every run, record later"
                    : "see what the program does there (garbage collection, a busy core); if it "
                      "happens once, record later"};
}

}  // namespace daydream
