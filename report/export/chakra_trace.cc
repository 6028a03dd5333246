#include "report/export/chakra_trace.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "graph/ranks/collectives.h"
#include "report/export/proto_writer.h"
#include "report/export/waits.h"
#include "report/summary.h"
#include "report/text/format.h"
#include "trace/chakra/node.h"
#include "trace/chakra/plan.h"

namespace daydream {
namespace {

// et_def.proto, CollectiveCommType; -1: it has no such.
int64_t CommType(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return 0;
    case CollectiveKind::kReduce:
      return 1;
    case CollectiveKind::kAllGather:
      return 2;
    case CollectiveKind::kBroadcast:
      return 5;
    case CollectiveKind::kAllToAll:
      return 6;
    case CollectiveKind::kReduceScatter:
      return 7;
    default:
      return -1;
  }
}

ProtoWriter Attribute(std::string_view name) { return ProtoWriter().Bytes(1, name); }
// Fields of AttributeProto, by type.
constexpr int kInt32 = 7, kInt64 = 9, kUint64 = 13, kBool = 27, kText = 29;

// Where work that is there at once with other such work is put: as few lanes as the timeline needs.
// What takes no time shares a lane with nothing that begins then: no edge says which comes first.
class Pool {
 public:
  size_t Take(Instant begin, Instant end) {
    size_t lane = free_.size();
    if (!ends_.empty() && ends_.top().first <= begin) {
      lane = ends_.top().second;
      ends_.pop();
    } else {
      free_.push_back(lane);
    }
    ends_.emplace(std::max(end, begin + Duration{1}), lane);
    return lane;
  }

 private:
  using Entry = std::pair<Instant, size_t>;
  std::vector<size_t> free_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ends_;
};

class Exporter {
 public:
  Exporter(const Graph& graph, const Timeline& timeline) : graph_(graph), timeline_(timeline) {}

  ChakraExport Run() {
    Describe();
    Mark();
    AddTasks();
    AddEdges();
    Plan(plan_);
    out_.dropped += plan_.dropped;
    Write();
    return std::move(out_);
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Node {
    TaskId task;  // of markers, gaps and lags: the one that they belong to
    std::string_view name;
    bool on_cpu = false;
  };
  // The nodes of a task: its start and end are nodes of their own where edges hang on them.
  struct Parts {
    uint32_t start = kNone, work = kNone, end = kNone, gap = kNone;
    uint32_t first() const { return start != kNone ? start : work; }
    uint32_t last() const { return end != kNone ? end : work; }
    uint32_t free() const { return gap != kNone ? gap : last(); }
  };
  struct Lag {
    Instant begin;
    Duration length;
    uint32_t before, after;  // nodes; before: kNone = the beginning
    TaskId to;
  };

  void Describe() {
    const auto& trace = graph_.tables().trace;
    if (trace == nullptr || trace->ranks.empty()) return;
    const RankCollectives found = DescribeCollectives(graph_, trace->ranks.front());
    for (const RankCollective& c : found.all) {
      if (!collectives_.emplace(c.task, c).second) continue;
      rank_ = trace->ranks.front().rank;
    }
    for (const RankCommunicator& c : found.communicators) groups_.push_back(c.name);
  }

  void Mark() {
    waits_ = WaitsOf(graph_, timeline_);
    starts_.assign(graph_.size(), false);
    ends_.assign(graph_.size(), false);
    for (const Wait& w : waits_.waits) {
      if (w.to_anchor == Anchor::kEnd) ends_[w.to.index()] = true;
      if (w.from.valid() && w.from_anchor == Anchor::kStart) starts_[w.from.index()] = true;
    }
  }

  uint32_t Add(TaskId task, std::string_view name, uint32_t lane, Duration duration) {
    const auto node = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back({task, name, !IsStream(graph_.task(task).lane)});
    plan_.nodes.push_back({.lane = lane, .duration = duration});
    return node;
  }

  void Order(uint32_t before, uint32_t after) {
    if (before != kNone && before != after) plan_.edges.emplace_back(before, after);
  }

  bool IsStream(LaneId lane) const { return graph_.lane(lane).lane.kind != LaneKind::kThread; }

  void AddTasks() {
    parts_.resize(graph_.size());
    for (size_t l = 0; l < graph_.lanes().size(); ++l) {
      Pool beside;
      Instant busy_until;
      for (TaskId t : PlayedOrder(graph_, timeline_, LaneId(l))) {
        const size_t i = t.index();
        const Duration gap = GapOf(graph_, t);
        uint32_t lane = LaneNumber(l, 0);
        const Instant start = timeline_.start[i];
        const Instant free = timeline_.end[i] + std::max(gap, Duration{});
        if (OverlapsTheOneBefore(graph_, t) || start < busy_until) {
          lane = LaneNumber(l, 1 + beside.Take(start, free));
        } else {
          busy_until = free;
        }
        Parts& p = parts_[i];
        if (starts_[i]) p.start = Add(t, kChakraPoint, lane, Duration{});
        p.work = Add(t, NameOf(t), lane, LengthOf(graph_, t));
        Order(p.start, p.work);
        if (ends_[i]) {
          p.end = Add(t, kChakraPoint, lane, Duration{});
          Order(p.work, p.end);
        }
        if (gap.ns > 0) {
          p.gap = Add(t, kChakraGap, lane, gap);
          Order(p.last(), p.gap);
        }
        ++out_.tasks;
      }
    }
  }

  std::string_view NameOf(TaskId t) const {
    const std::string_view name = graph_.TaskName(t);
    return name.empty() ? daydream::Name(graph_.task(t).kind) : name;
  }

  void AddEdges() {
    for (const auto& [before, t] : waits_.turns) {
      Order(parts_[before.index()].free(), parts_[t.index()].first());
    }
    for (const Wait& w : waits_.waits) {
      const Parts& to = parts_[w.to.index()];
      const uint32_t after = w.to_anchor == Anchor::kEnd ? to.end : to.first();
      uint32_t before = kNone;
      Instant begin;
      if (w.from.valid()) {
        const bool ended = w.from_anchor == Anchor::kEnd;
        const Parts& from = parts_[w.from.index()];
        before = ended ? from.last() : from.first();
        begin = (ended ? timeline_.end : timeline_.start)[w.from.index()];
      }
      if (w.lag.ns == 0) {
        Order(before, after);
      } else {
        lags_.push_back({begin, w.lag, before, after, w.to});
      }
    }
    AddLags();
  }

  void AddLags() {
    std::stable_sort(lags_.begin(), lags_.end(),
                     [](const Lag& a, const Lag& b) { return a.begin < b.begin; });
    Pool cpu, gpu;
    for (const Lag& lag : lags_) {
      const bool stream = IsStream(graph_.task(lag.to).lane);
      const size_t lane = (stream ? gpu : cpu).Take(lag.begin, lag.begin + lag.length);
      const uint32_t node =
          Add(lag.to, kChakraLag, LaneNumber(graph_.lanes().size() + stream, lane), lag.length);
      Order(lag.before, node);
      Order(node, lag.after);
    }
  }

  // Lanes of the graph, then one for lags of the host and one for those of the GPU; each with
  // others beside it for what is there at once.
  uint32_t LaneNumber(size_t lane, size_t beside) {
    return lane_numbers_.try_emplace({lane, beside}, static_cast<uint32_t>(lane_numbers_.size()))
        .first->second;
  }

  // The number of the thread or stream where no other lane of its kind has it, else a free one.
  std::vector<int64_t> Numbers() const {
    std::vector<int64_t> numbers(lane_numbers_.size());
    std::map<std::pair<bool, int64_t>, bool> taken;
    int64_t free = 0;
    for (const GraphLane& l : graph_.lanes()) free = std::max(free, l.lane.number + 1);
    for (const auto& [place, number] : lane_numbers_) {
      const bool own = place.first < graph_.lanes().size() && place.second == 0;
      const GraphLane* lane = own ? &graph_.lanes()[place.first] : nullptr;
      const bool fits =
          own && lane->lane.number >= 0 &&
          taken.try_emplace({lane->lane.kind == LaneKind::kThread, lane->lane.number}, true).second;
      numbers[number] = fits ? lane->lane.number : free++;
    }
    return numbers;
  }

  void Write() {
    ProtoWriter about;
    about.Bytes(1, "0.0.4");  // of the schema
    Message(about);
    std::vector<uint64_t> id(nodes_.size());
    for (size_t place = 0; place < plan_.order.size(); ++place) id[plan_.order[place]] = place;
    std::vector<std::vector<uint64_t>> after(nodes_.size());
    for (const auto& [before, node] : plan_.edges) after[node].push_back(id[before]);
    const std::vector<int64_t> numbers = Numbers();
    std::vector<int64_t> left(numbers.size(), 0);  // ns that no node of the lane has had yet
    Instant last;
    for (uint32_t n : plan_.order) {
      const PlannedNode& planned = plan_.nodes[n];
      left[planned.lane] += planned.duration.ns;
      const int64_t us = left[planned.lane] / 1000;
      left[planned.lane] -= us * 1000;
      std::sort(after[n].begin(), after[n].end());
      WriteNode(n, id[n], after[n], us, numbers[planned.lane]);
      const bool ends = nodes_[n].name != kChakraLag && nodes_[n].name != kChakraGap;
      if (ends) last = std::max(last, planned.start + planned.duration);
    }
    out_.nodes = nodes_.size();
    out_.played = last - Instant{};
  }

  void WriteNode(uint32_t n, uint64_t id, const std::vector<uint64_t>& after, int64_t us,
                 int64_t number) {
    const Node& node = nodes_[n];
    const Task& task = graph_.task(node.task);
    const bool work = parts_[node.task.index()].work == n;
    ProtoWriter out, list;
    for (uint64_t before : after) list.Raw(before);
    out.Varint(1, id)
        .Bytes(2, Printable(node.name))
        .Varint(3, work ? TypeOf(node.task) : ChakraNode::kCompute);
    if (!after.empty()) out.Bytes(5, list.bytes());
    out.Varint(6, static_cast<uint64_t>(plan_.nodes[n].start.ns) / 1000);
    out.Varint(7, static_cast<uint64_t>(us));
    const auto add = [&](std::string_view name, int type, int64_t value) {
      out.Message(10, Attribute(name).Varint(type, static_cast<uint64_t>(value)));
    };
    add("is_cpu_op", kBool, node.on_cpu);
    add("tid", kInt64, number);
    add("duration_ns", kUint64, plan_.nodes[n].duration.ns);
    if (!work) return Message(out);
    if (const CopyDetail* copy = graph_.Copy(node.task); copy != nullptr && !node.on_cpu) {
      add("tensor_size", kUint64, static_cast<int64_t>(copy->bytes));
    }
    const RankCollective* c = Described(node.task);
    out_.unnamed += c == nullptr && task.kind == TaskKind::kCollective;
    if (c == nullptr) return Message(out);
    add("comm_size", kInt64, static_cast<int64_t>(c->bytes));
    if (c->kind == CollectiveKind::kSendRecv) {
      add("comm_src", kInt32, c->from);
      add("comm_dst", kInt32, c->to);
      add("comm_tag", kInt32, static_cast<int32_t>(c->sequence & 0x7fffffff));
    } else {
      add("comm_type", kInt64, CommType(c->kind));
    }
    out.Message(10, Attribute("pg_name").Bytes(kText, GroupOf(c->communicator)));
    Message(out);
  }

  // What a simulator can time: kind and bytes are known, and of point to point both ends.
  const RankCollective* Described(TaskId t) const {
    const auto it = collectives_.find(t);
    if (it == collectives_.end() || it->second.bytes == 0) return nullptr;
    const RankCollective& c = it->second;
    if (c.kind == CollectiveKind::kSendRecv) {
      return c.from >= 0 && c.to >= 0 && (c.from == rank_ || c.to == rank_) ? &c : nullptr;
    }
    return CommType(c.kind) >= 0 ? &c : nullptr;
  }

  ChakraNode::Type TypeOf(TaskId t) const {
    const RankCollective* c = Described(t);
    if (c == nullptr) return ChakraNode::kCompute;
    if (c->kind != CollectiveKind::kSendRecv) return ChakraNode::kCollective;
    return c->from == rank_ ? ChakraNode::kSend : ChakraNode::kReceive;
  }

  // ASTRA-sim reads whole numbers, and takes 0 for all ranks.
  std::string GroupOf(uint32_t communicator) const {
    const std::string& name = groups_.at(communicator);
    const bool number = !name.empty() && name.size() < 10 &&
                        name.find_first_not_of("0123456789") == std::string::npos;
    return number ? name : fmt::format("{}", communicator);
  }

  void Message(const ProtoWriter& message) {
    ProtoWriter size;
    size.Raw(message.bytes().size());
    out_.bytes += size.bytes();
    out_.bytes += message.bytes();
  }

  const Graph& graph_;
  const Timeline& timeline_;
  ChakraExport out_;
  NodePlan plan_;
  std::vector<Node> nodes_;
  std::vector<Parts> parts_;  // by task
  Waits waits_;
  std::vector<bool> starts_, ends_;  // tasks of which these are nodes
  std::vector<Lag> lags_;
  std::map<std::pair<size_t, size_t>, uint32_t> lane_numbers_;
  std::map<TaskId, RankCollective> collectives_;
  std::vector<std::string> groups_;
  int32_t rank_ = -1;
};

}  // namespace

ChakraExport ChakraTrace(const Graph& graph, const Timeline& timeline) {
  return Exporter(graph, timeline).Run();
}

}  // namespace daydream
