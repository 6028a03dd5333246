#include "report/predict/predict.h"

#include <algorithm>
#include <cmath>

#include "costmodel/device.h"
#include "report/parallel.h"
#include "report/predict/capacity.h"
#include "report/predict/check_steps.h"
#include "report/predict/intervals.h"
#include "report/predict/kernel_time.h"
#include "report/predict/model_errors.h"
#include "report/predict/most_saved.h"
#include "report/predict/open_ends.h"
#include "report/predict/profiler_note.h"
#include "report/predict/quick_host.h"
#include "report/predict/residuals.h"
#include "report/predict/settings.h"
#include "report/predict/unchanged.h"
#include "report/predict/unchecked.h"
#include "report/predict/wanted.h"
#include "report/predict/whole_work.h"
#include "report/text/format.h"
#include "report/windows.h"
#include "simulator/simulate.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

// Step times drawn anew for an interval: fewer of large graphs, for about a second in all.
constexpr size_t kLeastResampled = 32;
constexpr size_t kResampledTasks = 100'000'000;

// A scenario applied: the edited graph and what was written down on the way.
struct Outcome {
  GraphCopies::Copy copy;
  const Graph& graph;
  std::unique_ptr<Replays> own = {};
  Replays* replays = nullptr;            // of `graph`: `own`, or those of the recorded one
  Timeline timeline = {};                // HasPath() once there is more to tell than the step
  std::optional<CountedPath> path = {};  // where it is told what limits the step
  std::vector<CauseJournal> journals = {};
  std::shared_ptr<KnownShapes::Shape> shape = {};  // that it is of, where that is known

  absl::StatusOr<Timeline> Replay(const Graph& like, SimulateOptions options = {}) const {
    return replays->Replay(like, graph, options);
  }
};

class Predictor {
 public:
  Predictor(const Baseline& base, const ReplayCheck& replay,
            const std::vector<Application>& scenario, const WhatIfOptions& options,
            const BegunRows::Begun* told)
      : base_(base),
        replay_(replay),
        scenario_(scenario),
        options_(options),
        told_(told),
        wanted_(scenario, replay, options),
        trail_(base.memory),
        begun_(scenario, *base.copies, options.intervals && !options.kernel_time) {}

  Prediction Run() {
    p_.name = NameOf(scenario_);
    for (const Application& a : scenario_) p_.opts.push_back(SpelledAs(a));
    const absl::Status& none = replay_.no_step.ok() ? options_.refused : replay_.no_step;
    auto outcome = none.ok() ? Play() : absl::StatusOr<Outcome>(none);
    if (!outcome.ok()) {
      p_.error = outcome.status();
      p_.left_out.clear();
      return std::move(p_);
    }
    TellMemory(base_.memory, p_);
    if (options_.per_example && p_.changes.samples > 0) scale_ = 1 / p_.changes.samples;
    const Duration played = p_.step, per_example = played.Scaled(scale_);
    p_.simulated = per_example;
    if (options_.least_saved.has_value() &&
        (p_.bound || base_.step - per_example < *options_.least_saved)) {
      p_.can_save = MostSaved(*base_.graph, outcome->graph);
      p_.step = per_example;
      Compare();
      return std::move(p_);
    }
    if (absl::Status traced = wanted_.Path(p_.steps) ? FindPath(*outcome) : absl::OkStatus();
        !traced.ok()) {
      p_.error = traced;
      return std::move(p_);
    }
    PlayMore(*outcome);
    p_.step = per_example;
    if (scale_ != 1) {
      p_.causes.push_back(
          {.what = fmt::format("a step handles {:.4g} times the examples", p_.changes.samples),
           .kind = CauseKind::kJoint,
           .delta = per_example - played,
           .gpu = {},
           .host = {}});
    }
    if (!p_.bound && !wanted_.brief()) {
      p_.unchecked = UncheckedShare(*base_.graph, outcome->journals);
      if (!options_.learned.empty()) Correct();
    }
    Compare();
    if (p_.bound) {
      p_.why = "a limit, not a prediction";
      p_.confidence = Confidence::kLow;
    } else {
      const Doubts doubts = FindDoubts(*outcome);
      SetInterval(p_, doubts);
      if (base_.few_waits) MayGainNothing(base_.step, p_);
      const bool same = p_.step == base_.step && doubts.params.empty();
      if (same && IsAsRecorded(*outcome)) {
        AnswerAs(BaselinePrediction(base_, replay_), p_);
      } else if (absl::Status traced = Doubt(*outcome); !traced.ok()) {
        p_.error = traced;
        return std::move(p_);
      }
    }
    if (!options_.intervals) ForgetInterval(p_);
    const double samples = p_.changes.samples;
    if (samples != 1 && samples > 0 && p_.step > Duration{} && !options_.per_example) {
      p_.changes.notes.push_back(ThroughputNote(samples, p_.step, p_.throughput_gain));
    }
    return std::move(p_);
  }

 private:
  // What the step is against the unchanged one. Its parts follow what was made of the whole.
  void Compare() {
    p_.speedup = Ratio(base_.step, p_.step);
    const double more = options_.per_example || p_.changes.samples <= 0 ? 1 : p_.changes.samples;
    p_.throughput_gain = p_.speedup * more;
    p_.samples = base_.samples * more;
    const Duration played = MeanOf(p_.steps);
    if (played == p_.step || played <= Duration{}) return;
    for (Duration& d : p_.steps) d = d.Scaled(AsDouble(p_.step) / AsDouble(played));
  }

  absl::StatusOr<Outcome> Play() {
    const auto begin = told_ != nullptr ? std::span(scenario_) : CommonBegin();
    std::shared_ptr<const BegunRows::Begun> kept;
    if (told_ == nullptr && !begin.empty()) kept = base_.begun->Find(begin, wanted_.Notes());
    const BegunRows::Begun* const begun = told_ != nullptr ? told_ : kept.get();
    GraphCopies::Copy copy = kept ? base_.copies->MakeOf(*kept->graph) : GraphCopies::Copy();
    if (begun == nullptr) copy = base_.copies->Make();
    Graph& graph = told_ != nullptr ? *told_->graph : *copy;
    Outcome out{std::move(copy), graph};
    if (begun) {
      p_.left_out = begun->left_out, p_.changes = begun->changes, p_.bound = begun->bound;
      out.journals = begun->journals, trail_ = begun->trail;
    }
    limit_ = Duration::Max();
    bool bound_last = false;
    // A limit only takes work away: a step that comes out longer (its border moves) is no worse.
    auto note_one = [&](const Application& a, Applied* applied) -> absl::Status {
      if (options_.intervals) begun_.Keep(a, graph, applied != nullptr);
      Noted{p_.left_out, p_.changes, p_.bound, out.journals, trail_}.Add(a, graph, applied,
                                                                         options_.limits_hold);
      if (applied == nullptr) return absl::OkStatus();
      // A model that says of itself that it reaches too little may well make the step longer.
      bound_last = a.transform->bound && a.transform->file == nullptr;
      if (options_.kernel_time) NoteKernelTime(graph, base_.step, out.journals.back().opt, p_);
      if (&a != &begun_.noted().back() && !applied->bound && AnyBound()) {
        DD_ASSIGN_OR_RETURN(Timeline timeline, Simulate(graph));
        limit_ = TimeOf(graph, timeline, options_);
      } else if (applied->bound && out.journals.size() == 1) {
        limit_ = base_.step;
      }
      return absl::OkStatus();
    };
    auto note = [&](const Application& a, Applied* applied) -> absl::Status {
      DD_RETURN_IF_ERROR(note_one(a, applied));
      if (!begin.empty() && &a == &begun_.noted()[begin.size() - 1]) KeepBegin(begin, out);
      return absl::OkStatus();
    };
    const auto rest = begun_.noted().subspan(begun ? begin.size() : 0);
    const absl::Status done = ApplyAll(rest, graph, note, begun_.columns(), wanted_.Notes());
    if (!done.ok() && (out.journals.empty() || DiagnosticOf(done).code != "E0601")) return done;
    if (graph.structure() != GraphCopies::kStructure) {
      out.own = std::make_unique<Replays>(graph);
    }
    // The graph of a played row takes other times than the row.
    if (!IsPlayed() && graph.facts() == nullptr) graph.ShareFacts(std::make_shared<GraphFacts>());
    if (options_.work && told_ != nullptr) p_.work = told_->work;
    if (options_.work && !p_.work) p_.work = WorkOf(*base_.graph, graph);
    out.replays = out.own != nullptr ? out.own.get() : base_.replays.get();
    DD_RETURN_IF_ERROR(FindStep(out));
    if (p_.step == base_.step) DD_RETURN_IF_ERROR(CheckSteps(p_.name, graph, out.journals));
    if (bound_last) p_.step = std::min(p_.step, limit_);
    AskMoreOfWorkers(base_, p_);
    return out;
  }

  // What other rows may begin with, too: all but the last.
  std::span<const Application> CommonBegin() const {
    if (!wanted_.brief() || options_.kernel_time || AnyBound()) return {};
    return std::span(scenario_).first(scenario_.empty() ? 0 : scenario_.size() - 1);
  }
  // Copies of which only times were set are made sooner than one of these.
  void KeepBegin(std::span<const Application> begin, const Outcome& out) {
    if (out.graph.structure() != 0 || !base_.begun->IsWanted(begin, wanted_.Notes())) return;
    GraphCopies::Copy copy = base_.copies->MakeOf(out.graph);
    copy->ShareFacts(std::make_shared<GraphFacts>());
    base_.begun->Keep(begin, wanted_.Notes(),
                      {std::move(copy), p_.left_out, p_.changes, p_.bound, out.journals, trail_});
  }

  // The step as played; without a timeline where nobody needs it.
  absl::Status FindStep(Outcome& out) {
    const Graph& graph = out.graph;
    const auto tell = [&](Duration step, std::vector<Duration> periods) {
      p_.step = point_ = step;
      p_.steps = CountedPeriods(graph, std::move(periods));
      return absl::OkStatus();
    };
    if (IsPlayed()) return tell(told_->played->step, told_->played->periods);
    const bool quick = !wanted_.Path(p_.steps) && !options_.kernel_time;
    // The step may be all that is asked: then no plan pays.
    const bool once = quick && out.own != nullptr && (options_.least_saved || !options_.intervals);
    // Rows with intervals need more than the step, and have causes in common.
    if (options_.row && out.own != nullptr) {
      auto played = base_.shapes->Play(graph);
      if (played.has_value()) out.shape = std::move(played->shape);
      if (played.has_value() && once && wanted_.brief())
        return tell(played->step, std::move(played->periods));
    }
    if (const Replays::Lent batch = quick && !once ? out.replays->Batch(graph) : nullptr) {
      const Duration step = batch->StepWith({});
      windows_.assign(batch->windows().begin(), batch->windows().end());
      return tell(step, {batch->periods().begin(), batch->periods().end()});
    }
    if (once) {
      auto played = PlaySteps(graph);
      if (!played.ok()) return ErrorOf(p_.name, played.status());
      out.timeline = std::move(played->timeline);
      p_.steps = CountedPeriods(graph, std::move(played->periods));
    } else {
      auto timeline = out.Replay(graph, {.path = wanted_.Path(p_.steps) && !options_.least_saved});
      if (!timeline.ok()) return ErrorOf(p_.name, timeline.status());
      out.timeline = *std::move(timeline);
      p_.steps = TimesOf(graph, out.timeline, options_);
    }
    p_.step = point_ = TimeOf(graph, p_.steps, options_);
    p_.window = WholeLength(out.timeline);
    return absl::OkStatus();
  }

  // What the profiler did to the host depends on the path, which is found for the sake of a word
  // where nothing else asks for it.
  absl::Status Doubt(Outcome& out) {
    if (options_.true_step || p_.confidence != Confidence::kHigh) return absl::OkStatus();
    if (!options_.intervals && !options_.why) return absl::OkStatus();  // never said then
    const HostBound* bound = base_.host_bound.get();
    const bool sure = bound != nullptr && bound->IsSure(out.graph, windows_);
    if (!sure && !wanted_.Why(p_.steps) && HostIsStretched(*base_.graph))
      DD_RETURN_IF_ERROR(FindPath(out));
    sure ? DoubtProfiler(p_) : DoubtProfiler(*base_.graph, p_);
    return absl::OkStatus();
  }

  bool IsPlayed() const { return told_ != nullptr && told_->played; }

  bool IsAsRecorded(const Outcome& out) const {
    if (IsPlayed()) return told_->played->as_recorded;
    return PlaysAlike(*base_.graph, out.graph);
  }

  absl::Status FindPath(Outcome& out) {
    if (!HasPath(out.graph, out.timeline)) {
      DD_ASSIGN_OR_RETURN(out.timeline, out.Replay(out.graph, {.path = true}));
    }
    if (TellsWhy()) {
      out.path.emplace(out.graph, out.timeline);
      p_.path = PathPerStep(*out.path);
    } else {
      p_.path = PathPerStep(out.graph, out.timeline);
    }
    if (!options_.true_step) NoteProfiler(*base_.graph, p_);
    return absl::OkStatus();
  }

  bool AnyBound() const {
    return std::ranges::any_of(scenario_, [](const auto& a) { return a.transform->bound; });
  }
  bool TellsWhy() const { return options_.explain && options_.why && !p_.bound; }

  void Attribute(const Outcome& out) {
    if (options_.kernel_time || !wanted_.Causes(p_.steps) || (wanted_.brief() && p_.bound)) return;
    const CauseQuestion question{.before = base_.graph,
                                 .after = &out.graph,
                                 .step_before = base_.step,
                                 .step_after = p_.step,
                                 .journals = out.journals,
                                 .copies = base_.copies.get(),
                                 .by_opt = options_.row || !options_.why};
    CauseGames* games = out.shape != nullptr ? &out.shape->games : nullptr;
    if (options_.row && out.own == nullptr) games = &base_.shapes->of_recorded();
    p_.causes = games != nullptr ? games->Share(question) : ShareByCause(question);
    if (!TellsWhy()) return;
    std::vector<Limiter> limiters = PathByLimiter(out.graph, *out.path);
    p_.why_not = ExplainPrediction({.before = base_.graph,
                                    .after = &out.graph,
                                    .step_after = p_.step,
                                    .path_before = &base_.limiters,
                                    .path_after = &limiters,
                                    .causes = &p_.causes,
                                    .journals = out.journals,
                                    .replays = out.replays});
  }

  // What its models are asked about.
  PlayedScenario Played() const {
    PlayedScenario of{.recorded = *base_.graph,
                      .scenario = scenario_,
                      .terms = p_.changes.terms,
                      .changes = {},
                      .before = base_.step,
                      .after = p_.step,
                      .ends = kernel_ends_,
                      .played = point_,
                      .left_out = options_.left_out};
    if (!options_.kernel_time) {
      of.gpu = std::min(Ratio(p_.path.gpu.Scaled(scale_), p_.step), 1.0);
    }
    for (const CauseShare& c : p_.causes) of.changes[c.opt] += c.delta;
    // Alone it answers for all that changed, the order of work among it.
    const bool alone = scenario_.size() == 1 && !options_.kernel_time;
    if (alone) of.changes[scenario_.front().transform->name] = point_ - base_.step;
    return of;
  }

  void Correct() {
    const double model = p_.step.ns > 0 ? FindModelErrors(Played()).step.sigma : 0;
    p_.learned = CorrectionFor(options_.learned, LearnedName(scenario_), DeviceName(*base_.graph),
                               std::hypot(model, kRunToRun));
    if (p_.learned.rows == 0) return;
    const Duration by = p_.step.Scaled(p_.learned.share);
    p_.step += by;
    p_.causes.push_back({.what = "learned from " + Plural(p_.learned.rows, "measured run"),
                         .kind = CauseKind::kLearned,
                         .delta = by,
                         .gpu = {},
                         .host = {}});
  }

  Doubts FindDoubts(const Outcome& out) {
    Doubts doubts{.replay = &replay_};
    doubts.run = kRunToRun;
    if (p_.step.ns > 0) {
      const ModelErrors errors = FindModelErrors(Played());
      doubts.model = (kernel_ends_ ? errors.but_kernels : errors.step).sigma;
      doubts.expected = errors.step.mean;
      doubts.checked = errors.checked, doubts.stand_in = errors.stand_in;
    }
    const DeviceSpec* gpu = out.graph.model_changes().device.get();
    if (gpu != nullptr && !gpu->unsure.empty()) doubts.unsure_gpu = gpu->name;
    doubts.by_host = Ratio(p_.path.cpu.Scaled(scale_), p_.step);
    if (p_.learned.rows > 0) {
      doubts.model = p_.learned.sigma;
      doubts.expected = kMeanOfNormal * p_.learned.sigma;
      doubts.run = 0;
      doubts.checked.rows = p_.learned.rows;
      doubts.learned = true;
    }
    if (!options_.intervals) return doubts;
    // The recorded shapes still tell the work where only the GPU is another.
    const bool same_work =
        std::ranges::all_of(scenario_, [](auto& a) { return a.transform->same_work; });
    const Duration floor =
        options_.kernel_time
            ? LeastKernelTime(out.graph, LeastTimes(*base_.graph, out.graph, same_work))
            : base_.least->Of(out.graph, same_work);
    doubts.floor = floor.Scaled(scale_);
    doubts.params = StepsAtEnds(ends_, p_.step, scale_ * (1 + p_.learned.share));
    if (kernel_ends_ && !doubts.learned) doubts.kernels = kernel_ends_->Scaled(scale_);
    if (other_host_.has_value() && p_.step.ns > 0) {
      const Duration other = other_host_->Scaled(scale_ * (1 + p_.learned.share));
      doubts.host = std::fabs(AsDouble(other - p_.step)) / AsDouble(p_.step);
    }
    if (quick_host_) {
      const double scale = scale_ * (1 + p_.learned.share);
      const double as_recorded = Ratio(base_.step, *base_.over_quick_host);
      doubts.quick_host = {.step = quick_host_->Scaled(scale),
                           .against_baseline = quick_host_->Scaled(scale * as_recorded),
                           .kernels = {}};
      if (doubts.kernels && quick_ends_) doubts.quick_host->kernels = quick_ends_->Scaled(scale_);
    }
    if (replay_.unrecorded.has_value()) doubts.host = UnsureShare(*replay_.unrecorded);
    doubts.resampled = resampled_;
    return doubts;
  }

  void Resample(const Outcome& out) {
    if (!base_.spread.has_value() || base_.spread->steps() < 2 || options_.kernel_time) return;
    const Replays::Lent batch = out.replays->Batch(out.graph);
    if (batch == nullptr) return;
    const size_t count = std::clamp(kResampledTasks / std::max<size_t>(out.graph.size(), 1),
                                    kLeastResampled, std::max(kLeastResampled, options_.resampled));
    resampled_ = base_.spread->Resample(out.graph, *batch, count);
  }

  // The scenario over a host that may be faster, or lost its recording's cost as a share.
  void PlayOtherHost(const Outcome& out) {
    if (base_.over_quick_host) quick_host_ = base_.quick_host->StepOf(out.graph, *out.replays);
    if (options_.true_step == nullptr || options_.kernel_time) return;
    const Graph graph = OverOtherHost(*options_.true_step, out.graph);
    auto timeline = out.Replay(graph);
    if (timeline.ok()) other_host_ = TimeOf(graph, *timeline, options_);
  }

  // Kernels of another GPU at the ends of what its model is off by.
  void PlayOtherKernels(const Outcome& out) {
    if (options_.kernel_time) return;
    const double sigma =
        KernelErrors(*base_.graph, scenario_, p_.changes.terms, options_.left_out).sigma;
    if (sigma <= 0) return;
    kernel_ends_ = StepsAtKernelEnds(out.graph, sigma, *out.replays);
    const QuickHost* quick = base_.over_quick_host ? &*base_.quick_host : nullptr;
    if (quick) quick_ends_ = StepsAtKernelEnds(out.graph, sigma, *out.replays, quick);
  }

  std::optional<Duration> StepAt(const OpenEnd& end, const Outcome& out) const {
    if (!end.asked) return point_;
    auto graph = begun_.With(end);
    if (!graph.ok()) return std::nullopt;
    if (*graph == nullptr) return base_.step;
    const Replays::Lent batch = options_.kernel_time ? nullptr : out.replays->Batch(out.graph);
    if (batch != nullptr) {
      if (const std::optional<Duration> step = batch->StepOf(**graph)) return step;
    }
    const auto played = PlaySteps(**graph);
    if (!played.ok()) return std::nullopt;
    return options_.kernel_time ? KernelTime(**graph) : StepTime(**graph, played->periods);
  }

  // Those that have columns.
  void PlayEndsOfTimes(const Outcome& out) {
    if (begun_.columns() == nullptr) return;
    const Replays::Lent batch = out.replays->Batch(out.graph);
    if (batch != nullptr) PlayColumns(*begun_.columns(), out.graph, *batch, ends_);
    for (OpenEnd& end : ends_) {
      if (end.column.has_value() && !end.step.has_value()) end.step = StepAt(end, out);
    }
  }

  // Whatever takes replays of its own, side by side.
  void PlayMore(const Outcome& out) {
    const bool doubts = options_.intervals && !p_.bound;
    if (doubts) ends_ = begun_.Ends();
    const size_t others = doubts ? 5 : 1;
    ForEachParallel(others + ends_.size(), options_.jobs, [&](size_t i) {
      if (i == 0) {
        Attribute(out);
      } else if (i == 1 && doubts) {
        Resample(out);
      } else if (i == 2 && doubts) {
        PlayOtherHost(out);
      } else if (i == 3 && doubts) {
        PlayEndsOfTimes(out);
      } else if (i == 4 && doubts) {
        PlayOtherKernels(out);
      } else if (OpenEnd& end = ends_[i - others]; !end.column.has_value()) {
        end.step = StepAt(end, out);
      }
    });
  }

  const Baseline& base_;
  const ReplayCheck& replay_;
  const std::vector<Application>& scenario_;
  const WhatIfOptions& options_;
  const BegunRows::Begun* const told_;  // after all of the scenario; null: it has to be applied
  const Wanted wanted_;
  Prediction p_;
  MemoryTrail trail_;
  double scale_ = 1;                 // of the step, for as many examples as recorded
  Duration limit_;                   // no limit is longer than the step before it
  Duration point_;                   // the step as played, with parameters as they are
  std::vector<StepWindow> windows_;  // of that, where they are known without a timeline
  BegunScenario begun_;
  std::vector<OpenEnd> ends_;
  std::optional<Duration> other_host_, quick_host_;
  std::optional<KernelEnds> kernel_ends_, quick_ends_;  // over the recorded host, over a quick one
  std::vector<Duration> resampled_;
};

}  // namespace

Prediction Predict(const Baseline& base, const ReplayCheck& replay,
                   const std::vector<Application>& scenario, const WhatIfOptions& options,
                   const BegunRows::Begun* told) {
  return Predictor(base, replay, scenario, options, told).Run();
}

}  // namespace daydream
