// A Graph as a Boost.Graph graph: algorithms of that library run on our storage. The only header
// that includes Boost.Graph; include it in .cc files only, it is slow to compile.
//
// Vertices are tasks. Edges are lane order (on lanes of fixed order), numbered by their target,
// and after them the entries of Graph::edges().
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/depth_first_search.hpp>
#include <boost/graph/dominator_tree.hpp>
#include <boost/graph/graph_traits.hpp>
#include <boost/graph/max_cardinality_matching.hpp>
#include <boost/graph/properties.hpp>
#include <boost/graph/topological_sort.hpp>
#include <boost/graph/transitive_reduction.hpp>
#include <boost/iterator/counting_iterator.hpp>
#include <boost/property_map/property_map.hpp>

#include "graph/graph.h"

namespace daydream {

// A view of `graph`, which must outlive it and not change.
class BglGraph {
 public:
  struct edge_descriptor {
    uint32_t source = 0, target = 0;
    uint32_t edge = kLaneEdge;  // index into Graph::edges()
    friend bool operator==(const edge_descriptor&, const edge_descriptor&) = default;
  };
  static constexpr uint32_t kLaneEdge = 0xffffffff;

  explicit BglGraph(const Graph& graph)
      : graph_(graph), out_(graph, /*incoming=*/false), in_(graph, /*incoming=*/true) {}

  using EdgeIterator = std::vector<edge_descriptor>::const_iterator;
  using EdgeRange = std::pair<EdgeIterator, EdgeIterator>;
  EdgeRange Out(size_t v) const { return out_.Range(v); }
  EdgeRange In(size_t v) const { return in_.Range(v); }
  const Graph& graph() const { return graph_; }
  size_t edges() const { return out_.edges.size(); }

 private:
  // Edges by one of their ends.
  struct Side {
    Side(const Graph& g, bool incoming) : begin(g.size() + 1) {
      std::vector<edge_descriptor> all;
      for (size_t i = 0; i < g.size(); ++i) {
        const Task& t = g.tasks()[i];
        if (!t.lane_prev.valid() || g.lane(t.lane).order != LaneOrder::kFixed) continue;
        all.push_back({t.lane_prev.value, static_cast<uint32_t>(i), kLaneEdge});
      }
      for (size_t e = 0; e < g.edges().size(); ++e) {
        all.push_back({g.edges()[e].from.value, g.edges()[e].to.value, static_cast<uint32_t>(e)});
      }
      auto end_of = [&](const edge_descriptor& e) { return incoming ? e.target : e.source; };
      for (const edge_descriptor& e : all) ++begin[end_of(e) + 1];
      std::partial_sum(begin.begin(), begin.end(), begin.begin());
      std::vector<size_t> next(begin.begin(), begin.end() - 1);
      edges.resize(all.size());
      for (const edge_descriptor& e : all) edges[next[end_of(e)]++] = e;
    }
    EdgeRange Range(size_t v) const {
      auto at = [&](size_t i) { return edges.begin() + static_cast<std::ptrdiff_t>(begin[i]); };
      return {at(v), at(v + 1)};
    }
    std::vector<size_t> begin;
    std::vector<edge_descriptor> edges;
  };

  const Graph& graph_;
  Side out_, in_;
};

// The names and meanings below are those of Boost.Graph's concepts.
inline size_t num_vertices(const BglGraph& g) { return g.graph().size(); }
inline size_t num_edges(const BglGraph& g) { return g.edges(); }
inline std::pair<boost::counting_iterator<size_t>, boost::counting_iterator<size_t>> vertices(
    const BglGraph& g) {
  return {boost::counting_iterator<size_t>(0), boost::counting_iterator<size_t>(g.graph().size())};
}
inline BglGraph::EdgeRange out_edges(size_t v, const BglGraph& g) { return g.Out(v); }
inline BglGraph::EdgeRange in_edges(size_t v, const BglGraph& g) { return g.In(v); }
inline size_t out_degree(size_t v, const BglGraph& g) {
  return static_cast<size_t>(g.Out(v).second - g.Out(v).first);
}
inline size_t in_degree(size_t v, const BglGraph& g) {
  return static_cast<size_t>(g.In(v).second - g.In(v).first);
}
inline size_t degree(size_t v, const BglGraph& g) { return in_degree(v, g) + out_degree(v, g); }
inline size_t source(const BglGraph::edge_descriptor& e, const BglGraph&) { return e.source; }
inline size_t target(const BglGraph::edge_descriptor& e, const BglGraph&) { return e.target; }
inline boost::typed_identity_property_map<size_t> get(boost::vertex_index_t, const BglGraph&) {
  return {};
}

}  // namespace daydream

namespace boost {
template <>
struct graph_traits<daydream::BglGraph> {
  using vertex_descriptor = size_t;
  using edge_descriptor = daydream::BglGraph::edge_descriptor;
  using directed_category = bidirectional_tag;
  using edge_parallel_category = allow_parallel_edge_tag;
  struct traversal_category : bidirectional_graph_tag, vertex_list_graph_tag {};
  using vertex_iterator = counting_iterator<size_t>;
  using out_edge_iterator = daydream::BglGraph::EdgeIterator;
  using in_edge_iterator = daydream::BglGraph::EdgeIterator;
  using vertices_size_type = size_t;
  using edges_size_type = size_t;
  using degree_size_type = size_t;
  static vertex_descriptor null_vertex() { return static_cast<size_t>(-1); }
};
template <>
struct property_map<daydream::BglGraph, vertex_index_t> {
  using type = typed_identity_property_map<size_t>;
  using const_type = type;
};
}  // namespace boost
