#include "transforms/core/params.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "base/check.h"
#include "base/text.h"
#include "transforms/core/suggest.h"

namespace daydream {
namespace {

struct Suffix {
  std::string_view text;
  double factor;
};

// Largest last, so that formatting can take the largest that fits.
constexpr std::array kDurations = {Suffix{"ns", 1}, Suffix{"us", 1e3}, Suffix{"ms", 1e6},
                                   Suffix{"s", 1e9}};
constexpr std::array kBytes = {
    Suffix{"B", 1},      Suffix{"kB", 1e3},           Suffix{"KB", 1e3},
    Suffix{"KiB", 1024}, Suffix{"MB", 1e6},           Suffix{"MiB", 1048576.0},
    Suffix{"GB", 1e9},   Suffix{"GiB", 1073741824.0}, Suffix{"TB", 1e12}};
constexpr std::array kBandwidths = {
    Suffix{"B/s", 1},           Suffix{"kB/s", 1e3},      Suffix{"MB/s", 1e6},
    Suffix{"MiB/s", 1048576.0}, Suffix{"GB/s", 1e9},      Suffix{"GiB/s", 1073741824.0},
    Suffix{"TB/s", 1e12},       Suffix{"kbps", 1e3 / 8},  Suffix{"Mbps", 1e6 / 8},
    Suffix{"Gbps", 1e9 / 8},    Suffix{"Tbps", 1e12 / 8}, Suffix{"Mbit/s", 1e6 / 8},
    Suffix{"Gbit/s", 1e9 / 8}};
constexpr std::array kFlops = {Suffix{"FLOP", 1}, Suffix{"MFLOP", 1e6}, Suffix{"GFLOP", 1e9},
                               Suffix{"TFLOP", 1e12}};
// "S" for "/s" is how data sheets write it.
constexpr std::array kFlopRates = {
    Suffix{"FLOP/s", 1},     Suffix{"MFLOP/s", 1e6},  Suffix{"GFLOP/s", 1e9},
    Suffix{"TFLOP/s", 1e12}, Suffix{"PFLOP/s", 1e15}, Suffix{"MFLOPS", 1e6},
    Suffix{"GFLOPS", 1e9},   Suffix{"TFLOPS", 1e12},  Suffix{"PFLOPS", 1e15}};
// Accepted spellings that are not units of output.
constexpr std::string_view kMicro = "\xc2\xb5s";

std::string_view Expected(Unit unit) {
  switch (unit) {
    case Unit::kNone:
      return "a number, such as 4";
    case Unit::kFactor:
      return "a factor, such as 2x";
    case Unit::kShare:
      return "a share, such as 40%";
    case Unit::kDuration:
      return "a time with its unit, such as 12us (ns, us, ms, s)";
    case Unit::kBytes:
      return "a size with its unit, such as 64MiB (B, KB, KiB, MB, MiB, GB, GiB)";
    case Unit::kBandwidth:
      return "a bandwidth with its unit, such as 25GB/s (bytes) or 100Gbps (bits)";
    case Unit::kFlops:
      return "a number of operations with its unit, such as 12GFLOP";
    case Unit::kFlopRate:
      return "a rate of operations with its unit, such as 312TFLOP/s";
    case Unit::kText:
      return "a word";
  }
  return "";
}

absl::Status Refuse(std::string_view text, Unit unit) {
  return InvalidArgument("'{}' is not {}", text, Expected(unit));
}

// Parses a leading plain number; `rest` becomes what follows it. False when there is none.
bool TakeNumber(std::string_view text, double* value, std::string_view* rest) {
  if (text.empty() || text.front() == '-' || text.front() == '+') return false;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), *value, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(*value)) return false;
  *rest = StripSpaces(text.substr(static_cast<size_t>(end - text.data())));
  // 1e9 is fine where no unit begins with "e".
  if (rest->size() >= 2 && (rest->front() == 'e' || rest->front() == 'E')) {
    auto [exp_end, exp_error] = std::from_chars(text.data(), text.data() + text.size(), *value);
    if (exp_error != std::errc() || !std::isfinite(*value)) return false;
    *rest = StripSpaces(text.substr(static_cast<size_t>(exp_end - text.data())));
  }
  return true;
}

absl::StatusOr<double> WithSuffix(std::string_view text, Unit unit, double value,
                                  std::string_view rest, std::span<const Suffix> suffixes) {
  if (rest.empty() && value == 0) return 0.0;
  if (unit == Unit::kDuration && rest == kMicro) rest = "us";
  for (const Suffix& s : suffixes) {
    if (rest == s.text) return value * s.factor;
  }
  return Refuse(text, unit);
}

std::string WithLargest(double value, std::span<const Suffix> suffixes) {
  const Suffix* best = &suffixes.front();
  for (const Suffix& s : suffixes) {
    double scaled = value / s.factor;
    if (scaled >= 1 && scaled * s.factor == value &&
        fmt::format("{}", scaled).size() <= fmt::format("{}", value / best->factor).size()) {
      best = &s;
    }
  }
  return fmt::format("{}{}", value / best->factor, best->text);
}

absl::Status BadValue(std::string_view transform, std::string what, std::string fix = {}) {
  if (fix.empty()) fix = fmt::format("daydream opt show {}", transform);
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      {.code = "E0103", .what = fmt::format("{}: {}", transform, what), .fix = std::move(fix)});
}

std::string Join(std::span<const std::string_view> words) {
  return fmt::format("{}", fmt::join(words.begin(), words.end(), ", "));
}

// Text that the scenario grammar would take apart goes into quotes.
std::string Quoted(const std::string& text) {
  if (text.find_first_of(",()'\" ") == std::string::npos) return text;
  return text.find('\'') == std::string::npos ? "'" + text + "'" : "\"" + text + "\"";
}

absl::StatusOr<size_t> FindSpec(std::string_view transform, std::span<const ParamSpec> specs,
                                std::string_view name) {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].name == name) return i;
    names.push_back(specs[i].name);
  }
  if (names.empty()) return BadValue(transform, "takes no parameters");
  std::string_view closest = Closest(name, names);
  return BadValue(transform,
                  closest.empty()
                      ? fmt::format("unknown parameter '{}'; it has {}", name, Join(names))
                      : fmt::format("unknown parameter '{}', did you mean '{}'?", name, closest));
}

absl::Status CheckText(std::string_view transform, const ParamSpec& spec, std::string_view text) {
  if (spec.choices.empty()) {
    return text.empty() ? BadValue(transform, fmt::format("{} is empty", spec.name))
                        : absl::OkStatus();
  }
  if (std::find(spec.choices.begin(), spec.choices.end(), text) != spec.choices.end()) {
    return absl::OkStatus();
  }
  std::string_view closest = Closest(text, spec.choices);
  std::string hint = closest.empty() ? fmt::format("it can be {}", Join(spec.choices))
                                     : fmt::format("did you mean '{}'?", closest);
  return BadValue(transform, fmt::format("{} cannot be '{}'; {}", spec.name, text, hint));
}

// For each spec the argument bound to it, nullptr where none was given.
using Arguments = std::vector<const std::string*>;

absl::StatusOr<Arguments> MatchArguments(
    std::string_view transform, std::span<const ParamSpec> specs,
    std::span<const std::pair<std::string, std::string>> args) {
  Arguments given(specs.size(), nullptr);
  for (const auto& [name, value] : args) {
    size_t index = 0;
    if (name.empty()) {
      while (index < specs.size() && given[index] != nullptr) ++index;
      if (index == specs.size()) {
        return BadValue(transform, specs.empty() ? "takes no parameters"
                                                 : fmt::format("too many values: '{}'", value));
      }
    } else {
      DD_ASSIGN_OR_RETURN(index, FindSpec(transform, specs, name));
    }
    if (given[index] != nullptr) {
      return BadValue(transform, fmt::format("{} is given twice", specs[index].name));
    }
    given[index] = &value;
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    if (given[i] == nullptr && specs[i].required) {
      return BadValue(transform, fmt::format("{} is missing: {}", specs[i].name, specs[i].help));
    }
  }
  return given;
}

absl::StatusOr<double> CheckedNumber(std::string_view transform, const ParamSpec& spec,
                                     std::string_view text) {
  auto value = ParseValue(text, spec.unit);
  if (!value.ok()) {
    return BadValue(transform, fmt::format("{}: {}", spec.name, Message(value.status())));
  }
  if (spec.whole && *value != std::floor(*value)) {
    return BadValue(transform, fmt::format("{} = {} is no whole number", spec.name,
                                           FormatValue(*value, spec.unit)));
  }
  if (*value >= spec.min && *value <= spec.max) return value;
  return BadValue(
      transform,
      fmt::format("{} = {} is out of range ({} to {})", spec.name, FormatValue(*value, spec.unit),
                  FormatValue(spec.min, spec.unit), FormatValue(spec.max, spec.unit)));
}

}  // namespace

absl::StatusOr<double> ParseValue(std::string_view text, Unit unit) {
  std::string_view body = StripSpaces(text);
  if (unit == Unit::kFactor && !body.empty() && (body.front() == 'x' || body.front() == 'X')) {
    body.remove_prefix(1);
    if (body.ends_with('x')) return Refuse(text, unit);
  }
  double value = 0;
  std::string_view rest;
  if (!TakeNumber(body, &value, &rest)) return Refuse(text, unit);
  switch (unit) {
    case Unit::kNone:
      if (rest.empty()) return value;
      break;
    case Unit::kFactor:
      if (rest.empty() || rest == "x" || rest == "X") return value;
      break;
    case Unit::kShare:
      if (rest.empty()) return value;
      if (rest == "%") return value / 100;
      break;
    case Unit::kDuration:
      return WithSuffix(text, unit, value, rest, kDurations);
    case Unit::kBytes:
      return WithSuffix(text, unit, value, rest, kBytes);
    case Unit::kBandwidth:
      return WithSuffix(text, unit, value, rest, kBandwidths);
    case Unit::kFlops:
      return WithSuffix(text, unit, value, rest, kFlops);
    case Unit::kFlopRate:
      return WithSuffix(text, unit, value, rest, kFlopRates);
    case Unit::kText:
      break;
  }
  return Refuse(text, unit);
}

std::string FormatValue(double value, Unit unit) {
  switch (unit) {
    case Unit::kNone:
      return fmt::format("{}", value);
    case Unit::kFactor:
      return fmt::format("{}x", value);
    case Unit::kShare: {
      double percent = std::round(value * 1e12) / 1e10;
      return percent / 100 == value ? fmt::format("{}%", percent) : fmt::format("{}", value);
    }
    case Unit::kDuration:
      return WithLargest(value, kDurations);
    case Unit::kBytes:
      return WithLargest(value, kBytes);
    case Unit::kBandwidth:
      return WithLargest(value, std::span(kBandwidths).first(7));  // bytes only
    case Unit::kFlops:
      return WithLargest(value, kFlops);
    case Unit::kFlopRate:
      return WithLargest(value, std::span(kFlopRates).first(5));
    case Unit::kText:
      break;
  }
  return {};
}

std::string RoundedValue(double value, Unit unit) {
  if (std::isnan(value)) return "not a number";
  std::string size = "infinite";
  if (std::isfinite(value)) {
    size = FormatValue(std::strtod(fmt::format("{:.4g}", std::fabs(value)).c_str(), nullptr), unit);
  }
  return (value < 0 ? "-" : "") + size;
}

absl::StatusOr<Quantity> ParseQuantity(std::string_view text) {
  for (Unit unit : {Unit::kNone, Unit::kFactor, Unit::kShare, Unit::kDuration, Unit::kBytes,
                    Unit::kBandwidth, Unit::kFlops, Unit::kFlopRate}) {
    auto value = ParseValue(text, unit);
    if (value.ok()) return Quantity{*value, unit};
  }
  return InvalidArgument("'{}' is not a number with a unit, such as 12us, 64MiB, 25GB/s, 40%, 2x",
                         text);
}

std::string_view UnitName(Unit unit) {
  constexpr std::string_view kNames[] = {"count",     "factor", "share",     "time", "bytes",
                                         "bandwidth", "flops",  "flop rate", "text"};
  static_assert(std::size(kNames) == static_cast<size_t>(Unit::kText) + 1);
  return kNames[static_cast<size_t>(unit)];
}

double Params::operator[](std::string_view name) const {
  Note(name);
  auto it = values_.find(name);
  DD_CHECK(it != values_.end());
  return it->second;
}

std::string_view Params::text(std::string_view name) const {
  Note(name);
  auto it = texts_.find(name);
  DD_CHECK(it != texts_.end());
  return it->second;
}

bool Params::given(std::string_view name) const {
  Note(name);
  auto it = given_.find(name);
  return it != given_.end() && it->second;
}

absl::StatusOr<Params> BindParams(std::string_view transform, std::span<const ParamSpec> specs,
                                  std::span<const std::pair<std::string, std::string>> args) {
  DD_ASSIGN_OR_RETURN(Arguments given, MatchArguments(transform, specs, args));
  Params params;
  std::string spelled;
  for (size_t i = 0; i < specs.size(); ++i) {
    const ParamSpec& spec = specs[i];
    std::string name(spec.name), text;
    params.given_[name] = given[i] != nullptr;
    if (spec.unit == Unit::kText) {
      if (given[i] != nullptr) DD_RETURN_IF_ERROR(CheckText(transform, spec, *given[i]));
      params.texts_[name] = given[i] != nullptr ? *given[i] : std::string(spec.text_fallback);
      text = Quoted(params.texts_[name]);
    } else {
      double value = spec.fallback;
      if (given[i] != nullptr) {
        DD_ASSIGN_OR_RETURN(value, CheckedNumber(transform, spec, *given[i]));
      }
      params.values_[name] = value;
      text = FormatValue(value, spec.unit);
    }
    if (given[i] == nullptr) continue;
    spelled += fmt::format("{}{}={}", spelled.empty() ? "" : ",", spec.name, text);
  }
  params.spelled_ =
      spelled.empty() ? std::string(transform) : fmt::format("{}({})", transform, spelled);
  return params;
}

}  // namespace daydream
