#include "trace/join/execution_nodes.h"

#include <algorithm>
#include <charconv>

#include "trace/bytes/source.h"
#include "trace/json/reader.h"

namespace daydream {
namespace {

constexpr int64_t kMostBytes = int64_t{4} << 30;

std::string_view Between(const char* from, const char* to) {
  return {from, static_cast<size_t>(to - from)};
}

// {"values": ..., "shapes": [...], "types": [...]}, schema 1.0.2-chakra and newer.
const char* ReadValues(const char* p, const char* end, std::string_view* values,
                       std::string_view* shapes, std::string_view* types) {
  JsonObjectReader reader(p, end);
  std::string_view key;
  while (reader.NextKey(&key)) {
    const char* behind = SkipJsonValue(reader.value(), end);
    if (behind == nullptr) return nullptr;
    const std::string_view value = Between(reader.value(), behind);
    if (key == "values") *values = value;
    if (key == "shapes" && shapes != nullptr) *shapes = value;
    if (key == "types") *types = value;
    reader.Resume(behind);
  }
  return reader.closed() ? reader.position() : nullptr;
}

// [{"name": "rf_id", "type": "uint64", "value": 7}, ...]
void ReadAttributes(std::string_view list, ExecutionNode& node) {
  for (std::string_view attribute : ElementsOf(list)) {
    if (!attribute.starts_with('{')) continue;
    const char* end = attribute.data() + attribute.size();
    JsonObjectReader reader(attribute.data(), end);
    std::string_view key;
    JsonString name;
    int64_t value = 0;
    while (reader.NextKey(&key)) {
      const char* behind = key == "name"    ? ReadJsonString(reader.value(), end, &name)
                           : key == "value" ? ReadJsonInteger(reader.value(), end, &value)
                                            : SkipJsonValue(reader.value(), end);
      if (behind == nullptr) break;
      reader.Resume(behind);
    }
    if (name.text == "rf_id") node.order = value;
    if (name.text == "tid") node.thread = value;
  }
}

const char* ReadField(std::string_view key, const char* value, const char* end,
                      ExecutionNode& node) {
  if (key == "name") {
    JsonString name;
    const char* behind = ReadJsonString(value, end, &name);
    node.name = name.text;
    return behind;
  }
  if (key == "id") return ReadJsonInteger(value, end, &node.id);
  if (key == "parent" || key == "ctrl_deps") return ReadJsonInteger(value, end, &node.parent);
  if (key == "rf_id") return ReadJsonInteger(value, end, &node.order);
  if (key == "tid") return ReadJsonInteger(value, end, &node.thread);
  if (key == "inputs" && *value == '{') {
    return ReadValues(value, end, &node.inputs, &node.shapes, &node.types);
  }
  if (key == "outputs" && *value == '{') {
    return ReadValues(value, end, &node.outputs, nullptr, &node.output_types);
  }
  const char* behind = SkipJsonValue(value, end);
  if (behind == nullptr) return nullptr;
  const std::string_view text = Between(value, behind);
  if (key == "inputs") node.inputs = text;
  if (key == "outputs") node.outputs = text;
  if (key == "input_shapes") node.shapes = text;
  if (key == "input_types") node.types = text;
  if (key == "output_types") node.output_types = text;
  if (key == "attrs") ReadAttributes(text, node);
  return behind;
}

const char* ReadNode(const char* p, const char* end, ExecutionNode& node) {
  JsonObjectReader reader(p, end);
  std::string_view key;
  while (reader.NextKey(&key)) {
    const char* behind = ReadField(key, reader.value(), end, node);
    if (behind == nullptr) return nullptr;
    reader.Resume(behind);
  }
  return reader.closed() ? reader.position() : nullptr;
}

std::vector<ExecutionNode> ReadNodes(const char* p, const char* end) {
  std::vector<ExecutionNode> nodes;
  p = SkipBlanks(p);
  if (*p != '{') return nodes;
  JsonObjectReader reader(p, end);
  std::string_view key;
  while (reader.NextKey(&key)) {
    const char* value = reader.value();
    if (key != "nodes" || *value != '[') {
      const char* behind = SkipJsonValue(value, end);
      if (behind == nullptr) return nodes;
      reader.Resume(behind);
      continue;
    }
    for (p = SkipBlanks(value + 1); *p == '{' || *p == ',';) {
      if (*p == ',') {
        p = SkipBlanks(p + 1);
        continue;
      }
      ExecutionNode node;
      p = ReadNode(p, end, node);
      if (p == nullptr) break;
      nodes.push_back(node);
      p = SkipBlanks(p);
    }
    break;  // what follows says nothing about ops
  }
  // Older files have no numbers of starts, but their ids grow with them.
  const bool ordered =
      std::any_of(nodes.begin(), nodes.end(), [](const ExecutionNode& n) { return n.order != 0; });
  for (ExecutionNode& node : nodes) {
    if (!ordered) node.order = node.id;
  }
  std::stable_sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) {
    return a.order != b.order ? a.order < b.order : a.id < b.id;
  });
  return nodes;
}

// "Tensor(float)" and "Tensor(int)" of "GenericList[Tensor(float),Tensor(int)]".
std::vector<std::string_view> TypesInList(std::string_view type) {
  constexpr std::string_view kList = "GenericList[";
  std::vector<std::string_view> types;
  if (!type.starts_with(kList) || !type.ends_with(']')) return types;
  type = type.substr(kList.size(), type.size() - kList.size() - 1);
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= type.size(); ++i) {
    if (i == type.size() || (type[i] == ',' && depth == 0)) {
      types.push_back(type.substr(begin, i - begin));
      begin = i + 1;
    } else if (type[i] == '[' || type[i] == '(') {
      ++depth;
    } else if (type[i] == ']' || type[i] == ')') {
      --depth;
    }
  }
  return types;
}

void AddStorages(std::string_view value, std::string_view type, int depth,
                 std::vector<int64_t>& storages) {
  constexpr int kDeepest = 8;  // lists of lists of tensors are 2 deep
  if (type.starts_with("Tensor(")) {
    const auto parts = ElementsOf(value);
    int64_t storage = 0;
    if (parts.size() < 2) return;
    const auto [end, error] =
        std::from_chars(parts[1].data(), parts[1].data() + parts[1].size(), storage);
    if (error == std::errc()) storages.push_back(storage);
    return;
  }
  if (depth == kDeepest || type.find("Tensor(") == std::string_view::npos) return;
  const auto types = TypesInList(type);
  const auto values = ElementsOf(value);
  for (size_t i = 0; i < values.size() && !types.empty(); ++i) {
    AddStorages(values[i], types[std::min(i, types.size() - 1)], depth + 1, storages);
  }
}

}  // namespace

std::vector<std::string_view> ElementsOf(std::string_view array) {
  std::vector<std::string_view> elements;
  int depth = 0;
  bool quoted = false;
  size_t begin = 1;
  for (size_t i = 0; i < array.size(); ++i) {
    const char c = array[i];
    if (c == '"' && (i == 0 || array[i - 1] != '\\')) quoted = !quoted;
    if (quoted) continue;
    if (c == '[' || c == '{') ++depth;
    const bool ends = (c == ',' && depth == 1) || (c == ']' && depth == 1);
    if (ends) {
      std::string_view element = array.substr(begin, i - begin);
      while (element.starts_with(' ')) element.remove_prefix(1);
      if (!element.empty()) elements.push_back(element);
      begin = i + 1;
    }
    if (c == ']' || c == '}') --depth;
  }
  return elements;
}

void StoragesOf(std::string_view value, std::string_view type, std::vector<int64_t>& storages) {
  if (type.size() >= 2 && type.starts_with('"')) type = type.substr(1, type.size() - 2);
  AddStorages(value, type, 0, storages);
}

absl::StatusOr<ExecutionTrace> ReadExecutionTrace(const std::string& path) {
  DD_ASSIGN_OR_RETURN(auto source, OpenFile(path, kMostBytes));
  ExecutionTrace trace{.text = std::make_unique<std::string>(), .nodes = {}};
  for (;;) {
    DD_ASSIGN_OR_RETURN(std::string_view bytes, source->Next());
    if (bytes.empty()) break;
    trace.text->append(bytes);
  }
  const size_t size = trace.text->size();
  trace.text->append(kJsonPadding, '\0');
  trace.nodes = ReadNodes(trace.text->data(), trace.text->data() + size);
  return trace;
}

}  // namespace daydream
