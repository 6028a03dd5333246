#include "report/questions/steps_of_one_rank.h"

#include <vector>

#include "report/parallel.h"
#include "report/predict/common_begins.h"
#include "simulator/simulate.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

class TriedSteps : public TriedProgram {
 public:
  TriedSteps(const Baseline& base, const ReplayCheck& replay, const AdviseOptions& advise)
      : base_(base),
        replay_(replay),
        advise_(advise),
        unchanged_(BaselinePrediction(base, replay)),
        begins_(base.graph->size(), *base.copies) {}

  const Prediction& baseline() const override { return unchanged_; }
  size_t tasks() const override { return base_.graph->size(); }

  Prediction Predict(const std::vector<Application>& scenario, std::optional<Duration> least,
                     Told told) const override {
    if (!least.has_value()) begins_.Forget();  // most of the search is done
    return daydream::Predict(base_, replay_, scenario,
                             {.intervals = told != Told::kCauses,
                              .explain = told != Told::kInterval,
                              .why = told != Told::kInterval,
                              .per_example = advise_.per_example,
                              .true_step = advise_.true_step,
                              .least_saved = least,
                              .jobs = least.has_value() ? 1 : advise_.jobs});
  }

  std::vector<Outcome> Play(const std::vector<std::vector<Application>>& scenarios,
                            const std::function<void()>& played) const override {
    std::vector<Outcome> found(scenarios.size());
    ForEachParallel(scenarios.size(), advise_.jobs, [&](size_t i) {
      found[i] = PlayOne(scenarios[i]);
      played();
    });
    return found;
  }

 private:
  Outcome PlayOne(std::span<const Application> scenario) const {
    if (advise_.Stopped()) return {{}, "not played"};
    const CommonBegins::Applied applied = begins_.Apply(scenario);
    if (!applied.status.ok()) return {{}, DiagnosticOf(applied.status).what};
    if (applied.idle != nullptr) {
      return {{}, fmt::format("the others leave {} nothing to do", applied.idle->name)};
    }
    const auto played = PlaySteps(*applied.graph);
    if (!played.ok()) return {{}, DiagnosticOf(played.status()).what};
    const bool whole = !advise_.per_example || !(applied.samples > 0);
    return {StepTime(*applied.graph, played->periods).Scaled(whole ? 1 : 1 / applied.samples), ""};
  }

  const Baseline& base_;
  const ReplayCheck& replay_;
  const AdviseOptions& advise_;
  const Prediction unchanged_;
  mutable CommonBegins begins_;  // locks by itself
};

}  // namespace

std::unique_ptr<TriedProgram> StepsOfOneRank(const Baseline& base, const ReplayCheck& replay,
                                             const AdviseOptions& advise) {
  return std::make_unique<TriedSteps>(base, replay, advise);
}

}  // namespace daydream
