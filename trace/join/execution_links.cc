#include "trace/join/execution_links.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "absl/container/flat_hash_map.h"

namespace daydream {
namespace {

constexpr double kFewest = 0.95;  // share of nodes that have to be linked
constexpr uint32_t kUnlinked = Id<void>::kNoneValue;

absl::Status NotThisProgram(const std::string& path, std::string why) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0232",
                     .what = "this execution trace does not belong to this profile",
                     .where = path,
                     .why = std::move(why),
                     .fix = "an execution trace of the same program: "
                            "torch.profiler.ExecutionTraceObserver"});
}

// Marks of steps carry the number of the step.
std::string_view Comparable(std::string_view name) {
  return name.starts_with("ProfilerStep#") ? name.substr(0, 13) : name;
}

// The roots of the process and its threads were never ops.
bool IsRoot(const ExecutionNode& node) { return node.name.starts_with("[pytorch|"); }

// What ran on one thread, as numbers of names in order of starts.
struct Sequence {
  std::vector<uint32_t> names;
  std::vector<uint32_t> of;  // nodes or rows
};

class Names {
 public:
  uint32_t Number(std::string_view name) {
    const auto next = static_cast<uint32_t>(numbers_.size());
    return numbers_.try_emplace(std::string(Comparable(name)), next).first->second;
  }

 private:
  absl::flat_hash_map<std::string, uint32_t> numbers_;
};

// One place where `nodes` was found in `rows`: the row of each node, or kUnlinked.
struct Round {
  std::vector<uint32_t> row_of;
  size_t linked = 0;
  size_t end = 0;  // in the rows
};

// Goes through both from `begin` on; where they differ, to the nearest place behind which four
// names in a row agree.
Round Align(const Sequence& nodes, const Sequence& rows, size_t begin) {
  constexpr size_t kFurthest = 48, kAgree = 4;
  Round round{.row_of = std::vector<uint32_t>(nodes.names.size(), kUnlinked)};
  const auto agree = [&](size_t i, size_t j) {
    size_t n = 0;
    while (n < kAgree && i + n < nodes.names.size() && j + n < rows.names.size() &&
           nodes.names[i + n] == rows.names[j + n]) {
      ++n;
    }
    return n == kAgree || (n > 0 && i + n == nodes.names.size());
  };
  size_t i = 0, j = begin;
  while (i < nodes.names.size() && j < rows.names.size()) {
    if (nodes.names[i] == rows.names[j]) {
      round.row_of[i++] = rows.of[j++];
      ++round.linked;
      continue;
    }
    bool found = false;
    for (size_t distance = 1; distance <= kFurthest && !found; ++distance) {
      for (size_t skip = 0; skip <= distance && !found; ++skip) {
        if (!agree(i + skip, j + distance - skip)) continue;
        i += skip;
        j += distance - skip;
        found = true;
      }
    }
    if (!found) break;
  }
  round.end = j;
  return round;
}

// All places of `nodes` in `rows`, one behind the other.
std::vector<Round> FindRounds(const Sequence& nodes, const Sequence& rows) {
  constexpr size_t kTries = 512;  // bounds the work on programs that are nothing alike
  std::vector<Round> rounds;
  size_t tries = 0;
  for (size_t begin = 0; begin < rows.names.size() && tries < kTries;) {
    if (rows.names[begin] != nodes.names[0]) {
      ++begin;
      continue;
    }
    Round round = Align(nodes, rows, begin);
    if (static_cast<double>(round.linked) >= kFewest * static_cast<double>(nodes.names.size())) {
      begin = std::max(round.end, begin + 1);
      rounds.push_back(std::move(round));
    } else {
      ++begin;
      ++tries;
    }
  }
  return rounds;
}

std::map<int64_t, Sequence> SequencesOf(const std::vector<ExecutionNode>& nodes, Names& names) {
  std::map<int64_t, Sequence> threads;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    if (IsRoot(nodes[i])) continue;
    Sequence& s = threads[nodes[i].thread];
    s.names.push_back(names.Number(nodes[i].name));
    s.of.push_back(i);
  }
  return threads;
}

std::map<uint32_t, Sequence> SequencesOf(const Trace& t, Names& names) {
  std::map<uint32_t, Sequence> lanes;
  for (uint32_t row = 0; row < t.rows(); ++row) {
    if (t.kind[row] != EventKind::kOp && t.kind[row] != EventKind::kAnnotation) continue;
    Sequence& s = lanes[t.lane[row].value];
    s.names.push_back(names.Number(t.EventName(row)));
    s.of.push_back(row);
  }
  return lanes;
}

// The rounds of the thread of the profile that has most of them.
std::vector<Round> BestRounds(const Sequence& nodes, const std::map<uint32_t, Sequence>& lanes) {
  std::vector<Round> best;
  size_t linked = 0;
  for (const auto& [lane, rows] : lanes) {
    std::vector<Round> rounds = FindRounds(nodes, rows);
    size_t sum = 0;
    for (const Round& round : rounds) sum += round.linked;
    if (sum > linked) {
      linked = sum;
      best = std::move(rounds);
    }
  }
  return best;
}

}  // namespace

std::vector<DataDependency> DependenciesOf(const std::vector<ExecutionNode>& nodes,
                                           LinksFound* found) {
  constexpr size_t kDeepest = 256, kWriters = 32;
  absl::flat_hash_map<int64_t, uint32_t> place;  // by id
  for (uint32_t i = 0; i < nodes.size(); ++i) place.try_emplace(nodes[i].id, i);
  const auto contains = [&](uint32_t outer, uint32_t inner) {
    for (size_t depth = 0; depth < kDeepest; ++depth) {
      const auto parent = place.find(nodes[inner].parent);
      if (parent == place.end() || parent->second == inner) return false;
      inner = parent->second;
      if (inner == outer) return true;
    }
    return false;
  };
  std::vector<DataDependency> dependencies;
  absl::flat_hash_map<int64_t, std::vector<uint32_t>> writers;  // by storage, in order
  std::vector<int64_t> storages;
  const auto collect = [&](std::string_view values, std::string_view types) {
    storages.clear();
    const auto v = ElementsOf(values), t = ElementsOf(types);
    for (size_t i = 0; i < std::min(v.size(), t.size()); ++i) StoragesOf(v[i], t[i], storages);
  };
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    collect(nodes[i].inputs, nodes[i].types);
    for (int64_t storage : storages) {
      ++found->inputs;
      const auto known = writers.find(storage);
      if (known == writers.end()) continue;
      ++found->known;
      const std::vector<uint32_t>& all = known->second;
      for (size_t back = 1; back <= std::min(all.size(), kWriters); ++back) {
        const uint32_t writer = all[all.size() - back];
        if (contains(writer, i)) continue;
        dependencies.push_back({writer, i});
        break;
      }
    }
    collect(nodes[i].outputs, nodes[i].output_types);
    for (int64_t storage : storages) writers[storage].push_back(i);
  }
  return dependencies;
}

absl::StatusOr<std::shared_ptr<const Trace>> WithDependenciesOf(std::shared_ptr<const Trace> trace,
                                                                const std::string& path,
                                                                LinksFound* found) {
  DD_ASSIGN_OR_RETURN(const ExecutionTrace execution, ReadExecutionTrace(path));
  const std::vector<ExecutionNode>& nodes = execution.nodes;
  Names names;
  const auto threads = SequencesOf(nodes, names);
  const auto lanes = SequencesOf(*trace, names);
  if (threads.empty()) return NotThisProgram(path, "it holds no nodes of an execution trace");
  std::vector<std::vector<uint32_t>> rows;  // by round, by node
  size_t rounds = SIZE_MAX;
  for (const auto& [thread, sequence] : threads) {
    found->nodes += sequence.names.size();
    const std::vector<Round> of_thread = BestRounds(sequence, lanes);
    if (of_thread.empty()) continue;  // counts as not linked
    rounds = std::min(rounds, of_thread.size());
    rows.resize(std::max(rows.size(), of_thread.size()),
                std::vector<uint32_t>(nodes.size(), kUnlinked));
    for (size_t r = 0; r < of_thread.size(); ++r) {
      for (size_t i = 0; i < sequence.of.size(); ++i) {
        rows[r][sequence.of[i]] = of_thread[r].row_of[i];
      }
    }
    found->linked += of_thread[0].linked;
  }
  found->rounds = rounds == SIZE_MAX ? 0 : rounds;
  if (static_cast<double>(found->linked) < kFewest * static_cast<double>(found->nodes)) {
    return NotThisProgram(path, fmt::format("{} of its {} nodes are in the profile, in order",
                                            found->linked, found->nodes));
  }
  const std::vector<DataDependency> between = DependenciesOf(nodes, found);
  auto with = std::make_shared<Trace>(*trace);
  for (size_t r = 0; r < found->rounds; ++r) {
    for (const DataDependency& d : between) {
      const uint32_t producer = rows[r][d.producer], consumer = rows[r][d.consumer];
      if (producer == kUnlinked || consumer == kUnlinked) continue;
      if (trace->start[consumer] < trace->start[producer]) {
        return NotThisProgram(
            path, fmt::format("{} would read what {} writes after it", trace->EventName(consumer),
                              trace->EventName(producer)));
      }
      with->dependencies.push_back({producer, consumer});
    }
  }
  std::vector<DataDependency>& all = with->dependencies;
  const auto order = [](const DataDependency& a, const DataDependency& b) {
    return std::pair(a.consumer, a.producer) < std::pair(b.consumer, b.producer);
  };
  std::sort(all.begin(), all.end(), order);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  found->dependencies = all.size();
  return std::shared_ptr<const Trace>(std::move(with));
}

}  // namespace daydream
