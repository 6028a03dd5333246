// Applies the optimizations of a scenario to a graph, and tells what each did.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"
#include "transforms/core/editor.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

// What one application did.
struct Applied {
  std::string spelled;  // "amp(dtype=bf16)"
  bool bound = false;
  Changes changes;
  std::vector<Editor::Cause> causes;
  std::vector<Editor::Edit> edits;
  std::vector<Editor::EdgeEdit> edge_edits;
};

// Applies one transform: runs it and validates the graph afterwards. A transform that matched
// nothing fails with FailedPrecondition E0601 ("fuse: no kernel matched ...").
// `ends` then has what tasks take at its ends, if every transform has said so (Transform::ends).
// With EditNotes::kNone causes and edits are empty, notes and the like need not be made, and errors
// do not tell of them.
absl::StatusOr<Applied> Apply(const Application& application, Graph& graph,
                              EndColumns* ends = nullptr, EditNotes notes = EditNotes::kKept);

}  // namespace daydream
