#include "trace/nsys/range_text.h"

#include <charconv>

namespace daydream {
namespace {

bool Number(std::string_view text, int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

// A list of lists of numbers, or of pairs.
bool IsList(std::string_view text, std::string_view open, std::string_view close) {
  if (!text.starts_with('[') || !text.ends_with(']')) return false;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (open.find(c) != std::string_view::npos) {
      ++depth;
    } else if (close.find(c) != std::string_view::npos) {
      if (--depth == 0 && i + 1 < text.size()) return false;
    } else if (!((c >= '0' && c <= '9') || c == ',' || c == ' ' || c == '-')) {
      return false;
    }
    if (depth < 0) return false;
  }
  return depth == 0;
}

// Cuts ", KEY = VALUE" off the end of `text` when `accept` likes the value.
template <class Accept>
bool TakeField(std::string_view& text, std::string_view key, const Accept& accept) {
  const size_t at = text.rfind(key);
  if (at == std::string_view::npos || !accept(text.substr(at + key.size()))) return false;
  text = text.substr(0, at);
  return true;
}

}  // namespace

NsysRangeText ParseRangeText(std::string_view text) {
  NsysRangeText out;
  TakeField(text, ", input_op_ids = ", [&](std::string_view value) {
    if (!IsList(value, "[(", "])")) return false;
    out.producers = value;
    return true;
  });
  TakeField(text, ", sizes = ", [&](std::string_view value) {
    if (!IsList(value, "[", "]")) return false;
    out.shapes = value;
    return true;
  });
  TakeField(text, ", op_id = ", [&](std::string_view value) { return Number(value, out.op); });
  TakeField(text, ", seq = ", [&](std::string_view value) { return Number(value, out.sequence); });
  out.name = text;
  return out;
}

int64_t NextProducer(std::string_view& producers) {
  const size_t open = producers.find('('), comma = producers.find(',', open);
  if (open == std::string_view::npos || comma == std::string_view::npos) return -1;
  int64_t op = 0;
  if (!Number(producers.substr(open + 1, comma - open - 1), op)) op = 0;
  const size_t close = producers.find(')', comma);
  producers.remove_prefix(close == std::string_view::npos ? producers.size() : close + 1);
  return op < 0 ? 0 : op;
}

bool IsAnnotationName(std::string_view name) {
  for (std::string_view prefix :
       {"ProfilerStep#", "Optimizer.", "enumerate(DataLoader)", "nccl:", "## "}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

}  // namespace daydream
