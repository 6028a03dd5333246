#include "report/questions/sweep_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

absl::Status Bad(std::string_view where, std::string what, std::string fix) {
  return MakeStatus(absl::StatusCode::kInvalidArgument, {.code = "E0701",
                                                         .what = std::move(what),
                                                         .where = std::string(where),
                                                         .fix = std::move(fix)});
}

// "x4", "25GB/s": what stands before the digits, the number, and what stands behind.
struct Number {
  std::string_view before, after;
  double value = 0;
};

std::optional<Number> ReadNumber(std::string_view text) {
  Number n;
  if (text.starts_with('x')) n.before = text.substr(0, 1);
  text.remove_prefix(n.before.size());
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n.value);
  if (error != std::errc() || !std::isfinite(n.value)) return std::nullopt;
  n.after = text.substr(static_cast<size_t>(end - text.data()));
  if (n.after.find_first_of("0123456789.+*") != std::string_view::npos) return std::nullopt;
  return n;
}

// A..B, A..B+STEP or A..B*FACTOR.
struct Range {
  Number first, last, step;
  bool factor = false;
};

std::optional<Range> ReadRange(std::string_view text) {
  const size_t dots = text.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(dots + 2);
  const size_t by = rest.find_first_of("+*", 1);
  auto first = ReadNumber(text.substr(0, dots)), last = ReadNumber(rest.substr(0, by));
  if (!first.has_value() || !last.has_value()) return std::nullopt;
  Range range{*first, *last, {.value = 1}};
  if (by != std::string_view::npos) {
    auto step = ReadNumber(rest.substr(by + 1));
    if (!step.has_value()) return std::nullopt;
    range.step = *step;
    range.factor = rest[by] == '*';
  }
  return range;
}

absl::Status CheckRange(const Range& r, std::string_view text) {
  auto bad = [&](std::string_view why) {
    return Bad(text, fmt::format("the range '{}' {}", text, why),
               "1..8, 1..16*2 or 10ms..50ms+5ms");
  };
  const std::string_view unit = r.last.after;
  if ((!r.first.after.empty() && r.first.after != unit) ||
      (!r.step.after.empty() && (r.factor || r.step.after != unit))) {
    return bad("mixes units");
  }
  if (r.last.value < r.first.value) return bad("runs backwards");
  if (r.factor ? r.step.value <= 1 || r.first.value <= 0 : r.step.value <= 0) {
    return bad("never ends");
  }
  return absl::OkStatus();
}

// The values of `text`, or nothing when it is neither a range nor a list.
absl::StatusOr<std::vector<std::string>> ValuesOf(std::string_view text) {
  std::vector<std::string> values;
  if (text.starts_with('{') && text.ends_with('}')) {
    std::string_view rest = text.substr(1, text.size() - 2);
    for (bool more = true; more;) {
      const size_t comma = std::min(rest.find(','), rest.size());
      std::string_view item = rest.substr(0, comma);
      while (item.starts_with(' ')) item.remove_prefix(1);
      while (item.ends_with(' ')) item.remove_suffix(1);
      if (item.empty()) return Bad(text, "a list with an empty value", "{1,2,4}");
      DD_ASSIGN_OR_RETURN(std::vector<std::string> inner, ValuesOf(item));
      if (inner.empty()) inner.emplace_back(item);
      values.insert(values.end(), inner.begin(), inner.end());
      more = comma < rest.size();
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return values;
  }
  // A list with something before or behind it would be one value, and wrong in every row.
  const bool before = text.starts_with("x{") && text.ends_with('}');
  if ((before || text.starts_with('{')) && text.find(',') != std::string_view::npos) {
    return Bad(text, fmt::format("'{}' is no list: nothing stands beside its braces", text),
               before ? "{x1,x2}" : "{1ms,2ms}");
  }
  const std::optional<Range> range = ReadRange(text);
  if (!range.has_value()) return values;
  DD_RETURN_IF_ERROR(CheckRange(*range, text));
  const double end = range->last.value + 1e-9 * std::fabs(range->last.value);
  for (size_t i = 0;; ++i) {
    const auto n = static_cast<double>(i);
    const double value = range->factor ? range->first.value * std::pow(range->step.value, n)
                                       : range->first.value + n * range->step.value;
    if (value > end) return values;
    if (values.size() == kMostSweepPoints) {
      return Bad(text, fmt::format("more than {} values", kMostSweepPoints), "a larger step");
    }
    values.push_back(fmt::format("{}{:.12g}{}", range->last.before, value, range->last.after));
  }
}

// A spec in pieces: text that stays, and places where values are tried.
class SpecReader {
 public:
  explicit SpecReader(std::string_view spec) : spec_(spec) {}

  absl::Status Read() {
    while (at_ < spec_.size()) {
      const size_t begin = at_;
      // A path may be quoted.
      const bool quoted = spec_[at_] == '\'' || spec_[at_] == '"';
      if (quoted) at_ = std::min(spec_.find(spec_[at_], at_ + 1), spec_.size() - 1);
      while (at_ < spec_.size() && spec_[at_] != '(' && spec_[at_] != ',') ++at_;
      const std::string_view name = spec_.substr(begin, at_ - begin);
      Keep(begin, at_);
      if (at_ < spec_.size() && spec_[at_] == '(') DD_RETURN_IF_ERROR(ReadArguments(name));
      if (at_ < spec_.size()) Keep(at_, at_ + 1), ++at_;
    }
    return absl::OkStatus();
  }

  const std::vector<SweepAxis>& axes() const { return axes_; }

  // The spec with `values` in the places of the axes.
  std::string With(std::span<const std::string> values) const {
    std::string out = kept_[0];
    for (size_t i = 0; i < axes_.size(); ++i) out += values[i] + kept_[i + 1];
    return out;
  }

 private:
  void Keep(size_t begin, size_t end) { kept_.back() += spec_.substr(begin, end - begin); }

  // The end of the argument that begins here: ',' or ')' outside of brackets and quotes.
  size_t EndOfArgument() const {
    int depth = 0;
    char quote = 0;
    for (size_t i = at_; i < spec_.size(); ++i) {
      const char c = spec_[i];
      if (quote != 0) {
        if (c == quote) quote = 0;
      } else if (c == '\'' || c == '"') {
        quote = c;
      } else if (depth == 0 && (c == ',' || c == ')')) {
        return i;
      } else {
        depth += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
      }
    }
    return spec_.size();
  }

  // "NAME.PARAM", with a number behind NAME when the same optimization comes again.
  std::string NewName(std::string_view name, std::string_view param) const {
    std::string full = fmt::format("{}.{}", name, param);
    auto taken = [&] {
      return std::any_of(axes_.begin(), axes_.end(),
                         [&](const SweepAxis& a) { return a.name == full; });
    };
    for (int i = 2; taken(); ++i) full = fmt::format("{}#{}.{}", name, i, param);
    return full;
  }

  // What the n-th value of an optimization is called; a number where that is not known.
  static std::string ParamAt(std::string_view name, size_t n) {
    const Transform* t = FindTransform(name);
    return t != nullptr && n <= t->params.size() ? std::string(t->params[n - 1].name)
                                                 : fmt::format("{}", n);
  }

  absl::Status ReadArguments(std::string_view name) {
    Keep(at_, at_ + 1);
    ++at_;
    for (size_t number = 1; at_ < spec_.size(); ++number) {
      const size_t begin = at_, end = EndOfArgument();
      const std::string_view argument = spec_.substr(begin, end - begin);
      size_t key = argument.find_first_not_of(" abcdefghijklmnopqrstuvwxyz0123456789_-");
      key = key != std::string_view::npos && argument[key] == '=' ? key + 1 : 0;
      DD_ASSIGN_OR_RETURN(std::vector<std::string> values, ValuesOf(argument.substr(key)));
      if (values.empty()) {
        Keep(begin, end);
      } else {
        std::string_view param = argument.substr(0, key == 0 ? 0 : key - 1);
        while (param.starts_with(' ')) param.remove_prefix(1);
        axes_.push_back({NewName(name, key == 0 ? ParamAt(name, number) : std::string(param)),
                         std::move(values)});
        Keep(begin, begin + key);
        kept_.emplace_back();
      }
      at_ = end;
      if (at_ == spec_.size()) break;
      Keep(at_, at_ + 1);
      if (spec_[at_++] == ')') break;
    }
    return absl::OkStatus();
  }

  std::string_view spec_;
  size_t at_ = 0;
  std::vector<std::string> kept_ = {""};
  std::vector<SweepAxis> axes_;
};

absl::Status AddPoints(const SpecReader& spec, size_t sweep, SweepPlan& plan) {
  size_t count = 1;
  for (const SweepAxis& axis : spec.axes()) {
    count *= axis.values.size();
    if (count + plan.points.size() > kMostSweepPoints) {
      return Bad("", fmt::format("more than {} scenarios", kMostSweepPoints),
                 "larger steps, or several sweeps");
    }
  }
  for (size_t i = 0; i < count; ++i) {
    std::vector<std::string> values(spec.axes().size());
    size_t rest = i;
    for (size_t a = values.size(); a-- > 0;) {
      const auto& all = spec.axes()[a].values;
      values[a] = all[rest % all.size()];
      rest /= all.size();
    }
    std::string text = spec.With(values);
    plan.points.push_back({std::move(text), sweep, std::move(values)});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SweepPlan> PlanSweep(std::span<const std::string> specs) {
  SweepPlan plan;
  for (size_t i = 0; i < specs.size(); ++i) {
    SpecReader reader(specs[i]);
    DD_RETURN_IF_ERROR(reader.Read());
    DD_RETURN_IF_ERROR(AddPoints(reader, i, plan));
    plan.axes.push_back(reader.axes());
  }
  return plan;
}

}  // namespace daydream
