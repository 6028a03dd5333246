// Trace -> Graph: the dependency rules. One file per rule beside this one; each rule is a
// function over a Builder (graph/builder.h). docs/how-it-works.md explains them with examples.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"
#include "trace/steps.h"
#include "trace/trace.h"

namespace daydream {

enum class Lags : uint8_t {
  kMeasured,  // every lag as recorded: the unchanged replay is exact where the rules are right
  kTypical,   // every lag replaced by the trace's typical value for its kind: shows whether the
              // rules, rather than the copied numbers, explain the timing; without layers
};

struct BuildOptions {
  Lags lags = Lags::kMeasured;
};

// How far the clock of a GPU was behind the host's (negative: ahead of it), at least.
struct ClockOffset {
  int32_t rank = 0, device = 0;
  Duration late;
  size_t impossible = 0, seen = 0;  // of what was compared (graph/clock_offset.h)
};

// What the rules found, for `info` and for honesty.
struct BuildReport {
  Steps steps;
  uint64_t gpu_tasks = 0, launched = 0;  // GPU tasks, and those whose call was recorded
  uint64_t blocking_calls = 0, handoffs = 0, event_waits = 0, queue_blocked = 0;
  uint64_t early = 0;  // GPU tasks that start before their call, beyond what clocks differ by
  std::vector<ClockOffset> clocks_set;  // the GPU's times are the recorded ones less this
  // Where all that found its stream at rest starts a millisecond or more behind the end of its
  // call, and half of that as long behind: the least of these. Some have nothing else to wait for,
  // and would start at once.
  Duration late;
  uint64_t contended = 0, unexplained = 0;  // rules G6, G7
  uint64_t nested_calls = 0;                // driver calls inside a runtime call: one task for both
  uint64_t threads_left_out = 0, events_left_out = 0;  // threads without ops and launches
  uint64_t unrecorded = 0;  // rule G8: stretches of a CUDA graph that was not recorded
  Duration unrecorded_time;
  // Recordings: calls of steps without marks of layers, and those with a counterpart in a step
  // with.
  uint64_t unlabelled_calls = 0, matched_calls = 0;
  Duration unexplained_time;                 // sum of delays that no rule explains
  Duration window;                           // first start to last end
  Duration kernel_time, mapped_kernel_time;  // all GPU work, and the part with a layer
  std::vector<std::string> warnings;
};

struct BuiltGraph {
  Graph graph;
  BuildReport report;
};

// Builds the graph of the whole recorded window. O(rows log rows).
// FailedPrecondition with E0301 when the trace has no GPU work, E0302 when it has GPU work but no
// CPU calls (the message says what is missing and how to record it), unless its recorder says that
// it notes the GPU's side alone.
absl::StatusOr<BuiltGraph> BuildGraph(std::shared_ptr<const Trace> trace,
                                      const BuildOptions& options = {});

}  // namespace daydream
