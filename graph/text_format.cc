#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "graph/text.h"
#include "graph/text_tables.h"

namespace daydream {
namespace {

class Writer {
 public:
  explicit Writer(const Graph& g) : g_(g) {}

  std::string Write() {
    for (const Device& d : g_.tables().devices) Put("device{}\n", FormatDevice(d));
    WriteLanes();
    for (const GraphStep& s : g_.steps()) {
      Put("step {}{}", Quote(s.label), s.measured ? "" : " unmeasured");
      if (s.host_led) Put(" host-led");
      if (s.host_waited) Put(" host-waited");
      if (s.backlog) Put(" backlog");
      if (s.recorded_period.ns != 0) Put(" period {}", FormatTime(s.recorded_period));
      Put("\n");
    }
    for (size_t i = 0; i < g_.layers().size(); ++i) {
      const Layer& layer = g_.layers()[i];
      Put("layer L{} {}", i, Quote(g_.Name(layer.name)));
      if (layer.parent.valid()) Put(" in=L{}", layer.parent.value);
      Put("\n");
    }
    const std::vector<CollectiveDetail>& collectives = g_.tables().collectives;
    for (size_t i = 0; i < collectives.size(); ++i) {
      Put("collective c{}{}\n", i, FormatCollective(collectives[i], g_));
    }
    for (size_t i = 0; i < g_.tables().scopes.size(); ++i) WriteScope(i);
    FindPredecessors();
    EdgesByTarget();
    for (size_t i = 0; i < g_.size(); ++i) WriteTask(TaskId(i));
    return std::move(out_);
  }

 private:
  template <class... Args>
  void Put(fmt::format_string<Args...> f, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), f, std::forward<Args>(args)...);
  }

  static bool IsPlain(std::string_view name) {
    return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '.' || c == '_' || c == '-' || c == '/';
    });
  }

  // A lane is called by its name where that is one word, otherwise by its place in the hardware.
  void WriteLanes() {
    absl::flat_hash_set<std::string> taken;
    for (size_t i = 0; i < g_.lanes().size(); ++i) {
      const Lane& l = g_.lanes()[i].lane;
      std::string id(g_.Name(l.name));
      if (!IsPlain(id)) {
        id = l.kind == LaneKind::kStream && l.device >= 0
                 ? fmt::format("gpu{}.{}", l.device, l.number)
                 : fmt::format("{}{}", l.kind == LaneKind::kThread ? "cpu" : "lane", i);
      }
      while (!taken.insert(id).second) id += fmt::format("_{}", i);
      lane_names_.push_back(id);
      WriteLane(g_.lanes()[i], id);
    }
  }

  void WriteLane(const GraphLane& lane, const std::string& id) {
    const Lane& l = lane.lane;
    Put("lane {} {}", id, WordOf(kLaneKinds, l.kind));
    if (lane.order == LaneOrder::kPriority) Put(" priority");
    if (lane.queue_depth != 0) Put(" queue={}", lane.queue_depth);
    if (lane.shared_queue != 0) Put(" shares={}", lane.shared_queue);
    if (l.rank != 0) Put(" rank={}", l.rank);
    const StreamName usual = l.kind == LaneKind::kStream ? ParseStreamName(id) : StreamName{};
    if (l.device != usual.device) Put(" device={}", l.device);
    if (l.process != 0) Put(" process={}", l.process);
    if (l.number != usual.number) Put(" number={}", l.number);
    if (g_.Name(l.name) != id) Put(" name={}", Quote(g_.Name(l.name)));
    Put("\n");
  }

  void WriteScope(size_t i) {
    const Scope& s = g_.tables().scopes[i];
    Put("scope s{} {} {} {}", i, WordOf(kScopeKinds, s.kind), LaneName(s.lane),
        Quote(g_.Name(s.name)));
    if (s.parent.valid()) Put(" in=s{}", s.parent.value);
    if (s.begin.ns != 0) Put(" begin={}", FormatTime(Duration::Ns(s.begin.ns)));
    if (s.end.ns != 0) Put(" end={}", FormatTime(Duration::Ns(s.end.ns)));
    if (const OpDetail* op = g_.OpOf(ScopeId(i))) {
      if (op->shapes.valid()) Put(" shapes={}", Quote(g_.Name(op->shapes)));
      if (op->types.valid()) Put(" types={}", Quote(g_.Name(op->types)));
      // Says that there are details even where all are unknown.
      Put(" sequence={}", op->sequence);
      if (op->forward_thread != -1) Put(" forward={}", op->forward_thread);
      if (op->collective != Id<void>::kNoneValue) Put(" collective=c{}", op->collective);
    }
    Put("\n");
  }

  // A scope of a graph whose lanes were never filled may name no lane; any will do then.
  std::string_view LaneName(LaneId lane) const {
    return lane.index() < lane_names_.size() ? std::string_view(lane_names_[lane.index()]) : "?";
  }

  // Tasks are written by TaskId. Where that is not lane order, a task must say which of the tasks
  // before it in the text it comes behind: its predecessor once all later tasks are taken away.
  void FindPredecessors() {
    std::vector<TaskId> prev(g_.size()), next(g_.size());
    for (size_t i = 0; i < g_.size(); ++i) {
      prev[i] = g_.tasks()[i].lane_prev;
      next[i] = g_.tasks()[i].lane_next;
    }
    behind_.resize(g_.size());
    at_end_.resize(g_.size());
    for (size_t i = g_.size(); i-- > 0;) {
      behind_[i] = prev[i];
      at_end_[i] = !next[i].valid();
      if (prev[i].valid()) next[prev[i].index()] = next[i];
      if (next[i].valid()) prev[next[i].index()] = prev[i];
    }
  }

  void EdgesByTarget() {
    into_.resize(g_.size() + 1);
    for (const Edge& e : g_.edges()) ++into_[e.to.index() + 1];
    for (size_t i = 0; i < g_.size(); ++i) into_[i + 1] += into_[i];
    edges_.resize(g_.edges().size());
    std::vector<uint32_t> at(into_.begin(), into_.end() - 1);
    for (const Edge& e : g_.edges()) edges_[at[e.to.index()]++] = &e;
  }

  void WriteTask(TaskId id) {
    const Task& t = g_.task(id);
    Put("t{} {} {}", id.value, LaneName(t.lane), WordOf(kTaskKinds, t.kind));
    if (t.duration.ns != 0) Put(" {}", FormatTime(t.duration));
    if (t.gap.ns != 0) Put(" gap {}", FormatTime(t.gap));
    Put(" {}", Quote(g_.Name(t.name)));
    if (t.overlaps) Put(" overlaps");
    if (t.removed) Put(" removed");
    if (t.earliest.ns != 0) Put(" earliest {}", FormatTime(Duration::Ns(t.earliest.ns)));
    if (t.recorded_start.ns != 0) Put(" at {}", FormatTime(Duration::Ns(t.recorded_start.ns)));
    if (t.priority != 0) Put(" priority={}", t.priority);
    if (t.step != 0) Put(" step={}", t.step);
    if (t.phase != Phase::kNone) Put(" phase {}", WordOf(kPhases, t.phase));
    if (t.layer.valid()) Put(" layer L{}", t.layer.value);
    if (t.scope.valid()) Put(" scope s{}", t.scope.value);
    if (!at_end_[id.index()]) {
      const TaskId behind = behind_[id.index()];
      behind.valid() ? Put(" behind t{}", behind.value) : Put(" behind nothing");
    }
    WriteDetails(id);
    for (uint32_t k = into_[id.index()]; k < into_[id.index() + 1]; ++k) WriteEdge(*edges_[k]);
    Put("\n");
  }

  void WriteDetails(TaskId id) {
    if (const KernelDetail* kernel = g_.Kernel(id)) {
      const std::string text = FormatKernel(*kernel);
      out_ += text;
      if (kernel->collective < g_.tables().collectives.size()) {
        Put(" collective=c{}", kernel->collective);
      } else if (text.empty()) {
        Put(" registers=0");  // says that there is a detail
      }
    }
    if (const CopyDetail* copy = g_.Copy(id)) out_ += FormatCopy(*copy);
    if (g_.Transfer(id) != g_.task(id).duration) Put(" transfer={}", FormatTime(g_.Transfer(id)));
  }

  void WriteEdge(const Edge& e) {
    Put(" {} t{}{}", e.to_anchor == Anchor::kStart ? "after" : "until", e.from.value,
        e.from_anchor == Anchor::kStart ? ":start" : "");
    if (e.rule != Rule::kTransform) Put(" {}", WordOf(kRules, e.rule));
    if (e.lag.ns != 0) Put(" {}{}", e.lag.ns > 0 ? "+" : "", FormatTime(e.lag));
  }

  const Graph& g_;
  std::string out_;
  std::vector<std::string> lane_names_;
  std::vector<TaskId> behind_;
  std::vector<bool> at_end_;
  std::vector<uint32_t> into_;  // edges into task t: edges_[into_[t] .. into_[t + 1])
  std::vector<const Edge*> edges_;
};

}  // namespace

std::string FormatGraph(const Graph& graph) { return Writer(graph).Write(); }

}  // namespace daydream
