#include "tools/budget.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "tools/flags.h"

namespace daydream {
namespace {

// What is left of a gain that may not come: a judgement, not measured. Mild: it costs memory or
// time to start, and nothing else.
constexpr double kMildRisk = 0.85, kRisk = 0.6;

constexpr double kUnknown = std::numeric_limits<double>::infinity();

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

absl::Status Bad(std::string_view text) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0710",
                     .what = fmt::format("--budget '{}' cannot be read", text),
                     .why = "a budget limits effort, in lines of code, or names risks",
                     .fix = "--budget 'effort<=20 lines', --budget risk=none, --budget "
                            "'risk!=numerics'"});
}

// The risks of an advice: "races, host memory" are two.
std::vector<std::string_view> RisksOf(std::string_view text) {
  std::vector<std::string_view> risks;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    risks.push_back(Trimmed(text.substr(0, comma)));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return risks;
}

bool Holds(std::span<const std::string> words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

absl::StatusOr<Budget> ParseBudget(std::span<const std::string> texts) {
  Budget budget;
  for (const std::string& text : texts) {
    const size_t op = text.find_first_of("<!=");
    if (op == std::string::npos) return Bad(text);
    const size_t length = text.compare(op, 1, "=") == 0 ? 1 : 2;
    const std::string_view all = text, key = Trimmed(all.substr(0, op));
    const std::string_view sign = all.substr(op, length);
    const std::string_view value = Trimmed(all.substr(std::min(op + length, all.size())));
    if (value.empty()) return Bad(text);
    if (key == "effort" && sign == "<=" && LinesOf(value) < kUnknown) {
      budget.lines = std::min(budget.lines, LinesOf(value));
    } else if (key == "risk" && (sign == "=" || sign == "!=")) {
      (sign == "=" ? budget.only : budget.never).emplace_back(value);
    } else {
      return Bad(text);
    }
  }
  return budget;
}

absl::Status CheckRisks(const Budget& budget, std::span<const Transform* const> known) {
  std::set<std::string_view> risks = {"none"};
  for (const Transform* t : known) {
    for (std::string_view risk : RisksOf(t->advice.risk)) risks.insert(risk);
  }
  const std::vector<std::string_view> words(risks.begin(), risks.end());
  for (const std::vector<std::string>* list : {&budget.only, &budget.never}) {
    for (const std::string& risk : *list) {
      if (risks.contains(risk)) continue;
      return MakeStatus(absl::StatusCode::kInvalidArgument,
                        {.code = "E0710",
                         .what = fmt::format("--budget: no optimization has the risk '{}'{}", risk,
                                             DidYouMean(risk, words)),
                         .fix = fmt::format("--budget risk={}", OrList(words))});
    }
  }
  return absl::OkStatus();
}

double LinesOf(std::string_view effort) {
  if (effort.starts_with('~')) effort.remove_prefix(1);
  double number = 0;
  const char* end = effort.data() + effort.size();
  auto [rest, error] = std::from_chars(effort.data(), end, number);
  if (error != std::errc() || !(number >= 0)) return kUnknown;
  const std::string_view unit = Trimmed({rest, static_cast<size_t>(end - rest)});
  if (unit == "line" || unit == "lines") return number;
  const bool small = unit == "word" || unit == "number" || unit == "variable" || unit == "command";
  return small ? 1 : kUnknown;
}

std::string EffortOf(const Advice& advice, const Changes& changes) {
  if (changes.places < 2 || advice.effort != "1 line") return std::string(advice.effort);
  return fmt::format("~{} lines", changes.places);
}

double EaseOf(const Advice& advice) {
  // A hundred lines, or work that nobody can count, is a fourth as likely to be done as one line.
  const double lines = std::clamp(LinesOf(advice.effort), 1.0, 1000.0);
  double ease = 1 / (1 + 1.5 * std::log10(lines));
  for (std::string_view risk : RisksOf(advice.risk)) {
    if (risk == "none") continue;
    const bool mild = risk == "memory" || risk == "host memory" || risk == "more memory" ||
                      risk == "compile time" || risk == "values are seen later";
    ease *= mild ? kMildRisk : kRisk;
  }
  return ease;
}

std::string OverBudget(const Budget& budget, const Advice& advice) {
  if (LinesOf(advice.effort) > budget.lines) {
    return advice.effort.empty() ? "its effort is not known" : std::string(advice.effort);
  }
  for (std::string_view risk : RisksOf(advice.risk)) {
    const bool allowed = budget.only.empty() || Holds(budget.only, risk);
    if (!allowed || Holds(budget.never, risk)) return fmt::format("risk: {}", risk);
  }
  if (!budget.only.empty() && advice.risk.empty()) return "its risk is not known";
  return "";
}

}  // namespace daydream
