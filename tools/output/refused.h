// What is written beside a refusal (exit code 4): the findings, which say most often why there is
// no answer.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "report/predict/what_if.h"
#include "report/questions/findings.h"
#include "report/text/json_writer.h"
#include "tools/flags.h"
#include "tools/session.h"
#include "transforms/core/transform.h"

namespace daydream {

// Writes the findings as the result, where there are any; as JSON {schema, replay, findings, error}
// in any case (`replay` may be null: ranks have none), as CSV nothing. `rows` writes further
// fields: what was asked, each without an answer. Returns `error`, or what went wrong with writing.
absl::Status Refuse(const absl::Status& error, std::string_view schema, const ReplayCheck* replay,
                    const std::vector<Finding>& findings, const Args& args, Session& session,
                    const std::function<void(JsonWriter& json)>& rows = {});

// What is asked of one scenario, which `error` answers.
Prediction RefusedPrediction(const std::vector<Application>& scenario, const absl::Status& error);

// "error": {code, what, why, fix}, the last two where they are said.
void WriteError(const absl::Status& error, JsonWriter& json);

}  // namespace daydream
