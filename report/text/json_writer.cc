#include "report/text/json_writer.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "report/text/escape.h"

namespace daydream {
namespace {

std::string_view ShortEscape(char c) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return "";
  }
}

// "\u202e"; beyond the first plane a pair of surrogates (RFC 8259, section 7).
void AppendEscape(char32_t character, std::string& out) {
  const auto code = static_cast<uint32_t>(character);
  if (code < 0x10000) {
    out += fmt::format("\\u{:04x}", code);
  } else {
    const uint32_t rest = code - 0x10000;
    out += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (rest >> 10), 0xdc00 + (rest & 0x3ff));
  }
}

}  // namespace

std::string JsonQuoted(std::string_view text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    size_t length = Utf8Length(text, i);
    char c = text[i];
    if (length == 0) {
      out += "\\ufffd";
      ++i;
    } else if (length > 1) {
      const char32_t character = DecodeUtf8(text, i, length);
      if (IsHidden(character)) {
        AppendEscape(character, out);
      } else {
        out += text.substr(i, length);
      }
      i += length;
    } else {
      std::string_view escape = ShortEscape(c);
      if (!escape.empty()) {
        out += escape;
      } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F || c == '<') {
        out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
      } else {
        out += c;
      }
      ++i;
    }
  }
  return out + "\"";
}

void JsonWriter::NewLine() {
  out_ += '\n';
  out_.append(static_cast<size_t>(indent_) * levels_.size(), ' ');
}

void JsonWriter::BeforeValue() {
  if (std::exchange(have_key_, false)) return;
  if (levels_.empty()) {
    DD_CHECK(out_.empty());
    return;
  }
  Level& level = levels_.back();
  DD_CHECK(level.close == ']');
  if (level.items++ > 0) out_ += level.is_inline ? ", " : ",";
  if (!level.is_inline) NewLine();
}

JsonWriter& JsonWriter::Open(char open, bool is_inline) {
  BeforeValue();
  out_ += open;
  bool outer_inline = indent_ == 0 || (!levels_.empty() && levels_.back().is_inline);
  levels_.push_back({open == '{' ? '}' : ']', is_inline || outer_inline, 0});
  return *this;
}

JsonWriter& JsonWriter::Close(char close) {
  DD_CHECK(!levels_.empty() && levels_.back().close == close && !have_key_);
  Level level = levels_.back();
  levels_.pop_back();
  if (level.items > 0 && !level.is_inline) NewLine();
  out_ += close;
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view key) {
  DD_CHECK(!levels_.empty() && levels_.back().close == '}' && !have_key_);
  Level& level = levels_.back();
  if (level.items++ > 0) out_ += level.is_inline ? ", " : ",";
  if (!level.is_inline) NewLine();
  out_ += JsonQuoted(key) + ": ";
  have_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::String(std::string_view text) {
  BeforeValue();
  out_ += JsonQuoted(text);
  return *this;
}

JsonWriter& JsonWriter::Int(int64_t value) {
  BeforeValue();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  return *this;
}

JsonWriter& JsonWriter::UInt(uint64_t value) {
  BeforeValue();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  return *this;
}

JsonWriter& JsonWriter::Double(double value) {
  if (!std::isfinite(value)) return Null();
  BeforeValue();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  return *this;
}

JsonWriter& JsonWriter::Rounded(double value, int decimals) {
  if (!std::isfinite(value)) return Null();
  BeforeValue();
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  out_ += text == "-0" ? "0" : text;
  return *this;
}

JsonWriter& JsonWriter::Bool(bool value) {
  BeforeValue();
  out_ += value ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::Null() {
  BeforeValue();
  out_ += "null";
  return *this;
}

std::string JsonWriter::Take() {
  DD_CHECK(levels_.empty() && !have_key_);
  return std::exchange(out_, {});
}

void WriteTexts(std::string_view key, std::span<const std::string> texts, JsonWriter& json) {
  json.Key(key).BeginArray();
  for (const std::string& text : texts) json.String(text);
  json.EndArray();
}

}  // namespace daydream
