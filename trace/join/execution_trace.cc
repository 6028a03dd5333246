#include "trace/join/execution_trace.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "trace/bytes/source.h"
#include "trace/json/reader.h"

namespace daydream {
namespace {

constexpr int64_t kMostBytes = int64_t{4} << 30;

// Shapes and types of the inputs of one op, as the profiler writes them.
struct Inputs {
  std::string shapes, types;
  friend bool operator==(const Inputs&, const Inputs&) = default;
};

struct Node {
  std::string_view name;
  int64_t id = 0;
  std::string_view shapes, types;  // JSON arrays
};

absl::Status NotOne(const std::string& path, std::string why) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0813",
                     .what = "no shapes can be taken from this file",
                     .where = path,
                     .why = std::move(why),
                     .fix = "an execution trace of the same program: "
                            "torch.profiler.ExecutionTraceObserver"});
}

std::string_view Between(const char* from, const char* to) {
  return {from, static_cast<size_t>(to - from)};
}

// {"values": ..., "shapes": [...], "types": [...]}, schema 1.1 and newer.
const char* ReadInputs(const char* p, const char* end, Node& node) {
  JsonObjectReader reader(p, end);
  std::string_view key;
  while (reader.NextKey(&key)) {
    const char* behind = SkipJsonValue(reader.value(), end);
    if (behind == nullptr) return nullptr;
    if (key == "shapes") node.shapes = Between(reader.value(), behind);
    if (key == "types") node.types = Between(reader.value(), behind);
    reader.Resume(behind);
  }
  return reader.closed() ? reader.position() : nullptr;
}

const char* ReadNode(const char* p, const char* end, Node& node) {
  JsonObjectReader reader(p, end);
  std::string_view key;
  while (reader.NextKey(&key)) {
    const char* value = reader.value();
    const char* behind = nullptr;
    if (key == "name") {
      JsonString name;
      behind = ReadJsonString(value, end, &name);
      node.name = name.text;
    } else if (key == "id") {
      behind = ReadJsonInteger(value, end, &node.id);
    } else if (key == "inputs" && *value == '{') {
      behind = ReadInputs(value, end, node);
    } else {
      behind = SkipJsonValue(value, end);
      if (behind != nullptr && key == "input_shapes") node.shapes = Between(value, behind);
      if (behind != nullptr && key == "input_types") node.types = Between(value, behind);
    }
    if (behind == nullptr) return nullptr;
    reader.Resume(behind);
  }
  return reader.closed() ? reader.position() : nullptr;
}

// The nodes of {"nodes": [...]}, in the order in which the ops began; empty when there are none.
std::vector<Node> ReadNodes(const char* p, const char* end) {
  std::vector<Node> nodes;
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
      Node node;
      p = ReadNode(p, end, node);
      if (p == nullptr) break;
      nodes.push_back(node);
      p = SkipBlanks(p);
    }
    break;  // what follows says nothing about ops
  }
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const Node& a, const Node& b) { return a.id < b.id; });
  return nodes;
}

// The elements of a JSON array.
std::vector<std::string_view> Elements(std::string_view array) {
  std::vector<std::string_view> elements;
  int depth = 0;
  bool quoted = false;
  size_t begin = 1;
  for (size_t i = 0; i < array.size(); ++i) {
    const char c = array[i];
    if (c == '"' && (i == 0 || array[i - 1] != '\\')) quoted = !quoted;
    if (quoted) continue;
    if (c == '[') ++depth;
    const bool ends = (c == ',' && depth == 1) || (c == ']' && depth == 1);
    if (ends) {
      std::string_view element = array.substr(begin, i - begin);
      while (element.starts_with(' ')) element.remove_prefix(1);
      if (!element.empty()) elements.push_back(element);
      begin = i + 1;
    }
    if (c == ']') --depth;
  }
  return elements;
}

// The profiler says "float" for "Tensor(float)", and gives no shape to lists of numbers.
Inputs InputsOf(const Node& node) {
  const auto shapes = Elements(node.shapes), types = Elements(node.types);
  Inputs inputs{"[", "["};
  for (size_t i = 0; i < shapes.size(); ++i) {
    std::string_view type = i < types.size() ? types[i] : "\"\"";
    const bool tensors = Contains(type, "Tensor");
    constexpr std::string_view kTensor = "\"Tensor(";
    std::string plain(type);
    if (type.starts_with(kTensor) && type.ends_with(")\"")) {
      plain = fmt::format("\"{}\"", type.substr(kTensor.size(), type.size() - kTensor.size() - 2));
    }
    inputs.shapes += fmt::format("{}{}", i == 0 ? "" : ", ", tensors ? shapes[i] : "[]");
    inputs.types += fmt::format("{}{}", i == 0 ? "" : ", ", plain);
  }
  inputs.shapes += "]";
  inputs.types += "]";
  return inputs;
}

// Length of the shortest round that `all` repeats.
size_t RoundOf(const std::vector<Inputs>& all) {
  for (size_t round = 1; round <= all.size() / 2; ++round) {
    if (all.size() % round != 0) continue;
    bool repeats = true;
    for (size_t i = round; repeats && i < all.size(); ++i) repeats = all[i] == all[i - round];
    if (repeats) return round;
  }
  return all.size();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Trace>> WithShapesOf(std::shared_ptr<const Trace> trace,
                                                          const std::string& path,
                                                          ShapesFound* found) {
  DD_ASSIGN_OR_RETURN(auto source, OpenFile(path, kMostBytes));
  std::string text;
  for (;;) {
    DD_ASSIGN_OR_RETURN(std::string_view bytes, source->Next());
    if (bytes.empty()) break;
    text += bytes;
  }
  const size_t size = text.size();
  text.append(kJsonPadding, '\0');
  std::map<std::string_view, std::vector<Inputs>> shapes;
  for (const Node& node : ReadNodes(text.data(), text.data() + size)) {
    if (!node.shapes.empty()) shapes[node.name].push_back(InputsOf(node));
  }
  if (shapes.empty()) return NotOne(path, "it holds no nodes with shapes of inputs");

  std::map<std::string_view, std::vector<size_t>> rows;  // of the profile, by name
  for (size_t row = 0; row < trace->rows(); ++row) {
    if (trace->kind[row] != EventKind::kOp) continue;
    ++found->ops;
    const uint32_t detail = trace->detail[row];
    if (detail < trace->ops.size() && trace->ops[detail].shapes.valid()) {
      ++found->known;
    } else {
      rows[trace->EventName(row)].push_back(row);
    }
  }
  auto with = std::make_shared<Trace>(*trace);
  std::map<std::pair<uint32_t, NameId>, uint32_t> details;
  for (auto& [name, places] : rows) {
    auto it = shapes.find(name);
    if (it == shapes.end()) continue;
    const size_t round = RoundOf(it->second);
    if (places.size() % round != 0) continue;
    std::stable_sort(places.begin(), places.end(),
                     [&](size_t a, size_t b) { return trace->start[a] < trace->start[b]; });
    for (size_t i = 0; i < places.size(); ++i) {
      const Inputs& inputs = it->second[i % round];
      const uint32_t old = trace->detail[places[i]];
      const NameId shape = with->names->Intern(inputs.shapes);
      auto [detail, inserted] =
          details.try_emplace({old, shape}, static_cast<uint32_t>(with->ops.size()));
      if (inserted) {
        OpDetail op = old < trace->ops.size() ? trace->ops[old] : OpDetail{};
        op.shapes = shape;
        op.types = with->names->Intern(inputs.types);
        with->ops.push_back(op);
      }
      with->detail[places[i]] = detail->second;
      ++found->matched;
    }
  }
  if (found->matched == 0) {
    return NotOne(path, found->known == found->ops
                            ? "every op of the profile has its shapes already"
                            : "none of its ops is in the profile in whole rounds");
  }
  return std::shared_ptr<const Trace>(std::move(with));
}

}  // namespace daydream
