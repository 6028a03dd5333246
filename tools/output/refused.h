// What is written beside a refusal (exit code 4): the findings, which say most often why there is
// no answer.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "report/predict/what_if.h"
#include "report/questions/findings.h"
#include "report/text/json_writer.h"
#include "tools/flags.h"
#include "tools/session.h"

namespace daydream {

// Writes the findings as the result, where there are any; as JSON {schema, replay, findings, error}
// in any case (`replay` may be null: ranks have none), as CSV nothing. Returns `error`, or what
// went wrong with writing.
absl::Status Refuse(const absl::Status& error, std::string_view schema, const ReplayCheck* replay,
                    const std::vector<Finding>& findings, const Args& args, Session& session);

// "error": {code, what, why, fix}, the last two where they are said.
void WriteError(const absl::Status& error, JsonWriter& json);

}  // namespace daydream
