// What is wrong with a recording, above the tables and in JSON (report/questions/findings.h).
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "report/questions/findings.h"
#include "report/text/json_writer.h"
#include "tools/flags.h"

namespace daydream {

// "! 295 of the 328 ms recorded happens once: delta_r2 (295 ms, 2 times)" and below it what to do,
// each wrapped; worst first. Ends in an empty line; "" without findings.
std::string FindingsText(const std::vector<Finding>& findings);
// The same as a list of Markdown with an empty line behind it; "" without findings.
std::string FindingsMarkdown(const std::vector<Finding>& findings);

// `error` beside the result that has these findings (not as CSV): what one says is not told again.
absl::Status BesideFindings(const absl::Status& error, const std::vector<Finding>& findings,
                            const Args& args);

// "findings": [{kind, about, text, where, ms, share, fix}].
void WriteFindings(const std::vector<Finding>& findings, JsonWriter& json);

}  // namespace daydream
