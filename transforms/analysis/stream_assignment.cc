#include "transforms/analysis/stream_assignment.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "graph/bgl.h"

namespace daydream {
namespace {

using Directed = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;
using Undirected = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS>;
using Edges = std::vector<std::pair<uint32_t, uint32_t>>;

Edges Reduce(const WorkDag& dag) {
  Directed graph(dag.size), reduced;
  for (const auto& [a, b] : dag.edges) {
    DD_CHECK(a < b && b < dag.size);
    boost::add_edge(a, b, graph);
  }
  std::vector<size_t> place(dag.size), work(dag.size);
  boost::transitive_reduction(
      graph, reduced,
      boost::make_iterator_property_map(place.begin(), get(boost::vertex_index, graph)),
      get(boost::vertex_index, graph));
  for (size_t i = 0; i < place.size(); ++i) work[place[i]] = i;
  Edges needed;
  for (auto [e, end] = boost::edges(reduced); e != end; ++e) {
    needed.push_back({static_cast<uint32_t>(work[source(*e, reduced)]),
                      static_cast<uint32_t>(work[target(*e, reduced)])});
  }
  std::sort(needed.begin(), needed.end());
  return needed;
}

// By work: what follows it in its chain, or `size`.
std::vector<uint32_t> Match(uint32_t size, const Edges& needed) {
  Undirected sides(2 * size_t{size});
  for (const auto& [a, b] : needed) boost::add_edge(a, size_t{size} + b, sides);
  std::vector<boost::graph_traits<Undirected>::vertex_descriptor> mate(2 * size_t{size});
  boost::edmonds_maximum_cardinality_matching(sides, mate.data());
  std::vector<uint32_t> next(size, size);
  for (uint32_t a = 0; a < size; ++a) {
    if (mate[a] != boost::graph_traits<Undirected>::null_vertex()) {
      next[a] = static_cast<uint32_t>(mate[a]) - size;
    }
  }
  return next;
}

}  // namespace

StreamAssignment AssignChains(const WorkDag& dag) {
  StreamAssignment result;
  if (dag.size == 0) return result;
  result.needed = Reduce(dag);
  const std::vector<uint32_t> next = Match(dag.size, result.needed);
  constexpr uint32_t kNone = 0xffffffff;
  result.chain.assign(dag.size, kNone);
  // Edges go up, so the first work of a chain comes first.
  for (uint32_t i = 0; i < dag.size; ++i) {
    if (result.chain[i] != kNone) continue;
    for (uint32_t at = i; at < dag.size; at = next[at]) result.chain[at] = result.chains;
    ++result.chains;
  }
  return result;
}

std::vector<uint32_t> FoldChains(const WorkDag& dag, const StreamAssignment& assignment,
                                 std::span<const int64_t> cost, uint32_t streams) {
  const size_t n = dag.size;
  std::vector<uint32_t> first(assignment.chains, dag.size), last(assignment.chains, 0);
  std::vector<int64_t> length(assignment.chains, 0);
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t c = assignment.chain[i];
    first[c] = std::min(first[c], i);
    last[c] = std::max(last[c], i);
    length[c] += cost[i];
  }
  // What each work needs, directly or not; edges go up.
  std::vector<std::vector<bool>> needs(n, std::vector<bool>(n));
  Edges by_target = assignment.needed;
  std::sort(by_target.begin(), by_target.end(),
            [](const auto& x, const auto& y) { return x.second < y.second; });
  for (const auto& [a, b] : by_target) {
    needs[b][a] = true;
    for (size_t i = 0; i < a; ++i) {
      if (needs[a][i]) needs[b][i] = true;
    }
  }
  struct Stream {
    uint32_t last = 0;  // work
    int64_t cost = 0;
  };
  std::vector<Stream> used;
  std::vector<uint32_t> stream_of(assignment.chains, 0);
  // Chains are numbered by their first work.
  for (uint32_t c = 0; c < assignment.chains; ++c) {
    auto at = std::find_if(used.begin(), used.end(),
                           [&](const Stream& s) { return needs[first[c]][s.last]; });
    if (at == used.end() && (streams == 0 || used.size() < streams)) {
      at = used.insert(used.end(), Stream{});
    } else if (at == used.end()) {
      at = std::min_element(used.begin(), used.end(),
                            [](const Stream& x, const Stream& y) { return x.cost < y.cost; });
    }
    at->last = std::max(at->last, last[c]);
    at->cost += length[c];
    stream_of[c] = static_cast<uint32_t>(at - used.begin());
  }
  std::vector<uint32_t> result(n);
  for (size_t i = 0; i < n; ++i) result[i] = stream_of[assignment.chain[i]];
  return result;
}

}  // namespace daydream
