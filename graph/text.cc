#include "graph/text.h"

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "graph/text_line.h"
#include "graph/text_tables.h"

namespace daydream {
namespace {

class Parser {
 public:
  Parser() : tables_(std::make_shared<GraphTables>()) {
    tables_->names = std::make_shared<StringPool>();
    graph_ = Graph(tables_);
  }

  absl::StatusOr<Graph> Parse(std::string_view text) {
    size_t number = 0;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      DD_ASSIGN_OR_RETURN(std::vector<Token> tokens, SplitLine(text.substr(0, end), ++number));
      text.remove_prefix(std::min(end + 1, text.size()));
      if (tokens.empty()) continue;
      TextLine line(number, std::move(tokens));
      DD_RETURN_IF_ERROR(ParseLine(line));
    }
    for (const PendingEdge& p : edges_) {
      auto from = tasks_.find(p.from);
      if (from == tasks_.end()) {
        return TextError(p.line, p.column, fmt::format("no task is called '{}'", p.from));
      }
      Edge edge = p.edge;
      edge.from = from->second;
      graph_.AddEdge(edge);
    }
    return std::move(graph_);
  }

 private:
  struct PendingEdge {
    std::string from;
    Edge edge;
    size_t line, column;
  };
  template <class I>
  using Names = absl::flat_hash_map<std::string, I>;

  absl::Status ParseLine(TextLine& line) {
    const size_t column = line.column();
    DD_ASSIGN_OR_RETURN(const std::string_view word, line.Word("a name"));
    if (word == "device") return ParseDevice(line, *tables_);
    if (word == "lane") return ParseLane(line);
    if (word == "step") return ParseStep(line);
    if (word == "layer") return ParseLayer(line);
    if (word == "collective") return ParseCollective(line);
    if (word == "scope") return ParseScope(line);
    return ParseTask(line, word, column);
  }

  NameId Intern(std::string_view text) { return tables_->names->Intern(text); }

  // Enters a new name into `names`.
  template <class I>
  static absl::Status Define(const TextLine& line, Names<I>& names, std::string_view name, I id,
                             size_t column) {
    if (name.find_first_of(":=") != std::string_view::npos) {
      return line.Error(column, "the name '{}' must not hold ':' or '='", name);
    }
    if (names.emplace(name, id).second) return absl::OkStatus();
    return line.Error(column, "'{}' is defined twice", name);
  }
  template <class I>
  static absl::StatusOr<I> Find(const TextLine& line, const Names<I>& names, std::string_view name,
                                size_t column, std::string_view what) {
    auto it = names.find(std::string(name));
    if (it == names.end()) return line.Error(column, "no {} is called '{}'", what, name);
    return it->second;
  }
  template <class I>
  absl::StatusOr<I> Find(TextLine& line, const Names<I>& names, std::string_view what) {
    const size_t column = line.column();
    DD_ASSIGN_OR_RETURN(const std::string_view name, line.Word(what));
    return Find(line, names, name, column, what);
  }

  absl::Status ParseLane(TextLine& line) {
    const size_t column = line.column();
    DD_ASSIGN_OR_RETURN(const std::string_view id, line.Word("the lane's name"));
    GraphLane lane;
    DD_ASSIGN_OR_RETURN(lane.lane.kind, line.OneOf(kLaneKinds, "lane kind"));
    lane.lane.name = Intern(id);
    if (lane.lane.kind == LaneKind::kStream) {
      const StreamName stream = ParseStreamName(id);
      lane.lane.device = stream.device;
      lane.lane.number = stream.number;
    }
    while (!line.done()) {
      if (!line.NextIsKeyValue()) {
        const size_t at = line.column();
        DD_ASSIGN_OR_RETURN(const std::string_view word, line.Word("a property"));
        if (word == "priority")
          lane.order = LaneOrder::kPriority;
        else
          return line.Error(at, "'{}' is no property of a lane", word);
        continue;
      }
      const KeyValue kv = line.TakeKeyValue();
      if (kv.key == "name")
        lane.lane.name = Intern(kv.value);
      else if (kv.key == "queue")
        DD_RETURN_IF_ERROR(line.Number(kv, lane.queue_depth));
      else if (kv.key == "shares")
        DD_RETURN_IF_ERROR(line.Number(kv, lane.shared_queue));
      else if (kv.key == "rank")
        DD_RETURN_IF_ERROR(line.Number(kv, lane.lane.rank));
      else if (kv.key == "device")
        DD_RETURN_IF_ERROR(line.Number(kv, lane.lane.device));
      else if (kv.key == "process")
        DD_RETURN_IF_ERROR(line.Number(kv, lane.lane.process));
      else if (kv.key == "number")
        DD_RETURN_IF_ERROR(line.Number(kv, lane.lane.number));
      else
        return line.Error(kv.column, "'{}' is no property of a lane", kv.key);
    }
    return Define(line, lanes_, id, graph_.AddLane(lane), column);
  }

  absl::Status ParseStep(TextLine& line) {
    constexpr size_t kMostSteps = 65535;  // Task::step is a 16-bit index
    if (graph_.steps().size() >= kMostSteps) return line.Error(1, "more than 65535 steps");
    GraphStep step;
    DD_ASSIGN_OR_RETURN(step.label, line.Text("the step's label"));
    while (!line.done()) {
      const size_t column = line.column();
      DD_ASSIGN_OR_RETURN(const std::string_view word, line.Word("a property"));
      if (word == "unmeasured") {
        step.measured = false;
      } else if (word == "host-led") {
        step.host_led = true;
      } else if (word == "host-waited") {
        step.host_waited = true;
      } else if (word == "backlog") {
        step.backlog = true;
      } else if (word == "period") {
        DD_ASSIGN_OR_RETURN(step.recorded_period, line.Time("period"));
      } else {
        return line.Error(column, "'{}' is no property of a step", word);
      }
    }
    graph_.AddStep(std::move(step));
    return absl::OkStatus();
  }

  absl::Status ParseLayer(TextLine& line) {
    const size_t column = line.column();
    DD_ASSIGN_OR_RETURN(const std::string_view id, line.Word("the layer's id"));
    DD_ASSIGN_OR_RETURN(const std::string name, line.Text("the layer's name"));
    Layer layer{.name = Intern(name)};
    while (!line.done()) {
      if (!line.NextIsKeyValue()) return line.Error(line.column(), "expected in=LAYER");
      const KeyValue kv = line.TakeKeyValue();
      if (kv.key != "in") return line.Error(kv.column, "'{}' is no property of a layer", kv.key);
      DD_ASSIGN_OR_RETURN(layer.parent, Find(line, layers_, kv.value, kv.column, "layer"));
    }
    return Define(line, layers_, id, graph_.AddLayer(layer), column);
  }

  absl::Status ParseCollective(TextLine& line) {
    const size_t column = line.column();
    DD_ASSIGN_OR_RETURN(const std::string_view id, line.Word("the collective's id"));
    const auto row = static_cast<uint32_t>(tables_->collectives.size());
    DD_RETURN_IF_ERROR(ParseCollectiveDetail(line, *tables_));
    return Define(line, collectives_, id, row, column);
  }

  absl::Status ParseScope(TextLine& line) {
    const size_t column = line.column();
    DD_ASSIGN_OR_RETURN(const std::string_view id, line.Word("the scope's id"));
    Scope scope;
    OpDetail op;
    bool has_op = false;
    DD_ASSIGN_OR_RETURN(scope.kind, line.OneOf(kScopeKinds, "scope kind"));
    DD_ASSIGN_OR_RETURN(scope.lane, Find(line, lanes_, "lane"));
    DD_ASSIGN_OR_RETURN(const std::string name, line.Text("the scope's name"));
    scope.name = Intern(name);
    while (!line.done()) {
      if (!line.NextIsKeyValue()) return line.Error(line.column(), "expected NAME=VALUE");
      const KeyValue kv = line.TakeKeyValue();
      if (kv.key == "in") {
        DD_ASSIGN_OR_RETURN(scope.parent, Find(line, scopes_, kv.value, kv.column, "scope"));
      } else if (kv.key == "begin" || kv.key == "end") {
        const std::optional<Duration> time = ParseTime(kv.value);
        if (!time) return line.Error(kv.column, "'{}' is no time", kv.value);
        (kv.key == "begin" ? scope.begin : scope.end) = Instant::AtNs(time->ns);
      } else {
        has_op = true;
        DD_RETURN_IF_ERROR(ParseOpValue(line, kv, op));
      }
    }
    if (has_op) {
      if (scope.kind != EventKind::kOp) return line.Error(column, "only an op has op details");
      scope.detail = static_cast<uint32_t>(tables_->ops.size());
      tables_->ops.push_back(op);
    }
    tables_->scopes.push_back(scope);
    return Define(line, scopes_, id, ScopeId(tables_->scopes.size() - 1), column);
  }

  absl::Status ParseOpValue(TextLine& line, const KeyValue& kv, OpDetail& op) {
    if (kv.key == "shapes") return op.shapes = Intern(kv.value), absl::OkStatus();
    if (kv.key == "types") return op.types = Intern(kv.value), absl::OkStatus();
    if (kv.key == "sequence") return line.Number(kv, op.sequence);
    if (kv.key == "forward") return line.Number(kv, op.forward_thread);
    if (kv.key != "collective") {
      return line.Error(kv.column, "'{}' is no property of a scope", kv.key);
    }
    DD_ASSIGN_OR_RETURN(op.collective, Find(line, collectives_, kv.value, kv.column, "collective"));
    return absl::OkStatus();
  }

  absl::Status ParseTask(TextLine& line, std::string_view id, size_t column);
  absl::Status ParseTaskWord(TextLine& line, Task& task);
  absl::Status ParseTaskValue(TextLine& line, Task& task);
  absl::Status ParseEdge(TextLine& line, Anchor to_anchor);

  // What a task line says beside the Task itself.
  struct TaskExtras {
    std::optional<KernelDetail> kernel;
    std::optional<CopyDetail> copy;
    std::optional<Duration> transfer;
    std::optional<TaskId> behind;  // lane predecessor; None = first of the lane
    std::vector<PendingEdge> edges;
  };

  std::shared_ptr<GraphTables> tables_;
  Graph graph_;
  Names<LaneId> lanes_;
  Names<TaskId> tasks_;
  Names<LayerId> layers_;
  Names<ScopeId> scopes_;
  Names<uint32_t> collectives_;
  std::vector<PendingEdge> edges_;
  TaskExtras extras_;  // of the line being read
};

absl::Status Parser::ParseTask(TextLine& line, std::string_view id, size_t column) {
  Task task;
  extras_ = {};
  DD_ASSIGN_OR_RETURN(task.lane, Find(line, lanes_, "lane"));
  const size_t kind_column = line.column();
  DD_ASSIGN_OR_RETURN(task.kind, line.OneOf(kTaskKinds, "task kind"));
  if (!line.done() && !line.NextIsText() && ParseTime(line.peek().word)) {
    DD_ASSIGN_OR_RETURN(task.duration, line.Time("duration"));
  }
  task.name = NameId(0);
  while (!line.done()) {
    if (line.NextIsText()) {
      DD_ASSIGN_OR_RETURN(const std::string name, line.Text("the name"));
      task.name = Intern(name);
    } else if (line.NextIsKeyValue()) {
      DD_RETURN_IF_ERROR(ParseTaskValue(line, task));
    } else {
      DD_RETURN_IF_ERROR(ParseTaskWord(line, task));
    }
  }
  const bool copies = task.kind == TaskKind::kMemcpy || task.kind == TaskKind::kMemset;
  const bool kernel = task.kind == TaskKind::kKernel || task.kind == TaskKind::kCollective;
  if ((extras_.kernel && !kernel) || (extras_.copy && !copies)) {
    return line.Error(kind_column, "a {} does not have these details",
                      WordOf(kTaskKinds, task.kind));
  }
  if (extras_.kernel) task.detail = AddRow(tables_->kernels, *extras_.kernel);
  if (extras_.copy) task.detail = AddRow(tables_->copies, *extras_.copy);
  if (extras_.behind && extras_.behind->valid() && graph_.task(*extras_.behind).lane != task.lane) {
    return line.Error(column, "'behind' names a task of another lane");
  }
  const TaskId t = graph_.Append(task);
  if (extras_.behind) graph_.MoveToLane(t, task.lane, *extras_.behind);
  if (extras_.transfer) graph_.SetTransfer(t, *extras_.transfer);
  for (PendingEdge& e : extras_.edges) {
    e.edge.to = t;
    edges_.push_back(std::move(e));
  }
  return Define(line, tasks_, id, t, column);
}

absl::Status Parser::ParseTaskWord(TextLine& line, Task& task) {
  const size_t column = line.column();
  DD_ASSIGN_OR_RETURN(const std::string_view word, line.Word("a property"));
  if (word == "overlaps") return task.overlaps = true, absl::OkStatus();
  if (word == "removed") return task.removed = true, absl::OkStatus();
  if (word == "after") return ParseEdge(line, Anchor::kStart);
  if (word == "until") return ParseEdge(line, Anchor::kEnd);
  if (word == "gap") {
    DD_ASSIGN_OR_RETURN(task.gap, line.Time("gap"));
  } else if (word == "earliest") {
    DD_ASSIGN_OR_RETURN(const Duration time, line.Time("earliest start"));
    task.earliest = Instant::AtNs(time.ns);
  } else if (word == "at") {
    DD_ASSIGN_OR_RETURN(const Duration time, line.Time("recorded start"));
    task.recorded_start = Instant::AtNs(time.ns);
  } else if (word == "phase") {
    DD_ASSIGN_OR_RETURN(task.phase, line.OneOf(kPhases, "phase"));
  } else if (word == "layer") {
    DD_ASSIGN_OR_RETURN(task.layer, Find(line, layers_, "layer"));
  } else if (word == "scope") {
    DD_ASSIGN_OR_RETURN(task.scope, Find(line, scopes_, "scope"));
  } else if (word == "behind") {
    if (!line.done() && line.peek().word == "nothing") {
      line.Skip();
      extras_.behind = TaskId::None();
    } else {
      DD_ASSIGN_OR_RETURN(extras_.behind, Find(line, tasks_, "task"));
    }
  } else {
    return line.Error(column, "'{}' is no property of a task", word);
  }
  return absl::OkStatus();
}

absl::Status Parser::ParseTaskValue(TextLine& line, Task& task) {
  const KeyValue kv = line.TakeKeyValue();
  if (kv.key == "priority") return line.Number(kv, task.priority);
  if (kv.key == "step") return line.Number(kv, task.step);
  if (kv.key == "transfer") {
    extras_.transfer = ParseTime(kv.value);
    if (!extras_.transfer) return line.Error(kv.column, "'{}' is no time", kv.value);
    return absl::OkStatus();
  }
  if (kv.key == "bytes" || kv.key == "from" || kv.key == "to") {
    if (!extras_.copy) extras_.copy.emplace();
    return ParseCopyValue(line, kv, *extras_.copy);
  }
  if (!extras_.kernel) extras_.kernel.emplace();
  if (kv.key == "collective") {
    DD_ASSIGN_OR_RETURN(extras_.kernel->collective,
                        Find(line, collectives_, kv.value, kv.column, "collective"));
    return absl::OkStatus();
  }
  return ParseKernelValue(line, kv, *extras_.kernel);
}

// after TASK[:start] [RULE] [+LAG]
absl::Status Parser::ParseEdge(TextLine& line, Anchor to_anchor) {
  PendingEdge pending{
      .edge = {.to_anchor = to_anchor}, .line = line.number(), .column = line.column()};
  DD_ASSIGN_OR_RETURN(std::string_view from, line.Word("a task"));
  if (from.ends_with(":start")) {
    from.remove_suffix(6);
    pending.edge.from_anchor = Anchor::kStart;
  }
  pending.from = from;
  if (!line.done() && !line.peek().quoted) {
    if (std::optional<Rule> rule = FindWord(kRules, line.peek().word)) {
      pending.edge.rule = *rule;
      line.Skip();
    }
  }
  if (!line.done() && (line.peek().word.starts_with('+') || line.peek().word.starts_with('-'))) {
    DD_ASSIGN_OR_RETURN(pending.edge.lag, line.Time("lag"));
  }
  extras_.edges.push_back(std::move(pending));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Graph> ParseGraph(std::string_view text) { return Parser().Parse(text); }

}  // namespace daydream
