// What the recorder of a trace could not tell, whatever the program did.
#pragma once

#include <vector>

#include "graph/build.h"
#include "report/questions/findings.h"
#include "trace/recorder_facts.h"

namespace daydream {

// A plan (Provenance::planned) can be predicted from, and nothing else is to be found in it.
bool IsPlan(const Graph& graph);
// How the recorder of this graph's trace is told to record more.
RecorderFacts AdviceOn(const Graph& graph);
std::vector<Finding> FindingsOfRecorder(const Graph& graph, const BuildReport& report);

}  // namespace daydream
