// The texts of `daydream explain`: error codes, words and rules. docs/errors.md and
// docs/glossary.md are printed from them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace daydream {

struct ErrorPage {
  std::string_view code;   // "E0301"
  std::string_view title;  // what the message says
  std::string_view text;   // when it happens and what to do
};
std::span<const ErrorPage> ErrorPages();       // both of these
std::span<const ErrorPage> InputErrorPages();  // E01.. to E04..
std::span<const ErrorPage> WorkErrorPages();   // E05.. and more
// The page of "E0301", also under its warning name "W0301"; nullptr when there is none.
const ErrorPage* FindErrorPage(std::string_view code);
std::string ErrorsMarkdown();

struct Term {
  std::string_view name;  // "critical path"
  std::string_view text;
};
std::span<const Term> Terms();
// What findings mean, by their names in JSON: "one_time".
std::span<const Term> FindingTerms();
const Term* FindTerm(std::string_view name);  // of both
std::string GlossaryMarkdown();

}  // namespace daydream
