// The library in two calls, for other programs:
//
//   absl::StatusOr<daydream::Run> run = daydream::Load("run.ddtrace");
//   absl::StatusOr<daydream::WhatIf> answer = daydream::Ask(*run, {"amp,fuse"});
//
// docs/library.md has a whole program. What they return are the types of the headers below, which
// may be used as they are: graphs to edit (transforms/core/editor.h), timelines, summaries.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/build.h"
#include "report/predict/what_if.h"
#include "trace/trace.h"

namespace daydream {

// A recording, ready to be asked. Immutable; threads may share it.
struct Run {
  std::shared_ptr<const Trace> trace;
  BuiltGraph built;    // what waited for what, without what recording cost
  ReplayCheck replay;  // how well the unchanged graph reproduces what was measured
};

// Reads a file of any format that `daydream import --from list` names, told by its content, and
// builds its graph twice (the second time with typical lags, for `replay`). Errors carry a
// Diagnostic (DiagnosticOf): E02xx unreadable, E03xx no graph in it. O(rows log rows).
absl::StatusOr<Run> Load(const std::string& path);

// What each of `scenarios` would bring, in the text form of --opt: "amp(dtype=bf16),fuse". The
// first prediction is the recorded step; WhatIf::main is the place of the last scenario. Fails when
// a scenario cannot be read (E01xx); one that cannot be applied carries its own error. No file is
// written, nothing is printed. Time: some hundred replays when intervals are wanted (`options`).
absl::StatusOr<WhatIf> Ask(const Run& run, const std::vector<std::string>& scenarios,
                           const WhatIfOptions& options = {});

}  // namespace daydream
