// Where the time of the host goes: by operator, call, annotated range and Python function.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "simulator/timeline.h"

namespace daydream {

enum class HostKind : uint8_t {
  kOp,        // an operator of the framework
  kCall,      // a call of CUDA or HIP
  kRange,     // an annotated range: a step, the loader, the optimizer
  kFunction,  // a frame of the Python stack
  kOutside,   // in nothing that was recorded
};
std::string_view Name(HostKind kind);  // "op", "call", "range", "function", "outside"

// What a piece of host work is called. "ProfilerStep#12" is "ProfilerStep": steps are one row.
struct HostName {
  HostKind kind = HostKind::kOutside;
  std::string name = "outside of everything recorded";
  friend auto operator<=>(const HostName&, const HostName&) = default;
};
HostName NameOfScope(const Graph& graph, ScopeId scope);
// Of a host task's own work: its call, or the scope it is in.
HostName NameOfWork(const Graph& graph, TaskId task);
// Of the time after it, outside of operators: the innermost scope that is no operator.
HostName NameOfGap(const Graph& graph, TaskId task);

struct HostRow {
  HostName what;
  Duration self;  // own work per step, on all threads, with the time between what is inside of it
  Duration waiting;  // for the GPU or another thread, in itself
  Duration total;    // both, and that of everything inside of it
  Duration path;     // own part of the critical path per step, with waiting that is on it
  double calls = 0;  // per step
};

// Rows of the counted steps (report/windows.h), longest own work first, then by name. Waiting is
// that of `timeline`. REQUIRES: a timeline with blockers. O(tasks x depth of scopes).
std::vector<HostRow> HostTable(const Graph& graph, const Timeline& timeline);

}  // namespace daydream
