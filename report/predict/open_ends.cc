#include "report/predict/open_ends.h"

#include <algorithm>
#include <utility>

#include "report/predict/settings.h"

namespace daydream {
namespace {

std::vector<const ParamSpec*> OpenSpecs(const Application& application) {
  std::vector<const ParamSpec*> open;
  for (const ParamSpec& spec : application.transform->params) {
    if (spec.unit == Unit::kText || !(spec.low < spec.high)) continue;
    if (!application.params.given(spec.name)) open.push_back(&spec);
  }
  return open;
}

// Whether ends of this application change times only.
bool ChangesTimesOnly(std::span<const Application> scenario, size_t application) {
  const AtEnds ends = scenario[application].transform->ends;
  const auto told = [ends](const Application& a) {
    const AtEnds after = a.transform->ends;
    return after == AtEnds::kGaps || (after == AtEnds::kTold && ends != AtEnds::kGaps);
  };
  return ends != AtEnds::kEdits && std::ranges::all_of(scenario.subspan(application + 1), told);
}

absl::StatusOr<Application> AtEnd(const Application& application, const ParamSpec& spec,
                                  double value) {
  return WithParam(application, spec.name, FormatValue(value, spec.unit));
}

}  // namespace

void PlayColumns(const EndColumns& columns, const Graph& graph, StepBatch& batch,
                 std::span<OpenEnd> ends) {
  std::vector<OpenEnd*> played;
  for (OpenEnd& end : ends) {
    if (end.asked && end.column.has_value()) played.push_back(&end);
  }
  std::vector<TaskId> tasks = columns.tasks();
  std::erase_if(tasks, [&](TaskId t) { return graph.task(t).removed; });
  for (size_t first = 0; first < played.size(); first += StepBatch::kWidth) {
    const auto side_by_side = std::span(played).subspan(
        first, std::min<size_t>(StepBatch::kWidth, played.size() - first));
    batch.Reset();
    for (TaskId t : tasks) {
      const Task& task = graph.task(t);
      for (size_t s = 0; s < side_by_side.size(); ++s) {
        const size_t end = *side_by_side[s]->column;
        const Duration time = columns.durations.Of(end, t, task.duration);
        const Duration gap = columns.gaps.Of(end, t, task.gap);
        if (time != task.duration || gap != task.gap) batch.Set(s, t, time, gap);
      }
    }
    const auto steps = batch.Run();
    for (size_t s = 0; s < side_by_side.size(); ++s) side_by_side[s]->step = steps[s];
  }
  batch.Reset();
}

std::vector<ParamEnds> StepsAtEnds(std::span<const OpenEnd> ends, Duration step, double scale) {
  const auto at = [&](const OpenEnd& e) { return e.step ? e.step->Scaled(scale) : step; };
  std::vector<ParamEnds> steps;
  for (size_t e = 0; e < ends.size(); e += 2) {
    const ParamSpec& spec = *ends[e].spec;
    const double place = (spec.fallback - spec.low) / (spec.high - spec.low);
    steps.push_back({at(ends[e]), at(ends[e + 1]), std::clamp(place, 0.0, 1.0)});
  }
  return steps;
}

BegunScenario::BegunScenario(std::span<const Application> scenario, GraphCopies& copies,
                             bool columns)
    : scenario_(scenario),
      noted_(scenario.begin(), scenario.end()),
      asked_(scenario.size()),
      copies_(copies) {
  std::vector<EndColumns::End> ends;
  for (size_t i = 0; i < noted_.size(); ++i) {
    noted_[i].params.NoteIn(&asked_[i]);
    if (!columns || !ChangesTimesOnly(scenario, i)) continue;
    for (const ParamSpec* spec : OpenSpecs(scenario[i])) {
      auto low = AtEnd(scenario[i], *spec, spec->low), high = AtEnd(scenario[i], *spec, spec->high);
      if (!low.ok() || !high.ok()) continue;
      column_of_[{i, spec->name}] = ends.size();
      ends.push_back({i, std::move(low->params)});
      ends.push_back({i, std::move(high->params)});
    }
  }
  if (!ends.empty()) columns_.emplace(std::move(ends));
}

// Some end has no column, or may turn out to need edits, which those say that change gaps.
bool BegunScenario::NeedsGraphs(size_t application) const {
  const auto gaps = [](const Application& a) { return a.transform->ends == AtEnds::kGaps; };
  const std::vector<const ParamSpec*> open = OpenSpecs(scenario_[application]);
  return (!open.empty() && std::ranges::any_of(scenario_.subspan(application), gaps)) ||
         std::ranges::any_of(open, [&](const ParamSpec* spec) {
           return !column_of_.contains({application, spec->name});
         });
}

std::vector<OpenEnd> BegunScenario::Ends() const {
  std::vector<OpenEnd> ends;
  for (size_t i = 0; i < scenario_.size(); ++i) {
    for (const ParamSpec* spec : OpenSpecs(scenario_[i])) {
      const bool asked = asked_[i].contains(spec->name);
      ends.push_back({i, spec, spec->low, asked});
      ends.push_back({i, spec, spec->high, asked});
      const auto column = column_of_.find({i, spec->name});
      if (column == column_of_.end()) continue;
      if (!columns_->needs_edits(column->second)) ends[ends.size() - 2].column = column->second;
      if (!columns_->needs_edits(column->second + 1)) ends.back().column = column->second + 1;
    }
  }
  return ends;
}

void BegunScenario::Keep(const Application& application, const Graph& graph, bool changed) {
  applied_ += changed ? 1 : 0;
  const size_t next = static_cast<size_t>(&application - noted_.data()) + 1;
  if (next == scenario_.size() || !NeedsGraphs(next)) return;
  GraphCopies::Copy copy = copies_.MakeOf(graph);
  copy->ShareFacts(std::make_shared<GraphFacts>());
  before_[next] = {applied_, std::move(copy)};
}

namespace {

absl::Status ApplyUntold(std::span<const Application> list, Graph& graph) {
  return ApplyAll(list, graph, {}, nullptr, EditNotes::kNone);
}

}  // namespace

// Null when nothing of all changes anything, or `rest` cannot be applied.
GraphCopies::Copy BegunScenario::From(size_t application, std::span<const Application> rest) const {
  const auto known = before_.find(application);
  const bool begun = known != before_.end() && known->second.applied > 0;
  if (known == before_.end()) {  // from the beginning
    const auto first = scenario_.first(application);
    std::vector<Application> all(first.begin(), first.end());
    all.insert(all.end(), rest.begin(), rest.end());
    GraphCopies::Copy graph = copies_.Make();
    return ApplyUntold(all, *graph).ok() ? std::move(graph) : nullptr;
  }
  GraphCopies::Copy graph = copies_.MakeOf(*known->second.graph);
  const absl::Status done = ApplyUntold(rest, *graph);
  const bool nothing = !done.ok() && DiagnosticOf(done).code == "E0601";
  return done.ok() || (nothing && begun) ? std::move(graph) : nullptr;
}

absl::StatusOr<GraphCopies::Copy> BegunScenario::With(const OpenEnd& end) const {
  const auto rest = scenario_.subspan(end.application);
  std::vector<Application> changed(rest.begin(), rest.end());
  DD_ASSIGN_OR_RETURN(changed.front(), AtEnd(changed.front(), *end.spec, end.value));
  GraphCopies::Copy graph = From(end.application, changed);
  if (graph == nullptr) graph = From(end.application, std::span(changed).subspan(1));
  return graph;
}

}  // namespace daydream
