#include "transforms/scenario/scenario.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "transforms/core/suggest.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/scenario/option_file.h"
#include "transforms/scenario/option_files.h"
#include "transforms/scenario/option_steps.h"
#include "transforms/scenario/turn.h"

namespace daydream {
namespace {

using Argument = std::pair<std::string, std::string>;

// An error at [begin, end) of `spec`: the text with carets below.
absl::Status At(std::string_view spec, size_t begin, size_t end, std::string_view code,
                std::string what, std::string_view hint, std::string fix) {
  std::string where = fmt::format("{}\n{}{}", spec, std::string(begin, ' '),
                                  std::string(std::max<size_t>(end - begin, 1), '^'));
  if (!hint.empty()) where += fmt::format(" {}", hint);
  return MakeStatus(absl::StatusCode::kInvalidArgument, {.code = std::string(code),
                                                         .what = std::move(what),
                                                         .where = std::move(where),
                                                         .fix = std::move(fix)});
}

class ScenarioReader {
 public:
  ScenarioReader(std::string_view spec, OptionFiles* files) : spec_(spec), files_(files) {}

  absl::StatusOr<std::vector<Application>> Read() {
    std::vector<Application> items;
    do {
      SkipSpaces();
      size_t begin = at_;
      DD_ASSIGN_OR_RETURN(Application item, ReadItem());
      DD_RETURN_IF_ERROR(CheckConflicts(items, item, begin));
      items.push_back(std::move(item));
    } while (Take(','));
    if (at_ < spec_.size()) return Syntax(at_, at_ + 1, "expected ',' or the end");
    PutInTurn(items);
    return items;
  }

 private:
  void SkipSpaces() {
    while (at_ < spec_.size() && spec_[at_] == ' ') ++at_;
  }

  bool Take(char c) {
    SkipSpaces();
    if (at_ >= spec_.size() || spec_[at_] != c) return false;
    ++at_;
    return true;
  }

  absl::Status Syntax(size_t begin, size_t end, std::string_view hint) const {
    return At(spec_, begin, end, "E0103", "this list of optimizations cannot be read", hint,
              "write it as amp(dtype=bf16),fuse");
  }

  absl::StatusOr<Application> ReadItem() {
    SkipSpaces();
    size_t begin = at_;
    DD_ASSIGN_OR_RETURN(const std::string_view name, ReadName());
    if (name.empty()) return Syntax(begin, begin + 1, "expected the name of an optimization");
    const Transform* transform = FindTransform(name);
    std::shared_ptr<const OptionFile> file;
    if (transform == nullptr) {
      DD_ASSIGN_OR_RETURN(file, FindFile(name));
      if (file == nullptr) return Unknown(name, begin);
      transform = &file->transform();
    }
    std::vector<Argument> args;
    if (Take('(')) {
      size_t open = at_ - 1;
      if (!Take(')')) {
        do {
          DD_ASSIGN_OR_RETURN(Argument arg, ReadArgument(open));
          args.push_back(std::move(arg));
        } while (Take(','));
        if (!Take(')')) return Syntax(open, open + 1, "this '(' is never closed");
      }
    }
    auto params = BindParams(transform->name, transform->params, args);
    if (params.ok()) return Application{transform, *std::move(params), std::move(file)};
    Diagnostic d = DiagnosticOf(params.status());
    if (file != nullptr) d.fix = fmt::format("daydream opt show {}", file->path());
    return At(spec_, begin, at_, d.code, d.what, "", d.fix);
  }

  // Ends at ',', '(', ')' and, but for paths, at a space; in quotes it may hold all of them.
  absl::StatusOr<std::string_view> ReadName() {
    const size_t begin = at_;
    if (at_ < spec_.size() && (spec_[at_] == '\'' || spec_[at_] == '"')) {
      const size_t end = spec_.find(spec_[at_], begin + 1);
      if (end == std::string_view::npos) {
        return Syntax(begin, begin + 1, "this quote is never closed");
      }
      at_ = end + 1;
      return spec_.substr(begin + 1, end - begin - 1);
    }
    auto name = [&] { return spec_.substr(begin, at_ - begin); };
    while (at_ < spec_.size() && spec_[at_] != ',' && spec_[at_] != '(' && spec_[at_] != ')' &&
           (spec_[at_] != ' ' || name().find('/') != std::string_view::npos)) {
      ++at_;
    }
    while (name().ends_with(' ')) --at_;
    return name();
  }

  // The file of this name, or none.
  absl::StatusOr<std::shared_ptr<const OptionFile>> FindFile(std::string_view name) {
    if (files_ == nullptr) return std::shared_ptr<const OptionFile>();
    return files_->Find(name);
  }

  absl::Status CheckConflicts(std::span<const Application> before, const Application& item,
                              size_t begin) const {
    for (const Application& other : before) {
      const bool earlier = TurnOf(item) < TurnOf(other);
      const std::optional<Conflict> conflict =
          earlier ? FindConflict(*item.transform, *other.transform)
                  : FindConflict(*other.transform, *item.transform);
      if (!conflict.has_value()) continue;
      size_t end = begin + item.transform->name.size();
      if (end > spec_.size()) end = spec_.size();
      const std::string_view now = item.transform->name, first = other.transform->name;
      // Options of files come in the order in which they were given.
      if (TurnOf(item) == TurnOf(other) && other.transform != item.transform &&
          !FindConflict(*item.transform, *other.transform).has_value()) {
        return At(spec_, begin, end, "E0111", fmt::format("{} cannot follow {}", now, first),
                  conflict->reason, fmt::format("turn them round: {},{}", now, first));
      }
      return At(spec_, begin, end, "E0111",
                other.transform == item.transform
                    ? fmt::format("{} is there twice", now)
                    : fmt::format("{} and {} exclude each other", first, now),
                conflict->reason,
                other.transform == item.transform ? "leave one of them out"
                                                  : "give each its own --opt to compare them");
    }
    return absl::OkStatus();
  }

  absl::Status Unknown(std::string_view name, size_t begin) const {
    std::vector<std::string_view> names;
    for (const Transform* t : Transforms()) names.push_back(t->name);
    if (files_ != nullptr) {
      for (const auto& file : files_->all()) names.push_back(file->transform().name);
    }
    std::string_view closest = Closest(name, names);
    return At(spec_, begin, begin + name.size(), "E0102",
              fmt::format("unknown optimization '{}'", name),
              closest.empty() ? "" : fmt::format("did you mean '{}'?", closest),
              fmt::format("daydream opt list shows all {}", names.size()));
  }

  // [KEY '='] VALUE. A value ends at ',' or ')' outside of brackets and quotes.
  absl::StatusOr<Argument> ReadArgument(size_t open) {
    SkipSpaces();
    size_t key_end = at_;
    while (key_end < spec_.size() && IsKeyChar(spec_[key_end])) ++key_end;
    Argument arg;
    if (key_end > at_ && key_end < spec_.size() && spec_[key_end] == '=') {
      arg.first = std::string(spec_.substr(at_, key_end - at_));
      at_ = key_end + 1;
    }
    size_t begin = at_;
    int depth = 0;
    char quote = 0;
    for (; at_ < spec_.size(); ++at_) {
      char c = spec_[at_];
      if (quote != 0) {
        if (c == quote)
          quote = 0;
        else
          arg.second += c;
        continue;
      }
      if ((c == '\'' || c == '"') && at_ == begin) {
        quote = c;
        continue;
      }
      if (depth == 0 && (c == ',' || c == ')')) break;
      depth += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
      arg.second += c;
    }
    if (quote != 0) return Syntax(begin, begin + 1, "this quote is never closed");
    if (at_ >= spec_.size()) return Syntax(open, open + 1, "this '(' is never closed");
    while (arg.second.ends_with(' ')) arg.second.pop_back();
    if (arg.second.empty()) return Syntax(begin, begin + 1, "expected a value");
    return arg;
  }

  static bool IsKeyChar(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  }

  std::string_view spec_;
  OptionFiles* files_;
  size_t at_ = 0;
};

// An option file and the built-in optimizations that it uses.
std::vector<const Transform*> PartsOf(const Transform& t) {
  std::vector<const Transform*> parts = {&t};
  if (t.file == nullptr) return parts;
  for (const OptionStep& step : t.file->program().steps) {
    for (const OptionAction& action : step.actions) {
      const UseAction* use = std::get_if<UseAction>(&action.what);
      if (use == nullptr) continue;
      for (const Application& a : use->applications) parts.push_back(a.transform);
    }
  }
  return parts;
}

std::optional<Conflict> ConflictOfParts(const Transform& first, const Transform& second) {
  for (const Conflict& c : first.conflicts) {
    if (c.with == second.name && c.comes != Conflict::kBefore) return c;
  }
  for (const Conflict& c : second.conflicts) {
    if (c.with == first.name && c.comes != Conflict::kAfter) return c;
  }
  if (&first == &second && !first.twice.empty()) return Conflict{first.name, first.twice};
  return std::nullopt;
}

}  // namespace

std::optional<Conflict> FindConflict(const Transform& first, const Transform& second) {
  const std::vector<const Transform*> before = PartsOf(first), after = PartsOf(second);
  for (const Transform* x : before) {
    for (const Transform* y : after) {
      if (auto conflict = ConflictOfParts(*x, *y); conflict.has_value()) return conflict;
    }
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<Application>> ParseScenario(std::string_view spec, OptionFiles* files) {
  return ScenarioReader(spec, files).Read();
}

}  // namespace daydream
