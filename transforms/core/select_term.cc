#include "transforms/core/select_term.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include <re2/re2.h>

#include "base/text.h"
#include "costmodel/kernel_class.h"
#include "costmodel/op_shape.h"
#include "graph/scopes.h"
#include "transforms/core/suggest.h"

namespace daydream {

enum class SelectorKey : uint8_t {
  kKernel,
  kName,
  kOp,
  kCall,
  kScope,
  kLayer,
  kLane,
  kPhase,
  kKind,
  kClass,
  kStep,
  kStream,
  kThread,
  kDevice,
  kRank,
  kDtype,
  kShape,
  kDirection,
  kMemory,
  kCollective,
};

namespace {

using Key = SelectorKey;

struct KeyName {
  std::string_view name;
  SelectorKey key;
};
constexpr KeyName kKeyNames[] = {{"kernel", Key::kKernel},  {"op", Key::kOp},
                                 {"call", Key::kCall},      {"scope", Key::kScope},
                                 {"layer", Key::kLayer},    {"lane", Key::kLane},
                                 {"phase", Key::kPhase},    {"kind", Key::kKind},
                                 {"class", Key::kClass},    {"step", Key::kStep},
                                 {"name", Key::kName},      {"module", Key::kLayer},
                                 {"category", Key::kClass}, {"stream", Key::kStream},
                                 {"thread", Key::kThread},  {"device", Key::kDevice},
                                 {"rank", Key::kRank},      {"dtype", Key::kDtype},
                                 {"shape", Key::kShape},    {"direction", Key::kDirection},
                                 {"memory", Key::kMemory},  {"collective", Key::kCollective}};
constexpr auto kKeys = [] {
  std::array<std::string_view, std::size(kKeyNames)> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kKeyNames[i].name;
  return names;
}();

constexpr std::string_view kPhases[] = {"none", "forward", "backward", "optimizer", "data", "comm"};
// TaskKind in its order, then words for several kinds.
constexpr std::string_view kKinds[] = {"host",   "call", "wait",   "kernel", "memcpy",
                                       "memset", "comm", "delay",  "data",   "gpu",
                                       "launch", "sync", "cpu_op", "graph"};
enum KindWord : uint8_t { kGpuWord = 9, kLaunchWord, kSyncWord, kCpuOpWord, kGraphWord };
constexpr std::string_view kDirections[] = {"h2d", "d2h", "d2d", "h2h"};
// In the order of Memory.
constexpr std::string_view kMemories[] = {"unknown", "pageable", "pinned",
                                          "device",  "managed",  "array"};
constexpr size_t kLongestPattern = 1000;
// Classes under the names of option files.
constexpr std::pair<std::string_view, std::string_view> kClassAliases[] = {{"embedding", "index"},
                                                                           {"cast", "copy"}};
// Words that mean the same as another one of their key.
constexpr std::pair<std::string_view, std::string_view> kWordAliases[] = {{"gap", "delay"},
                                                                          {"other", "none"}};

absl::Status BadPart(std::string_view part, std::string what, std::string_view code = "E0411") {
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      {.code = std::string(code), .what = std::move(what), .where = std::string(part)});
}

absl::StatusOr<uint8_t> OneOf(std::string_view word, std::span<const std::string_view> words) {
  auto it = std::find(words.begin(), words.end(), word);
  for (const auto& [alias, known] : kWordAliases) {
    if (word == alias) it = std::find(words.begin(), words.end(), known);
  }
  if (it != words.end()) return static_cast<uint8_t>(it - words.begin());
  std::string_view closest = Closest(word, words);
  return BadPart(word, closest.empty()
                           ? fmt::format("'{}' is none of {}", word, fmt::join(words, ", "))
                           : fmt::format("'{}' is not known, did you mean '{}'?", word, closest));
}

bool IsHostMemory(Memory m) { return m == Memory::kPageable || m == Memory::kPinned; }

}  // namespace

struct SelectorTerm {
  Key key = Key::kKernel;
  std::unique_ptr<RE2> pattern;
  uint8_t word = 0;  // index into the words of its key
  KernelClass kernel_class = KernelClass::kOther;
  DType dtype = DType::kUnknown;
  std::optional<std::pair<int64_t, int64_t>> range;  // numbers of steps, streams, ...
};

namespace {

// "7" or "3-9".
std::optional<std::pair<int64_t, int64_t>> ParseRange(std::string_view text) {
  std::pair<int64_t, int64_t> range;
  const char* end = text.data() + text.size();
  auto first = std::from_chars(text.data(), end, range.first);
  if (first.ec != std::errc() || text.starts_with('-')) return std::nullopt;
  range.second = range.first;
  if (first.ptr == end) return range;
  if (*first.ptr != '-') return std::nullopt;
  auto second = std::from_chars(first.ptr + 1, end, range.second);
  if (second.ec != std::errc() || second.ptr != end || range.second < range.first) {
    return std::nullopt;
  }
  return range;
}

absl::Status CompilePattern(std::string_view text, SelectorTerm& term) {
  if (text.size() > kLongestPattern) {
    return BadPart(text.substr(0, 1),
                   fmt::format("a regular expression has at most {} characters", kLongestPattern),
                   "E0412");
  }
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(8 << 20);
  term.pattern = std::make_unique<RE2>(re2::StringPiece(text.data(), text.size()), options);
  if (term.pattern->ok()) return absl::OkStatus();
  return BadPart(term.pattern->error_arg(),
                 fmt::format("regular expression: {}", term.pattern->error()), "E0412");
}

absl::Status CompileClass(std::string_view text, SelectorTerm& term) {
  std::string_view name = text;
  for (const auto& [alias, known] : kClassAliases) {
    if (text == alias) name = known;
  }
  bool found = false;
  term.kernel_class = FindKernelClass(name, &found);
  if (found) return absl::OkStatus();
  return BadPart(text, fmt::format("'{}' is not a class of kernels, such as gemm, conv, "
                                   "elementwise, norm, softmax, optimizer",
                                   text));
}

absl::Status CompileDtype(std::string_view text, SelectorTerm& term) {
  for (DType d : {DType::kFp64, DType::kFp32, DType::kTf32, DType::kFp16, DType::kBf16, DType::kFp8,
                  DType::kInt8, DType::kNvfp4}) {
    if (DTypeName(d) == text) term.dtype = d;
  }
  if (term.dtype != DType::kUnknown) return absl::OkStatus();
  return BadPart(text, fmt::format("'{}' is not a format, such as fp32, tf32, fp16, bf16", text));
}

absl::Status CompileNumber(Key key, std::string_view text, SelectorTerm& term) {
  term.range = ParseRange(text);
  if (term.range) return absl::OkStatus();
  if (key == Key::kStream || key == Key::kThread) return CompilePattern(text, term);
  std::string_view what = key == Key::kStep ? "step" : key == Key::kRank ? "rank" : "device";
  return BadPart(text, fmt::format("'{}' is not the number of a {}, such as 2 or 2-5", text, what));
}

}  // namespace

std::span<const std::string_view> SelectorKeys() { return kKeys; }

bool IsSelectorKey(std::string_view key) {
  return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

absl::StatusOr<std::shared_ptr<const SelectorTerm>> CompileTerm(std::string_view key,
                                                                std::string_view value) {
  auto known = std::find_if(std::begin(kKeyNames), std::end(kKeyNames),
                            [&](const KeyName& k) { return k.name == key; });
  if (known == std::end(kKeyNames)) return BadPart(key, fmt::format("unknown key '{}'", key));
  if (value.empty()) return BadPart(value, "nothing to look for");
  auto term = std::make_shared<SelectorTerm>();
  term->key = known->key;
  std::span<const std::string_view> words;
  switch (term->key) {
    case Key::kPhase:
      words = kPhases;
      break;
    case Key::kKind:
      words = kKinds;
      break;
    case Key::kDirection:
      words = kDirections;
      break;
    case Key::kMemory:
      words = kMemories;
      break;
    default:
      break;
  }
  absl::Status status;
  if (!words.empty()) {
    DD_ASSIGN_OR_RETURN(term->word, OneOf(value, words));
  } else if (term->key == Key::kClass) {
    status = CompileClass(value, *term);
  } else if (term->key == Key::kDtype) {
    status = CompileDtype(value, *term);
  } else if (term->key == Key::kStep || term->key == Key::kStream || term->key == Key::kThread ||
             term->key == Key::kDevice || term->key == Key::kRank) {
    status = CompileNumber(term->key, value, *term);
  } else {
    status = CompilePattern(value, *term);
  }
  if (!status.ok()) return status;
  return term;
}

TermMatcher::TermMatcher(const Graph& graph, const SelectorTerm& term)
    : graph_(graph), term_(term) {
  if (term.key != Key::kKind) return;
  if (term.word != kLaunchWord && term.word != kSyncWord) return;
  marked_.assign(graph.size(), false);
  for (const Edge& e : graph.edges()) {
    if (term.word == kLaunchWord && e.rule == Rule::kLaunch) marked_[e.from.index()] = true;
    if (term.word == kSyncWord && e.rule == Rule::kHostWait) marked_[e.to.index()] = true;
  }
}

bool TermMatcher::Matches(TaskId t) {
  const Task& task = graph_.task(t);
  auto in_range = [&](int64_t n) { return term_.range->first <= n && n <= term_.range->second; };
  switch (term_.key) {
    case Key::kKernel:
      return IsGpu(task.kind) && NameMatches(task.name);
    case Key::kName:
      return NameMatches(task.name);
    case Key::kCall:
      return task.kind == TaskKind::kCall && NameMatches(task.name);
    case Key::kOp:
      return ScopeMatches(task.scope, /*ops_only=*/true);
    case Key::kScope:
      return ScopeMatches(task.scope, /*ops_only=*/false);
    case Key::kLayer:
      return LayerMatches(task.layer);
    case Key::kLane:
      return NameMatches(graph_.lane(task.lane).lane.name);
    case Key::kPhase:
      return static_cast<uint8_t>(task.phase) == term_.word;
    case Key::kKind:
      return KindMatches(t);
    case Key::kStep:
      return in_range(task.step);
    case Key::kClass:
      return task.kind == TaskKind::kKernel && ClassMatches(task.name);
    case Key::kStream:
      return LaneMatches(task, /*stream=*/true);
    case Key::kThread:
      return LaneMatches(task, /*stream=*/false);
    case Key::kDevice:
      return IsGpu(task.kind) && in_range(graph_.lane(task.lane).lane.device);
    case Key::kRank:
      return in_range(graph_.lane(task.lane).lane.rank);
    case Key::kDtype:
      return TypeMatches(task);
    case Key::kShape:
      return ShapeMatches(task.scope);
    case Key::kDirection:
    case Key::kMemory:
      return CopyMatches(t);
    case Key::kCollective: {
      const CollectiveDetail* c = graph_.Collective(t);
      return c != nullptr && NameMatches(c->name);
    }
  }
  return false;
}

bool TermMatcher::NameMatches(NameId name) {
  auto [it, inserted] = names_.try_emplace(name, false);
  if (inserted) {
    std::string_view text = graph_.Name(name);
    it->second = RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *term_.pattern);
  }
  return it->second;
}

bool TermMatcher::ClassMatches(NameId name) {
  auto [it, inserted] = names_.try_emplace(name, false);
  if (inserted) it->second = ClassifyKernel(graph_.Name(name)).kind == term_.kernel_class;
  return it->second;
}

bool TermMatcher::ScopeMatches(ScopeId scope, bool ops_only) {
  const std::vector<Scope>& scopes = graph_.tables().scopes;
  bool matches = false;
  visited_.clear();
  while (scope.index() < scopes.size()) {
    auto [it, inserted] = scopes_.try_emplace(scope, false);
    if (!inserted) {
      matches = it->second;
      break;
    }
    visited_.push_back(scope);
    const Scope& s = scopes[scope.index()];
    if ((!ops_only || s.kind == EventKind::kOp) && NameMatches(s.name)) {
      matches = true;
      break;
    }
    scope = s.parent;
  }
  for (ScopeId s : visited_) scopes_[s] = matches;
  return matches;
}

bool TermMatcher::LayerMatches(LayerId layer) {
  for (LayerId l : LayersAround(graph_, layer)) {
    if (NameMatches(graph_.layers()[l.index()].name)) return true;
  }
  return false;
}

// The shapes of the innermost op that has any.
bool TermMatcher::ShapeMatches(ScopeId scope) {
  for (ScopeId s : ScopesAround(graph_, scope)) {
    const OpDetail* op = graph_.OpOf(s);
    if (op != nullptr && op->shapes.valid()) return NameMatches(op->shapes);
  }
  return false;
}

bool TermMatcher::KindMatches(TaskId t) {
  const Task& task = graph_.task(t);
  const std::vector<Scope>& scopes = graph_.tables().scopes;
  switch (term_.word) {
    case kGpuWord:
      return IsGpu(task.kind);
    case kLaunchWord:
      return task.kind == TaskKind::kCall && marked_[t.index()];
    case kSyncWord:
      return IsHost(task.kind) && marked_[t.index()];
    case kCpuOpWord:
      return task.kind == TaskKind::kHost && task.scope.index() < scopes.size() &&
             scopes[task.scope.index()].kind == EventKind::kOp;
    case kGraphWord:
      return task.kind == TaskKind::kCall && Contains(graph_.Name(task.name), "GraphLaunch");
    default:
      return static_cast<uint8_t>(task.kind) == term_.word;
  }
}

bool TermMatcher::LaneMatches(const Task& task, bool stream) {
  const Lane& lane = graph_.lane(task.lane).lane;
  if (lane.kind != (stream ? LaneKind::kStream : LaneKind::kThread)) return false;
  if (!term_.range) return NameMatches(lane.name);
  return term_.range->first <= lane.number && lane.number <= term_.range->second;
}

// By the name of the kernel, else by the innermost op with recorded types.
bool TermMatcher::TypeMatches(const Task& task) {
  if (task.kind != TaskKind::kKernel) return false;
  auto [it, inserted] = types_.try_emplace(task.name, DType::kUnknown);
  if (inserted) it->second = ClassifyKernel(graph_.Name(task.name)).dtype;
  const DType named = it->second;
  if (named != DType::kUnknown) return named == term_.dtype;
  for (ScopeId s : ScopesAround(graph_, task.scope)) {
    const OpDetail* op = graph_.OpOf(s);
    DType type =
        op != nullptr && op->types.valid() ? ParseDType(graph_.Name(op->types)) : DType::kUnknown;
    if (type != DType::kUnknown) return type == term_.dtype;
  }
  return false;
}

bool TermMatcher::CopyMatches(TaskId t) {
  const Task& task = graph_.task(t);
  const CopyDetail* copy = task.kind == TaskKind::kMemcpy ? graph_.Copy(t) : nullptr;
  if (copy == nullptr) return false;
  if (term_.key == Key::kMemory) {
    auto is = [&](Memory m) { return static_cast<uint8_t>(m) == term_.word; };
    // Every copy touches the device; only copies inside of it are meant by "device".
    if (static_cast<Memory>(term_.word) == Memory::kDevice) return is(copy->from) && is(copy->to);
    return is(copy->from) || is(copy->to);
  }
  bool from_host = IsHostMemory(copy->from), to_host = IsHostMemory(copy->to);
  bool from_device = copy->from == Memory::kDevice, to_device = copy->to == Memory::kDevice;
  switch (term_.word) {
    case 0:
      return from_host && to_device;
    case 1:
      return from_device && to_host;
    case 2:
      return from_device && to_device;
    default:
      return from_host && to_host;
  }
}

std::string NoteOnBareWord(std::string_view selector) {
  const std::pair<std::string_view, std::span<const std::string_view>> keys[] = {
      {"kind", kKinds}, {"phase", kPhases}};
  for (const auto& [key, words] : keys) {
    if (std::find(words.begin(), words.end(), selector) == words.end()) continue;
    return fmt::format("'{}' is taken for a part of kernels' names; {}:{} selects by {}", selector,
                       key, selector, key);
  }
  return "";
}

}  // namespace daydream
