// Several traces of one run as one input: a folder, or a list of files.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tools/flags.h"
#include "tools/session.h"
#include "trace/trace.h"

namespace daydream {

using ReadOne = std::function<absl::StatusOr<std::shared_ptr<const Trace>>(const std::string&)>;

// "rank 3", or "process 3" of one that has no rank.
std::string NameOf(const Rank& rank, size_t place);

// The traces of a folder. Says which others beside them are not read.
absl::StatusOr<std::vector<std::string>> FilesOfRun(const std::string& folder, Session& session);

// Reads each file with `read` and merges them. Says how the clocks were aligned.
absl::StatusOr<std::shared_ptr<const Trace>> ReadRanks(const std::vector<std::string>& files,
                                                       const std::string& name, const ReadOne& read,
                                                       Session& session);

// The place of rank `wanted`, a number, among `ranks`. E0432 when there is none.
absl::StatusOr<size_t> FindRank(std::string_view wanted, const std::vector<Rank>& ranks,
                                const std::string& where);

// The rank of --rank out of `trace`: a number, or auto, the rank that waits least for the others.
// E0432 when there is none of that number. `folder`: of ranks, which `whatif` plays together
// without being asked to.
absl::StatusOr<std::shared_ptr<const Trace>> ChooseRank(std::shared_ptr<const Trace> trace,
                                                        const Args& args, Session& session,
                                                        bool folder = false);

}  // namespace daydream
