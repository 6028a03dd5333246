// Reads the actions of an option file's steps.
#include <algorithm>
#include <charconv>

#include "costmodel/kernel_class.h"
#include "transforms/scenario/option_walk.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

constexpr std::string_view kSelectedVerbs[] = {"scale", "set",     "remove",  "move",
                                               "shift", "unblock", "priority"};
constexpr std::string_view kStandaloneVerbs[] = {"fuse", "insert", "link", "unlink", "use"};
// In the order of Memory, from pageable.
constexpr std::string_view kMemories[] = {"pageable", "pinned"};

using Node = YamlNode;

absl::StatusOr<ExpressionPtr> Optional(const OptionWalk& walk, const Node& map,
                                       std::string_view key, ExpressionUse use, Dimension wanted) {
  const Node* node = map.Find(key);
  if (node == nullptr) return ExpressionPtr();
  return walk.Expr(*node, key, use, wanted);
}

// new(NAME), or the number of a stream.
absl::StatusOr<StreamTarget> ReadStream(const OptionWalk& walk, const Node& node) {
  DD_RETURN_IF_ERROR(walk.Text(node, "stream").status());
  const std::string_view text = node.text;
  if (text.starts_with("new(") && text.ends_with(')') && text.size() > 5) {
    return StreamTarget{.name = std::string(text.substr(4, text.size() - 5))};
  }
  StreamTarget target;
  auto read = std::from_chars(text.data(), text.data() + text.size(), target.number);
  const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
  if (whole && target.number >= 0) return target;
  return walk.WrongForm(node, "stream has to be new(NAME) or the number of a stream");
}

// A kernel's class is read from its name, so a name that tells another gets the category behind it.
absl::StatusOr<std::string> ReadName(const OptionWalk& walk, const Node& map,
                                     std::string_view what) {
  DD_ASSIGN_OR_RETURN(const Node* name_node, walk.Require(map, what, "name"));
  DD_ASSIGN_OR_RETURN(std::string name, walk.Text(*name_node, "name"));
  const Node* category = map.Find("category");
  if (category == nullptr) return name;
  DD_ASSIGN_OR_RETURN(std::string word, walk.Text(*category, "category"));
  bool found = false;
  KernelClass wanted = FindKernelClass(word, &found);
  if (!found) {
    return walk.WrongForm(*category, fmt::format("'{}' is not a class of kernels, such as gemm, "
                                                 "conv, attention, elementwise, norm",
                                                 word));
  }
  if (ClassifyKernel(name).kind != wanted) name += "_" + word;
  return name;
}

absl::Status ReadRoofline(const OptionWalk& walk, const Node& value, ScaleAction& action) {
  action.roofline = true;
  if (value.is_text() && value.text == "true") return absl::OkStatus();
  constexpr std::string_view kKeys[] = {"dtype", "efficiency"};
  DD_RETURN_IF_ERROR(walk.CheckMap(value, "roofline", kKeys));
  if (const Node* dtype = value.Find("dtype")) {
    constexpr DType kTypes[] = {DType::kFp64, DType::kFp32, DType::kTf32, DType::kFp16,
                                DType::kBf16, DType::kFp8,  DType::kInt8, DType::kNvfp4};
    std::vector<std::string_view> names;
    for (DType d : kTypes) names.push_back(DTypeName(d));
    DD_ASSIGN_OR_RETURN(size_t index, walk.OneOf(*dtype, "dtype", names));
    action.dtype = kTypes[index];
  }
  DD_ASSIGN_OR_RETURN(action.efficiency,
                      Optional(walk, value, "efficiency", ExpressionUse::kTask, kPlain));
  return absl::OkStatus();
}

absl::StatusOr<ScaleAction> ReadScale(const OptionWalk& walk, const Node& value) {
  constexpr std::string_view kKeys[] = {"time", "bytes", "roofline"};
  DD_RETURN_IF_ERROR(walk.CheckMap(value, "scale", kKeys));
  ScaleAction action;
  DD_ASSIGN_OR_RETURN(action.time, Optional(walk, value, "time", ExpressionUse::kTask, kPlain));
  DD_ASSIGN_OR_RETURN(action.bytes, Optional(walk, value, "bytes", ExpressionUse::kTask, kPlain));
  if (const Node* roofline = value.Find("roofline")) {
    DD_RETURN_IF_ERROR(ReadRoofline(walk, *roofline, action));
  }
  if (value.keys.empty()) {
    return walk.WrongForm(value, "scale needs time: FACTOR, bytes: FACTOR or roofline: {...}");
  }
  return action;
}

absl::StatusOr<SetAction> ReadSet(const OptionWalk& walk, const Node& value) {
  constexpr std::string_view kKeys[] = {"time", "gap", "memory", "name"};
  DD_RETURN_IF_ERROR(walk.CheckMap(value, "set", kKeys));
  SetAction action;
  DD_ASSIGN_OR_RETURN(action.time, Optional(walk, value, "time", ExpressionUse::kTask, kTime));
  DD_ASSIGN_OR_RETURN(action.gap, Optional(walk, value, "gap", ExpressionUse::kTask, kTime));
  if (const Node* memory = value.Find("memory")) {
    DD_ASSIGN_OR_RETURN(size_t index, walk.OneOf(*memory, "memory", kMemories));
    action.memory = index == 0 ? Memory::kPageable : Memory::kPinned;
  }
  if (const Node* name = value.Find("name")) {
    DD_ASSIGN_OR_RETURN(action.name, walk.Text(*name, "name"));
  }
  if (value.keys.empty()) return walk.WrongForm(value, "set needs time, gap, memory or name");
  return action;
}

absl::StatusOr<RemoveAction> ReadRemove(const OptionWalk& walk, const Node& value) {
  if (value.is_text() && value.text == "true") return RemoveAction{};
  constexpr std::string_view kKeys[] = {"bridge"};
  DD_RETURN_IF_ERROR(walk.CheckMap(value, "remove", kKeys));
  RemoveAction action;
  if (const Node* bridge = value.Find("bridge")) {
    DD_ASSIGN_OR_RETURN(action.bridge, walk.Bool(*bridge, "bridge"));
  }
  return action;
}

absl::StatusOr<MoveAction> ReadMove(const OptionWalk& walk, const Node& value) {
  constexpr std::string_view kKeys[] = {"stream", "keep"};
  constexpr std::string_view kKeep[] = {"auto", "both", "before", "after", "none"};
  DD_RETURN_IF_ERROR(walk.CheckMap(value, "move", kKeys));
  DD_ASSIGN_OR_RETURN(const Node* stream, walk.Require(value, "move", "stream"));
  MoveAction action;
  DD_ASSIGN_OR_RETURN(action.stream, ReadStream(walk, *stream));
  if (const Node* keep = value.Find("keep")) {
    DD_ASSIGN_OR_RETURN(size_t index, walk.OneOf(*keep, "keep", kKeep));
    action.keep = static_cast<KeepOrder>(index);
  }
  return action;
}

absl::StatusOr<ShiftAction> ReadShift(const OptionWalk& walk, const Node& value) {
  constexpr std::string_view kKeys[] = {"to", "after", "launch"};
  constexpr std::string_view kTo[] = {"previous_step"};
  constexpr std::string_view kLaunch[] = {"none", "move"};
  constexpr std::string_view kEdges[] = {"begin", "end"};
  DD_RETURN_IF_ERROR(walk.CheckMap(value, "shift", kKeys));
  DD_ASSIGN_OR_RETURN(const Node* to, walk.Require(value, "shift", "to"));
  DD_RETURN_IF_ERROR(walk.OneOf(*to, "to", kTo).status());
  DD_ASSIGN_OR_RETURN(const Node* after, walk.Require(value, "shift", "after"));
  ShiftAction action;
  if (const Node* launch = value.Find("launch")) {
    DD_ASSIGN_OR_RETURN(size_t index, walk.OneOf(*launch, "launch", kLaunch));
    action.launch = index == 1;
  }
  // `edge` stands beside the keys of the selector.
  Node selector = *after;
  for (size_t i = 0; i < selector.keys.size(); ++i) {
    if (selector.keys[i].text != "edge") continue;
    DD_ASSIGN_OR_RETURN(size_t index, walk.OneOf(selector.items[i], "edge", kEdges));
    action.edge = index == 0 ? Anchor::kStart : Anchor::kEnd;
    selector.keys.erase(selector.keys.begin() + static_cast<std::ptrdiff_t>(i));
    selector.items.erase(selector.items.begin() + static_cast<std::ptrdiff_t>(i));
    break;
  }
  DD_ASSIGN_OR_RETURN(action.after, walk.Select(selector));
  return action;
}

absl::StatusOr<FuseAction> ReadFuse(const OptionWalk& walk, const Node& value) {
  constexpr std::string_view kKeys[] = {"select", "group_by", "into"};
  constexpr std::string_view kInto[] = {"name", "category", "time", "launches", "host"};
  constexpr std::string_view kBy[] = {"step", "module", "phase", "op", "stream", "run"};
  constexpr std::string_view kLaunches[] = {"1", "keep"};
  constexpr std::string_view kHost[] = {"remove", "keep"};
  DD_RETURN_IF_ERROR(walk.CheckMap(value, "fuse", kKeys));
  DD_ASSIGN_OR_RETURN(const Node* into, walk.Require(value, "fuse", "into"));
  DD_RETURN_IF_ERROR(walk.CheckMap(*into, "into", kInto));
  FuseAction action;
  DD_ASSIGN_OR_RETURN(action.name, ReadName(walk, *into, "into"));
  DD_ASSIGN_OR_RETURN(const Node* time, walk.Require(*into, "into", "time"));
  DD_ASSIGN_OR_RETURN(action.time, walk.Expr(*time, "time", ExpressionUse::kGroup, kTime));
  if (const Node* launches = into->Find("launches")) {
    DD_ASSIGN_OR_RETURN(size_t index, walk.OneOf(*launches, "launches", kLaunches));
    action.keep_launches = index == 1;
  }
  if (const Node* host = into->Find("host")) {
    DD_ASSIGN_OR_RETURN(size_t index, walk.OneOf(*host, "host", kHost));
    action.keep_host = index == 1;
  }
  action.keep_host |= action.keep_launches;
  DD_ASSIGN_OR_RETURN(const Node* by, walk.Require(value, "fuse", "group_by"));
  std::vector<Node> items = by->is_list() ? by->items : std::vector<Node>{*by};
  if (items.empty()) return walk.WrongForm(*by, "group_by names no key; [step]: all of a step");
  for (const Node& item : items) {
    DD_ASSIGN_OR_RETURN(size_t index, walk.OneOf(item, "group_by", kBy));
    action.group_by.push_back(static_cast<GroupKey>(index));
  }
  return action;
}

absl::Status ReadInserted(const OptionWalk& walk, std::string_view kind, const Node& value,
                          InsertAction& action) {
  constexpr std::string_view kKeys[] = {"name", "category", "time", "bytes", "direction", "stream"};
  constexpr std::string_view kDirections[] = {"d2d", "h2d", "d2h"};
  DD_RETURN_IF_ERROR(walk.CheckMap(value, kind, kKeys));
  DD_ASSIGN_OR_RETURN(action.name, ReadName(walk, value, kind));
  DD_ASSIGN_OR_RETURN(const Node* time, walk.Require(value, kind, "time"));
  DD_ASSIGN_OR_RETURN(action.time, walk.Expr(*time, "time", ExpressionUse::kTask, kTime));
  DD_ASSIGN_OR_RETURN(action.bytes,
                      Optional(walk, value, "bytes", ExpressionUse::kTask, kByteCount));
  if (const Node* direction = value.Find("direction")) {
    DD_ASSIGN_OR_RETURN(size_t index, walk.OneOf(*direction, "direction", kDirections));
    if (index == 1) action.from = Memory::kPinned;
    if (index == 2) action.to = Memory::kPinned;
  }
  if (const Node* stream = value.Find("stream")) {
    if (action.kind == TaskKind::kHost) return walk.WrongForm(*stream, "cpu work has no stream");
    DD_ASSIGN_OR_RETURN(action.stream, ReadStream(walk, *stream));
  }
  return absl::OkStatus();
}

absl::StatusOr<InsertAction> ReadInsert(const OptionWalk& walk, const Node& value) {
  constexpr std::string_view kKeys[] = {"kernel", "copy",  "comm",    "cpu",
                                        "before", "after", "between", "launch"};
  constexpr TaskKind kKinds[] = {TaskKind::kKernel, TaskKind::kMemcpy, TaskKind::kCollective,
                                 TaskKind::kHost};
  constexpr std::string_view kLaunch[] = {"cost", "none"};
  DD_RETURN_IF_ERROR(walk.CheckMap(value, "insert", kKeys));
  InsertAction action;
  size_t kinds = 0;
  for (size_t i = 0; i < std::size(kKinds); ++i) {
    const Node* what = value.Find(kKeys[i]);
    if (what == nullptr) continue;
    ++kinds;
    action.kind = kKinds[i];
    DD_RETURN_IF_ERROR(ReadInserted(walk, kKeys[i], *what, action));
  }
  if (kinds != 1) return walk.WrongForm(value, "insert needs one of kernel, copy, comm, cpu");
  action.before = value.Find("before") != nullptr;
  const auto places = {"before", "after", "between"};
  if (std::count_if(places.begin(), places.end(),
                    [&](const char* key) { return value.Find(key) != nullptr; }) != 1) {
    return walk.WrongForm(value, "insert needs one of before, after, between: SELECTOR");
  }
  if (const Node* launch = value.Find("launch")) {
    DD_ASSIGN_OR_RETURN(size_t index, walk.OneOf(*launch, "launch", kLaunch));
    action.launch = index == 0;
  }
  action.launch &= action.kind != TaskKind::kHost;
  return action;
}

absl::StatusOr<LinkAction> ReadLink(const OptionWalk& walk, const Node& value, bool unlink) {
  constexpr std::string_view kKeys[] = {"from", "to", "lag"};
  std::span<const std::string_view> keys = kKeys;
  DD_RETURN_IF_ERROR(
      walk.CheckMap(value, unlink ? "unlink" : "link", unlink ? keys.first(2) : keys));
  DD_ASSIGN_OR_RETURN(const Node* from, walk.Require(value, "link", "from"));
  DD_RETURN_IF_ERROR(walk.Require(value, "link", "to").status());
  LinkAction action{.unlink = unlink};
  DD_ASSIGN_OR_RETURN(action.from, walk.Select(*from));
  DD_ASSIGN_OR_RETURN(action.lag, Optional(walk, value, "lag", ExpressionUse::kTask, kTime));
  return action;
}

absl::StatusOr<UseAction> ReadUse(const OptionWalk& walk, const Node& value) {
  DD_ASSIGN_OR_RETURN(std::string text, walk.Text(value, "use"));
  auto scenario = ParseScenario(text);
  if (!scenario.ok()) return walk.Moved(scenario.status(), value, "E0416");
  return UseAction{*std::move(scenario)};
}

absl::StatusOr<PriorityAction> ReadPriority(const OptionWalk& walk, const Node& value) {
  DD_ASSIGN_OR_RETURN(int64_t priority, walk.Whole(value, "priority", -1000000, 1000000));
  return PriorityAction{static_cast<int32_t>(priority)};
}

absl::StatusOr<UnblockAction> ReadUnblock(const OptionWalk& walk, const Node& value) {
  constexpr std::string_view kWords[] = {"host"};
  DD_RETURN_IF_ERROR(walk.OneOf(value, "unblock", kWords).status());
  return UnblockAction{};
}

template <class T>
absl::Status Store(absl::StatusOr<T> read, OptionAction& action) {
  if (!read.ok()) return read.status();
  action.what = *std::move(read);
  return absl::OkStatus();
}

}  // namespace

std::string CauseOf(const OptionAction& action) {
  if (auto* fuse = std::get_if<FuseAction>(&action.what)) {
    return fmt::format("fused into {}", fuse->name);
  }
  if (auto* insert = std::get_if<InsertAction>(&action.what)) {
    return fmt::format("{} added", insert->name);
  }
  if (std::holds_alternative<UnblockAction>(action.what)) return "the host no longer waits";
  if (std::holds_alternative<ShiftAction>(action.what)) return "started in the step before";
  if (std::holds_alternative<MoveAction>(action.what)) return "moved to another stream";
  if (std::holds_alternative<SetAction>(action.what)) return "set";
  if (std::holds_alternative<PriorityAction>(action.what)) return "given a priority";
  return action.verb + (action.verb.ends_with('e') ? "d" : "ed");
}

std::span<const std::string_view> SelectedVerbs() { return kSelectedVerbs; }
std::span<const std::string_view> StandaloneVerbs() { return kStandaloneVerbs; }

absl::StatusOr<OptionAction> ReadAction(const OptionWalk& walk, const YamlNode::Key& verb,
                                        const YamlNode& value) {
  OptionAction action{.place = verb.place, .verb = verb.text};
  auto is = [&](std::string_view word) { return verb.text == word; };
  absl::Status status;
  if (is("scale")) status = Store(ReadScale(walk, value), action);
  if (is("set")) status = Store(ReadSet(walk, value), action);
  if (is("remove")) status = Store(ReadRemove(walk, value), action);
  if (is("move")) status = Store(ReadMove(walk, value), action);
  if (is("shift")) status = Store(ReadShift(walk, value), action);
  if (is("unblock")) status = Store(ReadUnblock(walk, value), action);
  if (is("priority")) status = Store(ReadPriority(walk, value), action);
  if (is("fuse")) status = Store(ReadFuse(walk, value), action);
  if (is("insert")) status = Store(ReadInsert(walk, value), action);
  if (is("link")) status = Store(ReadLink(walk, value, /*unlink=*/false), action);
  if (is("unlink")) status = Store(ReadLink(walk, value, /*unlink=*/true), action);
  if (is("use")) status = Store(ReadUse(walk, value), action);
  if (!status.ok()) return status;
  return action;
}

absl::Status OptionWalk::OwnSelector(std::string_view verb, const YamlNode& value,
                                     OptionStep& step) const {
  if (verb == "use") return absl::OkStatus();
  std::string_view key = verb == "fuse"                    ? "select"
                         : verb != "insert"                ? "to"
                         : value.Find("before") != nullptr ? "before"
                         : value.Find("after") != nullptr  ? "after"
                                                           : "between";
  DD_ASSIGN_OR_RETURN(const YamlNode* node, Require(value, verb, key));
  DD_ASSIGN_OR_RETURN(step.select, Select(*node));
  if (key != "between") return absl::OkStatus();
  // Behind each match but the last.
  step.select = Selector::All(
      {*step.select,
       Selector::Related(Relation::kNot, Selector::Related(Relation::kLast, *step.select))});
  return absl::OkStatus();
}

}  // namespace daydream
