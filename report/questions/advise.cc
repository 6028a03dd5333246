#include "report/questions/advise.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "report/parallel.h"
#include "report/predict/predict.h"
#include "report/questions/set_search.h"
#include "report/questions/steps_of_one_rank.h"
#include "simulator/simulate.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

// Of the saving itself in the score, beside the low end of its interval.
constexpr double kOfPoint = 0.1;
// What is left of a gain by the word for its confidence: a judgement, not measured.
constexpr double kOfMedium = 0.9, kOfLow = 0.7;
// Options that reach one gain in two ways.
constexpr std::pair<std::string_view, std::string_view> kTwoWays[] = {{"graphs", "aot"}};

class Adviser {
 public:
  Adviser(const TriedProgram& program, const AdviseOptions& advise, Advised& out)
      : program_(program), base_(program.baseline()), advise_(advise), out_(out) {}

  void Run(std::span<const Application> options, std::span<const Application> limits) {
    least_ = std::max(base_.step.Scaled(advise_.worth), Duration::Ns(1));
    TryEach(options, limits);
    Sort(options.size());
    if (out_.worth.empty()) return;
    if (!Interrupted()) FindBest();
    Rank();
    if (!out_.interrupted) ExplainFirst();
  }

 private:
  void Tell(AdviseStage stage, size_t done, size_t total) const {
    if (advise_.progress) advise_.progress(stage, done, total);
  }

  // What was played since the last look may be a part of what was asked.
  bool Interrupted() {
    out_.interrupted |= advise_.Stopped();
    return out_.interrupted;
  }

  void FindBest() {
    Tell(AdviseStage::kSets, 0, 0);
    SetSearch search(program_, out_.worth, out_.not_worth, least_, advise_);
    std::vector<OptionPair> pairs = search.Pairs(base_.step);
    if (Interrupted()) return;
    out_.pairs = std::move(pairs);
    const auto first =
        std::ranges::max_element(out_.worth, {}, [&](const Option& o) { return ScoreOf(o); });
    std::vector<size_t> best = search.Best(static_cast<size_t>(first - out_.worth.begin()));
    if (Interrupted() || best.size() < 2) return;
    Prediction whole = PredictSet(search, best);
    DropDoubtful(search, best, whole);
    if (Interrupted() || best.size() < 2) return;
    out_.best_list = search.ScenarioOf(best);
    out_.best_members = search.RowsOf(best);
    out_.best = std::move(whole);
  }

  Prediction PredictSet(const SetSearch& search, std::span<const size_t> members) const {
    const size_t row = search.RowsOf(members.first(1)).front();
    if (members.size() == 1 && row < out_.worth.size()) return out_.worth[row].prediction;
    return program_.Predict(search.ScenarioOf(members), std::nullopt, ToldOfRows());
  }

  // Without members that add more doubt than gain: beside which the low end is no better. Asked is
  // of the one that saves least beside the others, and of those that alone may well lose.
  void DropDoubtful(SetSearch& search, std::vector<size_t>& members, Prediction& whole) const {
    const auto low = [](const Prediction& p) { return p.least_as_recorded.value_or(0); };
    for (bool dropped = true; std::exchange(dropped, false) && members.size() > 1;) {
      if (advise_.Stopped()) return;
      std::vector<size_t> asked = search.MayLose(members);
      const size_t least = search.LeastMissed(members);
      if (std::ranges::find(asked, least) == asked.end()) asked.push_back(least);
      for (const size_t m : asked) {
        std::vector<size_t> fewer = members;
        std::erase(fewer, m);
        Prediction without = PredictSet(search, fewer);
        if (!without.error.ok() || low(whole) <= 0 || low(without) < low(whole)) continue;
        members = std::move(fewer);
        whole = std::move(without);
        dropped = true;
        break;
      }
    }
  }

  bool ExplainsAll() const { return advise_.explained == AdviseOptions::kAllRows; }

  TriedProgram::Told ToldOfRows() const {
    return ExplainsAll() ? TriedProgram::Told::kAll : TriedProgram::Told::kInterval;
  }

  // What the others are told without.
  void ExplainFirst() {
    if (ExplainsAll()) return;
    const size_t rows = std::min(advise_.explained, out_.worth.size());
    for (size_t i = 0; i < rows; ++i) {
      Tell(AdviseStage::kReasons, i, rows);
      Prediction& p = out_.worth[i].prediction;
      Prediction told =
          program_.Predict({out_.worth[i].application}, std::nullopt, TriedProgram::Told::kCauses);
      p.causes = std::move(told.causes);
      p.path = told.path;
      p.why_not = std::move(told.why_not);
    }
  }

  double ScoreOf(const Option& o) const {
    const Prediction& p = o.prediction;
    const double gain = std::max(static_cast<double>((base_.step - p.step).ns), 0.0);
    double least = 0;  // negative: the step may become longer
    if (p.least_as_recorded.value_or(0) > 0) {
      least = static_cast<double>(base_.step.ns) * (1 - 1 / *p.least_as_recorded);
    }
    const double trust = p.confidence == Confidence::kHigh     ? 1
                         : p.confidence == Confidence::kMedium ? kOfMedium
                                                               : kOfLow;
    const double ease = advise_.ease ? advise_.ease(o.application, p.changes) : 1;
    if (gain <= 0) return 0;
    const double likely = gain / (gain + std::max(-least, 0.0));
    return ease * trust * (std::max(least, 0.0) + kOfPoint * gain * likely);
  }

  // Puts `worth`, which is by saving, into the order in which to try, two ways to one gain as one
  // row; places of the rows in pairs and in the best set follow.
  void Rank() {
    std::vector<Option> by_saving = std::move(out_.worth);
    std::vector<size_t> order(by_saving.size());
    for (size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
      by_saving[i].score = ScoreOf(by_saving[i]);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return by_saving[a].score > by_saving[b].score; });
    constexpr size_t kGone = SIZE_MAX;
    std::vector<size_t> place(by_saving.size(), kGone);  // of those that head a row
    std::vector<size_t> row_of(by_saving.size());
    std::vector<size_t> rows;
    for (size_t i : order) {
      const auto other = std::find_if(rows.begin(), rows.end(), [&](size_t row) {
        return AreTwoWays(by_saving[row].application.transform->name,
                          by_saving[i].application.transform->name);
      });
      row_of[i] = static_cast<size_t>(other - rows.begin());
      if (other == rows.end()) {
        rows.push_back(i);
      } else {
        by_saving[*other].ways.push_back(std::move(by_saving[i]));
      }
    }
    for (size_t row = 0; row < rows.size(); ++row) {
      place[rows[row]] = row;
      out_.worth.push_back(std::move(by_saving[rows[row]]));
    }
    std::erase_if(out_.pairs,
                  [&](const OptionPair& p) { return place[p.a] == kGone || place[p.b] == kGone; });
    for (OptionPair& p : out_.pairs) {
      p.a = place[p.a], p.b = place[p.b];
      if (p.a > p.b) std::swap(p.a, p.b);
    }
    for (size_t& m : out_.best_members) {
      m = m < row_of.size() ? row_of[m] : m - row_of.size() + rows.size();
    }
  }

  // All that there is to tell about those that are worth a row, the step with each of the others.
  void TryEach(std::span<const Application> options, std::span<const Application> limits) {
    out_.asked = options.size() + limits.size();
    tried_.resize(out_.asked);
    Tell(AdviseStage::kOptions, 0, out_.asked);
    ForEachParallel(tried_.size(), advise_.jobs, [&](size_t i) {
      if (advise_.Stopped()) return;
      const Application& a = i < options.size() ? options[i] : limits[i - options.size()];
      Prediction p = program_.Predict({a}, least_, ToldOfRows());
      std::lock_guard lock(mutex_);
      tried_[i] = {i, a, std::move(p)};
      Tell(AdviseStage::kOptions, ++done_, tried_.size());
    });
    out_.untried =
        std::erase_if(tried_, [](const Option& o) { return o.application.transform == nullptr; });
    out_.interrupted = out_.untried > 0;
  }

  void Sort(size_t options) {
    for (Option& o : tried_) {
      if (!o.prediction.error.ok()) {
        if (o.place >= options) continue;
        const bool nothing = DiagnosticOf(o.prediction.error).code == "E0601";
        (nothing ? out_.nothing_here : out_.unjudged).push_back(std::move(o));
      } else if (o.place >= options || o.prediction.bound) {
        out_.limits.push_back(std::move(o));
      } else if (base_.step - o.prediction.step >= least_) {
        out_.worth.push_back(std::move(o));
      } else {
        out_.not_worth.push_back(std::move(o));
      }
    }
    for (auto* list : {&out_.worth, &out_.not_worth, &out_.limits}) {
      std::stable_sort(list->begin(), list->end(), [](const Option& a, const Option& b) {
        return a.prediction.step < b.prediction.step;
      });
    }
  }

  const TriedProgram& program_;
  const Prediction& base_;
  const AdviseOptions& advise_;
  Advised& out_;
  Duration least_;
  std::vector<Option> tried_;
  std::mutex mutex_;
  size_t done_ = 0;
};

}  // namespace

bool AreTwoWays(std::string_view a, std::string_view b) {
  return std::any_of(std::begin(kTwoWays), std::end(kTwoWays), [&](const auto& ways) {
    return ways == std::pair(a, b) || ways == std::pair(b, a);
  });
}

absl::StatusOr<Advised> Advise(const BuiltGraph& built, const ReplayCheck& replay,
                               std::span<const Application> options,
                               std::span<const Application> limits, const AdviseOptions& advise) {
  if (advise.progress) advise.progress(AdviseStage::kStep, 0, 0);
  DD_ASSIGN_OR_RETURN(Timeline timeline, Simulate(built.graph, {.path = true}));
  Baseline base = MakeBaseline(built.graph, std::move(timeline), {.true_step = advise.true_step});
  base.samples = replay.batch.samples;
  Advised out = Advise(*StepsOfOneRank(base, replay, advise), options, limits, advise);
  out.replay = replay;
  out.path = base.limiters;
  return out;
}

Advised Advise(const TriedProgram& program, std::span<const Application> options,
               std::span<const Application> limits, const AdviseOptions& advise) {
  Advised out;
  out.baseline = program.baseline();
  Adviser(program, advise, out).Run(options, limits);
  return out;
}

}  // namespace daydream
