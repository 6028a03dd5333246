#include "graph/text_tables.h"

#include <iterator>

namespace daydream {
namespace {

// "8,1,1"; missing dimensions are 1.
absl::Status ParseDimensions(const TextLine& line, const KeyValue& kv,
                             std::array<uint32_t, 3>& out) {
  out = {1, 1, 1};
  std::string_view rest = kv.value;
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t end = std::min(rest.find(','), rest.size());
    DD_RETURN_IF_ERROR(line.Number({kv.key, std::string(rest.substr(0, end)), kv.column}, out[i]));
    if (end == rest.size()) return absl::OkStatus();
    rest.remove_prefix(end + 1);
  }
  return line.Error(kv.column, "{} has more than three dimensions", kv.key);
}

template <class T>
void Add(std::string& text, std::string_view key, const T& value, const T& usual) {
  if (value != usual) fmt::format_to(std::back_inserter(text), " {}={}", key, value);
}

void AddDimensions(std::string& text, std::string_view key, const std::array<uint32_t, 3>& d) {
  if (d == std::array<uint32_t, 3>{}) return;
  fmt::format_to(std::back_inserter(text), " {}={},{},{}", key, d[0], d[1], d[2]);
}

}  // namespace

absl::Status ParseKernelValue(const TextLine& line, const KeyValue& kv, KernelDetail& kernel) {
  if (kv.key == "grid") return ParseDimensions(line, kv, kernel.grid);
  if (kv.key == "block") return ParseDimensions(line, kv, kernel.block);
  if (kv.key == "registers") return line.Number(kv, kernel.registers_per_thread);
  if (kv.key == "shared") return line.Number(kv, kernel.shared_memory_bytes);
  if (kv.key == "node") return line.Number(kv, kernel.graph_node);
  return line.Error(kv.column, "'{}' is no property of a task", kv.key);
}

absl::Status ParseCopyValue(const TextLine& line, const KeyValue& kv, CopyDetail& copy) {
  if (kv.key == "bytes") return line.Number(kv, copy.bytes);
  std::optional<Memory> memory = FindWord(kMemories, kv.value);
  if (!memory) return line.Error(kv.column, "'{}' is no kind of memory", kv.value);
  (kv.key == "from" ? copy.from : copy.to) = *memory;
  return absl::OkStatus();
}

absl::Status ParseCollectiveDetail(TextLine& line, GraphTables& tables) {
  CollectiveDetail c;
  StringPool& names = *tables.names;
  DD_ASSIGN_OR_RETURN(const std::string name, line.Text("the collective's name"));
  c.name = names.Intern(name);
  while (!line.done()) {
    if (!line.NextIsKeyValue()) return line.Error(line.column(), "expected NAME=VALUE");
    const KeyValue kv = line.TakeKeyValue();
    if (kv.key == "dtype")
      c.dtype = names.Intern(kv.value);
    else if (kv.key == "group")
      c.process_group = names.Intern(kv.value);
    else if (kv.key == "in")
      DD_RETURN_IF_ERROR(line.Number(kv, c.elements_in));
    else if (kv.key == "out")
      DD_RETURN_IF_ERROR(line.Number(kv, c.elements_out));
    else if (kv.key == "size")
      DD_RETURN_IF_ERROR(line.Number(kv, c.group_size));
    else
      return line.Error(kv.column, "'{}' is no property of a collective", kv.key);
  }
  tables.collectives.push_back(c);
  return absl::OkStatus();
}

absl::Status ParseDevice(TextLine& line, GraphTables& tables) {
  Device d;
  const size_t column = line.column();
  DD_ASSIGN_OR_RETURN(const std::string_view id, line.Word("the device's number"));
  DD_RETURN_IF_ERROR(line.Number({"device", std::string(id), column}, d.id));
  DD_ASSIGN_OR_RETURN(d.name, line.Text("the device's name"));
  while (!line.done()) {
    if (!line.NextIsKeyValue()) return line.Error(line.column(), "expected NAME=VALUE");
    const KeyValue kv = line.TakeKeyValue();
    if (kv.key == "memory")
      DD_RETURN_IF_ERROR(line.Number(kv, d.memory_bytes));
    else if (kv.key == "multiprocessors")
      DD_RETURN_IF_ERROR(line.Number(kv, d.multiprocessors));
    else if (kv.key == "warp")
      DD_RETURN_IF_ERROR(line.Number(kv, d.warp_size));
    else if (kv.key == "threads")
      DD_RETURN_IF_ERROR(line.Number(kv, d.max_threads_per_multiprocessor));
    else if (kv.key == "registers")
      DD_RETURN_IF_ERROR(line.Number(kv, d.registers_per_multiprocessor));
    else if (kv.key == "shared")
      DD_RETURN_IF_ERROR(line.Number(kv, d.shared_memory_per_multiprocessor));
    else if (kv.key == "capability") {
      const size_t dot = kv.value.find('.');
      if (dot == std::string::npos) return line.Error(kv.column, "expected capability=8.0");
      DD_RETURN_IF_ERROR(
          line.Number({kv.key, kv.value.substr(0, dot), kv.column}, d.compute_major));
      DD_RETURN_IF_ERROR(
          line.Number({kv.key, kv.value.substr(dot + 1), kv.column}, d.compute_minor));
    } else {
      return line.Error(kv.column, "'{}' is no property of a device", kv.key);
    }
  }
  tables.devices.push_back(std::move(d));
  return absl::OkStatus();
}

std::string FormatKernel(const KernelDetail& k) {
  std::string text;
  const KernelDetail usual;
  AddDimensions(text, "grid", k.grid);
  AddDimensions(text, "block", k.block);
  Add(text, "registers", k.registers_per_thread, usual.registers_per_thread);
  Add(text, "shared", k.shared_memory_bytes, usual.shared_memory_bytes);
  Add(text, "node", k.graph_node, usual.graph_node);
  return text;
}

std::string FormatCopy(const CopyDetail& c) {
  std::string text = fmt::format(" bytes={}", c.bytes);
  if (c.from != Memory::kUnknown) text.append(" from=").append(WordOf(kMemories, c.from));
  if (c.to != Memory::kUnknown) text.append(" to=").append(WordOf(kMemories, c.to));
  return text;
}

std::string FormatCollective(const CollectiveDetail& c, const Graph& g) {
  std::string text = " " + Quote(g.Name(c.name));
  if (c.dtype.valid()) text += " dtype=" + Quote(g.Name(c.dtype));
  if (c.process_group.valid()) text += " group=" + Quote(g.Name(c.process_group));
  Add(text, "in", c.elements_in, int64_t{0});
  Add(text, "out", c.elements_out, int64_t{0});
  Add(text, "size", c.group_size, 0);
  return text;
}

std::string FormatDevice(const Device& d) {
  std::string text = fmt::format(" {} {}", d.id, Quote(d.name));
  const Device usual;
  Add(text, "memory", d.memory_bytes, usual.memory_bytes);
  if (d.compute_major != 0 || d.compute_minor != 0) {
    fmt::format_to(std::back_inserter(text), " capability={}.{}", d.compute_major, d.compute_minor);
  }
  Add(text, "multiprocessors", d.multiprocessors, usual.multiprocessors);
  Add(text, "warp", d.warp_size, usual.warp_size);
  Add(text, "threads", d.max_threads_per_multiprocessor, usual.max_threads_per_multiprocessor);
  Add(text, "registers", d.registers_per_multiprocessor, usual.registers_per_multiprocessor);
  Add(text, "shared", d.shared_memory_per_multiprocessor, usual.shared_memory_per_multiprocessor);
  return text;
}

}  // namespace daydream
