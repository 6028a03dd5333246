#include "report/what_if.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <thread>

#include "report/causes.h"
#include "report/intervals.h"
#include "report/settings.h"
#include "report/windows.h"
#include "simulator/simulate.h"

namespace daydream {
namespace {

// The unchanged graph, which every prediction is compared with.
struct Baseline {
  const Graph* graph = nullptr;
  Duration step;
  BoundBy path;
};

BoundBy PathPerStep(const Graph& graph, const Timeline& timeline) {
  std::vector<Window> windows = CountedWindows(graph, timeline);
  std::vector<PathSegment> inside;
  ForEachClipped(CriticalPath(graph, timeline), windows, [&](const PathSegment& s, Duration d) {
    PathSegment part = s;
    part.begin = s.begin;
    part.end = s.begin + d;
    inside.push_back(part);
  });
  BoundBy path = SumByResource(inside);
  for (Duration* d : {&path.gpu, &path.cpu, &path.comm, &path.data}) {
    *d = *d / static_cast<int64_t>(windows.size());
  }
  return path;
}

void Merge(Changes& into, const Changes& from) {
  into.scaled += from.scaled;
  into.set += from.set;
  into.inserted += from.inserted;
  into.removed += from.removed;
  into.fused += from.fused;
  into.moved += from.moved;
  into.edges += from.edges;
  auto add_new = [](std::vector<std::string>& to, const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      if (std::find(to.begin(), to.end(), text) == to.end()) to.push_back(text);
    }
  };
  add_new(into.notes, from.notes);
  add_new(into.warnings, from.warnings);
  into.memory.insert(into.memory.end(), from.memory.begin(), from.memory.end());
}

double Ratio(Duration a, Duration b) {
  if (b.ns <= 0) return a.ns <= 0 ? 1 : std::numeric_limits<double>::infinity();
  return static_cast<double>(a.ns) / static_cast<double>(b.ns);
}

// Text of --opt for one application.
std::string SpelledAs(const Application& a) {
  return a.params.spelled().empty() ? std::string(a.transform->name) : a.params.spelled();
}

// Applies the applications one after another, replaying after each, so that the change of the
// step time belongs to one application exactly.
absl::Status PlayInto(Prediction& p, const Baseline& base, std::span<const Application> scenario) {
  Graph graph = *base.graph;
  Duration before = base.step;
  BoundBy path = base.path;
  auto replay = [&](const Application& application, const Applied* applied) -> absl::Status {
    if (applied == nullptr) {
      p.left_out.push_back(SpelledAs(application));
      return absl::OkStatus();
    }
    DD_ASSIGN_OR_RETURN(Timeline timeline, Simulate(graph, {.blockers = true}));
    Duration step = StepTime(graph, timeline);
    // A limit only takes work away. That a median over uneven steps can still come out longer (the
    // step's border moves) does not make it a worse limit than the step it was applied to.
    if (application.transform->bound) step = std::min(step, before);
    p.path = PathPerStep(graph, timeline);
    BoundBy both = {path.gpu + p.path.gpu, path.cpu + p.path.cpu, path.comm + p.path.comm,
                    path.data + p.path.data};
    std::vector<CauseShare> shares = SplitByCause(step - before, application.transform->name,
                                                  applied->causes, graph.steps().size(), both);
    p.causes.insert(p.causes.end(), shares.begin(), shares.end());
    Merge(p.changes, applied->changes);
    p.bound |= applied->bound;
    before = step;
    path = p.path;
    return absl::OkStatus();
  };
  DD_RETURN_IF_ERROR(ApplyAll(scenario, graph, replay));
  p.step = before;
  return absl::OkStatus();
}

// Joins causes of the same name; largest effect first.
void TidyCauses(std::vector<CauseShare>& causes) {
  std::vector<CauseShare> out;
  for (CauseShare& c : causes) {
    auto same = [&](const CauseShare& o) { return o.what == c.what && o.opt == c.opt; };
    auto it = std::find_if(out.begin(), out.end(), same);
    if (it == out.end()) {
      out.push_back(std::move(c));
    } else {
      it->delta += c.delta;
    }
  }
  auto size = [](const CauseShare& c) { return c.delta.ns < 0 ? -c.delta.ns : c.delta.ns; };
  std::stable_sort(out.begin(), out.end(),
                   [&](const CauseShare& a, const CauseShare& b) { return size(a) > size(b); });
  causes = std::move(out);
}

absl::StatusOr<Duration> StepWith(const Graph& original, std::span<const Application> scenario) {
  Graph graph = original;
  DD_RETURN_IF_ERROR(ApplyAll(scenario, graph));
  DD_ASSIGN_OR_RETURN(Timeline timeline, Simulate(graph));
  return StepTime(graph, timeline);
}

// Replays the scenario with every open parameter at either end of its plausible range.
std::vector<ParamEnds> TryParams(const Prediction& p, const Baseline& base,
                                 const std::vector<Application>& scenario) {
  std::vector<ParamEnds> out;
  for (size_t i = 0; i < scenario.size(); ++i) {
    for (const ParamSpec& spec : scenario[i].transform->params) {
      if (spec.unit == Unit::kText || !(spec.low < spec.high)) continue;
      if (scenario[i].params.given(spec.name)) continue;
      auto at = [&](double value) {
        std::vector<Application> changed = scenario;
        auto with = WithParam(scenario[i], spec.name, FormatValue(value, spec.unit));
        if (!with.ok()) return p.step;
        changed[i] = *std::move(with);
        // An end of the range that cannot be applied says nothing about the other.
        auto step = StepWith(*base.graph, changed);
        return step.ok() ? *step : p.step;
      };
      out.push_back({at(spec.low), at(spec.high)});
    }
  }
  return out;
}

Prediction Predict(const Baseline& base, const ReplayCheck& replay,
                   const std::vector<Application>& scenario, const WhatIfOptions& options) {
  Prediction p;
  for (const Application& a : scenario) {
    p.opts.push_back(SpelledAs(a));
    p.name += (p.name.empty() ? "" : " + ") + p.opts.back();
  }
  p.error = PlayInto(p, base, scenario);
  if (!p.error.ok()) {
    p.causes.clear();
    p.left_out.clear();
    return p;
  }
  TidyCauses(p.causes);
  p.speedup = Ratio(base.step, p.step);
  std::vector<ParamEnds> ends;
  if (options.intervals && !p.bound) ends = TryParams(p, base, scenario);
  SetInterval(p, replay, ends);
  if (p.bound) {
    p.low = p.high = std::nullopt;
    p.why = "a limit, not a prediction";
  }
  if (!options.intervals) p.low = p.high = std::nullopt;
  return p;
}

// Runs `work(0..count-1)` on `jobs` threads.
void ForEachParallel(size_t count, unsigned jobs, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  auto worker = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min<size_t>(jobs, count); ++i) threads.emplace_back(worker);
  worker();
  for (std::thread& t : threads) t.join();
}

std::string Spelled(const std::vector<Application>& scenario) {
  std::string text;
  for (const Application& a : scenario) {
    text += fmt::format("{}:{},", a.transform->name, a.params.spelled());
  }
  return text;
}

// What is to be predicted: singles first, then combinations; nothing twice.
struct Agenda {
  std::vector<std::vector<Application>> scenarios;
  size_t singles = 0;
  size_t main = 0;  // place of the last scenario asked for
};

Agenda MakePlan(std::span<const std::vector<Application>> asked, bool alone) {
  Agenda plan;
  std::vector<std::string> seen;
  auto add = [&](std::vector<Application> scenario) {
    std::string key = Spelled(scenario);
    auto it = std::find(seen.begin(), seen.end(), key);
    if (it != seen.end()) return static_cast<size_t>(it - seen.begin());
    seen.push_back(std::move(key));
    plan.scenarios.push_back(std::move(scenario));
    return plan.scenarios.size() - 1;
  };
  for (const auto& scenario : asked) {
    if (scenario.size() == 1) plan.main = add(scenario);
    if (scenario.size() > 1 && alone) {
      for (const Application& a : scenario) add({a});
    }
  }
  plan.singles = plan.scenarios.size();
  for (const auto& scenario : asked) {
    if (scenario.size() > 1) add(scenario);
  }
  if (!asked.empty()) plan.main = add(asked.back());
  return plan;
}

}  // namespace

std::string_view Name(Confidence c) {
  constexpr std::string_view kNames[] = {"measured", "high", "medium", "low"};
  return kNames[static_cast<size_t>(c)];
}

absl::Status ApplyAll(std::span<const Application> scenario, Graph& graph,
                      const std::function<absl::Status(const Application&, const Applied*)>& each) {
  absl::Status nothing;
  size_t done = 0;
  for (const Application& application : scenario) {
    auto applied = Apply(application, graph);
    if (applied.ok()) {
      ++done;
    } else if (DiagnosticOf(applied.status()).code == "E0601") {
      nothing = applied.status();
    } else {
      return applied.status();
    }
    if (each) DD_RETURN_IF_ERROR(each(application, applied.ok() ? &*applied : nullptr));
  }
  return done > 0 ? absl::OkStatus() : nothing;
}

absl::StatusOr<Played> Play(const Graph& graph, std::span<const Application> scenario) {
  Played played{graph, {}};
  DD_RETURN_IF_ERROR(ApplyAll(scenario, played.graph));
  DD_ASSIGN_OR_RETURN(played.timeline, Simulate(played.graph, {.blockers = true}));
  return played;
}

absl::StatusOr<WhatIf> PredictAll(const BuiltGraph& built, const ReplayCheck& replay,
                                  std::span<const std::vector<Application>> scenarios,
                                  const WhatIfOptions& options) {
  WhatIf out;
  out.replay = replay;
  DD_ASSIGN_OR_RETURN(Timeline timeline, Simulate(built.graph, {.blockers = true}));
  Baseline base{&built.graph, StepTime(built.graph, timeline), PathPerStep(built.graph, timeline)};
  Prediction unchanged;
  unchanged.name = "baseline";
  unchanged.step = base.step;
  unchanged.path = base.path;
  unchanged.why = "the replay of the recorded steps";

  Agenda plan = MakePlan(scenarios, options.alone);
  std::vector<Prediction> results(plan.scenarios.size());
  std::mutex mutex;
  size_t done = 0;
  ForEachParallel(results.size(), options.jobs, [&](size_t i) {
    results[i] = Predict(base, out.replay, plan.scenarios[i], options);
    std::lock_guard lock(mutex);
    if (options.progress) options.progress(++done, results.size());
  });

  // Singles by gain; those that failed come last, bounds after predictions.
  std::vector<size_t> order(results.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  auto rank = [&](size_t i) {
    const Prediction& p = results[i];
    return std::make_tuple(!p.error.ok(), p.bound, -p.step.ns);
  };
  std::stable_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(plan.singles),
                   [&](size_t a, size_t b) { return rank(a) < rank(b); });
  out.predictions.push_back(std::move(unchanged));
  for (size_t i : order) {
    if (i == plan.main) out.main = out.predictions.size();
    out.predictions.push_back(std::move(results[i]));
  }
  return out;
}

}  // namespace daydream
