#include "report/predict/open_ends.h"

#include <utility>

#include "report/predict/settings.h"
#include "report/predict/what_if.h"

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

}  // namespace

BegunScenario::BegunScenario(std::span<const Application> scenario, GraphCopies& copies)
    : scenario_(scenario),
      noted_(scenario.begin(), scenario.end()),
      asked_(scenario.size()),
      copies_(copies) {
  for (size_t i = 0; i < noted_.size(); ++i) noted_[i].params.NoteIn(&asked_[i]);
}

std::vector<OpenEnd> BegunScenario::Ends() const {
  std::vector<OpenEnd> ends;
  for (size_t i = 0; i < scenario_.size(); ++i) {
    for (const ParamSpec* spec : OpenSpecs(scenario_[i])) {
      const bool asked = asked_[i].contains(spec->name);
      ends.push_back({i, spec, spec->low, asked});
      ends.push_back({i, spec, spec->high, asked});
    }
  }
  return ends;
}

void BegunScenario::Keep(const Application& application, const Graph& graph, bool changed) {
  applied_ += changed ? 1 : 0;
  const size_t next = static_cast<size_t>(&application - noted_.data()) + 1;
  if (next == scenario_.size() || OpenSpecs(scenario_[next]).empty()) return;
  GraphCopies::Copy copy = copies_.MakeOf(graph);
  copy->ShareFacts(std::make_shared<GraphFacts>());
  before_[next] = {applied_, std::move(copy)};
}

// Null when nothing of all changes anything, or `rest` cannot be applied.
GraphCopies::Copy BegunScenario::From(size_t application, std::span<const Application> rest) const {
  const auto known = before_.find(application);
  const bool begun = known != before_.end() && known->second.applied > 0;
  GraphCopies::Copy graph =
      known == before_.end() ? copies_.Make() : copies_.MakeOf(*known->second.graph);
  const absl::Status done = ApplyAll(rest, *graph);
  const bool nothing = !done.ok() && DiagnosticOf(done).code == "E0601";
  return done.ok() || (nothing && begun) ? std::move(graph) : nullptr;
}

absl::StatusOr<GraphCopies::Copy> BegunScenario::With(const OpenEnd& end) const {
  const auto rest = scenario_.subspan(end.application);
  std::vector<Application> changed(rest.begin(), rest.end());
  DD_ASSIGN_OR_RETURN(changed.front(), WithParam(changed.front(), end.spec->name,
                                                 FormatValue(end.value, end.spec->unit)));
  GraphCopies::Copy graph = From(end.application, changed);
  if (graph == nullptr) graph = From(end.application, std::span(changed).subspan(1));
  return graph;
}

}  // namespace daydream
