#include "tools/gate.h"

#include <optional>
#include <vector>

#include "tools/flags.h"
#include "transforms/core/params.h"

namespace daydream {
namespace {

absl::Status BadGate(std::string what) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0108",
                     .what = std::move(what),
                     .fix = "--fail-if 'speedup < 1.1', --fail-if 'step > 120ms' or "
                            "--fail-if 'step > +3%'"});
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// The plus sign of "+3%" says what it is compared with.
std::optional<double> SignedNumber(std::string_view text) {
  const bool plus = text.starts_with('+') && !text.starts_with("+-");
  return PlainNumber(text.substr(plus ? 1 : 0));
}

}  // namespace

absl::StatusOr<Gate> ParseGate(std::string_view text) {
  size_t at = text.find_first_of("<>");
  if (at == std::string_view::npos)
    return BadGate(fmt::format("--fail-if '{}' has no < or >", text));
  bool equal = at + 1 < text.size() && text[at + 1] == '=';
  Gate gate;
  gate.name = std::string(Trim(text.substr(0, at)));
  gate.op = std::string(text.substr(at, equal ? 2 : 1));
  std::string_view limit = Trim(text.substr(at + gate.op.size()));
  if (gate.name.empty() || limit.empty()) {
    return BadGate(fmt::format("--fail-if '{}' is not NAME < VALUE", text));
  }
  const bool percent = limit.back() == '%';
  if (const auto number = SignedNumber(limit.substr(0, limit.size() - (percent ? 1 : 0)))) {
    gate.relative = percent && (limit[0] == '+' || limit[0] == '-');
    gate.percent = percent && !gate.relative;
    gate.limit = *number / (percent ? 100 : 1);
    return gate;
  }
  auto duration = ParseValue(limit, Unit::kDuration);
  if (!duration.ok()) return BadGate(fmt::format("--fail-if: '{}' is no number or time", limit));
  gate.limit = *duration;
  gate.time = true;
  return gate;
}

absl::StatusOr<bool> GateHolds(const Gate& gate, const GateValues& values) {
  auto it = values.find(gate.name);
  if (it == values.end()) {
    std::vector<std::string_view> names;
    for (const auto& [name, value] : values) names.push_back(name);
    return BadGate(fmt::format("--fail-if: there is no value '{}'{}; there are {}", gate.name,
                               DidYouMean(gate.name, names), OrList(names)));
  }
  const GateValue& v = it->second;
  if (v.time != (gate.time || gate.relative)) {
    return BadGate(fmt::format("--fail-if: {} is compared with {}", gate.name,
                               v.time ? "a time or a signed share" : "a number"));
  }
  if (gate.percent && !v.share) {
    return BadGate(fmt::format("--fail-if: {} is a factor or a count, not a share", gate.name));
  }
  double limit = gate.relative ? v.reference * (1 + gate.limit) : gate.limit;
  if (gate.op == "<") return v.value < limit;
  if (gate.op == "<=") return v.value <= limit;
  if (gate.op == ">") return v.value > limit;
  return v.value >= limit;
}

absl::StatusOr<std::vector<Verdict>> JudgeGates(std::span<const std::string> texts,
                                                const GateValues& values) {
  std::vector<Verdict> verdicts;
  for (const std::string& text : texts) {
    DD_ASSIGN_OR_RETURN(const Gate gate, ParseGate(text));
    DD_ASSIGN_OR_RETURN(const bool holds, GateHolds(gate, values));
    verdicts.push_back({text, holds});
  }
  return verdicts;
}

}  // namespace daydream
