// Writes JSON text. Output is flat data of ours, so escaping and commas are all it does; asking
// for something that is not JSON (a value without its key) is a mistake and aborts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace daydream {

class JsonWriter {
 public:
  // `indent` 0 writes everything on one line.
  explicit JsonWriter(int indent = 2) : indent_(indent) {}

  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& BeginArray() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }
  // A container on one line, whatever the indent.
  JsonWriter& BeginInlineArray() { return Open('[', true); }
  JsonWriter& BeginInlineObject() { return Open('{', true); }
  JsonWriter& Key(std::string_view key);

  JsonWriter& String(std::string_view text);
  JsonWriter& Int(int64_t value);
  JsonWriter& UInt(uint64_t value);
  // The shortest text that reads back as `value`; null when it is not finite.
  JsonWriter& Double(double value);
  // At most `decimals` digits behind the point, without trailing zeros.
  JsonWriter& Rounded(double value, int decimals);
  JsonWriter& Bool(bool value);
  JsonWriter& Null();

  // The text so far. REQUIRES: every container is closed.
  std::string Take();

 private:
  struct Level {
    char close;
    bool is_inline;
    size_t items = 0;
  };
  JsonWriter& Open(char open, bool is_inline = false);
  JsonWriter& Close(char close);
  void BeforeValue();
  void NewLine();

  int indent_;
  std::string out_;
  std::vector<Level> levels_;
  bool have_key_ = false;
};

// `text` as a quoted JSON string. Broken UTF-8 becomes U+FFFD; "<" is written as \u003c so that
// the text may stand inside HTML.
std::string JsonQuoted(std::string_view text);

// "key": ["...", "..."]
void WriteTexts(std::string_view key, std::span<const std::string> texts, JsonWriter& json);

}  // namespace daydream
