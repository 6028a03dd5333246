#include "report/predict/why.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "absl/container/flat_hash_map.h"

#include "report/lane_rows.h"
#include "report/summary.h"
#include "report/text/format.h"
#include "report/windows.h"
#include "simulator/step_batch.h"

namespace daydream {
namespace {

// How much faster the changed work is tried.
constexpr std::array<double, 16> kFactors = {1,   1.1, 1.2, 1.3, 1.4, 1.6, 1.8, 2,
                                             2.5, 3,   4,   5,   6,   8,   16,  64};
constexpr double kEnough = 0.98;
// Gains that level off only where the work is as good as gone are no news.
constexpr double kWorthSaying = 8;
constexpr size_t kOthersNamed = 2;  // of other causes
// Effects below this share of the step are not worth a word.
constexpr double kTooSmall = 0.005;

// Names of limiters; the class of every kernel name is looked up once.
class LimiterNames {
 public:
  explicit LimiterNames(const Graph& graph) : graph_(graph), classes_(graph, GroupBy::kClass) {}

  // Segments of one resource that are alike in this are of one name and lane.
  using Like = std::tuple<Resource, bool, Rule, TaskKind, NameId, bool, LaneId>;
  Like LikeOf(const PathSegment& s) const {
    const Task& task = graph_.task(s.task);
    const bool named = task.kind == TaskKind::kCall || task.kind == TaskKind::kWait ||
                       task.kind == TaskKind::kKernel;
    const bool guessed = task.kind == TaskKind::kKernel && IsGuessed(graph_, s.task);
    return {s.resource, s.lag, s.rule, task.kind, named ? task.name : NameId(), guessed, task.lane};
  }

  std::string Of(const PathSegment& s) {
    const Task& task = graph_.task(s.task);
    if (s.lag && s.rule != Rule::kLaneOrder) return LagName(s.rule);
    // The host's work of it, and its wait for the workers.
    if (s.resource == Resource::kData && task.kind != TaskKind::kData) return "data loading";
    switch (task.kind) {
      case TaskKind::kCall:
      case TaskKind::kWait:
        return std::string(graph_.TaskName(s.task));
      case TaskKind::kHost:
        return OnChannel(s.task) ? LaneTitle(graph_, task.lane) : "host work";
      case TaskKind::kDelay:
        return "unexplained GPU delays";
      case TaskKind::kData:
        return "loader workers";
      case TaskKind::kCollective:
        return "collectives";
      case TaskKind::kMemcpy:
        return "copies";
      case TaskKind::kMemset:
        return "fills";
      case TaskKind::kKernel:
        if (IsGuessed(graph_, s.task)) return fmt::format("GPU work ({})", kGuessed);
        break;
    }
    return classes_.Of(s.task) + " kernels";
  }

 private:
  // No thread's: what a thread waits for that is not in the recording.
  bool OnChannel(TaskId t) const {
    return graph_.lane(graph_.task(t).lane).lane.kind == LaneKind::kChannel;
  }

  static std::string LagName(Rule rule) {
    switch (rule) {
      case Rule::kLaunch:
        return "launch latency";
      case Rule::kHostWait:
        return "returns from waits";
      case Rule::kHandOff:
        return "hand-offs between threads";
      case Rule::kQueue:
        return "full launch queues";
      default:
        return "waits between streams";
    }
  }

  const Graph& graph_;
  Grouper classes_;
};

Limiter TotalOf(const std::vector<Limiter>& path, const Limiter& like) {
  Limiter total{.resource = like.resource, .what = like.what, .lane = {}, .time = {}};
  for (const Limiter& l : path) {
    if (l.resource != like.resource || l.what != like.what) continue;
    total.time += l.time;
    total.count += l.count;
  }
  return total;
}

class Explainer {
 public:
  explicit Explainer(const WhyQuestion& q) : q_(q) {}

  std::optional<Explanation> Explain() {
    const CauseShare* main = MainCause();
    if (main == nullptr) main = LargestGain();
    if (main == nullptr) return std::nullopt;
    out_.cause = main->what;
    out_.opt = main->opt;
    out_.gpu = -main->gpu >= -main->host;
    out_.work = out_.gpu ? -main->gpu : -main->host;
    out_.gained = -main->delta;
    FindExposed();
    FindNext();
    if (out_.work > Duration{}) FindEnough();
    out_.text = Sentence();
    return std::move(out_);
  }

 private:
  Duration Small() const { return q_.step_after.Scaled(kTooSmall); }

  const CauseShare* MainCause() const {
    const CauseShare* main = nullptr;
    auto removed = [](const CauseShare& c) { return -std::min(c.gpu, c.host); };
    for (const CauseShare& c : *q_.causes) {
      if (removed(c) <= Duration{} || c.kind == CauseKind::kJoint) continue;
      if (main == nullptr || removed(c) > removed(*main)) main = &c;
    }
    return main;
  }

  // Where no work of the step goes: what goes is that of a loader, which the step waits for.
  const CauseShare* LargestGain() const {
    const CauseShare* largest = nullptr;
    for (const CauseShare& c : *q_.causes) {
      if (c.delta >= Duration{} || c.kind == CauseKind::kJoint) continue;
      if (largest == nullptr || c.delta < largest->delta) largest = &c;
    }
    return largest;
  }

  void FindExposed() {
    using Key = std::tuple<Resource, std::string, std::string>;
    std::map<Key, const Limiter*> before;
    for (const Limiter& l : *q_.path_before) before[{l.resource, l.what, l.lane}] = &l;
    for (const Limiter& l : *q_.path_after) {
      Exposure e{.limiter = l, .before = {}};
      if (auto it = before.find({l.resource, l.what, l.lane}); it != before.end()) {
        e.before = it->second->time;
        e.count_before = it->second->count;
      }
      if (e.growth() > Small()) out_.exposed.push_back(std::move(e));
    }
    std::stable_sort(out_.exposed.begin(), out_.exposed.end(),
                     [](const Exposure& a, const Exposure& b) { return a.growth() > b.growth(); });
  }

  void FindNext() {
    for (const Limiter& l : *q_.path_after) {
      Limiter total = TotalOf(*q_.path_after, l);
      if (!out_.next.has_value() || total.time > out_.next->time) out_.next = std::move(total);
    }
  }

  // Tasks whose time the cause reduced, with the time they had.
  std::vector<std::pair<TaskId, Duration>> Reduced() const {
    std::map<TaskId, Duration> reduced;
    for (const CauseJournal& journal : q_.journals) {
      if (journal.opt != out_.opt) continue;
      for (const Editor::Edit& e : journal.edits) {
        if (e.duration >= Duration{} || journal.causes[e.cause].what != out_.cause) continue;
        if (e.task.index() < q_.before->size() && !q_.after->task(e.task).removed) {
          reduced.try_emplace(e.task, q_.before->task(e.task).duration);
        }
      }
    }
    return {reduced.begin(), reduced.end()};
  }

  void FindEnough() {
    auto reduced = Reduced();
    if (reduced.empty() || q_.replays == nullptr) return;
    const Replays::Lent batch = q_.replays->Batch(*q_.after);
    if (batch == nullptr) return;
    std::vector<Duration> steps;
    for (size_t first = 0; first < kFactors.size(); first += StepBatch::kWidth) {
      batch->Reset();
      for (size_t s = 0; s < StepBatch::kWidth; ++s) {
        for (const auto& [task, was] : reduced) {
          batch->Set(s, task, was.Scaled(1 / kFactors[first + s]), q_.after->task(task).gap);
        }
      }
      for (Duration d : batch->Run()) steps.push_back(d);
    }
    batch->Reset();
    const Duration most = steps.front() - *std::min_element(steps.begin(), steps.end());
    if (most < Small()) {
      out_.enough = 1;
      return;
    }
    const Duration target = most.Scaled(kEnough);
    size_t at = kFactors.size();
    while (at > 0 && steps.front() - steps[at - 1] >= target) --at;
    out_.enough =
        at + 1 >= kFactors.size() ? std::numeric_limits<double>::infinity() : kFactors[at];
  }

  // Not where kernels alone were recorded.
  bool HasHost() const {
    return std::ranges::any_of(q_.before->lanes(), [](const GraphLane& lane) {
      return lane.lane.kind == LaneKind::kThread;
    });
  }

  // "the host no longer hides conv kernels on GPU 0 stream 7: there the step takes 34.6 ms more".
  // What lies open there takes the place of what is gone: by more than what is lost, it tells
  // nothing of the loss.
  std::string Exposed(const Exposure& e, Duration lost) const {
    const double more = e.limiter.count - e.count_before;
    const bool call = e.limiter.what.starts_with("cuda") || e.limiter.what.starts_with("hip");
    std::string what = e.limiter.what;
    if (call && more >= 1.5) what = fmt::format("{:.0f} more calls of {}", more, what);
    const bool on_host =
        e.limiter.resource == Resource::kCpu || e.limiter.resource == Resource::kData;
    const std::string_view hid = on_host ? "the GPU" : HasHost() ? "the host" : "other GPU work";
    std::string text = fmt::format("{} no longer hides {}", hid, what);
    if (!e.limiter.lane.empty()) text += " on " + e.limiter.lane;
    if (e.growth() <= lost) {
      text += fmt::format(": there the step takes {} more",
                          FormatTime(e.growth(), UnitFor(q_.step_after)));
    }
    return text;
  }

  std::string Sentence() const {
    TimeUnit unit = UnitFor(q_.step_after);
    auto time = [&](Duration d) { return FormatTime(d, unit); };
    if (out_.work <= Duration{}) {
      return fmt::format("{}: the step shrinks by {}, all of it waiting", out_.cause,
                         time(out_.gained)) +
             Rest();
    }
    if (out_.gained > out_.work + out_.work) {
      // Most of what goes is waiting, which is the time of no task.
      return fmt::format("{}: the step shrinks by {}, {} of it work and the rest waiting",
                         out_.cause, time(out_.gained), time(out_.work)) +
             Rest();
    }
    std::string text = fmt::format("{}: {} work shrinks by {}", out_.cause,
                                   out_.gpu ? "GPU" : "host", time(out_.work));
    const Duration lost = out_.work - out_.gained;
    if (lost > std::max(out_.work.Scaled(0.05), Small())) {
      text += fmt::format("; {} of it {} lost", time(std::min(lost, out_.work)),
                          out_.gained <= Duration{} ? "(all) is" : "is");
      Duration grown;
      for (const Exposure& e : out_.exposed) grown += e.growth();
      // What grew explains the loss only if it is of its size.
      if (grown * 2 >= lost) {
        text += " because " + Exposed(out_.exposed.front(), lost);
      } else {
        text += fmt::format(" because it was hidden behind {}",
                            out_.next.has_value() ? out_.next->what : "other work");
      }
    } else {
      text += fmt::format(", the step by {}", time(out_.gained));
    }
    return text + Rest();
  }

  // What else changes the step, so that all adds up, and what limits it then.
  std::string Rest() const {
    std::string text;
    std::vector<const CauseShare*> others;
    Duration rest;
    for (const CauseShare& c : *q_.causes) {
      rest += c.delta;
      if (c.opt == out_.opt && c.what == out_.cause) continue;
      others.push_back(&c);
    }
    rest += std::max(out_.gained, Duration{});  // told already
    std::stable_sort(others.begin(), others.end(), [](const CauseShare* a, const CauseShare* b) {
      return std::llabs(a->delta.ns) > std::llabs(b->delta.ns);
    });
    const auto add = [&](std::string_view what, Duration delta) {
      text += fmt::format("; {}: {} {}", what, delta > Duration{} ? "costs" : "saves",
                          FormatTime(Duration::Ns(std::llabs(delta.ns)), UnitFor(q_.step_after)));
      rest -= delta;
    };
    for (size_t i = 0; i < std::min(others.size(), kOthersNamed); ++i) {
      if (std::llabs(others[i]->delta.ns) > Small().ns) add(others[i]->what, others[i]->delta);
    }
    if (std::llabs(rest.ns) > Small().ns) add("all else", rest);
    if (out_.next.has_value()) text += fmt::format("; then bound by {}", out_.next->what);
    if (out_.enough.has_value() && *out_.enough == 1) {
      text += "; making the changed work even faster gains nothing more";
    } else if (out_.enough.has_value() && *out_.enough <= kWorthSaying) {
      text += fmt::format("; making the changed work more than {:.1f} times faster does not help",
                          *out_.enough);
      if (out_.next.has_value()) text += fmt::format(": then the limit is {}", out_.next->what);
    }
    return text;
  }

  const WhyQuestion& q_;
  Explanation out_;
};

}  // namespace

std::vector<Limiter> PathByLimiter(const Graph& graph, const CountedPath& counted) {
  using Key = std::tuple<Resource, std::string, std::string>;
  std::map<Key, Limiter> found;
  LimiterNames names(graph);
  absl::flat_hash_map<LimiterNames::Like, Limiter*> known;  // each text is written once
  ForEachClipped(counted.path, counted.windows, [&](const PathSegment& s, Duration d) {
    const auto [like, fresh] = known.try_emplace(names.LikeOf(s), nullptr);
    if (fresh) {
      const std::string what = names.Of(s);
      std::string lane = LaneTitle(graph, graph.task(s.task).lane);
      if (lane == what) lane.clear();
      Limiter& l = found[{s.resource, what, lane}];
      l.resource = s.resource, l.what = what, l.lane = lane;
      like->second = &l;
    }
    like->second->time += d;
    like->second->count += 1;
  });
  std::vector<Limiter> out;
  const auto steps = static_cast<int64_t>(counted.windows.size());
  for (auto& [key, l] : found) {
    l.time = l.time / steps;
    l.count /= static_cast<double>(steps);
    out.push_back(std::move(l));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Limiter& a, const Limiter& b) { return a.time > b.time; });
  return out;
}

std::optional<Explanation> ExplainPrediction(const WhyQuestion& question) {
  return Explainer(question).Explain();
}

}  // namespace daydream
