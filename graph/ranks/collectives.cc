#include "graph/ranks/collectives.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/text.h"
#include "graph/scopes.h"
#include "trace/collective_group.h"

namespace daydream {
namespace {

// A call as its kernel and the op around its launch describe it: what one lacks the other may have.
struct CalledAs {
  CollectiveDetail detail;
  CollectiveGroup group;
};

CalledAs Merged(const Graph& graph, const CollectiveDetail* first, const CollectiveDetail* second) {
  CalledAs out;
  CollectiveDetail& d = out.detail;
  for (const CollectiveDetail* from : {first, second}) {
    if (from == nullptr) continue;
    if (!d.name.valid()) d.name = from->name;
    if (!d.dtype.valid()) d.dtype = from->dtype;
    if (d.elements_in == 0) d.elements_in = from->elements_in;
    if (d.elements_out == 0) d.elements_out = from->elements_out;
    if (d.group_size == 0) d.group_size = from->group_size;
    const CollectiveGroup group = ParseCollectiveGroup(graph.Name(from->process_group));
    if (out.group.name.empty()) out.group.name = group.name;
    if (out.group.members.empty()) out.group.members = group.members;
    if (out.group.sequence < 0) out.group.sequence = group.sequence;
    if (out.group.from < 0) out.group.from = group.from;
    if (out.group.to < 0) out.group.to = group.to;
  }
  return out;
}

uint64_t Product(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? 0 : product;
}

// As nccl-tests prints sizes: all that is gathered or scattered, else what a rank has.
uint64_t BytesOf(const CollectiveDetail& d, CollectiveKind kind, std::string_view type) {
  const auto in = static_cast<uint64_t>(std::max<int64_t>(0, d.elements_in));
  const auto out = static_cast<uint64_t>(std::max<int64_t>(0, d.elements_out));
  const auto size = static_cast<uint64_t>(std::max(1, d.group_size));
  uint64_t elements = std::max(in, out);
  if (kind == CollectiveKind::kAllReduce) elements = in > 0 ? in : out;
  if (kind == CollectiveKind::kAllGather && out <= in) elements = Product(in, size);
  if (kind == CollectiveKind::kReduceScatter && in <= out) elements = Product(out, size);
  return Product(elements, ElementBytes(type));
}

// "[0, 1, 2, ...]": the numbers in it; none when the list was cut.
std::vector<int32_t> MembersOf(std::string_view text, int32_t size) {
  std::vector<int32_t> members;
  for (size_t at = 0; at < text.size();) {
    if (text[at] < '0' || text[at] > '9') {
      ++at;
      continue;
    }
    int32_t value = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (error != std::errc()) return {};
    members.push_back(value);
    at = static_cast<size_t>(end - text.data());
  }
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
  if (size > 0 && members.size() != static_cast<size_t>(size)) return {};
  return members;
}

class Describer {
 public:
  Describer(const Graph& graph, const Rank& rank) : graph_(graph) { out_.rank = rank; }

  RankCollectives Run() {
    launch_.resize(graph_.size());
    for (const Edge& e : graph_.edges()) {
      if (e.rule == Rule::kLaunch) launch_[e.to.index()] = e.from;
    }
    for (size_t i = 0; i < graph_.size(); ++i) {
      const Task& task = graph_.tasks()[i];
      if (task.kind == TaskKind::kCollective && !task.removed) Add(TaskId(i));
    }
    PlaceNameless();
    std::stable_sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) {
      return std::tie(a.launched, a.c.start) < std::tie(b.launched, b.c.start);
    });
    for (Found& f : found_) {
      const auto row = static_cast<uint32_t>(out_.all.size());
      if (f.placed) out_.communicators[f.c.communicator].order.push_back(row);
      out_.all.push_back(f.c);
    }
    return std::move(out_);
  }

 private:
  struct Found {
    Instant launched;
    RankCollective c;
    LaneId lane;
    int32_t size = 0;
    bool named = true;   // by an op or by its own arguments
    bool placed = true;  // in the order of its communicator
  };

  const CollectiveDetail* OfOp(ScopeId innermost) const {
    for (ScopeId s : ScopesAround(graph_, innermost)) {
      const OpDetail* op = graph_.OpOf(s);
      if (op == nullptr || op->collective >= graph_.tables().collectives.size()) continue;
      return &graph_.tables().collectives[op->collective];
    }
    return nullptr;
  }

  // Where the host code around the launch is called like a collective.
  CollectiveKind KindAround(ScopeId innermost) const {
    for (ScopeId s : ScopesAround(graph_, innermost)) {
      const std::string_view name = graph_.Name(ScopeAt(graph_, s).name);
      if (!ContainsAny(name, {"nccl:", "c10d::", "rccl"})) continue;
      const CollectiveKind kind = CollectiveNamed(name);
      if (kind != CollectiveKind::kUnknown) return kind;
    }
    return CollectiveKind::kUnknown;
  }

  void Add(TaskId t) {
    const Task& task = graph_.task(t);
    const auto [d, group] = Merged(graph_, graph_.Collective(t), OfOp(task.scope));
    RankCollective c{.task = t, .sequence = group.sequence, .from = group.from, .to = group.to};
    c.kind = CollectiveNamed(graph_.Name(d.name));
    if (c.kind == CollectiveKind::kUnknown) c.kind = KindAround(task.scope);
    if (c.kind == CollectiveKind::kUnknown) c.kind = CollectiveNamed(graph_.TaskName(t));
    c.bytes = BytesOf(d, c.kind, graph_.Name(d.dtype));
    const KernelDetail* kernel = graph_.Kernel(t);
    c.grid = kernel == nullptr ? 0 : kernel->grid[0];
    c.start = task.recorded_start;
    c.end = task.recorded_start + task.duration;
    if (const Trace* trace = graph_.tables().trace.get(); trace && task.event < trace->rows()) {
      c.start = trace->start[task.event];
      c.end = trace->End(task.event);
    }
    int32_t size = d.group_size > 0 ? d.group_size : out_.rank.world_size;
    if (size == 1) {
      ++out_.alone;
      return;
    }
    Found found{.launched = c.start, .c = c, .lane = task.lane, .size = std::max(size, 0)};
    if (const TaskId call = launch_[t.index()]; call.valid()) {
      found.launched = graph_.task(call).recorded_start;
    }
    found.named = !group.name.empty() || d.group_size > 0;
    if (found.named) found.c.communicator = CommunicatorOf(group, task.lane, found.size);
    found_.push_back(found);
  }

  // What was launched before the recording began has no op that names its group. On a stream with
  // one group it is of that one, and numbered backwards from the first number known, where numbers
  // are in a row; with several it may be of any, and stays apart. Of a trace that names none, the
  // stream is the group.
  void PlaceNameless() {
    std::map<LaneId, std::vector<Found*>> streams;
    for (Found& f : found_) streams[f.lane].push_back(&f);
    for (auto& [lane, all] : streams) {
      std::stable_sort(all.begin(), all.end(),
                       [](auto* a, auto* b) { return a->c.start < b->c.start; });
      // A stream runs in the order of launches, of which some were not recorded.
      for (size_t i = all.size() - 1; i-- > 0;) {
        all[i]->launched = std::min(all[i]->launched, all[i + 1]->launched);
      }
      std::set<uint32_t> groups;
      for (const Found* f : all) {
        if (f->named) groups.insert(f->c.communicator);
      }
      for (Found* f : all) {
        if (f->named) continue;
        f->placed = groups.size() < 2;
        f->c.communicator = groups.empty() ? CommunicatorOf({}, lane, f->size) : *groups.begin();
      }
      if (groups.size() == 1) NumberBackwards(all);
    }
  }

  static void NumberBackwards(std::vector<Found*>& stream) {
    const auto named = [](const Found* f) { return f->named; };
    const auto first = std::find_if(stream.begin(), stream.end(), named);
    if ((*first)->c.sequence < 0) return;
    for (auto next = first + 1; next != stream.end() && named(*next); ++next) {
      if ((*next)->c.sequence != (*(next - 1))->c.sequence + 1) return;
    }
    for (auto f = first; f-- != stream.begin();) {
      (*f)->c.sequence = (*(f + 1))->c.sequence - 1;
    }
  }

  uint32_t CommunicatorOf(const CollectiveGroup& group, LaneId lane, int32_t size) {
    const auto none = Id<void>::kNoneValue;
    const std::string_view name = group.name;
    const auto key = std::tuple(std::string(name), name.empty() ? lane.value : none, size);
    const auto [known, fresh] =
        known_.try_emplace(key, static_cast<uint32_t>(out_.communicators.size()));
    if (fresh) {
      out_.communicators.push_back({.name = std::string(name),
                                    .members = MembersOf(group.members, size),
                                    .size = size,
                                    .order = {}});
    }
    return known->second;
  }

  const Graph& graph_;
  RankCollectives out_;
  std::vector<TaskId> launch_;
  std::vector<Found> found_;
  std::map<std::tuple<std::string, uint32_t, int32_t>, uint32_t> known_;
};

}  // namespace

uint64_t ElementBytes(std::string_view type) {
  if (const size_t colon = type.rfind(':'); colon != type.npos) type.remove_prefix(colon + 1);
  constexpr std::pair<std::string_view, uint64_t> kSizes[] = {
      {"BFloat16", 2},      {"Half", 2},  {"half", 2},  {"Float8", 1},      {"Double", 8},
      {"double", 8},        {"Float", 4}, {"float", 4}, {"Long", 8},        {"long", 8},
      {"Short", 2},         {"Int", 4},   {"int", 4},   {"Byte", 1},        {"Char", 1},
      {"unsigned char", 1}, {"Bool", 1},  {"bool", 1},  {"signed char", 1}, {"ComplexFloat", 8},
      {"ComplexDouble", 16}};
  for (const auto& [name, size] : kSizes) {
    if (type.starts_with(name)) return size;
  }
  return 0;
}

RankCollectives DescribeCollectives(const Graph& graph, const Rank& rank) {
  return Describer(graph, rank).Run();
}

std::string Called(const RankCollective& c) {
  std::string text(CollectiveName(c.kind));
  constexpr double kLeast[] = {1e9, 1e6, 1e3, 1};
  constexpr std::string_view kUnits[] = {"GB", "MB", "kB", "B"};
  for (size_t i = 0; i < std::size(kLeast); ++i) {
    const double in_unit = static_cast<double>(c.bytes) / kLeast[i];
    if (in_unit < 1) continue;
    text += fmt::format(" of {:.4g} {}", in_unit, kUnits[i]);
    break;
  }
  if (c.sequence >= 0) text += fmt::format(" #{}", c.sequence);
  return text;
}

}  // namespace daydream
