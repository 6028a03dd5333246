#include "report/text/escape.h"

#include <algorithm>

#include "report/text/format.h"
#include "report/text/table.h"

namespace daydream {
namespace {

struct Characters {
  char32_t first, last;
};

// Unicode 15, general categories Cc, Cf, Zl, Zp, Co and the fillers that show nothing.
constexpr Characters kHiddenCharacters[] = {
    {0x0000, 0x001F},    {0x007F, 0x009F}, {0x00AD, 0x00AD}, {0x034F, 0x034F},   {0x061C, 0x061C},
    {0x115F, 0x1160},    {0x17B4, 0x17B5}, {0x180B, 0x180F}, {0x200B, 0x200F},   {0x2028, 0x202E},
    {0x2060, 0x206F},    {0x2800, 0x2800}, {0x3164, 0x3164}, {0xE000, 0xF8FF},   {0xFE00, 0xFE0F},
    {0xFEFF, 0xFEFF},    {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFFB}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
    {0xF0000, 0x10FFFF},
};

// Calls `keep(piece)` for what may be shown and `drop()` for each character that may not.
template <class Keep, class Drop>
void ForEachCharacter(std::string_view text, Keep keep, Drop drop) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = Utf8Length(text, i);
    if (length == 0 || IsHidden(DecodeUtf8(text, i, length))) {
      drop(text.substr(i, std::max<size_t>(length, 1)));
    } else {
      keep(text.substr(i, length));
    }
    i += std::max<size_t>(length, 1);
  }
}

// Length of "ESC [ digits and ; m" at text[i], or 0.
size_t ColorLength(std::string_view text, size_t i) {
  if (!text.substr(i).starts_with("\033[")) return 0;
  const size_t end = text.find_first_not_of("0123456789;", i + 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 - i : 0;
}

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

constexpr std::string_view kWideSigns[] = {"\uFF1D", "\uFF0B", "\uFF0D", "\uFF20"};  // = + - @

// "-3", "+2.5 ms", "-38.1 %", "+1,200 steps", "-".
bool IsNumber(std::string_view text) {
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  if (text.empty()) return true;
  const size_t digits = std::min(text.find_first_not_of("0123456789.,"), text.size());
  if (digits == 0) return false;
  return std::all_of(text.begin() + static_cast<ptrdiff_t>(digits), text.end(),
                     [](char c) { return IsLetter(c) || c == ' ' || c == '%' || c == '/'; });
}

// Also behind blanks, and with the wide forms of the signs: some programs take these away.
bool BeginsFormula(std::string_view text) {
  constexpr std::string_view kNoBreak = "\u00A0";
  while (text.starts_with(' ') || text.starts_with(kNoBreak)) {
    text.remove_prefix(text[0] == ' ' ? 1 : kNoBreak.size());
  }
  if (text.find_first_of("=+-@") == 0) return !IsNumber(text);
  return std::any_of(std::begin(kWideSigns), std::end(kWideSigns),
                     [&](std::string_view sign) { return text.starts_with(sign); });
}

}  // namespace

size_t Utf8Length(std::string_view text, size_t i) {
  auto byte = [&](size_t k) -> unsigned {
    return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0u;
  };
  auto within = [](unsigned b, unsigned low, unsigned high) { return b >= low && b <= high; };
  unsigned b = byte(0);
  if (b < 0x80) return 1;
  if (within(b, 0xC2, 0xDF)) return within(byte(1), 0x80, 0xBF) ? 2 : 0;
  if (within(b, 0xE0, 0xEF)) {
    unsigned low = b == 0xE0 ? 0xA0 : 0x80, high = b == 0xED ? 0x9F : 0xBF;
    return within(byte(1), low, high) && within(byte(2), 0x80, 0xBF) ? 3 : 0;
  }
  if (within(b, 0xF0, 0xF4)) {
    unsigned low = b == 0xF0 ? 0x90 : 0x80, high = b == 0xF4 ? 0x8F : 0xBF;
    bool tail = within(byte(2), 0x80, 0xBF) && within(byte(3), 0x80, 0xBF);
    return within(byte(1), low, high) && tail ? 4 : 0;
  }
  return 0;
}

char32_t DecodeUtf8(std::string_view text, size_t i, size_t length) {
  const auto first = static_cast<unsigned char>(text[i]);
  if (length <= 1) return first;
  char32_t character = first & (0x7Fu >> length);
  for (size_t k = 1; k < length; ++k) {
    character = character << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3Fu);
  }
  return character;
}

bool IsHidden(char32_t character) {
  if (character >= 0x20 && character < 0x7F) return false;
  return std::any_of(
      std::begin(kHiddenCharacters), std::end(kHiddenCharacters),
      [&](const Characters& r) { return character >= r.first && character <= r.last; });
}

std::string Printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  ForEachCharacter(
      text, [&](std::string_view piece) { out += piece; }, [&](std::string_view) { out += '?'; });
  return out;
}

std::string PrintableText(std::string_view text, bool colors) {
  std::string out;
  out.reserve(text.size());
  size_t skip = 0;  // of a colour that was copied already
  size_t at = 0;
  auto keep = [&](std::string_view piece) {
    at += piece.size();
    if (skip > 0) {
      --skip;
    } else {
      out += piece;
    }
  };
  auto drop = [&](std::string_view piece) {
    if (const size_t color = colors ? ColorLength(text, at) : 0; color > 0) {
      out += text.substr(at, color);
      skip = color - 1;
    } else {
      out += piece == "\n" || piece == "\t" ? piece[0] : '?';
    }
    at += piece.size();
  };
  ForEachCharacter(text, keep, drop);
  return out;
}

std::string CsvField(std::string_view text) {
  std::string safe = Printable(text);
  if (BeginsFormula(safe)) safe.insert(0, 1, '\'');
  if (safe.find_first_of(",\"") == std::string::npos) return safe;
  std::string out = "\"";
  for (char c : safe) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

std::string MarkdownText(std::string_view text) {
  std::string out;
  const std::string safe = Printable(text);
  for (size_t i = 0; i < safe.size(); ++i) {
    const char c = safe[i];
    // A bracket alone is a bracket; before ( or [ or : it would make a link.
    const bool link = c == ']' && std::string_view("([:").find(safe[i + 1]) != std::string::npos &&
                      i + 1 < safe.size();
    if (c == '|' || c == '\\' || c == '`' || c == '*' || link) out += '\\';
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string HtmlText(std::string_view text) {
  std::string out;
  for (char c : Printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace daydream
