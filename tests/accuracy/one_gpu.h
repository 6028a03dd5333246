// Steps of data-parallel training, predicted from the step on one GPU, which is composed
// (compose.h) of what was published of it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "tests/accuracy/compose.h"
#include "tests/accuracy/judged.h"
#include "trace/trace.h"

namespace daydream {

// A model as data parallelism sees it: parameters in their order, and the phases of a step.
struct TrainedModel {
  std::vector<Dims> parameters;
  std::string type = "float";
  double forward_ms = 0, backward_ms = 0, optimizer_ms = 0;
  std::string gpu = "A100-SXM4-80GB";
  // What each parameter has of forward and backward, to any scale; empty: its share of the
  // elements.
  std::vector<double> work = {};
  StepComposer::HostTimes host = {};
};

// One GPU's step: a kernel for each parameter and phase, as long as its share.
absl::StatusOr<std::shared_ptr<const Trace>> OneGpu(const TrainedModel& model);

struct AskedRow {
  JudgedRow row;
  std::string scenario;             // with paths
  std::optional<double> memory_gb;  // measured before: the row is one of memory
};

// Appends a row for each. What cannot be predicted says why.
void PredictRows(const TrainedModel& model, std::vector<AskedRow> asked,
                 std::vector<JudgedRow>& rows);

}  // namespace daydream
