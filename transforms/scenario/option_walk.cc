#include "transforms/scenario/option_walk.h"

#include <algorithm>
#include <charconv>

#include "transforms/core/select_term.h"
#include "transforms/core/suggest.h"

namespace daydream {
namespace {

struct RelationKey {
  std::string_view key;
  Relation relation;
};
constexpr RelationKey kRelations[] = {
    {"not", Relation::kNot},       {"launched_by", Relation::kLaunchedBy},
    {"inside", Relation::kInside}, {"before", Relation::kBefore},
    {"after", Relation::kAfter},   {"first", Relation::kFirst},
    {"last", Relation::kLast},     {"between", Relation::kBetween}};

std::string Suggestion(std::string_view word, std::span<const std::string_view> known) {
  std::string_view closest = Closest(word, known);
  return closest.empty() ? fmt::format("known are {}", fmt::join(known, ", "))
                         : fmt::format("did you mean '{}'?", closest);
}

}  // namespace

absl::Status OptionWalk::Error(std::string_view code, Place place, size_t length, std::string what,
                               std::string_view hint, std::string_view fix) const {
  return source_.Error(
      absl::StatusCode::kInvalidArgument, place, length,
      {.code = std::string(code), .what = std::move(what), .fix = std::string(fix)}, hint);
}

absl::Status OptionWalk::WrongForm(const YamlNode& node, std::string what) const {
  return Error("E0406", node.place, node.is_text() ? node.text.size() : 1, std::move(what), "",
               "docs/optimization-files.md has the format");
}

absl::Status OptionWalk::CheckMap(const YamlNode& node, std::string_view what,
                                  std::span<const std::string_view> known) const {
  if (!node.is_map()) return WrongForm(node, fmt::format("{} has to be a map of KEY: VALUE", what));
  for (const YamlNode::Key& key : node.keys) {
    if (std::find(known.begin(), known.end(), key.text) != known.end()) continue;
    return Error("E0405", key.place, key.text.size(),
                 fmt::format("unknown key '{}' in {}", key.text, what),
                 Suggestion(key.text, known));
  }
  return absl::OkStatus();
}

absl::StatusOr<const YamlNode*> OptionWalk::Require(const YamlNode& map, std::string_view what,
                                                    std::string_view key) const {
  const YamlNode* node = map.Find(key);
  if (node != nullptr) return node;
  return Error("E0406", map.place, 1, fmt::format("{} needs the key '{}'", what, key));
}

absl::StatusOr<std::string> OptionWalk::Text(const YamlNode& node, std::string_view what) const {
  if (!node.is_text() || node.text.empty()) {
    return WrongForm(node, fmt::format("{} has to be a text", what));
  }
  return node.text;
}

absl::StatusOr<size_t> OptionWalk::OneOf(const YamlNode& node, std::string_view what,
                                         std::span<const std::string_view> words) const {
  DD_ASSIGN_OR_RETURN(std::string text, Text(node, what));
  auto it = std::find(words.begin(), words.end(), text);
  if (it != words.end()) return static_cast<size_t>(it - words.begin());
  return Error("E0406", PlaceInside(source_, node, 0), text.size(),
               fmt::format("{} cannot be '{}'", what, text), Suggestion(text, words));
}

absl::StatusOr<int64_t> OptionWalk::Whole(const YamlNode& node, std::string_view what,
                                          int64_t least, int64_t most) const {
  int64_t value = 0;
  const char* end = node.text.data() + node.text.size();
  auto read = std::from_chars(node.text.data(), end, value);
  bool number = node.is_text() && read.ec == std::errc() && read.ptr == end;
  if (number && least <= value && value <= most) return value;
  return WrongForm(node,
                   fmt::format("{} has to be a whole number from {} to {}", what, least, most));
}

absl::StatusOr<bool> OptionWalk::Bool(const YamlNode& node, std::string_view what) const {
  if (node.is_text() && (node.text == "true" || node.text == "false")) return node.text == "true";
  return WrongForm(node, fmt::format("{} has to be true or false", what));
}

absl::StatusOr<ExpressionPtr> OptionWalk::Expr(const YamlNode& node, std::string_view what,
                                               ExpressionUse use, Dimension wanted,
                                               bool may_be_negative) const {
  DD_ASSIGN_OR_RETURN(std::string text, Text(node, what));
  ExpressionError error;
  ExpressionPtr expression = ParseExpression(text, params, use, wanted, error);
  if (expression != nullptr) {
    if (use != ExpressionUse::kCondition && !may_be_negative)
      DD_RETURN_IF_ERROR(CheckConstant(node, *expression, wanted));
    return expression;
  }
  return Error(error.units ? "E0414" : "E0413", PlaceInside(source_, node, error.at), error.length,
               error.what, error.hint,
               error.units ? "daydream explain E0414" : "daydream explain E0413");
}

absl::Status OptionWalk::CheckConstant(const YamlNode& node, const Expression& expression,
                                       Dimension wanted) const {
  const std::optional<double> value = expression.constant();
  const Unit unit = wanted == kTime        ? Unit::kDuration
                    : wanted == kByteCount ? Unit::kBytes
                                           : Unit::kFactor;
  // How much longer a task may become hangs on how long it is.
  const double most = unit == Unit::kBytes ? kMostBytes : kLongestNs;
  if (!value.has_value() || (*value >= 0 && *value <= most)) return absl::OkStatus();
  return Error("E0424", PlaceInside(source_, node, 0), expression.text.size(),
               fmt::format("the value is {}, for any task", RoundedValue(*value, unit)),
               fmt::format("it has to be from 0 to {}", RoundedValue(most, unit)));
}

absl::Status OptionWalk::Moved(const absl::Status& status, const YamlNode& scalar,
                               std::string_view code) const {
  Diagnostic d = DiagnosticOf(status);
  return Error(code, PlaceInside(source_, scalar, 0), scalar.text.size(), d.what, "", d.fix);
}

absl::StatusOr<Selector> OptionWalk::Select(const YamlNode& node) const {
  if (node.is_text()) return SelectName(node);
  if (node.is_list()) {
    DD_ASSIGN_OR_RETURN(auto parts, SelectList(node, "a selector"));
    return Selector::All(std::move(parts));
  }
  if (!node.is_map() || node.keys.empty()) {
    return Error("E0411", node.place, 1, "this selects nothing",
                 "a map such as {kernel: sgemm, phase: forward}");
  }
  std::vector<Selector> parts;
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const YamlNode::Key& key = node.keys[i];
    std::vector<std::string_view> known(SelectorKeys().begin(), SelectorKeys().end());
    for (const RelationKey& r : kRelations) known.push_back(r.key);
    known.insert(known.end(), {"any", "all", "where"});
    if (std::find(known.begin(), known.end(), key.text) == known.end()) {
      std::string_view closest = Closest(key.text, known);
      return Error("E0405", key.place, key.text.size(),
                   fmt::format("unknown key '{}' in a selector", key.text),
                   closest.empty() ? "" : fmt::format("did you mean '{}'?", closest),
                   "daydream explain selectors");
    }
    DD_ASSIGN_OR_RETURN(Selector part, SelectKey(key.text, node.items[i]));
    parts.push_back(std::move(part));
  }
  return Selector::All(std::move(parts));
}

absl::StatusOr<Selector> OptionWalk::SelectName(const YamlNode& node) const {
  auto it = defined.find(node.text);
  if (it != defined.end()) return it->second;
  if (node.text.find(':') != std::string::npos) {
    auto selector = Selector::Compile(node.text);
    if (!selector.ok()) return Moved(selector.status(), node, "E0411");
    return selector;
  }
  std::vector<std::string_view> names;
  for (const auto& [name, selector] : defined) names.push_back(name);
  std::string_view closest = Closest(node.text, names);
  return Error("E0415", PlaceInside(source_, node, 0), node.text.size(),
               fmt::format("no selector is called '{}' up to here", node.text),
               closest.empty() ? "" : fmt::format("did you mean '{}'?", closest),
               "define: names selectors; a definition may use those above it");
}

absl::StatusOr<std::vector<Selector>> OptionWalk::SelectList(const YamlNode& node,
                                                             std::string_view what) const {
  if (!node.is_list() || node.items.empty()) {
    return Error("E0411", node.place, 1, fmt::format("{} has to be a list of selectors", what));
  }
  std::vector<Selector> parts;
  for (const YamlNode& item : node.items) {
    DD_ASSIGN_OR_RETURN(Selector part, Select(item));
    parts.push_back(std::move(part));
  }
  return parts;
}

absl::StatusOr<Selector> OptionWalk::SelectKey(std::string_view key, const YamlNode& value) const {
  for (const RelationKey& r : kRelations) {
    if (key != r.key) continue;
    DD_ASSIGN_OR_RETURN(Selector to, Select(value));
    return Selector::Related(r.relation, std::move(to));
  }
  if (key == "any" || key == "all") {
    DD_ASSIGN_OR_RETURN(auto parts, SelectList(value, key));
    return key == "any" ? Selector::Any(std::move(parts)) : Selector::All(std::move(parts));
  }
  if (key == "where") {
    DD_ASSIGN_OR_RETURN(ExpressionPtr where,
                        Expr(value, "where", ExpressionUse::kCondition, kPlain));
    return Selector::Where(std::move(where));
  }
  if (value.is_text()) return SelectTerm(key, value);
  if (!value.is_list() || value.items.empty()) {
    return Error("E0411", value.place, 1,
                 fmt::format("'{}' has to be a text or a list of texts", key));
  }
  std::vector<Selector> parts;
  for (const YamlNode& item : value.items) {
    DD_ASSIGN_OR_RETURN(Selector part, SelectTerm(key, item));
    parts.push_back(std::move(part));
  }
  return Selector::Any(std::move(parts));
}

absl::StatusOr<Selector> OptionWalk::SelectTerm(std::string_view key, const YamlNode& value) const {
  if (!value.is_text()) return WrongForm(value, fmt::format("'{}' has to be a text", key));
  auto selector = Selector::Key(key, value.text);
  if (selector.ok()) return selector;
  Diagnostic d = DiagnosticOf(selector.status());
  size_t at = d.where.empty() ? 0 : value.text.find(d.where);
  if (at == std::string::npos) at = 0;
  bool pattern = d.code == "E0412";
  return Error(d.code, PlaceInside(source_, value, at), std::max<size_t>(d.where.size(), 1),
               pattern ? "regular expression does not compile" : d.what,
               pattern ? std::string_view(d.what) : std::string_view(),
               pattern ? "expressions are RE2 and match anywhere in the name; quote ( as \\("
                       : "daydream explain selectors");
}

absl::StatusOr<OptionStep> OptionWalk::Step(const YamlNode& node) const {
  std::vector<std::string_view> known = {"select", "cause"};
  known.insert(known.end(), SelectedVerbs().begin(), SelectedVerbs().end());
  known.insert(known.end(), StandaloneVerbs().begin(), StandaloneVerbs().end());
  DD_RETURN_IF_ERROR(CheckMap(node, "a step", known));
  OptionStep step{.place = node.place};
  if (const YamlNode* cause = node.Find("cause")) {
    DD_ASSIGN_OR_RETURN(step.cause, Text(*cause, "cause"));
  }
  if (const YamlNode* select = node.Find("select")) {
    DD_ASSIGN_OR_RETURN(step.select, Select(*select));
  }
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const YamlNode::Key& key = node.keys[i];
    if (key.text == "select" || key.text == "cause") continue;
    auto among = [&](std::span<const std::string_view> verbs) {
      return std::find(verbs.begin(), verbs.end(), key.text) != verbs.end();
    };
    bool alone = among(StandaloneVerbs());
    if (alone && node.Find("select") != nullptr) {
      return Error("E0406", key.place, key.text.size(),
                   fmt::format("'{}' has its own selectors", key.text), "leave select: away");
    }
    if (alone && !step.actions.empty()) {
      return Error("E0406", key.place, key.text.size(),
                   fmt::format("'{}' is a step of its own", key.text), "begin it with '- '");
    }
    if (!alone && node.Find("select") == nullptr) {
      return Error("E0406", key.place, key.text.size(),
                   fmt::format("'{}' of which tasks?", key.text), "the step needs select:");
    }
    DD_ASSIGN_OR_RETURN(OptionAction action, ReadAction(*this, key, node.items[i]));
    step.actions.push_back(std::move(action));
    if (alone) {
      DD_RETURN_IF_ERROR(OwnSelector(key.text, node.items[i], step));
    }
  }
  if (step.actions.empty()) {
    return Error("E0406", node.place, 1, "this step does nothing",
                 "scale, set, remove, move, fuse, insert, link, use, ...");
  }
  return step;
}

}  // namespace daydream
