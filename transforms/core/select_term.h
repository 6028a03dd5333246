// One condition of a selector: a key and what a task has to be to match it. The list of keys is in
// transforms/core/select.h.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "costmodel/device.h"
#include "graph/graph.h"

namespace daydream {

struct SelectorTerm;

// "kernel", "op", "phase", ...
std::span<const std::string_view> SelectorKeys();
bool IsSelectorKey(std::string_view key);

// InvalidArgument when `value` cannot be what `key` asks for: the Diagnostic says what; `where` is
// the part of the value that is wrong, and its code is E0412 for regular expressions, else E0411.
absl::StatusOr<std::shared_ptr<const SelectorTerm>> CompileTerm(std::string_view key,
                                                                std::string_view value);

// A bare value is a part of kernels' names. What to say where it is also a word of `kind` or
// `phase` ("gpu"), which was probably meant; else empty.
std::string NoteOnBareWord(std::string_view selector);

// Matches one term against tasks of one graph, remembering what it found out about names.
class TermMatcher {
 public:
  TermMatcher(const Graph& graph, const SelectorTerm& term);
  // Amortised O(1), but for long chains of scopes.
  bool Matches(TaskId t);

 private:
  bool NameMatches(NameId name);
  bool ClassMatches(NameId name);
  bool ScopeMatches(ScopeId scope, bool ops_only);
  bool LayerMatches(LayerId layer);
  bool ShapeMatches(ScopeId scope);
  bool KindMatches(TaskId t);
  bool LaneMatches(const Task& task, bool stream);
  bool TypeMatches(const Task& task);
  bool CopyMatches(TaskId t);

  const Graph& graph_;
  const SelectorTerm& term_;
  absl::flat_hash_map<NameId, bool> names_;
  absl::flat_hash_map<NameId, DType> types_;
  absl::flat_hash_map<ScopeId, bool> scopes_;
  std::vector<ScopeId> visited_;
  std::vector<bool> marked_;  // by task: launches GPU work, or waits for it; as the kind needs
};

}  // namespace daydream
