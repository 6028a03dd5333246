#include "transforms/core/expression_lexer.h"

#include "transforms/core/params.h"

namespace daydream {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

}  // namespace

void ExpressionLexer::Skip() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) {
    ++at_;
  }
}

bool ExpressionLexer::Take(std::string_view symbol) {
  Skip();
  if (!text_.substr(at_).starts_with(symbol)) return false;
  at_ += symbol.size();
  return true;
}

bool ExpressionLexer::TakeWord(std::string_view word) {
  Skip();
  if (PeekWord() != word) return false;
  at_ += word.size();
  return true;
}

std::string_view ExpressionLexer::PeekWord() const {
  size_t end = at_;
  while (end < text_.size() && (IsLetter(text_[end]) || (end > at_ && IsDigit(text_[end])))) {
    ++end;
  }
  return text_.substr(at_, end - at_);
}

bool ExpressionLexer::AtNumber() const {
  return at_ < text_.size() && (IsDigit(text_[at_]) || text_[at_] == '.');
}

std::string_view ExpressionLexer::TakeNumber() {
  const size_t begin = at_;
  auto digits = [&] {
    while (at_ < text_.size() && IsDigit(text_[at_])) ++at_;
  };
  digits();
  if (at_ < text_.size() && text_[at_] == '.') ++at_, digits();
  if (at_ + 1 < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
    size_t sign = text_[at_ + 1] == '+' || text_[at_ + 1] == '-' ? 2 : 1;
    if (at_ + sign < text_.size() && IsDigit(text_[at_ + sign])) at_ += sign, digits();
  }
  while (at_ < text_.size() && (IsLetter(text_[at_]) || text_[at_] == '%' ||
                                static_cast<unsigned char>(text_[at_]) >= 0x80)) {
    ++at_;
  }
  // "/s" belongs to a rate: "24GB/s", but not "10us/sum(time)".
  std::string_view rest = text_.substr(at_);
  bool ends = rest.size() == 2 || (rest.size() > 2 && !IsLetter(rest[2]) && !IsDigit(rest[2]));
  if (rest.starts_with("/s") && ends && IsLetter(text_[at_ - 1]) &&
      ParseQuantity(text_.substr(begin, at_ + 2 - begin)).ok()) {
    at_ += 2;
  }
  return text_.substr(begin, at_ - begin);
}

bool ExpressionLexer::OneArgument() const {
  int open = 0;
  for (size_t i = at_; i < text_.size(); ++i) {
    if (text_[i] == '(') ++open;
    if (text_[i] == ')' && open-- == 0) return true;
    if (text_[i] == ',' && open == 0) return false;
  }
  return true;
}

}  // namespace daydream
