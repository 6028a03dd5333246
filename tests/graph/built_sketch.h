// The graph of a small trace (trace_sketch.h) and its replay, for tests of the dependency rules.
#pragma once

#include <gtest/gtest.h>

#include <string_view>
#include <utility>

#include "graph/build.h"
#include "graph/validate.h"
#include "simulator/simulate.h"
#include "tests/graph/trace_sketch.h"

namespace daydream {

inline BuiltGraph Build(TraceSketch& sketch, BuildOptions options = {}) {
  absl::StatusOr<BuiltGraph> built = BuildGraph(sketch.Build(), options);
  EXPECT_TRUE(built.ok()) << built.status();
  EXPECT_TRUE(Validate(built->graph).ok()) << Validate(built->graph);
  return *std::move(built);
}

inline TaskId Find(const Graph& g, std::string_view name, TaskKind kind, int nth = 0) {
  for (size_t i = 0; i < g.size(); ++i) {
    if (g.task(TaskId(i)).kind == kind && g.TaskName(TaskId(i)) == name && nth-- == 0) {
      return TaskId(i);
    }
  }
  ADD_FAILURE() << "no task " << name;
  return TaskId(0);
}

inline Timeline Play(const Graph& g) {
  absl::StatusOr<Timeline> t = Simulate(g);
  EXPECT_TRUE(t.ok()) << t.status();
  return *std::move(t);
}

inline void ExpectReplaysExactly(const Graph& g) {
  Timeline t = Play(g);
  for (size_t i = 0; i < g.size(); ++i) {
    EXPECT_EQ(t.start[i], g.task(TaskId(i)).recorded_start) << g.TaskName(TaskId(i));
  }
}

inline void SetDuration(Graph& g, TaskId t, double us) {
  g.mutable_task(t).duration = Duration::Ns(static_cast<int64_t>(us * 1000));
}

inline double EndUs(const Timeline& t, TaskId id) { return t.end[id.index()].ns / 1000.0; }

}  // namespace daydream
