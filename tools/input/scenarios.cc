#include "tools/input/scenarios.h"

#include "report/predict/what_if.h"
#include "tools/input/input.h"
#include "tools/session.h"
#include "transforms/scenario/option_files.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

// Puts the flag in front of the excerpt of a scenario error, and moves the carets along.
absl::Status WithFlag(const absl::Status& status) {
  Diagnostic d = DiagnosticOf(status);
  size_t newline = d.where.find('\n');
  if (newline == std::string::npos) return status;
  const std::string flag = "--opt ";
  d.where = flag + d.where.substr(0, newline + 1) + std::string(flag.size(), ' ') +
            d.where.substr(newline + 1);
  return MakeStatus(status.code(), std::move(d));
}

// Whether some scenario has the optimization of `file` in it.
bool Names(const std::vector<std::vector<Application>>& scenarios, const OptionFile& file) {
  for (const auto& scenario : scenarios) {
    for (const Application& a : scenario) {
      if (a.transform == &file.transform()) return true;
    }
  }
  return false;
}

absl::Status LoadFiles(const Args& args, OptionFiles& files) {
  for (const std::string& path : args.All("--opt-file")) {
    DD_RETURN_IF_ERROR(files.Load(path).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::vector<Application>>> Parse(std::span<const std::string> specs,
                                                            OptionFiles& files) {
  std::vector<std::vector<Application>> scenarios;
  for (const std::string& spec : specs) {
    auto scenario = ParseScenario(spec, &files);
    if (!scenario.ok()) return WithFlag(scenario.status());
    scenarios.push_back(*std::move(scenario));
  }
  return scenarios;
}

// --samples also tells the recorded batch to a scenario that asks for so many examples a step.
absl::Status TellSamples(const Args& args, std::vector<std::vector<Application>>& scenarios) {
  if (!args.Has("--samples")) return absl::OkStatus();
  DD_ASSIGN_OR_RETURN(const uint64_t samples, ParseCount("--samples", args.Get("--samples")));
  for (auto& scenario : scenarios) {
    for (Application& a : scenario) {
      if (a.transform->name != "batch" || a.params.given("recorded")) continue;
      const auto size = ParseQuantity(a.params.text("size"));
      if (!size.ok() || size->unit != Unit::kNone) continue;
      std::string told = a.params.spelled();
      told.insert(told.rfind(')'), fmt::format(",recorded={}", samples));
      DD_ASSIGN_OR_RETURN(auto parsed, ParseScenario(told));
      a = std::move(parsed[0]);
    }
  }
  return absl::OkStatus();
}

// Fills in the values of --set.
absl::Status Set(const Args& args, const OptionFiles& files,
                 std::vector<std::vector<Application>>& scenarios) {
  std::vector<Setting> settings;
  for (const std::string& text : args.All("--set")) {
    DD_ASSIGN_OR_RETURN(Setting setting, ParseSetting(text, files.all()));
    settings.push_back(std::move(setting));
  }
  return ApplySettings(settings, scenarios);
}

}  // namespace

absl::StatusOr<std::vector<std::vector<Application>>> ParseSpecs(
    const Args& args, std::span<const std::string> specs) {
  OptionFiles files(OptionFolders());
  DD_RETURN_IF_ERROR(LoadFiles(args, files));
  DD_ASSIGN_OR_RETURN(auto scenarios, Parse(specs, files));
  DD_RETURN_IF_ERROR(TellSamples(args, scenarios));
  DD_RETURN_IF_ERROR(Set(args, files, scenarios));
  return scenarios;
}

absl::StatusOr<std::vector<std::vector<Application>>> ParseScenarios(const Args& args) {
  OptionFiles files(OptionFolders());
  DD_RETURN_IF_ERROR(LoadFiles(args, files));
  const std::vector<std::shared_ptr<const OptionFile>> given(files.all().begin(),
                                                             files.all().end());
  DD_ASSIGN_OR_RETURN(auto scenarios, Parse(args.All("--opt"), files));
  for (const auto& file : given) {
    if (Names(scenarios, *file)) continue;
    DD_ASSIGN_OR_RETURN(auto alone, ParseScenario(file->transform().name, &files));
    scenarios.push_back(std::move(alone));
  }
  DD_RETURN_IF_ERROR(TellSamples(args, scenarios));
  DD_RETURN_IF_ERROR(Set(args, files, scenarios));
  return scenarios;
}

void LoadFolders(OptionFiles& files, Session& session) {
  for (const absl::Status& status : files.LoadFolders()) {
    Diagnostic d = DiagnosticOf(status);
    d.effect = "its optimization is left out";
    session.Warn(d);
  }
}

absl::StatusOr<double> ParsePercent(std::string_view flag, std::string_view text) {
  constexpr double kMost = 1000;
  const auto number = PlainNumber(text.substr(0, text.size() - (text.ends_with('%') ? 1 : 0)));
  if (number && *number >= 0 && *number <= kMost) return *number / 100;
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      {.code = "E0104",
       .what = fmt::format("{} '{}' is not a number of percent from 0 to 1000", flag, text),
       .fix = fmt::format("{} 10%", flag)});
}

}  // namespace daydream
