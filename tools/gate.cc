#include "tools/gate.h"

#include <cstdlib>
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

bool ParseNumber(std::string_view text, double& value) {
  std::string copy(text);
  char* end = nullptr;
  value = std::strtod(copy.c_str(), &end);
  return !copy.empty() && *end == '\0' && value == value;
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
  if (limit.back() == '%') {
    gate.relative = limit[0] == '+' || limit[0] == '-';
    if (!ParseNumber(limit.substr(0, limit.size() - 1), gate.limit)) {
      return BadGate(fmt::format("--fail-if: '{}' is not a number", limit));
    }
    gate.limit /= 100;
  } else if (!ParseNumber(limit, gate.limit)) {
    auto duration = ParseValue(limit, Unit::kDuration);
    if (!duration.ok()) return BadGate(fmt::format("--fail-if: '{}' is no number or time", limit));
    gate.limit = *duration;
    gate.time = true;
  }
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
  double limit = gate.relative ? v.reference * (1 + gate.limit) : gate.limit;
  if (gate.op == "<") return v.value < limit;
  if (gate.op == "<=") return v.value <= limit;
  if (gate.op == ">") return v.value > limit;
  return v.value >= limit;
}

}  // namespace daydream
