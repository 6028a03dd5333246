#include "tools/output/refused.h"

#include "report/predict/settings.h"
#include "tools/output/findings_text.h"
#include "tools/output/whatif_output.h"

namespace daydream {

absl::Status Refuse(const absl::Status& error, std::string_view schema, const ReplayCheck* replay,
                    const std::vector<Finding>& findings, const Args& args, Session& session,
                    const std::function<void(JsonWriter& json)>& rows) {
  DD_ASSIGN_OR_RETURN(const Format format, FormatOf(args));
  if (format == Format::kCsv || (findings.empty() && format != Format::kJson)) return error;
  auto json = [&] {
    JsonWriter out;
    out.BeginObject().Key("schema").String(schema);
    if (replay != nullptr) WriteReplay(*replay, out);
    WriteFindings(findings, out);
    if (rows) rows(out);
    WriteError(error, out);
    return out.EndObject().Take() + "\n";
  };
  DD_RETURN_IF_ERROR(
      session.WriteResult(args, {.table = [&] { return FindingsText(findings); },
                                 .json = json,
                                 .csv = {},
                                 .markdown = [&] { return FindingsMarkdown(findings); }}));
  return BesideFindings(error, findings, args);
}

Prediction RefusedPrediction(const std::vector<Application>& scenario, const absl::Status& error) {
  Prediction p;
  p.error = error;
  p.name = NameOf(scenario);
  for (const Application& a : scenario) p.opts.push_back(SpelledAs(a));
  return p;
}

void WriteError(const absl::Status& error, JsonWriter& json) {
  const Diagnostic d = DiagnosticOf(error);
  json.Key("error").BeginObject();
  json.Key("code").String(d.code).Key("what").String(d.what);
  if (!d.why.empty()) json.Key("why").String(d.why);
  if (!d.fix.empty()) json.Key("fix").String(d.fix);
  json.EndObject();
}

}  // namespace daydream
