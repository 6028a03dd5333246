// Optimizations written in Python: a function that is handed an Edit, with the verbs of
// transforms/core/editor.h, and numbers as parameters.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <utility>
#include <vector>

#include "transforms/core/transform.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

// A parameter as Python says it.
struct OwnParam {
  std::string name;
  double value = 0, low = 0, high = 0;  // default and range of plausible values
};

class OwnOptimization : public OwnEdits {
 public:
  // `function(edit, name=value, ...)`. Calls it from whatever thread predicts; what it raises is
  // raised by the question.
  OwnOptimization(std::string name, std::string summary, std::vector<OwnParam> params,
                  nanobind::callable function);
  OwnOptimization(const OwnOptimization&) = delete;
  OwnOptimization& operator=(const OwnOptimization&) = delete;

  // With some parameters given. Errors as of BindParams.
  absl::StatusOr<Application> Apply(
      const std::vector<std::pair<std::string, std::string>>& given) const;
  absl::Status Apply(const Params& params, Editor& edit) const override;

 private:
  std::string name_, summary_;
  std::vector<OwnParam> own_;
  std::vector<ParamSpec> specs_;  // with views of the texts above
  nanobind::callable function_;
  Transform transform_;
};

}  // namespace daydream
