// A trace made ready for predictions, and what is said when its replay is off.
#pragma once

#include <memory>
#include <string>

#include "report/predict/what_if.h"
#include "tools/input/input.h"

namespace daydream {

struct Inputs {
  std::shared_ptr<const Trace> trace;
  BuiltGraph built;
  ReplayCheck replay;
};

// Reads the trace and builds it twice, the second time with typical lags, side by side.
absl::StatusOr<Inputs> LoadInputs(const std::string& path, const Args& args, Session& session);

// E0602: no predictions are made above `limit`, the share of --max-replay-error.
absl::Status ReplayFailed(const ReplayCheck& replay, double limit, const std::string& path);
// W0602 when the replay is further off than 3 %.
void WarnAboutReplay(const ReplayCheck& replay, Session& session);

}  // namespace daydream
