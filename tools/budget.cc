#include "tools/budget.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/text.h"
#include "tools/flags.h"

namespace daydream {
namespace {

absl::Status Bad(std::string_view text) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0710",
                     .what = fmt::format("--budget '{}' cannot be read", text),
                     .why = "a budget limits effort, in lines of code, or names risks",
                     .fix = "--budget 'effort<=20 lines', --budget risk=none, --budget "
                            "'risk!=numerics'"});
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
    const std::string_view all = text, key = StripSpaces(all.substr(0, op));
    const std::string_view sign = all.substr(op, length);
    const std::string_view value = StripSpaces(all.substr(std::min(op + length, all.size())));
    if (value.empty()) return Bad(text);
    if (key == "effort" && sign == "<=" &&
        LinesOf(value) < std::numeric_limits<double>::infinity()) {
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
