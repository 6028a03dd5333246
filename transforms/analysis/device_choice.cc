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

std::vector<std::string> WordsOf(std::string_view text) {
  return absl::StrSplit(absl::AsciiStrToUpper(std::string(text)), absl::ByAnyChar(" -_"),
                        absl::SkipEmpty());
}

// What people call the chip: "A100"; "RTX4090" and "4090".
std::vector<std::string> ChipNames(const DeviceSpec& spec) {
  std::vector<std::string> names = {WordsOf(spec.name).front()};
  if (names[0].starts_with("RTX") || names[0].starts_with("GTX"))
    names.push_back(names[0].substr(3));
  return names;
}

bool IsOneOf(const std::string& word, const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The words of its name, here and in recordings, and what people shorten them to: "SXM" for "SXM5".
std::vector<std::string> WordsFor(const DeviceSpec& spec) {
  std::vector<std::string> words = WordsOf(spec.name);
  const size_t whole = words.size();
  for (size_t i = 1; i < whole; ++i) {
    const size_t letters = words[i].find_last_not_of("0123456789") + 1;
    if (letters >= 3 && letters < words[i].size()) words.push_back(words[i].substr(0, letters));
  }
  for (std::string& name : ChipNames(spec)) words.push_back(std::move(name));
  // Of a GeForce the number alone is another card than the number with "Ti".
  if (ChipNames(spec).size() == 1) {
    for (const std::string& word : spec.name_words) words.push_back(absl::AsciiStrToUpper(word));
  }
  words.insert(words.end(), {"RTX", "GTX"});
  return words;
}

// The known GPUs whose name has all words of `name`, so that "H100 NVL" is none: "Jetson Orin" is
// Jetson-AGX-Orin-64GB, and "A100 80GB" one of two. Only one, or variants of a chip that `name`
// names.
std::vector<const DeviceSpec*> FindByWords(std::string_view name) {
  std::vector<std::string> words = WordsOf(name);
  constexpr std::string_view kBrands[] = {"NVIDIA", "TESLA", "GEFORCE",
                                          "QUADRO", "AMD",   "INSTINCT"};
  std::erase_if(words, [&](const std::string& w) { return std::ranges::count(kBrands, w) > 0; });
  for (size_t i = 1; i < words.size(); ++i) {  // "2080 Ti" is one word
    if (words[i] != "TI") continue;
    words[i - 1] += words[i];
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
  }
  std::vector<const DeviceSpec*> found;
  bool named = !words.empty();
  for (const DeviceSpec& spec : DeviceSpecs()) {
    const std::vector<std::string> known = WordsFor(spec), chip = ChipNames(spec);
    if (!std::ranges::all_of(words, [&](const auto& w) { return IsOneOf(w, known); })) continue;
    found.push_back(&spec);
    named &= std::ranges::any_of(words, [&](const auto& w) { return IsOneOf(w, chip); });
    named &= ChipNames(*found.front()) == chip;
  }
  // "96GB" and "RTX" name no chip.
  const auto letter = [](unsigned char c) { return std::isalpha(c) != 0; };
  const bool any_name = std::ranges::any_of(words, [&](const std::string& w) {
    return letter(static_cast<unsigned char>(w[0])) && w != "RTX" && w != "GTX";
  });
  if (!named && (found.size() > 1 || !any_name)) found.clear();
  return found;
}

// "A6000" is in RTXA6000: known names that hold a word or are in it ("A10G"), else those of the
// same letters, or what is written nearly so.
std::string DidYouMeanGpu(std::string_view word) {
  constexpr size_t kLeastLetters = 2, kFew = 4;
  std::vector<std::string_view> holds, alike, as_long;
  const auto has_digit = [](const std::string& w) {
    return w.find_first_of("0123456789") != std::string::npos;
  };
  const auto letters_of = [](const std::string& w) {
    return w.substr(0, w.find_first_of("0123456789"));
  };
  for (const DeviceSpec& spec : DeviceSpecs()) {
    const std::string folded = fmt::format("{}", fmt::join(WordsOf(spec.name), ""));
    const std::vector<std::string> chips = ChipNames(spec);
    const std::string& chip = chips.back();
    bool in = false, like = false, same = false;
    for (const std::string& w : WordsOf(word)) {
      if (w.ends_with("GB") || (!has_digit(w) && WordsOf(word).size() > 1)) continue;
      in |= w.size() >= kLeastLetters &&
            (Contains(folded, w) || (chip.size() > 2 && Contains(w, chip)));
      const bool letters = !letters_of(w).empty() && letters_of(w) == letters_of(chip);
      like |= has_digit(w) && letters;
      same |= has_digit(w) && letters && w.size() == chip.size();
    }
    if (in) holds.push_back(spec.name);
    if (like) alike.push_back(spec.name);
    if (same) as_long.push_back(spec.name);
  }
  const auto& near = !holds.empty() ? holds : alike.size() <= kFew ? alike : as_long;
  if (near.empty()) return DidYouMeanOneOf(word, KnownGpus());
  return fmt::format("; did you mean '{}'?", fmt::join(near, "' or '"));
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

namespace {

std::string LettersAndDigits(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c))) out += absl::ascii_toupper(c);
  }
  return out;
}

// "A6000" for RTXA6000, "4090" for RTX4090: no other size or form can be meant.
bool OnlyLeavesLettersOut(std::string_view name, std::string_view known) {
  const std::string asked = LettersAndDigits(name);
  std::string rest = LettersAndDigits(known);
  const size_t at = rest.find(asked);
  if (asked.empty() || at == std::string::npos) return false;
  rest.erase(at, asked.size());
  return std::ranges::all_of(rest, [](char c) { return c < '0' || c > '9'; });
}

}  // namespace

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
  const DeviceSpec* spec = nullptr;
  if (choice.spec.name.empty()) {
    for (const DeviceSpec* found : FindByWords(name)) {
      others.push_back(found->name);
      if (spec == nullptr || found->tdp_watts > spec->tdp_watts) spec = found;
    }
  }
  // What drivers call it, with words that say no more: "NVIDIA A100-PG509-200". Not of another
  // memory.
  if (choice.spec.name.empty() && spec == nullptr) {
    const DeviceMatch match = MatchDevice({.name = std::string(name)});
    const auto is_other_size = [&](const std::string& w) {
      return w.ends_with("GB") && w != fmt::format("{:.0f}GB", match.spec->memory_gb);
    };
    if (match.named && std::ranges::none_of(WordsOf(name), is_other_size)) spec = match.spec;
  }
  if (choice.spec.name.empty() && spec != nullptr) {
    choice.spec = *spec;
    if (others.size() < 2 && !OnlyLeavesLettersOut(name, spec->name))
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
