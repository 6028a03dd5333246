#include "transforms/select.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include <re2/re2.h>

#include "absl/container/flat_hash_map.h"
#include "costmodel/kernel_class.h"
#include "transforms/suggest.h"

namespace daydream {
namespace {

enum class Key : uint8_t {
  kKernel, kOp, kCall, kScope, kLayer, kLane, kPhase, kKind, kClass, kStep,
};
constexpr std::array<std::string_view, 10> kKeys = {
    "kernel", "op", "call", "scope", "layer", "lane", "phase", "kind", "class", "step"};
constexpr std::array<std::string_view, 6> kPhases = {"none",      "forward", "backward",
                                                     "optimizer", "data",    "comm"};
// In the order of TaskKind.
constexpr std::array<std::string_view, 9> kKinds = {"host",   "call", "wait",  "kernel", "memcpy",
                                                    "memset", "comm", "delay", "data"};

absl::Status Bad(std::string_view term, std::string why) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0103",
                     .what = fmt::format("selector '{}': {}", term, why),
                     .fix = "daydream explain selectors"});
}

absl::StatusOr<uint8_t> OneOf(std::string_view term, std::string_view word,
                              std::span<const std::string_view> words) {
  auto it = std::find(words.begin(), words.end(), word);
  if (it != words.end()) return static_cast<uint8_t>(it - words.begin());
  std::string_view closest = Closest(word, words);
  return Bad(term, closest.empty()
                       ? fmt::format("'{}' is none of {}", word, fmt::join(words, ", "))
                       : fmt::format("'{}' is not known, did you mean '{}'?", word, closest));
}

}  // namespace

struct SelectorTerm {
  Key key = Key::kKernel;
  bool inverted = false;
  std::unique_ptr<RE2> pattern;
  uint8_t word = 0;  // index into kPhases or kKinds
  KernelClass kernel_class = KernelClass::kOther;
  uint16_t step = 0;
};

namespace {

absl::StatusOr<std::shared_ptr<const SelectorTerm>> CompileTerm(std::string_view text) {
  std::string_view rest = text;
  auto term = std::make_shared<SelectorTerm>();
  if (rest.starts_with('!')) term->inverted = true, rest.remove_prefix(1);
  // A kernel name may hold "::"; a key is a known word before a single colon.
  if (size_t colon = rest.find(':'); colon != std::string_view::npos &&
                                     rest.substr(colon, 2) != "::") {
    std::string_view word = rest.substr(0, colon);
    auto it = std::find(kKeys.begin(), kKeys.end(), word);
    if (it != kKeys.end()) {
      term->key = static_cast<Key>(it - kKeys.begin());
      rest.remove_prefix(colon + 1);
    } else if (std::string_view closest = Closest(word, kKeys); !closest.empty()) {
      return Bad(text, fmt::format("unknown key '{}', did you mean '{}'?", word, closest));
    }
  }
  if (rest.empty()) return Bad(text, "nothing to look for");
  switch (term->key) {
    case Key::kPhase: {
      DD_ASSIGN_OR_RETURN(term->word, OneOf(text, rest, kPhases));
      return term;
    }
    case Key::kKind: {
      DD_ASSIGN_OR_RETURN(term->word, OneOf(text, rest, kKinds));
      return term;
    }
    case Key::kClass: {
      bool found = false;
      term->kernel_class = FindKernelClass(rest, &found);
      if (found) return term;
      return Bad(text, fmt::format("'{}' is not a class of kernels, such as gemm, conv, "
                                   "elementwise, norm, softmax, optimizer", rest));
    }
    case Key::kStep: {
      auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), term->step);
      if (error != std::errc() || end != rest.data() + rest.size()) {
        return Bad(text, fmt::format("'{}' is not the number of a step", rest));
      }
      return term;
    }
    default: break;
  }
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(8 << 20);
  term->pattern = std::make_unique<RE2>(re2::StringPiece(rest.data(), rest.size()), options);
  if (!term->pattern->ok()) return Bad(text, term->pattern->error());
  return term;
}

// Matches one term against tasks, remembering what it found out about names.
class Matcher {
 public:
  Matcher(const Graph& graph, const SelectorTerm& term) : graph_(graph), term_(term) {}

  bool Matches(TaskId t) { return Plain(graph_.task(t)) != term_.inverted; }

 private:
  bool Plain(const Task& task) {
    switch (term_.key) {
      case Key::kKernel: return IsGpu(task.kind) && NameMatches(task.name);
      case Key::kCall: return task.kind == TaskKind::kCall && NameMatches(task.name);
      case Key::kOp: return ScopeMatches(task.scope, /*ops_only=*/true);
      case Key::kScope: return ScopeMatches(task.scope, /*ops_only=*/false);
      case Key::kLayer: return LayerMatches(task.layer);
      case Key::kLane: return NameMatches(graph_.lane(task.lane).lane.name);
      case Key::kPhase: return static_cast<uint8_t>(task.phase) == term_.word;
      case Key::kKind: return static_cast<uint8_t>(task.kind) == term_.word;
      case Key::kStep: return task.step == term_.step;
      case Key::kClass: return task.kind == TaskKind::kKernel && ClassMatches(task.name);
    }
    return false;
  }

  bool NameMatches(NameId name) {
    auto [it, inserted] = names_.try_emplace(name, false);
    if (inserted) {
      std::string_view text = graph_.Name(name);
      it->second = RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *term_.pattern);
    }
    return it->second;
  }

  bool ClassMatches(NameId name) {
    auto [it, inserted] = names_.try_emplace(name, false);
    if (inserted) it->second = ClassifyKernel(graph_.Name(name)).kind == term_.kernel_class;
    return it->second;
  }

  bool ScopeMatches(ScopeId scope, bool ops_only) {
    const std::vector<Scope>& scopes = graph_.tables().scopes;
    bool matches = false;
    visited_.clear();
    while (scope.index() < scopes.size()) {
      auto [it, inserted] = scopes_.try_emplace(scope, false);
      if (!inserted) {
        matches = it->second;
        break;
      }
      visited_.push_back(scope);
      const Scope& s = scopes[scope.index()];
      if ((!ops_only || s.kind == EventKind::kOp) && NameMatches(s.name)) {
        matches = true;
        break;
      }
      scope = s.parent;
    }
    for (ScopeId s : visited_) scopes_[s] = matches;
    return matches;
  }

  bool LayerMatches(LayerId layer) {
    // Parents are earlier rows, so the walk ends.
    while (layer.index() < graph_.layers().size()) {
      const Layer& l = graph_.layers()[layer.index()];
      if (NameMatches(l.name)) return true;
      if (!l.parent.valid() || l.parent >= layer) return false;
      layer = l.parent;
    }
    return false;
  }

  const Graph& graph_;
  const SelectorTerm& term_;
  absl::flat_hash_map<NameId, bool> names_;
  absl::flat_hash_map<ScopeId, bool> scopes_;
  std::vector<ScopeId> visited_;
};

}  // namespace

absl::StatusOr<Selector> Selector::Compile(std::string_view text) {
  Selector selector;
  selector.text_ = std::string(text);
  while (true) {
    size_t end = std::min(text.find('&'), text.size());
    // "[&]" is an ampersand of the expression.
    while (end < text.size() && end > 0 && text[end - 1] == '[') {
      end = std::min(text.find('&', end + 1), text.size());
    }
    DD_ASSIGN_OR_RETURN(auto term, CompileTerm(text.substr(0, end)));
    selector.terms_.push_back(std::move(term));
    if (end == text.size()) return selector;
    text.remove_prefix(end + 1);
  }
}

std::vector<TaskId> Selector::Select(const Graph& graph) const {
  std::vector<Matcher> matchers;
  for (const auto& term : terms_) matchers.emplace_back(graph, *term);
  std::vector<TaskId> selected;
  for (size_t i = 0; i < graph.size(); ++i) {
    TaskId t(i);
    if (graph.task(t).removed) continue;
    if (std::all_of(matchers.begin(), matchers.end(),
                    [&](Matcher& m) { return m.Matches(t); })) {
      selected.push_back(t);
    }
  }
  return selected;
}

}  // namespace daydream
