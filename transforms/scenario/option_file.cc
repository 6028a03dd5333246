#include "transforms/scenario/option_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "transforms/core/suggest.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/scenario/option_run.h"
#include "transforms/scenario/option_walk.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

constexpr size_t kMostDefinitions = 100;
constexpr double kLargest = 1e18;

constexpr std::string_view kTopKeys[] = {"daydream", "name",   "summary", "model",  "ignores",
                                         "sources",  "bound",  "needs",   "advice", "conflicts",
                                         "params",   "define", "steps",   "checks", "memory"};

bool IsParamName(std::string_view name) {
  if (name.empty() || name.size() > 40 || name[0] < 'a' || name[0] > 'z') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::optional<Unit> FindUnit(std::string_view word) {
  if (word == "x") return Unit::kFactor;
  if (word == "%") return Unit::kShare;
  for (Unit unit : {Unit::kNone, Unit::kFactor, Unit::kShare, Unit::kDuration, Unit::kBytes,
                    Unit::kBandwidth, Unit::kFlops, Unit::kFlopRate}) {
    if (UnitName(unit) == word) return unit;
  }
  return std::nullopt;
}

}  // namespace

// Reads the whole tree of a file into an OptionFile.
class OptionFileReader {
 public:
  OptionFileReader(OptionFile& file, const SourceText& source)
      : file_(file), source_(source), walk_(source) {}

  absl::Status Read(const YamlNode& root) {
    DD_RETURN_IF_ERROR(walk_.CheckMap(root, "the file", kTopKeys));
    DD_ASSIGN_OR_RETURN(const YamlNode* version, walk_.Require(root, "the file", "daydream"));
    DD_RETURN_IF_ERROR(walk_.Whole(*version, "daydream: the version of the format", 1, 1).status());
    DD_RETURN_IF_ERROR(ReadTexts(root));
    DD_RETURN_IF_ERROR(ReadNeeds(root));
    DD_RETURN_IF_ERROR(ReadParams(root));
    DD_RETURN_IF_ERROR(ReadDefinitions(root));
    DD_RETURN_IF_ERROR(ReadSteps(root));
    DD_RETURN_IF_ERROR(ReadChecks(root));
    DD_RETURN_IF_ERROR(ReadMemory(root));
    return ReadConflicts(root);
  }

 private:
  std::string_view Keep(std::string text) {
    file_.texts_.push_back(std::make_unique<std::string>(std::move(text)));
    return *file_.texts_.back();
  }

  absl::StatusOr<std::string_view> TextAt(const YamlNode& map, std::string_view key,
                                          std::string_view fallback) {
    const YamlNode* node = map.Find(key);
    if (node == nullptr) return fallback;
    DD_ASSIGN_OR_RETURN(std::string text, walk_.Text(*node, key));
    while (text.ends_with('\n')) text.pop_back();
    return Keep(std::move(text));
  }

  absl::Status ReadTexts(const YamlNode& root) {
    Transform& t = file_.transform_;
    t.twice = "";  // with other values it may be about other tasks
    DD_ASSIGN_OR_RETURN(const YamlNode* name, walk_.Require(root, "the file", "name"));
    DD_ASSIGN_OR_RETURN(std::string text, walk_.Text(*name, "name"));
    if (!IsOptionName(text)) {
      return walk_.WrongForm(*name, "name has to be made of lower case letters, digits and '-'");
    }
    if (FindTransform(text) != nullptr || text == "baseline") {
      return walk_.Error("E0407", name->place, text.size(),
                         fmt::format("'{}' is the name of an optimization that daydream has", text),
                         "choose another name");
    }
    t.name = Keep(std::move(text));
    DD_RETURN_IF_ERROR(walk_.Require(root, "the file", "summary").status());
    DD_ASSIGN_OR_RETURN(t.summary, TextAt(root, "summary", ""));
    if (t.summary.find('\n') != std::string_view::npos) {
      return walk_.WrongForm(*root.Find("summary"), "summary has to be one line");
    }
    while (t.summary.ends_with('.')) t.summary.remove_suffix(1);
    std::string_view steps = Keep(fmt::format("As the steps of {} say.", source_.path()));
    DD_ASSIGN_OR_RETURN(t.model, TextAt(root, "model", steps));
    DD_ASSIGN_OR_RETURN(t.ignores, TextAt(root, "ignores", "The file does not say."));
    DD_ASSIGN_OR_RETURN(t.sources, TextAt(root, "sources", "those of its parameters"));
    if (const YamlNode* bound = root.Find("bound")) {
      DD_ASSIGN_OR_RETURN(t.bound, walk_.Bool(*bound, "bound"));
    }
    const YamlNode* advice = root.Find("advice");
    if (advice == nullptr) return absl::OkStatus();
    constexpr std::string_view kKeys[] = {"effort", "risk", "how"};
    DD_RETURN_IF_ERROR(walk_.CheckMap(*advice, "advice", kKeys));
    DD_ASSIGN_OR_RETURN(t.advice.effort, TextAt(*advice, "effort", ""));
    DD_ASSIGN_OR_RETURN(t.advice.risk, TextAt(*advice, "risk", ""));
    DD_ASSIGN_OR_RETURN(t.advice.how, TextAt(*advice, "how", ""));
    return absl::OkStatus();
  }

  absl::Status ReadNeeds(const YamlNode& root) {
    const YamlNode* needs = root.Find("needs");
    if (needs == nullptr) return absl::OkStatus();
    if (!needs->is_list()) return walk_.WrongForm(*needs, "needs has to be a list");
    std::vector<std::string_view> words = OptionNeedWords();
    for (const YamlNode& item : needs->items) {
      DD_RETURN_IF_ERROR(walk_.OneOf(item, "needs", words).status());
      file_.program_->needs.push_back({item.place, item.text});
    }
    return absl::OkStatus();
  }

  absl::Status ReadParams(const YamlNode& root) {
    const YamlNode* params = root.Find("params");
    if (params == nullptr) return absl::OkStatus();
    if (!params->is_map()) return walk_.WrongForm(*params, "params has to be a map of NAME: {...}");
    for (size_t i = 0; i < params->keys.size(); ++i) {
      const YamlNode::Key& key = params->keys[i];
      if (!IsParamName(key.text)) {
        return walk_.Error("E0408", key.place, key.text.size(),
                           "a parameter's name is made of lower case letters, digits and '_'");
      }
      DD_ASSIGN_OR_RETURN(ParamSpec spec, ReadParam(key, params->items[i]));
      walk_.params[key.text] = spec.unit;
      file_.params_.push_back(spec);
    }
    file_.transform_.params = file_.params_;
    return absl::OkStatus();
  }

  absl::StatusOr<ParamSpec> ReadParam(const YamlNode::Key& key, const YamlNode& node) {
    constexpr std::string_view kKeys[] = {"default", "low",    "high",       "min", "max",
                                          "unit",    "source", "confidence", "help"};
    constexpr std::string_view kConfidence[] = {"high", "medium", "low"};
    std::string what = fmt::format("parameter {}", key.text);
    DD_RETURN_IF_ERROR(walk_.CheckMap(node, what, kKeys));
    DD_ASSIGN_OR_RETURN(const YamlNode* fallback, walk_.Require(node, what, "default"));
    DD_RETURN_IF_ERROR(walk_.Require(node, what, "source").status());
    ParamSpec spec{.name = Keep(key.text), .max = kLargest};
    DD_ASSIGN_OR_RETURN(spec.unit, ReadUnit(node, *fallback));
    DD_ASSIGN_OR_RETURN(spec.fallback, ReadNumber(*fallback, spec.unit));
    spec.low = spec.high = spec.fallback;
    struct {
      std::string_view key;
      double* value;
    } numbers[] = {
        {"low", &spec.low}, {"high", &spec.high}, {"min", &spec.min}, {"max", &spec.max}};
    for (auto& number : numbers) {
      const YamlNode* value = node.Find(number.key);
      if (value == nullptr) continue;
      DD_ASSIGN_OR_RETURN(*number.value, ReadNumber(*value, spec.unit));
    }
    bool ordered = spec.min <= spec.low && spec.low <= spec.fallback &&
                   spec.fallback <= spec.high && spec.high <= spec.max;
    if (!ordered) {
      return walk_.Error("E0408", key.place, key.text.size(),
                         fmt::format("{} has to be min <= low <= default <= high <= max", what));
    }
    DD_ASSIGN_OR_RETURN(spec.help, TextAt(node, "help", "see its source"));
    DD_ASSIGN_OR_RETURN(spec.source, TextAt(node, "source", ""));
    if (const YamlNode* confidence = node.Find("confidence")) {
      DD_RETURN_IF_ERROR(walk_.OneOf(*confidence, "confidence", kConfidence).status());
      spec.source = Keep(fmt::format("{} ({} confidence)", spec.source, confidence->text));
    }
    return spec;
  }

  absl::StatusOr<Unit> ReadUnit(const YamlNode& param, const YamlNode& fallback) {
    const YamlNode* node = param.Find("unit");
    if (node == nullptr) {
      auto quantity = ParseQuantity(fallback.text);
      if (quantity.ok() && fallback.is_text()) return quantity->unit;
      return walk_.Error("E0408", fallback.place, fallback.text.size(),
                         fallback.is_text() ? std::string(Message(quantity.status()))
                                            : "default has to be a number");
    }
    std::optional<Unit> unit = FindUnit(node->text);
    if (unit && node->is_text()) return *unit;
    return walk_.WrongForm(*node,
                           "unit has to be x, %, count, time, bytes, bandwidth, flops or "
                           "flop rate");
  }

  absl::StatusOr<double> ReadNumber(const YamlNode& node, Unit unit) {
    if (!node.is_text()) return walk_.WrongForm(node, "a number is expected here");
    auto value = ParseValue(node.text, unit);
    if (value.ok() && *value <= kLargest) return value;
    return walk_.Error(
        "E0408", node.place, node.text.size(),
        value.ok() ? "this number is too large" : std::string(Message(value.status())));
  }

  absl::Status ReadDefinitions(const YamlNode& root) {
    const YamlNode* define = root.Find("define");
    if (define == nullptr) return absl::OkStatus();
    if (!define->is_map()) return walk_.WrongForm(*define, "define has to be a map");
    if (define->keys.size() > kMostDefinitions) {
      return walk_.WrongForm(*define, fmt::format("at most {} definitions", kMostDefinitions));
    }
    for (size_t i = 0; i < define->keys.size(); ++i) {
      const YamlNode::Key& key = define->keys[i];
      DD_ASSIGN_OR_RETURN(Selector selector, walk_.Select(define->items[i]));
      Selector named = Selector::Named(key.text, selector);
      walk_.defined[key.text] = named;
      file_.program_->define.push_back({key.text, key.place, std::move(named)});
    }
    return absl::OkStatus();
  }

  absl::Status ReadSteps(const YamlNode& root) {
    DD_ASSIGN_OR_RETURN(const YamlNode* steps, walk_.Require(root, "the file", "steps"));
    if (!steps->is_list() || steps->items.empty()) {
      return walk_.WrongForm(*steps, "steps has to be a list of steps");
    }
    for (const YamlNode& item : steps->items) {
      DD_ASSIGN_OR_RETURN(OptionStep step, walk_.Step(item));
      for (const OptionAction& action : step.actions) {
        const UseAction* use = std::get_if<UseAction>(&action.what);
        if (use != nullptr) DD_RETURN_IF_ERROR(Use(*use, action.place));
      }
      file_.program_->steps.push_back(std::move(step));
    }
    return absl::OkStatus();
  }

  // What a file uses is as much a part of it as its own steps: limits make it a limit, and no two
  // may exclude each other. What excludes it in other items of a scenario, FindConflict() knows.
  absl::Status Use(const UseAction& use, Place place) {
    for (const Application& a : use.applications) {
      file_.transform_.bound |= a.transform->bound;
      for (const Transform* other : used_) {
        const auto conflict = FindConflict(*other, *a.transform);
        if (!conflict) continue;
        return walk_.Error("E0416", place, 3,
                           other == a.transform ? fmt::format("{} is there twice", other->name)
                                                : fmt::format("{} and {} exclude each other",
                                                              other->name, a.transform->name),
                           conflict->reason, "leave one of them out");
      }
    }
    for (const Application& a : use.applications) used_.push_back(a.transform);
    return absl::OkStatus();
  }

  absl::Status ReadChecks(const YamlNode& root) {
    const YamlNode* checks = root.Find("checks");
    if (checks == nullptr) return absl::OkStatus();
    if (!checks->is_list()) return walk_.WrongForm(*checks, "checks has to be a list");
    constexpr std::string_view kKeys[] = {"expect", "of", "at_least", "at_most"};
    constexpr std::string_view kExpect[] = {"matched"};
    for (const YamlNode& item : checks->items) {
      DD_RETURN_IF_ERROR(walk_.CheckMap(item, "a check", kKeys));
      DD_ASSIGN_OR_RETURN(const YamlNode* expect, walk_.Require(item, "a check", "expect"));
      DD_RETURN_IF_ERROR(walk_.OneOf(*expect, "expect", kExpect).status());
      DD_ASSIGN_OR_RETURN(const YamlNode* of, walk_.Require(item, "a check", "of"));
      DD_ASSIGN_OR_RETURN(Selector selector, walk_.Select(*of));
      OptionCheck check{.place = item.place, .of = std::move(selector)};
      constexpr int64_t kMost = int64_t{1} << 40;
      if (const YamlNode* least = item.Find("at_least")) {
        DD_ASSIGN_OR_RETURN(int64_t count, walk_.Whole(*least, "at_least", 0, kMost));
        check.at_least = static_cast<uint64_t>(count);
      }
      if (const YamlNode* most = item.Find("at_most")) {
        DD_ASSIGN_OR_RETURN(int64_t count, walk_.Whole(*most, "at_most", 0, kMost));
        check.at_most = static_cast<uint64_t>(count);
        if (check.at_least > check.at_most) {
          return walk_.WrongForm(*most, fmt::format("no number is at least {} and at most {}",
                                                    check.at_least, check.at_most));
        }
      }
      file_.program_->checks.push_back(std::move(check));
    }
    return absl::OkStatus();
  }

  absl::Status ReadMemory(const YamlNode& root) {
    Transform& t = file_.transform_;
    t.memory_model =
        "Merged ops keep for backward what they kept. Where GPU work is added or removed, the peak "
        "is not known. `memory:` in the file would say something else.";
    const YamlNode* memory = root.Find("memory");
    if (memory == nullptr) return absl::OkStatus();
    DD_ASSIGN_OR_RETURN(file_.program_->memory,
                        walk_.Expr(*memory, "memory", ExpressionUse::kGroup, kByteCount,
                                   /*may_be_negative=*/true));
    file_.program_->memory_place = memory->place;
    t.memory = MemoryEffect::kAdds;
    t.memory_model = Keep(fmt::format("As the file says: {}.", file_.program_->memory->text));
    return absl::OkStatus();
  }

  // Of a built-in optimization, or of the file NAME.yaml beside this one.
  absl::Status CheckConflictName(const YamlNode& with) {
    DD_ASSIGN_OR_RETURN(const std::string name, walk_.Text(with, "with"));
    if (FindTransform(name) != nullptr) return absl::OkStatus();
    const std::filesystem::path folder = std::filesystem::path(source_.path()).parent_path();
    std::error_code none;
    if (IsOptionName(name) && std::filesystem::exists(folder / (name + ".yaml"), none)) {
      return absl::OkStatus();
    }
    std::vector<std::string_view> names;
    for (const Transform* t : Transforms()) names.push_back(t->name);
    const std::string_view closest = Closest(name, names);
    return walk_.Error("E0405", with.place, name.size(),
                       fmt::format("no optimization is called '{}'", name),
                       closest.empty() ? "" : fmt::format("did you mean '{}'?", closest),
                       "daydream opt list; a file of yours has to be beside this one");
  }

  absl::Status ReadConflicts(const YamlNode& root) {
    const YamlNode* conflicts = root.Find("conflicts");
    if (conflicts == nullptr) return absl::OkStatus();
    if (!conflicts->is_list()) return walk_.WrongForm(*conflicts, "conflicts has to be a list");
    constexpr std::string_view kKeys[] = {"with", "reason"};
    for (const YamlNode& item : conflicts->items) {
      DD_RETURN_IF_ERROR(walk_.CheckMap(item, "a conflict", kKeys));
      DD_ASSIGN_OR_RETURN(const YamlNode* with, walk_.Require(item, "a conflict", "with"));
      DD_RETURN_IF_ERROR(CheckConflictName(*with));
      DD_RETURN_IF_ERROR(walk_.Require(item, "a conflict", "reason").status());
      Conflict conflict;
      DD_ASSIGN_OR_RETURN(conflict.with, TextAt(item, "with", ""));
      DD_ASSIGN_OR_RETURN(conflict.reason, TextAt(item, "reason", ""));
      file_.conflicts_.push_back(conflict);
    }
    file_.transform_.conflicts = file_.conflicts_;
    return absl::OkStatus();
  }

  OptionFile& file_;
  const SourceText& source_;
  OptionWalk walk_;
  std::vector<const Transform*> used_;  // by the steps up to here
};

OptionFile::OptionFile() : program_(std::make_unique<OptionProgram>()) {}
OptionFile::~OptionFile() = default;

const std::string& OptionFile::path() const { return source_->path(); }

absl::StatusOr<std::shared_ptr<const OptionFile>> OptionFile::Parse(std::string_view text,
                                                                    std::string_view path) {
  std::shared_ptr<OptionFile> file(new OptionFile);
  file->source_ = std::make_unique<SourceText>(std::string(path), text);
  DD_ASSIGN_OR_RETURN(YamlNode root, ReadStrictYaml(*file->source_));
  DD_RETURN_IF_ERROR(OptionFileReader(*file, *file->source_).Read(root));
  file->transform_.file = file.get();
  return std::shared_ptr<const OptionFile>(std::move(file));
}

absl::StatusOr<std::shared_ptr<const OptionFile>> OptionFile::Load(const std::string& path) {
  DD_ASSIGN_OR_RETURN(std::string text,
                      ReadTextFile(path, kMostYamlBytes,
                                   {.code = "E0401",
                                    .what = "this optimization file cannot be read",
                                    .fix = "daydream opt new NAME > mine.yaml makes one"}));
  return Parse(text, path);
}

std::vector<std::pair<size_t, std::string>> OptionFile::StepAround(size_t line) const {
  size_t begin = 1, end = line + 1;
  for (const OptionStep& step : program_->steps) {
    if (step.place.line <= line) begin = step.place.line;
  }
  for (auto step = program_->steps.rbegin(); step != program_->steps.rend(); ++step) {
    if (step->place.line > line) end = step->place.line;
  }
  // Behind the last step, the lines of the key that `line` belongs to.
  for (size_t l = begin + 1; l <= std::min(line, source_->lines()); ++l) {
    const std::string_view text = source_->Line(l);
    const bool key = !text.empty() && text[0] != ' ' && text[0] != '-' && text[0] != '#';
    if (begin > 1 && key) begin = l;
  }
  bool last = program_->steps.empty() || begin >= program_->steps.back().place.line;
  constexpr size_t kMostLines = 40;
  std::vector<std::pair<size_t, std::string>> lines;
  for (size_t l = begin; lines.size() < kMostLines && (last || l < end); ++l) {
    std::string_view text = source_->Line(l);
    // The last step ends where a key of the file begins.
    bool top = !text.empty() && text[0] != ' ' && text[0] != '-';
    if (last && l > begin && (top || text.empty())) break;
    lines.emplace_back(l, text);
  }
  return lines;
}

absl::Status OptionFile::Apply(const Params& params, Editor& edit,
                               std::vector<OptionMatch>* matches) const {
  return RunOptionFile(*this, params, edit, matches);
}

bool IsOptionName(std::string_view name) {
  if (name.empty() || name.size() > 40 || name[0] < 'a' || name[0] > 'z') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

}  // namespace daydream
