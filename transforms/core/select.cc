#include "transforms/core/select.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/check.h"
#include "base/text.h"
#include "graph/facts.h"
#include "graph/scopes.h"
#include "transforms/core/select_term.h"
#include "transforms/core/suggest.h"

namespace daydream {

struct SelectorNode {
  enum class Kind : uint8_t { kAll, kAny, kTerm, kWhere, kRelated };
  Kind kind = Kind::kAll;
  std::vector<std::shared_ptr<const SelectorNode>> parts;
  std::shared_ptr<const SelectorTerm> term;
  std::shared_ptr<const Expression> where;
  Relation relation = Relation::kNot;
  bool named = false;
};

namespace {

using Node = SelectorNode;
using NodePtr = std::shared_ptr<const SelectorNode>;
using TaskSet = std::vector<bool>;  // by task

absl::Status BadTerm(std::string_view term, std::string_view why) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0103",
                     .what = fmt::format("selector '{}': {}", term, why),
                     .fix = "daydream explain selectors"});
}

NodePtr MakeRelated(Relation relation, NodePtr to) {
  Node node{.kind = Node::Kind::kRelated};
  node.relation = relation;
  node.parts.push_back(std::move(to));
  return std::make_shared<const Node>(std::move(node));
}

// ['!'] [KEY ':'] VALUE
absl::StatusOr<NodePtr> ReadTerm(std::string_view text) {
  text = StripSpaces(text);
  std::string_view rest = text, key = "kernel";
  bool inverted = rest.starts_with('!');
  if (inverted) rest = StripSpaces(rest.substr(1));
  // A kernel name may hold "::"; a key is a known word before a single colon.
  if (size_t colon = rest.find(':');
      colon != std::string_view::npos && rest.substr(colon, 2) != "::") {
    std::string_view word = rest.substr(0, colon);
    if (IsSelectorKey(word)) {
      key = word;
      rest.remove_prefix(colon + 1);
    } else if (std::string_view closest = Closest(word, SelectorKeys()); !closest.empty()) {
      return BadTerm(text, fmt::format("unknown key '{}', did you mean '{}'?", word, closest));
    }
  }
  auto term = CompileTerm(key, rest);
  if (!term.ok()) return BadTerm(text, DiagnosticOf(term.status()).what);
  Node node{.kind = Node::Kind::kTerm};
  node.term = *std::move(term);
  NodePtr read = std::make_shared<const Node>(std::move(node));
  return inverted ? MakeRelated(Relation::kNot, std::move(read)) : read;
}

// Evaluates selectors as sets of tasks, from the leaves up.
class Sets {
 public:
  Sets(const Graph& graph, ExpressionValues* values) : graph_(graph), values_(values) {}

  TaskSet Of(const Node& node) {
    if (!node.named) return Evaluated(node);
    auto it = named_.find(&node);
    if (it == named_.end()) it = named_.emplace(&node, Evaluated(node)).first;
    return it->second;
  }

 private:
  TaskSet Evaluated(const Node& node) {
    switch (node.kind) {
      case Node::Kind::kTerm:
        return OfTerm(*node.term);
      case Node::Kind::kWhere:
        return OfCondition(*node.where);
      case Node::Kind::kRelated:
        return OfRelation(node.relation, Of(*node.parts[0]));
      case Node::Kind::kAll:
      case Node::Kind::kAny:
        break;
    }
    bool all = node.kind == Node::Kind::kAll;
    TaskSet set(graph_.size(), all);
    for (const NodePtr& part : node.parts) {
      TaskSet other = Of(*part);
      for (size_t i = 0; i < set.size(); ++i) {
        set[i] = all ? set[i] && other[i] : set[i] || other[i];
      }
    }
    return set;
  }

  TaskSet OfTerm(const SelectorTerm& term) {
    TaskSet set(graph_.size(), false);
    TermMatcher matcher(graph_, term);
    for (size_t i = 0; i < set.size(); ++i) {
      if (!graph_.task(TaskId(i)).removed) set[i] = matcher.Matches(TaskId(i));
    }
    return set;
  }

  TaskSet OfCondition(const Expression& where) {
    DD_CHECK(values_ != nullptr);
    TaskSet set(graph_.size(), false);
    Evaluation evaluation(where, *values_);
    for (size_t i = 0; i < set.size(); ++i) {
      if (graph_.task(TaskId(i)).removed) continue;
      set[i] = evaluation.Of(TaskId(i)).value_or(0) != 0;
    }
    return set;
  }

  TaskSet OfRelation(Relation relation, TaskSet to) {
    switch (relation) {
      case Relation::kNot:
        to.flip();
        return to;
      case Relation::kLaunchedBy:
        return LaunchedBy(to);
      case Relation::kInside:
        return Inside(to);
      case Relation::kBetween:
        return Between(to);
      default:
        return InLaneOrder(relation, to);
    }
  }

  TaskSet LaunchedBy(const TaskSet& calls) {
    TaskSet set(graph_.size(), false);
    for (const Edge& e : graph_.edges()) {
      if (e.rule == Rule::kLaunch && calls[e.from.index()] && IsGpu(graph_.task(e.to).kind)) {
        set[e.to.index()] = true;
      }
    }
    return set;
  }

  TaskSet Inside(const TaskSet& of) {
    const std::vector<Scope>& scopes = graph_.tables().scopes;
    std::vector<bool> inside(scopes.size(), false);
    for (size_t i = 0; i < of.size(); ++i) {
      ScopeId scope = graph_.task(TaskId(i)).scope;
      if (of[i] && scope.index() < scopes.size()) inside[scope.index()] = true;
    }
    absl::flat_hash_map<ScopeId, bool> known;
    TaskSet set(graph_.size(), false);
    for (size_t i = 0; i < set.size(); ++i) {
      std::vector<ScopeId> visited;
      bool in = false;
      for (ScopeId s : ScopesAround(graph_, graph_.task(TaskId(i)).scope)) {
        auto [it, inserted] = known.try_emplace(s, false);
        if (!inserted) {
          in = it->second;
          break;
        }
        visited.push_back(s);
        in = inside[s.index()];
        if (in) break;
      }
      for (ScopeId s : visited) known[s] = in;
      set[i] = in;
    }
    return set;
  }

  // One walk along every lane in each direction.
  TaskSet Between(const TaskSet& to) {
    TaskSet set(graph_.size(), false);
    for (const GraphLane& lane : graph_.lanes()) {
      for (const bool forward : {true, false}) {
        absl::flat_hash_map<uint16_t, bool> met;  // by step
        for (TaskId t = forward ? lane.first : lane.last; t.valid();
             t = forward ? graph_.task(t).lane_next : graph_.task(t).lane_prev) {
          if (graph_.task(t).removed) continue;
          bool& seen = met[graph_.task(t).step];
          set[t.index()] = !to[t.index()] && seen && (forward || set[t.index()]);
          seen |= to[t.index()];
        }
      }
    }
    return set;
  }

  // One walk along every lane; `to` counts live tasks only.
  TaskSet InLaneOrder(Relation relation, const TaskSet& to) {
    bool from_end = relation == Relation::kAfter || relation == Relation::kLast;
    bool itself = relation == Relation::kFirst || relation == Relation::kLast;
    TaskSet set(graph_.size(), false);
    for (const GraphLane& lane : graph_.lanes()) {
      absl::flat_hash_map<uint16_t, bool> met;      // by step
      absl::flat_hash_map<uint16_t, bool> has_any;  // before and after need a match in the step
      for (TaskId t = lane.first; t.valid(); t = graph_.task(t).lane_next) {
        if (!graph_.task(t).removed && to[t.index()]) has_any[graph_.task(t).step] = true;
      }
      for (TaskId t = from_end ? lane.last : lane.first; t.valid();
           t = from_end ? graph_.task(t).lane_prev : graph_.task(t).lane_next) {
        const Task& task = graph_.task(t);
        if (task.removed || !has_any.contains(task.step)) continue;
        bool& seen = met[task.step];
        bool hit = to[t.index()];
        set[t.index()] = !seen && hit == itself;
        seen |= hit;
      }
    }
    return set;
  }

  const Graph& graph_;
  ExpressionValues* values_;
  std::map<const Node*, TaskSet> named_;
};

// What became of the texts of selectors: a sweep asks for the same at each point.
template <class T>
class ByText {
 public:
  std::optional<T> Find(const std::string& text) const {
    std::lock_guard lock(*mutex_);
    const auto found = known_->find(text);
    return found != known_->end() ? std::optional(found->second) : std::nullopt;
  }
  void Keep(const std::string& text, const T& value) const {
    constexpr size_t kMostKept = 16;
    std::lock_guard lock(*mutex_);
    if (known_->size() < kMostKept) known_->emplace(text, value);
  }

 private:
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
  std::unique_ptr<std::map<std::string, T>> known_ = std::make_unique<std::map<std::string, T>>();
};

}  // namespace

absl::StatusOr<Selector> Selector::Compile(std::string_view text) {
  Selector selector;
  selector.text_ = std::string(text);
  selector.by_text_ = true;
  Node all{.kind = Node::Kind::kAll};
  while (true) {
    size_t end = std::min(text.find('&'), text.size());
    // "[&]" is an ampersand of the expression.
    while (end < text.size() && end > 0 && text[end - 1] == '[') {
      end = std::min(text.find('&', end + 1), text.size());
    }
    DD_ASSIGN_OR_RETURN(NodePtr term, ReadTerm(text.substr(0, end)));
    all.parts.push_back(std::move(term));
    if (end == text.size()) break;
    text.remove_prefix(end + 1);
  }
  selector.node_ = std::make_shared<const Node>(std::move(all));
  return selector;
}

absl::StatusOr<Selector> Selector::CompileFor(const Graph& graph, std::string_view text) {
  const auto known = FactOfTables<ByText<Selector>>(graph, [] { return ByText<Selector>(); });
  const std::string key(text);
  if (auto selector = known->Find(key)) return *std::move(selector);
  absl::StatusOr<Selector> selector = Compile(text);
  if (selector.ok()) known->Keep(key, *selector);
  return selector;
}

absl::StatusOr<Selector> Selector::Key(std::string_view key, std::string_view value) {
  Node node{.kind = Node::Kind::kTerm};
  DD_ASSIGN_OR_RETURN(node.term, CompileTerm(key, value));
  Selector selector;
  selector.text_ = fmt::format("{}:{}", key, value);
  selector.node_ = std::make_shared<const Node>(std::move(node));
  return selector;
}

Selector Selector::All(std::vector<Selector> parts) {
  Selector selector;
  Node node{.kind = Node::Kind::kAll};
  for (Selector& part : parts) {
    selector.text_ += (selector.text_.empty() ? "" : " & ") + part.text_;
    node.parts.push_back(std::move(part.node_));
  }
  selector.node_ = std::make_shared<const Node>(std::move(node));
  return selector;
}

Selector Selector::Any(std::vector<Selector> parts) {
  Selector selector;
  Node node{.kind = Node::Kind::kAny};
  for (Selector& part : parts) {
    selector.text_ += (selector.text_.empty() ? "" : " | ") + part.text_;
    node.parts.push_back(std::move(part.node_));
  }
  if (node.parts.size() > 1) selector.text_ = "(" + selector.text_ + ")";
  selector.node_ = std::make_shared<const Node>(std::move(node));
  return selector;
}

Selector Selector::Related(Relation relation, Selector to) {
  constexpr std::string_view kWords[] = {"not",   "launched_by", "inside", "before",
                                         "after", "first",       "last",   "between"};
  Selector selector;
  static_assert(std::size(kWords) == static_cast<size_t>(Relation::kBetween) + 1);
  selector.text_ = fmt::format("{}({})", kWords[static_cast<size_t>(relation)], to.text_);
  selector.node_ = MakeRelated(relation, std::move(to.node_));
  return selector;
}

Selector Selector::Where(std::shared_ptr<const Expression> condition) {
  Selector selector;
  selector.text_ = condition->text;
  Node node{.kind = Node::Kind::kWhere};
  node.where = std::move(condition);
  selector.node_ = std::make_shared<const Node>(std::move(node));
  return selector;
}

Selector Selector::Named(std::string_view name, const Selector& selector) {
  Selector named;
  named.text_ = std::string(name);
  Node node{.kind = Node::Kind::kAll};
  node.parts.push_back(selector.node_);
  node.named = true;
  named.node_ = std::make_shared<const Node>(std::move(node));
  return named;
}

std::vector<TaskId> Selector::Select(const Graph& graph, ExpressionValues* values) const {
  if (!by_text_ || graph.facts() == nullptr) return Find(graph, values);
  const auto known = FactOf<ByText<std::vector<TaskId>>>(graph, [] {
    return ByText<std::vector<TaskId>>();  // what was selected
  });
  if (auto selected = known->Find(text_)) return *std::move(selected);
  std::vector<TaskId> selected = Find(graph, values);
  known->Keep(text_, selected);
  return selected;
}

std::vector<TaskId> Selector::Find(const Graph& graph, ExpressionValues* values) const {
  std::vector<TaskId> selected;
  if (node_ == nullptr) return selected;
  TaskSet set = Sets(graph, values).Of(*node_);
  for (size_t i = 0; i < set.size(); ++i) {
    TaskId t(i);
    if (set[i] && !graph.task(t).removed) selected.push_back(t);
  }
  return selected;
}

}  // namespace daydream
