#include "tools/input/saved_json.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

namespace daydream {
namespace {

constexpr size_t kLargestSaved = 64 << 20;  // bytes; chosen
constexpr int kDeepest = 64;                // chosen; what is written goes seven deep

std::string FirstBytes(const std::string& path, size_t most) {
  std::ifstream file(path, std::ios::binary);
  std::string text(most, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return text;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Goes over one value after the other; stops where the text is no JSON.
class JsonWalk {
 public:
  explicit JsonWalk(std::string_view text) : text_(text) {}

  bool Value(int depth) {
    Blanks();
    if (At('{')) return depth < kDeepest && Members(depth, '}', true);
    if (At('[')) return depth < kDeepest && Members(depth, ']', false);
    if (At('"')) return String();
    for (std::string_view word : {"true", "false", "null"}) {
      if (text_.substr(at_).starts_with(word)) return at_ += word.size(), true;
    }
    return Number();
  }
  void Blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }
  size_t at() const { return at_; }

 private:
  bool At(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool Take(char c) { return At(c) && ++at_ > 0; }

  bool Members(int depth, char close, bool keys) {
    ++at_;
    Blanks();
    if (Take(close)) return true;
    do {
      Blanks();
      if (keys && !(At('"') && String())) return false;
      Blanks();
      if (keys && !Take(':')) return false;
      if (!Value(depth + 1)) return false;
      Blanks();
    } while (Take(','));
    return Take(close);
  }

  bool String() {
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (static_cast<unsigned char>(text_[at_]) < ' ') return false;
      if (text_[at_] == '\\' && !Escape()) return false;
    }
    return Take('"');
  }

  // Ends at its last character.
  bool Escape() {
    ++at_;
    if (!At('u'))
      return at_ < text_.size() && std::string_view("\"\\/bfnrt").find(text_[at_]) != text_.npos;
    for (int i = 0; i < 4; ++i) {
      ++at_;
      if (at_ >= text_.size() || std::isxdigit(static_cast<unsigned char>(text_[at_])) == 0)
        return false;
    }
    return true;
  }

  bool Digits() {
    const size_t begin = at_;
    while (at_ < text_.size() && IsDigit(text_[at_])) ++at_;
    return at_ > begin;
  }

  bool Number() {
    Take('-');
    if (!Take('0') && !Digits()) return false;
    if (Take('.') && !Digits()) return false;
    if (!Take('e') && !Take('E')) return true;
    if (!Take('+')) Take('-');
    return Digits();
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::optional<size_t> JsonFault(std::string_view text) {
  JsonWalk walk(text);
  if (!walk.Value(0)) return walk.at();
  walk.Blanks();
  return walk.at() == text.size() ? std::nullopt : std::optional(walk.at());
}

bool IsSavedJson(const std::string& path, std::string_view schema) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  const std::string begin = FirstBytes(path, 64);
  const size_t at = begin.find(fmt::format("\"schema\": \"{}\"", schema));
  return begin.starts_with('{') && at != std::string::npos && at < 8;
}

absl::Status NotSaved(const std::string& path, const SavedKind& kind, std::string why) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0215",
                     .what = fmt::format("no {} can be taken from {}", kind.what, path),
                     .why = std::move(why),
                     .fix = std::string(kind.fix)});
}

absl::StatusOr<std::string> ReadSavedJson(const std::string& path, const SavedKind& kind) {
  std::string text = FirstBytes(path, kLargestSaved);
  if (text.size() == kLargestSaved) return NotSaved(path, kind, "it is larger than 64 MiB");
  const std::optional<size_t> fault = JsonFault(text);
  if (!fault.has_value()) return text;
  if (*fault == text.size()) {
    return NotSaved(path, kind, fmt::format("the file is cut after {} bytes", text.size()));
  }
  const auto before = text.begin() + static_cast<std::ptrdiff_t>(*fault);
  const auto line = 1 + std::count(text.begin(), before, '\n');
  return NotSaved(path, kind, fmt::format("it is damaged at byte {}, in line {}", *fault, line));
}

}  // namespace daydream
