#include "graph/graph.h"

#include <algorithm>
#include <atomic>

#include "base/check.h"
#include "graph/facts.h"
#include "graph/large_pages.h"
#include "graph/stalled_time.h"

namespace daydream {
namespace {

// Rows that a graph added to its shared tables carry this bit, so that tables may still grow
// while a graph is being built.
constexpr uint32_t kAdded = 0x80000000;

const std::shared_ptr<const GraphTables>& EmptyTables() {
  static const auto& tables = *new std::shared_ptr<const GraphTables>([] {
    auto t = std::make_shared<GraphTables>();
    t->names = std::make_shared<StringPool>();
    return t;
  }());
  return tables;
}

template <class T>
const T* Row(const std::vector<T>& shared, const std::vector<T>& added, uint32_t row) {
  const std::vector<T>& table = (row & kAdded) != 0 ? added : shared;
  row &= ~kAdded;
  return row < table.size() ? &table[row] : nullptr;
}

bool LessTask(const std::pair<TaskId, Duration>& a, TaskId t) { return a.first < t; }

}  // namespace

Graph::Graph() : Graph(EmptyTables()) {}

Graph::Graph(std::shared_ptr<const GraphTables> tables)
    : tables_(std::move(tables)),
      table_facts_(std::make_shared<GraphFacts>()),
      stalled_time_(std::make_shared<StalledTime>()) {
  DD_CHECK(tables_ != nullptr && tables_->names != nullptr);
}

std::string_view Graph::Name(NameId id) const {
  if (!id.valid()) return "";
  if ((id.value & kAdded) != 0) return added_names_[id.value & ~kAdded];
  return tables_->names->Get(id);
}

const KernelDetail* Graph::Kernel(TaskId t) const {
  const Task& task = this->task(t);
  if (task.kind != TaskKind::kKernel && task.kind != TaskKind::kCollective) return nullptr;
  if (task.detail == Id<void>::kNoneValue) return nullptr;
  return Row(tables_->kernels, added_kernels_, task.detail);
}

const CopyDetail* Graph::Copy(TaskId t) const {
  const Task& task = this->task(t);
  if (task.kind != TaskKind::kMemcpy && task.kind != TaskKind::kMemset) return nullptr;
  if (task.detail == Id<void>::kNoneValue) return nullptr;
  return Row(tables_->copies, added_copies_, task.detail);
}

const CollectiveDetail* Graph::Collective(TaskId t) const {
  const KernelDetail* kernel = Kernel(t);
  if (kernel == nullptr || kernel->collective == Id<void>::kNoneValue) return nullptr;
  return Row(tables_->collectives, added_collectives_, kernel->collective);
}

const Scope* Graph::ScopeOf(TaskId t) const {
  ScopeId s = task(t).scope;
  return s.index() < tables_->scopes.size() ? &tables_->scopes[s.index()] : nullptr;
}

const OpDetail* Graph::OpOf(ScopeId s) const {
  if (s.index() >= tables_->scopes.size()) return nullptr;
  const Scope& scope = tables_->scopes[s.index()];
  if (scope.kind != EventKind::kOp || scope.detail >= tables_->ops.size()) return nullptr;
  if (!reshaped_.empty()) {
    const auto it = reshaped_.find(static_cast<uint32_t>(s.index()));
    if (it != reshaped_.end()) return &added_ops_[it->second];
  }
  return &tables_->ops[scope.detail];
}

void Graph::SetShapes(ScopeId s, NameId shapes) {
  Edited();
  OpDetail detail = *OpOf(s);
  detail.shapes = shapes;
  const auto next = static_cast<uint32_t>(added_ops_.size());
  const auto [it, is_new] = reshaped_.try_emplace(static_cast<uint32_t>(s.index()), next);
  if (is_new) {
    added_ops_.push_back(detail);
  } else {
    added_ops_[it->second] = detail;
  }
}

Duration Graph::Transfer(TaskId t) const {
  auto it = std::lower_bound(transfers_.begin(), transfers_.end(), t, LessTask);
  return it != transfers_.end() && it->first == t ? it->second : task(t).duration;
}

NameId Graph::AddName(std::string_view text) {
  if (NameId known = tables_->names->Find(text); known.valid()) return known;
  ForgetStructure();
  const NameId next(kAdded | static_cast<uint32_t>(added_names_.size()));
  for (uint64_t hash = std::hash<std::string_view>()(text);; ++hash) {
    const auto [it, inserted] = added_name_ids_.try_emplace(hash, next);
    if (inserted) added_names_.emplace_back(text);
    if (inserted || Name(it->second) == text) return it->second;
  }
}

LaneId Graph::AddLane(const GraphLane& lane) {
  Edited();
  LaneId id(lanes_.size());
  lanes_.push_back(lane);
  lanes_.back().first = lanes_.back().last = TaskId::None();
  return id;
}

LayerId Graph::AddLayer(const Layer& layer) {
  Edited();
  layers_.push_back(layer);
  return LayerId(layers_.size() - 1);
}

uint16_t Graph::AddStep(GraphStep step) {
  Edited();
  steps_.push_back(std::move(step));
  return static_cast<uint16_t>(steps_.size() - 1);
}

TaskId Graph::Append(const Task& task) {
  DD_CHECK(task.lane.index() < lanes_.size());
  Task own = task;  // which may be one of this graph, whose tasks move
  Task& appended = AppendTo(own.lane);
  own.lane_prev = appended.lane_prev;
  own.lane_next = TaskId::None();
  appended = own;
  return TaskId(tasks_.size() - 1);
}

TaskId Graph::InsertAfter(TaskId after, Task task) {
  TaskId id(tasks_.size());
  LaneId lane = this->task(after).lane;
  tasks_.push_back(task);
  Link(id, lane, after);
  return id;
}

TaskId Graph::InsertBefore(TaskId before, Task task) {
  TaskId id(tasks_.size());
  LaneId lane = this->task(before).lane;
  TaskId after = this->task(before).lane_prev;
  tasks_.push_back(task);
  Link(id, lane, after);
  return id;
}

void Graph::MoveToLane(TaskId t, LaneId lane, TaskId after) {
  DD_CHECK(after != t && (!after.valid() || task(after).lane == lane));
  Task& moved = tasks_[t.index()];
  GraphLane& from = lanes_[moved.lane.index()];
  (moved.lane_prev.valid() ? tasks_[moved.lane_prev.index()].lane_next : from.first) =
      moved.lane_next;
  (moved.lane_next.valid() ? tasks_[moved.lane_next.index()].lane_prev : from.last) =
      moved.lane_prev;
  Link(t, lane, after);
}

void Graph::Link(TaskId t, LaneId lane, TaskId after) {
  Edited();
  GraphLane& list = lanes_[lane.index()];
  TaskId before = after.valid() ? tasks_[after.index()].lane_next : list.first;
  Task& task = tasks_[t.index()];
  task.lane = lane;
  task.lane_prev = after;
  task.lane_next = before;
  (after.valid() ? tasks_[after.index()].lane_next : list.first) = t;
  (before.valid() ? tasks_[before.index()].lane_prev : list.last) = t;
}

uint32_t Graph::AddCollectiveDetail(const CollectiveDetail& d) {
  ForgetStructure();
  added_collectives_.push_back(d);
  return kAdded | static_cast<uint32_t>(added_collectives_.size() - 1);
}

uint32_t Graph::AddKernelDetail(const KernelDetail& d) {
  ForgetStructure();
  added_kernels_.push_back(d);
  return kAdded | static_cast<uint32_t>(added_kernels_.size() - 1);
}

uint32_t Graph::AddCopyDetail(const CopyDetail& d) {
  ForgetStructure();
  added_copies_.push_back(d);
  return kAdded | static_cast<uint32_t>(added_copies_.size() - 1);
}

void Graph::SetTransfer(TaskId t, Duration transfer) {
  Edited();
  auto it = std::lower_bound(transfers_.begin(), transfers_.end(), t, LessTask);
  if (it != transfers_.end() && it->first == t) {
    it->second = transfer;
  } else {
    transfers_.insert(it, {t, transfer});
  }
}

void Graph::SetStalledTime(StalledTime time) {
  Edited().stalled_time_ = std::make_shared<StalledTime>(std::move(time));
}

Graph Graph::WithoutTasks() const {
  Graph empty(tables_);
  empty.table_facts_ = table_facts_;
  empty.stalled_time_ = stalled_time_;
  empty.lanes_ = lanes_;
  for (GraphLane& lane : empty.lanes_) lane.first = lane.last = TaskId::None();
  empty.layers_ = layers_;
  empty.added_names_ = added_names_;
  empty.added_name_ids_ = added_name_ids_;
  empty.added_kernels_ = added_kernels_;
  empty.added_copies_ = added_copies_;
  empty.added_ops_ = added_ops_;
  empty.added_collectives_ = added_collectives_;
  empty.reshaped_ = reshaped_;
  empty.model_changes_ = model_changes_;
  return empty;
}

void Graph::Reserve(size_t tasks, size_t edges) {
  tasks_.reserve(tasks);
  edges_.reserve(edges);
  UseLargePages(tasks_.data(), tasks * sizeof(Task));
  UseLargePages(edges_.data(), edges * sizeof(Edge));
}

void Graph::NameStructure(uint64_t number) {
  structure_ = number;
  retimed_.clear();
}

void Graph::TellLikelyOrder(std::vector<TaskId> order) {
  likely_order_ = std::make_shared<const std::vector<TaskId>>(std::move(order));
}

void Graph::NameWiring() {
  static std::atomic<uint64_t> last{0};
  wiring_ = ++last;
}

void Graph::UndoRetimed(const Graph& as_named) {
  facts_.reset();
  for (TaskId t : retimed_) {
    tasks_[t.index()].duration = as_named.task(t).duration;
    tasks_[t.index()].gap = as_named.task(t).gap;
  }
  retimed_.clear();
}

}  // namespace daydream
