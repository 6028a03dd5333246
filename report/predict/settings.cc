#include "report/predict/settings.h"

#include <utility>
#include <vector>

#include "report/predict/what_if.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/scenario/option_file.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

absl::Status BadSetting(std::string what, std::string fix) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0108", .what = std::move(what), .fix = std::move(fix)});
}

}  // namespace

absl::StatusOr<Application> WithParam(const Application& application, std::string_view param,
                                      const std::string& value) {
  const Transform& transform = *application.transform;
  std::vector<std::pair<std::string, std::string>> args;
  for (const ParamSpec& spec : transform.params) {
    std::string name(spec.name);
    if (spec.name == param) {
      args.emplace_back(name, value);
    } else if (application.params.given(spec.name)) {
      args.emplace_back(name, spec.unit == Unit::kText
                                  ? std::string(application.params.text(spec.name))
                                  : FormatValue(application.params[spec.name], spec.unit));
    }
  }
  DD_ASSIGN_OR_RETURN(Params params, BindParams(transform.name, transform.params, args));
  return Application{&transform, std::move(params), application.file};
}

std::string SpelledAs(const Application& a) {
  return a.params.spelled().empty() ? std::string(a.transform->name) : a.params.spelled();
}

std::string NameOf(std::span<const Application> scenario) {
  std::string name;
  for (const Application& a : scenario) name += (name.empty() ? "" : " + ") + SpelledAs(a);
  return name;
}

absl::StatusOr<Setting> ParseSetting(std::string_view text,
                                     std::span<const std::shared_ptr<const OptionFile>> files) {
  size_t dot = text.find('.'), equals = text.find('=');
  const std::string form = "--set NAME.PARAM=VALUE";
  if (dot == std::string_view::npos || equals == std::string_view::npos || equals < dot) {
    return BadSetting(fmt::format("--set '{}' is not NAME.PARAM=VALUE", text), form);
  }
  Setting setting{std::string(text.substr(0, dot)),
                  std::string(text.substr(dot + 1, equals - dot - 1)),
                  std::string(text.substr(equals + 1))};
  const Transform* transform = FindTransform(setting.transform);
  for (const auto& file : files) {
    if (file->transform().name == setting.transform) transform = &file->transform();
  }
  if (transform == nullptr) {
    return BadSetting(fmt::format("--set: there is no optimization '{}'", setting.transform),
                      "daydream opt list");
  }
  for (const ParamSpec& spec : transform->params) {
    if (spec.name == setting.param) return setting;
  }
  return BadSetting(
      fmt::format("--set: {} has no parameter '{}'", setting.transform, setting.param),
      fmt::format("daydream opt show {}", setting.transform));
}

absl::Status ApplySettings(std::span<const Setting> settings,
                           std::vector<std::vector<Application>>& scenarios) {
  for (const Setting& s : settings) {
    bool used = false;
    for (auto& scenario : scenarios) {
      for (Application& a : scenario) {
        if (a.transform->name != s.transform || a.params.given(s.param)) continue;
        DD_ASSIGN_OR_RETURN(a, WithParam(a, s.param, s.value));
        used = true;
      }
    }
    if (!used) {
      return BadSetting(
          fmt::format("--set {}.{}: no scenario leaves it open", s.transform, s.param),
          fmt::format("add --opt {}, or drop the --set", s.transform));
    }
  }
  return absl::OkStatus();
}

}  // namespace daydream
