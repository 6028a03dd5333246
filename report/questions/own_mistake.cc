#include "report/questions/own_mistake.h"

namespace daydream {

absl::Status OwnMistake(const Advised& advised) {
  for (const Option& o : advised.unjudged) {
    const absl::Status& error = o.prediction.error;
    if (error.ok()) continue;
    const std::string code = DiagnosticOf(error).code;
    if (code.empty() || code.starts_with("E09")) return error;
  }
  return absl::OkStatus();
}

}  // namespace daydream
