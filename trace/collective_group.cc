#include "trace/collective_group.h"

#include <charconv>

#include <fmt/format.h>

namespace daydream {
namespace {

// The number behind `mark` at the end of `text`, which both go from it; false when there is none.
template <class Number>
bool TakeLast(std::string_view& text, char mark, Number& value) {
  const size_t at = text.rfind(mark);
  if (at == text.npos || at + 1 == text.size()) return false;
  Number parsed = 0;
  const auto [end, error] =
      std::from_chars(text.data() + at + 1, text.data() + text.size(), parsed);
  if (error != std::errc() || end != text.data() + text.size() || parsed < 0) return false;
  value = parsed;
  text.remove_suffix(text.size() - at);
  return true;
}

}  // namespace

std::string FormatCollectiveGroup(const CollectiveGroup& group) {
  std::string text(group.name);
  if (!group.members.empty()) text += fmt::format(" of {}", group.members);
  if (group.sequence >= 0) text += fmt::format(" #{}", group.sequence);
  if (group.from >= 0 && group.to >= 0) text += fmt::format(" {}>{}", group.from, group.to);
  return text;
}

CollectiveGroup ParseCollectiveGroup(std::string_view text) {
  CollectiveGroup group;
  std::string_view rest = text;
  if (TakeLast(rest, '>', group.to) && TakeLast(rest, ' ', group.from)) {
    text = rest;
  } else {
    group.to = group.from = -1;
  }
  rest = text;
  if (TakeLast(rest, '#', group.sequence) && rest.ends_with(' ')) {
    text = rest.substr(0, rest.size() - 1);
  } else {
    group.sequence = -1;
  }
  const size_t of = text.rfind(" of [");
  if (of != text.npos && text.ends_with(']')) {
    group.members = text.substr(of + 4);
    text = text.substr(0, of);
  }
  group.name = text;
  return group;
}

}  // namespace daydream
