#include <array>

#include "graph/validate.h"
#include "transforms/option_file.h"
#include "transforms/transform.h"

namespace daydream {
namespace {

#define TRANSFORM(symbol) &symbol,
constexpr const Transform* kTransforms[] = {
#include "transforms/transforms.def"
};
#undef TRANSFORM

}  // namespace

std::span<const Transform* const> Transforms() { return kTransforms; }

const Transform* FindTransform(std::string_view name) {
  for (const Transform* t : kTransforms) {
    if (t->name == name) return t;
  }
  return nullptr;
}

absl::StatusOr<Applied> Apply(const Application& application, Graph& graph) {
  const Transform& transform = *application.transform;
  Editor edit(graph);
  absl::Status status = transform.file != nullptr ? transform.file->Apply(application.params, edit)
                                                  : transform.apply(application.params, edit);
  if (!status.ok()) return status;
  if (!edit.changes().any()) {
    std::string why;
    for (const std::string& note : edit.changes().notes) why += why.empty() ? note : "; " + note;
    return MakeStatus(
        absl::StatusCode::kFailedPrecondition,
        {.code = "E0601",
         .what = fmt::format("{}: nothing in this trace matches", application.params.spelled()),
         .why = why.empty() ? std::string(transform.summary) : why,
         .effect = "the step would stay as it is",
         .fix = fmt::format("daydream explain {}", transform.name)});
  }
  edit.Finish();
  if (absl::Status valid = ValidateButCycles(graph); !valid.ok()) {
    Diagnostic d = DiagnosticOf(valid);
    d.code = "E0901";
    d.what = fmt::format("{} left the graph in a state that cannot be replayed: {}", transform.name,
                         d.what);
    return MakeStatus(absl::StatusCode::kInternal, std::move(d));
  }
  return Applied{.spelled = application.params.spelled(),
                 .bound = transform.bound || edit.changes().bound,
                 .changes = edit.changes(),
                 .causes = {edit.causes().begin(), edit.causes().end()},
                 .edits = {edit.edits().begin(), edit.edits().end()},
                 .edge_edits = {edit.edge_edits().begin(), edit.edge_edits().end()}};
}

}  // namespace daydream
