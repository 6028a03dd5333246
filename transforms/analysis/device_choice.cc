#include "transforms/analysis/device_choice.h"

#include <algorithm>
#include <cctype>

#include <fmt/ranges.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "costmodel/device_fields.h"
#include "transforms/core/strict_yaml.h"
#include "transforms/core/suggest.h"

namespace daydream {
namespace {

bool IsYaml(std::string_view name) {
  return name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".json");
}

std::string DidYouMeanOneOf(std::string_view word, std::span<const std::string_view> names) {
  const std::string_view close = Closest(word, names);
  return close.empty() ? "" : fmt::format("; did you mean '{}'?", close);
}

// Adds the fields of `map`: texts, lists of texts, and one level of maps below.
absl::Status Collect(const SourceText& source, const YamlNode& map, const std::string& prefix,
                     std::vector<GivenField>& fields) {
  for (size_t i = 0; i < map.items.size(); ++i) {
    const YamlNode::Key& key = map.keys[i];
    const YamlNode& value = map.items[i];
    if (value.is_map() && prefix.empty()) {
      DD_RETURN_IF_ERROR(Collect(source, value, key.text + ".", fields));
      continue;
    }
    GivenField field{.name = prefix + key.text, .line = key.place.line, .column = key.place.column};
    if (value.is_text()) field.values.push_back(value.text);
    bool flat = value.is_text() || value.is_list();
    for (const YamlNode& item : value.items) {
      flat &= item.is_text();
      field.values.push_back(item.text);
    }
    if (!flat) {
      return source.Error(
          absl::StatusCode::kInvalidArgument, key.place, key.text.size(),
          {.code = "E0803",
           .what = fmt::format("{}: a value or a list of values is needed", field.name)});
    }
    fields.push_back(std::move(field));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<GivenField>> FieldsOfYaml(const SourceText& source) {
  DD_ASSIGN_OR_RETURN(YamlNode root, ReadStrictYaml(source));
  if (!root.is_map()) {
    return source.Error(absl::StatusCode::kInvalidArgument, root.place, 1,
                        {.code = "E0802",
                         .what = "this is no description of a device",
                         .fix = "lines of `field: value`; the fields are in docs/cost-model.md"});
  }
  std::vector<GivenField> fields;
  DD_RETURN_IF_ERROR(Collect(source, root, "", fields));
  const std::vector<std::string_view> known = DeviceFieldNames();
  for (const GivenField& field : fields) {
    if (std::find(known.begin(), known.end(), field.name) != known.end()) continue;
    return source.Error(absl::StatusCode::kInvalidArgument, {field.line, field.column},
                        field.name.size(),
                        {.code = "E0803",
                         .what = fmt::format("a device has no field '{}'{}", field.name,
                                             DidYouMeanOneOf(field.name, known)),
                         .fix = "the fields are in docs/cost-model.md"});
  }
  return fields;
}

// "h100" and "H100-SXM5", but not "H10", begin "H100-SXM5-80GB".
bool Begins(std::string_view name, std::string_view with) {
  if (with.empty() || with.size() >= name.size() || name[with.size()] != '-') return false;
  return std::equal(with.begin(), with.end(), name.begin(), [](unsigned char a, unsigned char b) {
    return std::toupper(a) == std::toupper(b);
  });
}

// A known GPU whose name is `name` or begins so. Of several, the one with more power: a name that
// says nothing is that of the server module.
DeviceChoice ChooseKnown(std::string_view name, std::vector<std::string_view>& others) {
  DeviceChoice choice;
  const DeviceSpec* found = FindDeviceSpec(name);
  for (const DeviceSpec& spec : DeviceSpecs()) {
    if (FindDeviceSpec(name) != nullptr || !Begins(spec.name, name)) continue;
    others.push_back(spec.name);
    if (found == nullptr || spec.tdp_watts > found->tdp_watts) found = &spec;
  }
  if (found != nullptr) choice.spec = *found;
  return choice;
}

// The only known GPU whose name has all words of `name`: "Jetson Orin" is Jetson-AGX-Orin-64GB.
const DeviceSpec* FindByWords(std::string_view name) {
  const auto words_of = [](std::string_view text) {
    return std::vector<std::string>(absl::StrSplit(absl::AsciiStrToUpper(std::string(text)),
                                                   absl::ByAnyChar(" -_"), absl::SkipEmpty()));
  };
  const std::vector<std::string> words = words_of(name);
  // "96GB" names no chip.
  const auto letter = [](const std::string& w) {
    return std::isalpha(static_cast<unsigned char>(w[0])) != 0;
  };
  const DeviceSpec* found = nullptr;
  if (std::ranges::none_of(words, letter)) return nullptr;
  for (const DeviceSpec& spec : DeviceSpecs()) {
    const std::vector<std::string> known = words_of(spec.name);
    const auto has = [&](const std::string& word) {
      return std::find(known.begin(), known.end(), word) != known.end();
    };
    if (!std::ranges::all_of(words, has)) continue;
    if (found != nullptr) return nullptr;
    found = &spec;
  }
  return found;
}

// "A6000" is in RTXA6000: known names with `word` in them, else what is written nearly so.
std::string DidYouMeanGpu(std::string_view word) {
  constexpr size_t kLeastLetters = 2;
  const auto upper = [](std::string_view text) {
    std::string out;
    for (unsigned char c : text) {
      if (std::isalnum(c)) out += static_cast<char>(std::toupper(c));
    }
    return out;
  };
  std::vector<std::string_view> holds;
  for (const DeviceSpec& spec : DeviceSpecs()) {
    if (upper(word).size() >= kLeastLetters && Contains(upper(spec.name), upper(word))) {
      holds.push_back(spec.name);
    }
  }
  if (holds.empty()) return DidYouMeanOneOf(word, KnownGpus());
  return fmt::format("; did you mean '{}'?", fmt::join(holds, "' or '"));
}

// As drivers name them: "Tesla V100-SXM2-32GB", "NVIDIA H100 80GB HBM3".
const DeviceSpec* FindRecordedName(std::string_view name) {
  const std::string_view brand = name.substr(0, name.find(' '));
  constexpr std::string_view kBrands[] = {"NVIDIA", "Tesla", "AMD", "GeForce", "Quadro"};
  if (std::find(std::begin(kBrands), std::end(kBrands), brand) == std::end(kBrands)) return nullptr;
  return MatchDevice({.name = std::string(name)}).spec;
}

}  // namespace

std::vector<std::string_view> KnownGpus() {
  std::vector<std::string_view> names;
  for (const DeviceSpec& spec : DeviceSpecs()) names.push_back(spec.name);
  return names;
}

bool LooksLikeDeviceFile(std::string_view name) {
  return name.find('/') != std::string_view::npos || IsYaml(name) || name.ends_with(".textproto");
}

absl::StatusOr<DeviceChoice> ReadDeviceText(const std::string& path, std::string_view text) {
  const SourceText source(path, text);
  const ErrorAt error = [&](size_t line, size_t column, size_t length, Diagnostic d) {
    return source.Error(absl::StatusCode::kInvalidArgument, {line, column}, length, std::move(d));
  };
  std::vector<GivenField> fields;
  if (IsYaml(path)) {
    DD_ASSIGN_OR_RETURN(fields, FieldsOfYaml(source));
  } else {
    if (const size_t at = FindNonText(text); at != std::string_view::npos) {
      return source.Error(absl::StatusCode::kInvalidArgument, {}, 1,
                          {.code = "E0802",
                           .what = "this is no text",
                           .why = fmt::format("byte {} is none of a text", at)});
    }
    DD_ASSIGN_OR_RETURN(fields, FieldsOfTextproto(text, error));
  }
  DD_ASSIGN_OR_RETURN(DescribedDevice described, DescribeDevice(fields, error));
  return DeviceChoice{std::move(described.spec), path, std::move(described.assumptions)};
}

absl::StatusOr<DeviceChoice> ChooseDevice(std::string_view name) {
  if (LooksLikeDeviceFile(name)) {
    const std::string path(name);
    DD_ASSIGN_OR_RETURN(
        std::string text,
        ReadTextFile(path, kMostYamlBytes,
                     {.code = "E0801", .what = "the description of the device cannot be read"}));
    return ReadDeviceText(path, text);
  }
  std::vector<std::string_view> others;
  DeviceChoice choice = ChooseKnown(name, others);
  const DeviceSpec* spec = FindRecordedName(name);
  if (spec == nullptr) spec = FindByWords(name);
  if (choice.spec.name.empty() && spec != nullptr) {
    choice.spec = *spec;
    choice.assumptions.push_back(fmt::format("{} is taken as {}", name, spec->name));
  }
  if (choice.spec.name.empty()) {
    return MakeStatus(
        absl::StatusCode::kInvalidArgument,
        {.code = "E0801",
         .what = fmt::format("no GPU is known as '{}'{}", name, DidYouMeanGpu(name)),
         .why = fmt::format("known are {}", fmt::join(KnownGpus(), ", ")),
         .fix = "a name from the list, or a file that describes the GPU (docs/cost-model.md)"});
  }
  if (others.size() > 1) {
    choice.assumptions.push_back(
        fmt::format("{} is taken as {}, of {}", name, choice.spec.name, fmt::join(others, ", ")));
  }
  for (const std::string& unsure : choice.spec.unsure) {
    choice.assumptions.push_back(fmt::format("{}: {} is not sure", choice.spec.name, unsure));
  }
  return choice;
}

}  // namespace daydream
