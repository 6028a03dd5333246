// Words, symbols and numbers of an expression's text.
#pragma once

#include <cstddef>
#include <string_view>

namespace daydream {

class ExpressionLexer {
 public:
  explicit ExpressionLexer(std::string_view text) : text_(text) {}

  size_t at() const { return at_; }
  bool AtEnd() const { return at_ >= text_.size(); }
  void Advance(size_t bytes) { at_ += bytes; }
  void Skip();  // spaces and line ends
  // Skips, then takes `symbol` or the whole `word` if it is next.
  bool Take(std::string_view symbol);
  bool TakeWord(std::string_view word);
  // The letters, digits and underscores that are next, beginning with a letter.
  std::string_view PeekWord() const;
  bool AtNumber() const;
  // A number with its unit, such as "24GB/s"; not checked.
  std::string_view TakeNumber();
  // Whether the arguments that begin here, up to the closing parenthesis, are a single one.
  bool OneArgument() const;

 private:
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace daydream
