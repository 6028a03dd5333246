#include "transforms/core/source_text.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace daydream {
namespace {

// Longer lines are shown in part.
constexpr size_t kShown = 100;

bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

size_t Characters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !Continues(c); }));
}

// Bytes of the UTF-8 sequence that begins with `c`; 0 when none does.
size_t SequenceLength(unsigned char c) {
  if (c < 0x80) return 1;
  if (c >= 0xc2 && c < 0xe0) return 2;
  if (c >= 0xe0 && c < 0xf0) return 3;
  if (c >= 0xf0 && c < 0xf5) return 4;
  return 0;
}

}  // namespace

absl::StatusOr<std::string> ReadTextFile(const std::string& path, size_t most, Diagnostic problem) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  std::ifstream in;
  if (!folder) in.open(path, std::ios::binary);
  std::string text;
  char block[4096];
  while (in.is_open() && in && text.size() <= most) {
    in.read(block, sizeof(block));
    text.append(block, static_cast<size_t>(in.gcount()));
  }
  if (in.is_open() && !in.bad() && text.size() <= most) return text;
  problem.where = path;
  problem.why = folder               ? "it is a folder"
                : text.size() > most ? fmt::format("it is larger than {} bytes", most)
                                     : "there is no such file, or it may not be read";
  return MakeStatus(absl::StatusCode::kInvalidArgument, std::move(problem));
}

size_t FindNonText(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f) return i;
    // C1 controls (U+0080 to U+009F) start escape sequences on some terminals.
    if (c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0)
      return i;
    const size_t length = SequenceLength(c);
    if (length == 0 || i + length > text.size()) return i;
    for (size_t k = 1; k < length; ++k) {
      if (!Continues(text[i + k])) return i;
    }
    i += length;
  }
  return std::string_view::npos;
}

SourceText::SourceText(std::string path, std::string_view text)
    : path_(std::move(path)), text_(text) {
  line_begin_.push_back(0);
  for (size_t i = 0; i < text_.size(); ++i) {
    bool ends = text_[i] == '\n' || (text_[i] == '\r' && text_.substr(i, 2) != "\r\n");
    if (ends) line_begin_.push_back(i + 1);
  }
}

std::string_view SourceText::Line(size_t line) const {
  if (line == 0 || line > line_begin_.size()) return {};
  size_t begin = line_begin_[line - 1];
  size_t end = line < line_begin_.size() ? line_begin_[line] : text_.size();
  std::string_view text = std::string_view(text_).substr(begin, end - begin);
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

std::string_view SourceText::From(Place place) const {
  std::string_view line = Line(place.line);
  return line.substr(std::min(place.column - 1, line.size()));
}

std::string SourceText::Tag(Place place) const {
  size_t slash = path_.rfind('/');
  return fmt::format("{}:{}", slash == std::string::npos ? path_ : path_.substr(slash + 1),
                     place.line);
}

absl::Status SourceText::Error(absl::StatusCode status, Place place, size_t length, Diagnostic d,
                               std::string_view hint) const {
  std::string line(Line(place.line));
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  size_t at = std::min(place.column - 1, line.size());
  length = std::min(std::max<size_t>(length, 1), std::max<size_t>(line.size() - at, 1));
  d.where = fmt::format("{}:{}:{}", path_, place.line, Characters(line.substr(0, at)) + 1);
  // Keep the place in sight.
  if (at > kShown * 3 / 4) {
    size_t cut = at - kShown / 2;
    while (cut > 0 && Continues(line[cut])) --cut;
    line.erase(0, cut);
    at -= cut;
  }
  if (line.size() > kShown) {
    size_t cut = kShown;
    while (cut > 0 && Continues(line[cut])) --cut;
    line.resize(cut);
    at = std::min(at, cut);
    length = std::min(length, std::max<size_t>(cut - at, 1));
  }
  size_t carets = std::max<size_t>(Characters(std::string_view(line).substr(at, length)), 1);
  d.where += fmt::format("\n{}\n{}{}", line, std::string(Characters(line.substr(0, at)), ' '),
                         std::string(carets, '^'));
  if (!hint.empty()) d.where += fmt::format(" {}", hint);
  return MakeStatus(status, std::move(d));
}

}  // namespace daydream
