// Which op of a profile is which node of a PyTorch execution trace of the same program, and what
// each op reads from which other: tensors have ids in execution traces, times only in profiles.
//
// Nothing but names and their order joins the two files: ids agree only where both were recorded at
// once, and not even then before PyTorch 2.3. So the sequence of names of each thread is looked for
// in the threads of the profile, as often as it comes back there (a profile of several steps).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "trace/join/execution_nodes.h"
#include "trace/trace.h"

namespace daydream {

struct LinksFound {
  size_t nodes = 0, linked = 0;  // of the execution trace
  size_t rounds = 0;             // how often all of it is in the profile
  size_t inputs = 0, known = 0;  // tensors that ops read; those that an op before them wrote
  size_t dependencies = 0;       // between ops of the profile, over all rounds
};

// One node reads a storage that another was the last to write; indexes into `nodes`. A node that
// contains the reader is no writer for it. The rest of `found->inputs` are parameters and results
// of earlier iterations. O(nodes * (inputs + depth)).
std::vector<DataDependency> DependenciesOf(const std::vector<ExecutionNode>& nodes,
                                           LinksFound* found);

// `trace` with the data dependencies of `path`. E0232: no execution trace, fewer than 95 % of its
// nodes are in the profile, or an op would read what was written after it began: the files are of
// different programs.
absl::StatusOr<std::shared_ptr<const Trace>> WithDependenciesOf(std::shared_ptr<const Trace> trace,
                                                                const std::string& path,
                                                                LinksFound* found);

}  // namespace daydream
