// Where a prediction comes from: `daydream explain SPEC TRACE`.
#pragma once

#include <string>

#include "base/status.h"
#include "tools/flags.h"
#include "tools/session.h"

namespace daydream {

// Causes of the change of the step, in milliseconds, what bounds it then, all assumptions, and for
// the kernels that take most of the time how each got its new time.
absl::StatusOr<std::string> ExplainScenario(const std::string& spec, const std::string& path,
                                            const Args& args, Session& session);

}  // namespace daydream
