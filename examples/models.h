// The training programs whose traces are shipped in this folder.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "trace/trace.h"

namespace daydream::examples {

struct Model {
  std::string_view name;     // "resnet50": the trace is called <name>-synthetic.ddtrace
  std::string_view summary;  // what is trained and how
  absl::StatusOr<std::shared_ptr<const Trace>> (*make)();
};

std::span<const Model> Models();

}  // namespace daydream::examples
