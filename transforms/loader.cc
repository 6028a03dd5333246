#include "transforms/loader.h"

#include <string_view>

namespace daydream {
namespace {

// PyTorch's profiler marks the iterator with this text; data_loader names of other frameworks
// come as annotations of the user.
bool IsLoaderName(std::string_view name) {
  return name.find("DataLoader") != std::string_view::npos;
}

}  // namespace

LoaderScopes::LoaderScopes(const Graph& graph) {
  const std::vector<Scope>& scopes = graph.tables().scopes;
  around_.resize(scopes.size());
  owns_gap_.resize(scopes.size(), false);
  for (size_t i = 0; i < scopes.size(); ++i) {
    const Scope& s = scopes[i];
    // Parents are earlier rows: scopes are made in order of their begin.
    bool inner = s.parent.valid() && s.parent.index() < i;
    if (inner) around_[i] = around_[s.parent.index()];
    if (!around_[i].valid() && IsLoaderName(graph.Name(s.name))) around_[i] = ScopeId(i);
    owns_gap_[i] =
        s.kind == EventKind::kOp ? inner && owns_gap_[s.parent.index()] : around_[i].valid();
  }
}

ScopeId LoaderScopes::Around(ScopeId scope) const {
  return scope.index() < around_.size() ? around_[scope.index()] : ScopeId::None();
}

bool LoaderScopes::OwnsGapOf(const Task& t) const {
  return t.scope.index() < owns_gap_.size() && owns_gap_[t.scope.index()];
}

}  // namespace daydream
