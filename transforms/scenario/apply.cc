#include "transforms/scenario/apply.h"

#include <algorithm>

#include "graph/facts.h"
#include "graph/validate.h"
#include "transforms/scenario/option_file.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

// What a transform that changed nothing told about it.
std::string WhyNothing(const Changes& changes) {
  constexpr size_t kShown = 3;
  std::vector<std::string> all = changes.notes;
  const std::vector<std::string> caveats = changes.Caveats();
  all.insert(all.end(), caveats.begin(), caveats.end());
  if (all.empty()) return "what it would change is not there, or is so already";
  std::string why;
  for (size_t i = 0; i < std::min(all.size(), kShown); ++i) why += (i > 0 ? "; " : "") + all[i];
  if (all.size() > kShown) why += fmt::format("; and {} more", all.size() - kShown);
  return why;
}

absl::Status RunEdits(const Transform& transform, const Params& params, Editor& edit) {
  if (transform.file != nullptr) return transform.file->Apply(params, edit);
  if (transform.own != nullptr) return transform.own->Apply(params, edit);
  return transform.apply(params, edit);
}

#ifdef NDEBUG
constexpr bool kChecksOurs = false;
#else
constexpr bool kChecksOurs = true;
#endif

bool IsOurs(const Transform& transform) {
  return transform.file == nullptr && transform.own == nullptr;
}

// Whether the edited graph can be replayed. What our own optimizations do to lanes and edges is
// held by tests (tests/transforms/valid_edits_test.cc) and checked in debug builds; what they do to
// times hangs on what the user asks for.
absl::Status CheckEdited(const Transform& transform, const Graph& graph,
                         const std::shared_ptr<const ReplayBound>& before) {
  if (graph.structure() != 0 && before != nullptr) return ValidateRetimed(graph, *before);
  if (IsOurs(transform) && !kChecksOurs) return FitsReplay(graph);
  return ValidateButCycles(graph);
}

// What to do when it changes nothing.
std::string HowToLook(const Transform& transform) {
  if (transform.file != nullptr) {
    return fmt::format("daydream opt check {} --trace TRACE", transform.file->path());
  }
  if (transform.own != nullptr) return "look at what select() returns for this trace";
  return fmt::format("daydream explain {}", transform.name);
}

}  // namespace

absl::StatusOr<Applied> Apply(const Application& application, Graph& graph, EndColumns* ends,
                              EditNotes notes) {
  const Transform& transform = *application.transform;
  std::shared_ptr<const ReplayBound> before;
  if (graph.structure() != 0 && graph.facts() != nullptr) {
    before = FactOf<ReplayBound>(graph, [&] { return BoundReplay(graph); });
  }
  // Edits of others may read what they are told to have done.
  Editor edit(graph, ends, IsOurs(transform) ? notes : EditNotes::kKept);
  DD_RETURN_IF_ERROR(RunEdits(transform, application.params, edit));
  if (!edit.changes().any()) {
    return MakeStatus(
        absl::StatusCode::kFailedPrecondition,
        {.code = "E0601",
         .what = fmt::format("{}: changes nothing in this trace", application.params.spelled()),
         .why = WhyNothing(edit.changes()),
         .effect = "the step would stay as it is",
         .fix = HowToLook(transform)});
  }
  edit.Finish();
  if (absl::Status valid = CheckEdited(transform, graph, before); !valid.ok()) {
    Diagnostic d = DiagnosticOf(valid);
    if (!FitsReplay(graph).ok()) {
      d.code = "E0617";
      d.what = fmt::format("{}: {}", application.params.spelled(), d.what);
      d.effect = "no replay of that has a meaning";
      d.fix = "a smaller value";
      return MakeStatus(absl::StatusCode::kFailedPrecondition, std::move(d));
    }
    d.code = "E0901";
    d.what = fmt::format("{} left the graph in a state that cannot be replayed: {}", transform.name,
                         d.what);
    return MakeStatus(absl::StatusCode::kInternal, std::move(d));
  }
  return Applied{.spelled = application.params.spelled(),
                 .bound = transform.bound || edit.changes().bound,
                 .changes = edit.changes(),
                 .causes = {edit.causes().begin(), edit.causes().end()},
                 .edits = edit.TakeEdits(),
                 .edge_edits = edit.TakeEdgeEdits()};
}

}  // namespace daydream
