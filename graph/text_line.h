// Reads the tokens of one line of the text form one by one. Internal to graph/.
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "graph/text_lexer.h"
#include "graph/text_words.h"

namespace daydream {

// `registers=32` or `shapes="[[1]]"`.
struct KeyValue {
  std::string_view key;
  std::string value;
  size_t column = 1;
};

class TextLine {
 public:
  TextLine(size_t number, std::vector<Token> tokens)
      : number_(number), tokens_(std::move(tokens)) {}

  size_t number() const { return number_; }
  bool done() const { return at_ == tokens_.size(); }
  // REQUIRES: not done.
  const Token& peek() const { return tokens_[at_]; }
  void Skip() { ++at_; }
  size_t column() const { return done() ? 1 : peek().column; }
  bool NextIsText() const { return !done() && peek().quoted && peek().word.empty(); }
  bool NextIsKeyValue() const { return !done() && peek().word.find('=') != std::string_view::npos; }

  template <class... Args>
  absl::Status Error(size_t column, fmt::format_string<Args...> f, Args&&... args) const {
    return TextError(number_, column, fmt::format(f, std::forward<Args>(args)...));
  }

  // The next token, a word without quotes. `what` names it in the error.
  absl::StatusOr<std::string_view> Word(std::string_view what) {
    if (done()) return Error(EndColumn(), "expected {} at the end of the line", what);
    if (peek().quoted) return Error(column(), "expected {}, not a quoted text", what);
    return tokens_[at_++].word;
  }
  absl::StatusOr<std::string> Text(std::string_view what) {
    if (done()) return Error(EndColumn(), "expected {} at the end of the line", what);
    if (!NextIsText()) return Error(column(), "expected {} in quotes", what);
    return tokens_[at_++].text;
  }
  // REQUIRES: NextIsKeyValue().
  KeyValue TakeKeyValue() {
    const Token& t = tokens_[at_++];
    const size_t equals = t.word.find('=');
    return {t.word.substr(0, equals), t.quoted ? t.text : std::string(t.word.substr(equals + 1)),
            t.column};
  }
  template <class E, size_t n>
  absl::StatusOr<E> OneOf(const daydream::Word<E> (&words)[n], std::string_view what) {
    const size_t column = this->column();
    DD_ASSIGN_OR_RETURN(const std::string_view word, Word(what));
    std::optional<E> value = FindWord(words, word);
    if (!value) return Error(column, "'{}' is no {}", word, what);
    return *value;
  }
  absl::StatusOr<Duration> Time(std::string_view what) {
    const size_t column = this->column();
    DD_ASSIGN_OR_RETURN(const std::string_view word, Word(what));
    std::optional<Duration> time = ParseTime(word);
    if (!time) return Error(column, "'{}' is no {}, expected a time such as 5us", word, what);
    return *time;
  }
  template <class T>
  absl::Status Number(const KeyValue& kv, T& out) const {
    const char* end = kv.value.data() + kv.value.size();
    auto [at, error] = std::from_chars(kv.value.data(), end, out);
    if (error == std::errc() && at == end && !kv.value.empty()) return absl::OkStatus();
    return Error(kv.column, "{}: '{}' is no whole number in range", kv.key, kv.value);
  }

 private:
  size_t EndColumn() const { return tokens_.empty() ? 1 : tokens_.back().column; }

  size_t number_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace daydream
