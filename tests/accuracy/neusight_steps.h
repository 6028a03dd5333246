// The models that NeuSight's authors measured (ASPLOS 2025), each as one step on each GPU, composed
// from its operators.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "tests/accuracy/compose.h"
#include "tests/costmodel/costdata.h"

namespace daydream {

// A whole model as measured; a line of e2e_labels.csv.
struct ModelLabel {
  std::string gpu, model, family, mode, option;  // "V100", "bert_large-inf-512-8", "bert_large"
  int64_t sequence = 0, batch = 0;
  double ms = 0, forward_ms = 0, backward_ms = 0;
};

struct ModelStep {
  std::shared_ptr<const Trace> trace;
  double ops_ms = 0;      // its operators, as measured one by one
  double scaled = 1;      // what their times were multiplied by, so that they add up to the model
  bool products = false;  // only those of matrix products
};

struct OpTimesOfRow {
  double forward = 0, backward = 0, update = 0;  // us
};

struct ComposedKernel {
  std::vector<StepComposer::Op> ops;  // outermost first
  std::string kernel;
  double us = 0;
  bool product = false;
};

class NeusightSteps {
 public:
  NeusightSteps();
  const std::vector<ModelLabel>& labels() const { return labels_; }
  bool HasOps(const std::string& gpu, const std::string& model) const {
    return times_.contains({gpu, model});
  }
  // Of the kernels of its operators, ms. REQUIRES: HasOps().
  double OpsMs(const std::string& gpu, const std::string& model) const;
  // Scaled to `ms` as a whole. REQUIRES: HasOps().
  absl::StatusOr<ModelStep> Compose(const std::string& gpu, const DeviceSpec& spec,
                                    const std::string& model, double ms, bool shapes) const;

 private:
  std::vector<ComposedKernel> KernelsOf(const std::string& gpu, const std::string& model) const;

  std::vector<ModelLabel> labels_;
  std::map<std::string, std::vector<CostRow>> graphs_;  // by model
  std::map<std::pair<std::string, std::string>, std::map<std::string, OpTimesOfRow>> times_;
};

}  // namespace daydream
