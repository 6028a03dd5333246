#include "report/questions/joint_advise.h"

#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "costmodel/network/fabric.h"
#include "report/parallel.h"

namespace daydream {
namespace {

bool RunsOnAmd(const JointRun& run) {
  const std::vector<Device>& devices = run.traces.front()->devices;
  return !devices.empty() && Contains(devices.front().name, "AMD");
}

// The built-in fabric with the highest measured rate of all-reduce that holds the largest group,
// for GPUs of the same vendor. Empty: there is none.
std::string FasterNetwork(const JointRun& run) {
  int32_t largest = 0;
  for (const MatchedRow& row : run.matched.rows) largest = std::max(largest, row.size);
  const auto amd = [](std::string_view name) { return name.starts_with("xgmi"); };
  const bool of_amd = RunsOnAmd(run);
  const Fabric* best = nullptr;
  double rate = 0;
  for (const Fabric& fabric : Fabrics()) {
    if (amd(fabric.name) != of_amd) continue;
    const bool one_node = fabric.levels.size() == 1;
    if (one_node ? largest > fabric.NodeSize() : largest <= fabric.NodeSize()) continue;
    for (const FabricCurve& curve : fabric.levels.back().all_reduce) {
      if (curve.measured() && curve.bus_gbps > rate) best = &fabric, rate = curve.bus_gbps;
    }
  }
  return best == nullptr ? "" : fmt::format("network({})", best->name);
}

// Ranks that are played together.
class RanksTogether : public TriedProgram {
 public:
  RanksTogether(const JointRun& run, const JointAnswer& baseline, const AdviseOptions& advise)
      : run_(run), answer_(baseline), advise_(advise) {
    JointPrediction unchanged;
    unchanged.name = "baseline";
    unchanged.answer = baseline;
    unchanged_ = AsPrediction(baseline, std::move(unchanged));
    // A step without its stalls was not measured as such.
    unchanged_.confidence = run.steady ? Confidence::kLow : Confidence::kMeasured;
    for (const BuiltGraph& b : run.built) tasks_ += b.graph.size();
  }

  const Prediction& baseline() const override { return unchanged_; }
  size_t tasks() const override { return tasks_; }

  Prediction Predict(const std::vector<Application>& scenario, std::optional<Duration> /*least*/,
                     Told /*told*/) const override {
    return AsPrediction(answer_, PredictJoint(run_, answer_, scenario));
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
  Outcome PlayOne(const std::vector<Application>& scenario) const {
    if (advise_.Stopped()) return {{}, "not played"};
    const absl::StatusOr<JointStep> played = StepOnRanks(run_, scenario);
    if (!played.ok()) return {{}, DiagnosticOf(played.status()).what};
    if (!played->left_out.empty()) {
      return {{},
              fmt::format("the others leave {} nothing to do", fmt::join(played->left_out, ", "))};
    }
    return {advise_.per_example ? played->step.Scaled(1 / played->samples) : played->step, ""};
  }

  const JointRun& run_;
  const JointAnswer& answer_;
  const AdviseOptions& advise_;
  Prediction unchanged_;
  size_t tasks_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<Application>> OptionsOfRanks(const JointRun& run) {
  std::vector<Application> options;
  for (const std::string& spec :
       {std::string("bandwidth(x2)"), std::string("latency(x0.5)"), std::string("fp16-compress"),
        std::string("powersgd(4)"), std::string("bucket(1MB)"), std::string("bucket(100MB)"),
        std::string("bucket(25MB,overlap=yes)"), FasterNetwork(run)}) {
    if (spec.empty()) continue;
    DD_ASSIGN_OR_RETURN(std::vector<Application> one, ParseScenario(spec));
    options.push_back(std::move(one.front()));
  }
  return options;
}

Prediction AsPrediction(const JointAnswer& baseline, JointPrediction joint) {
  Prediction p;
  p.name = std::move(joint.name);
  p.opts = std::move(joint.opts);
  p.error = joint.error;
  p.bound = joint.bound;
  if (!p.error.ok()) return p;
  p.left_out = std::move(joint.left_out);
  p.changes = std::move(joint.changes);
  p.step = p.simulated = joint.answer.step;
  p.steps = {p.step};
  p.window = joint.answer.window;
  p.low = joint.low, p.high = joint.high;
  p.speedup = joint.speedup;
  p.throughput_gain = joint.speedup * (p.changes.samples > 0 ? p.changes.samples : 1);
  if (p.low.has_value() && *p.low > Duration{}) {
    const auto before = static_cast<double>(baseline.step.ns);
    p.least_speedup = p.least_as_recorded = before / static_cast<double>(p.high->ns);
    p.most_speedup = before / static_cast<double>(p.low->ns);
  }
  p.confidence = joint.confidence;
  p.why = std::move(joint.why), p.raise = std::move(joint.raise);
  p.causes = std::move(joint.causes);
  const std::vector<RankAccount>& ranks = joint.answer.replay.ranks;
  if (!ranks.empty()) p.path = ranks[SlowestAlone(joint.answer.replay)].own_path;
  return p;
}

absl::StatusOr<std::vector<Option>> SlowestMended(const JointRun& run,
                                                  const JointAnswer& baseline) {
  std::vector<Option> mended;
  for (const std::string_view what : {"host", "gpu"}) {
    DD_ASSIGN_OR_RETURN(
        std::vector<Application> one,
        ParseScenario(
            fmt::format("straggler({},{}=0.9)", run.Number(SlowestAlone(baseline.replay)), what)));
    Prediction p = AsPrediction(baseline, PredictJoint(run, baseline, one));
    if (!p.error.ok()) continue;
    mended.push_back({.application = std::move(one.front()), .prediction = std::move(p)});
  }
  return mended;
}

Advised AdviseRanks(const JointRun& run, const JointAnswer& baseline,
                    std::span<const Application> options, std::span<const Application> limits,
                    const AdviseOptions& advise) {
  return Advise(RanksTogether(run, baseline, advise), options, limits, advise);
}

}  // namespace daydream
