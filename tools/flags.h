// Command line flags as data, and the parser for them. Help, completions and docs/cli.md are
// printed from the same tables.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace daydream {

struct Flag {
  std::string_view name;  // "--output"
  char letter = 0;        // 'o' for -o; 0 = none
  // "FILE"; empty: a switch, which takes no value; "[PCT]": a number that may be left out, which is
  // as if the flag were.
  std::string_view value = {};
  std::string_view help = {};                      // one line, no full stop
  std::string_view fallback = {};                  // shown in the help, returned by Get()
  std::span<const std::string_view> choices = {};  // accepted values; empty: any
  std::string_view unoffered = {};                 // a choice that the command refuses, with why
  bool repeats = false;                            // may be given more than once
};

// Where the flags end.
enum class FlagsEnd : uint8_t {
  kAtDashes,     // at "--"; flags may follow arguments
  kAtFirstWord,  // at "--" or at the first argument: what follows is another program's
};

// What was given. Flags are looked up by their full name.
class Args {
 public:
  bool Has(std::string_view flag) const { return values_.contains(flag); }
  // Last value given, or the flag's fallback.
  std::string_view Get(std::string_view flag) const;
  std::vector<std::string> All(std::string_view flag) const;
  const std::vector<std::string>& positional() const { return positional_; }

  // A value from elsewhere (tools/config.h), as if it had been given; a switch has the value "".
  void SetDefault(const std::string& flag, std::string value) {
    values_[flag].push_back(std::move(value));
    defaults_.insert(flag);
  }
  bool IsDefault(std::string_view flag) const { return defaults_.contains(flag); }

 private:
  friend absl::StatusOr<Args> ParseArgs(std::span<const Flag* const>, std::span<const std::string>,
                                        FlagsEnd);
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::map<std::string, std::string, std::less<>> fallbacks_;
  std::set<std::string, std::less<>> defaults_;
  std::vector<std::string> positional_;
};

// "--flag VALUE", "--flag=VALUE", "-fVALUE", "-f VALUE", "-qv"; "--" ends the flags, "-" is an
// ordinary argument. A value that begins with "--" has to be written "--flag=--value". E0101 for an
// unknown flag (with the nearest known one), E0104 for a missing or unwanted value or a value that
// is not among the choices.
absl::StatusOr<Args> ParseArgs(std::span<const Flag* const> flags,
                               std::span<const std::string> words,
                               FlagsEnd end = FlagsEnd::kAtDashes);

// The candidate within edit distance 2 (1 for words of up to three letters), or empty.
std::string_view Nearest(std::string_view word, std::span<const std::string_view> candidates);
// "; did you mean 'x'?" for the nearest candidate, or nothing.
std::string DidYouMean(std::string_view word, std::span<const std::string_view> candidates);

// "12", "0.5" or "1e3": a finite number of digits alone, nothing else before or behind it.
std::optional<double> PlainNumber(std::string_view text);

// "table, json or csv".
std::string OrList(std::span<const std::string_view> words);

}  // namespace daydream
