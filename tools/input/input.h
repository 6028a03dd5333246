// From file names to traces and graphs, with the messages that belong to it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/build.h"
#include "tools/flags.h"
#include "tools/session.h"
#include "trace/trace.h"

namespace daydream {

// Of a trace of several ranks: the one of --rank, or all.
enum class Ranks : uint8_t { kOne, kAll };

// Reads the trace in `path` by the reading flags of `args` and warns about what was lost. A folder
// is the traces of one run, a rank each.
absl::StatusOr<std::shared_ptr<const Trace>> ReadTrace(const std::string& path, const Args& args,
                                                       Session& session, Ranks ranks = Ranks::kOne);
// The traces of several ranks, as one.
absl::StatusOr<std::shared_ptr<const Trace>> ReadTraces(const std::vector<std::string>& paths,
                                                        const Args& args, Session& session);

// The same of each, on the threads of --jobs; messages and errors are as one after the other.
absl::StatusOr<std::vector<std::shared_ptr<const Trace>>> ReadSideBySide(
    const std::vector<std::string>& files, const Args& args, Session& session);

// What of a trace is asked for --steps `list`: of a long one (trace/part/part.h) the steps that
// stand for all, or those that are named, with some around them; of one whose first step is named
// those up to the last named; else all of it.
absl::StatusOr<std::shared_ptr<const Trace>> PartToAsk(std::shared_ptr<const Trace> trace,
                                                       std::string_view list);
// Both: the trace that questions are asked of. What is not asked is given back.
absl::StatusOr<std::shared_ptr<const Trace>> ReadAsked(const std::string& path, const Args& args,
                                                       Session& session);

// Builds the graph and applies --steps. E0303 when --steps names a step that is not there.
absl::StatusOr<BuiltGraph> BuildFor(std::shared_ptr<const Trace> trace, const Args& args,
                                    const BuildOptions& options = {});

// Marks the steps of --steps as the ones that count: "auto" leaves the graph as it is, "all"
// takes every step, "2-5,7" those places of the recording, of which so many lie before the graph.
absl::Status SelectSteps(std::string_view list, Graph& graph, size_t before_part = 0);

// "40%", "0.4" or "12" (a share above 1 is refused). E0104 otherwise.
absl::StatusOr<double> ParseShare(std::string_view flag, std::string_view text);

// A whole number above 0. E0104 otherwise.
absl::StatusOr<uint64_t> ParseCount(std::string_view flag, std::string_view text);

// "gpt2.ddtrace, 8 steps, NVIDIA A100-SXM4-40GB".
std::string Headline(const Trace& trace, const BuiltGraph& built);

}  // namespace daydream
