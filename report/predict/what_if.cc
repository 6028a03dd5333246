#include "report/predict/what_if.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "report/parallel.h"
#include "report/predict/predict.h"
#include "report/predict/settings.h"
#include "simulator/simulate.h"
#include "transforms/analysis/batch_sizes.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

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
  size_t main = 0;          // place of the last scenario asked for
  std::vector<bool> asked;  // by place; the others are parts of combinations
};

Agenda MakePlan(std::span<const std::vector<Application>> asked, bool alone) {
  Agenda plan;
  std::unordered_map<std::string, size_t> places;
  auto add = [&](std::vector<Application> scenario) {
    const auto [at, fresh] = places.emplace(Spelled(scenario), plan.scenarios.size());
    if (fresh) plan.scenarios.push_back(std::move(scenario));
    return at->second;
  };
  auto ask = [&](const std::vector<Application>& scenario) {
    const size_t place = add(scenario);
    plan.asked.resize(std::max(plan.asked.size(), place + 1));
    plan.asked[place] = true;
    return place;
  };
  for (const auto& scenario : asked) {
    if (scenario.size() == 1) plan.main = ask(scenario);
    if (scenario.size() > 1 && alone) {
      for (const Application& a : scenario) add({a});
    }
  }
  plan.singles = plan.scenarios.size();
  for (const auto& scenario : asked) {
    if (scenario.size() > 1) ask(scenario);
  }
  if (!asked.empty()) plan.main = ask(asked.back());
  plan.asked.resize(plan.scenarios.size());
  return plan;
}

// A part of a combination that finds something to do only beside the others: how gradients are
// exchanged, beside what puts a trace of one GPU on several. It says nothing alone.
bool OnlyTogether(const Agenda& plan, std::span<const Prediction> results, size_t single) {
  if (plan.asked[single] || results[single].error.ok()) return false;
  const std::string code = DiagnosticOf(results[single].error).code;
  if (code != "E0601" && code != "E0824" && code != "E0825" && code != "E0826") return false;
  const std::string& part = results[single].opts.front();
  auto has = [&](const std::vector<std::string>& opts) {
    return std::find(opts.begin(), opts.end(), part) != opts.end();
  };
  return std::any_of(
      results.begin() + static_cast<ptrdiff_t>(plan.singles), results.end(),
      [&](const Prediction& p) { return p.error.ok() && has(p.opts) && !has(p.left_out); });
}

// A parameter spelled out as it is by default says nothing new.
std::string WithoutDefaults(const Application& a) {
  std::string given;
  for (const ParamSpec& p : a.transform->params) {
    const bool text = p.unit == Unit::kText;
    if (text ? a.params.text(p.name) == p.text_fallback : a.params[p.name] == p.fallback) continue;
    given += fmt::format(
        "{}{}={}", given.empty() ? "" : ",", p.name,
        text ? std::string(a.params.text(p.name)) : FormatValue(a.params[p.name], p.unit));
  }
  return given.empty() ? std::string(a.transform->name)
                       : fmt::format("{}({})", a.transform->name, given);
}

}  // namespace

std::string ThroughputNote(double samples, Duration step, double gain) {
  return fmt::format(
      "a step handles {:.4g} times the examples: {:.4g} ms for as many as recorded, "
      "{:.2f}x the throughput",
      samples, step.ms() / samples, gain);
}

std::string_view Name(Confidence c) {
  constexpr std::string_view kNames[] = {"measured", "given", "high", "medium", "low"};
  static_assert(std::size(kNames) == static_cast<size_t>(Confidence::kLow) + 1);
  return kNames[static_cast<size_t>(c)];
}

absl::Status ApplyAll(std::span<const Application> scenario, Graph& graph,
                      const std::function<absl::Status(const Application&, Applied*)>& each,
                      EndColumns* ends, EditNotes notes) {
  absl::Status nothing;
  size_t done = 0;
  for (const Application& application : scenario) {
    if (ends != nullptr) ends->Begin(&application - scenario.data(), application.params);
    auto applied = Apply(application, graph, ends, notes);
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
  const bool once = scenarios.empty();
  DD_ASSIGN_OR_RETURN(Timeline timeline, Simulate(built.graph, {.path = true, .once = once}));
  WhatIfOptions wanted = options;  // what only scenarios are compared with is left out without any
  wanted.intervals &= !scenarios.empty();
  wanted.explain &= !scenarios.empty();
  Baseline base = MakeBaseline(built.graph, std::move(timeline), wanted);
  base.samples = replay.batch.samples;
  out.memory = base.memory;
  Agenda plan = MakePlan(scenarios, options.alone);
  std::vector<Prediction> results(plan.scenarios.size());
  std::vector<bool> is_done(results.size());
  // A single scenario has all threads for itself.
  WhatIfOptions one = options;
  one.jobs = results.size() == 1 ? options.jobs : 1;
  std::mutex mutex;
  size_t done = 0;
  if (options.progress) options.progress(done, results.size());
  ForEachParallel(results.size(), options.jobs, [&](size_t i) {
    if (options.stopped && options.stopped()) return;
    WhatIfOptions own = one;
    const bool shown = options.explain_all || i == plan.main;
    own.explain &= shown;
    own.why &= shown;
    results[i] = Predict(base, out.replay, plan.scenarios[i], own);
    std::lock_guard lock(mutex);
    is_done[i] = true;
    if (options.progress) options.progress(++done, results.size());
  });

  std::vector<size_t> order;
  size_t singles = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!is_done[i]) {
      out.not_done.push_back(NameOf(plan.scenarios[i]));
      continue;
    }
    order.push_back(i);
    singles += i < plan.singles ? 1 : 0;
  }
  out.main_done = results.empty() || is_done[plan.main];
  // Singles by gain for as many examples; those that failed come last, bounds after predictions.
  auto rank = [&](size_t i) {
    const Prediction& p = results[i];
    return std::make_tuple(!p.error.ok(), p.bound, p.throughput_gain);
  };
  std::stable_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(singles),
                   [&](size_t a, size_t b) { return rank(a) < rank(b); });
  out.predictions.push_back(BaselinePrediction(base, out.replay));
  std::erase_if(order, [&](size_t i) { return OnlyTogether(plan, results, i); });
  for (size_t i : order) {
    if (i == plan.main) out.main = out.predictions.size();
    out.predictions.push_back(std::move(results[i]));
  }
  return out;
}

BatchSize FindBatchSize(const Graph& graph) {
  OpShapes shapes(graph);
  const BatchSizes sizes(graph, shapes);
  if (sizes.examples() == 0) return {};
  return {static_cast<double>(sizes.examples()), sizes.told_by()};
}

std::string LearnedName(std::span<const Application> scenario) {
  std::vector<std::string> names;
  for (const Application& a : scenario) names.push_back(WithoutDefaults(a));
  std::sort(names.begin(), names.end());
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : "+") + name;
  return out;
}

std::string DeviceName(const Graph& graph) {
  return graph.tables().devices.empty() ? "" : graph.tables().devices[0].name;
}

}  // namespace daydream
