// What a result of `whatif` does not hold because it was told to stop (Ctrl-C), in every format.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "report/text/json_writer.h"
#include "tools/session.h"

namespace daydream {

// What stands for the answer of the last scenario.
inline constexpr std::string_view kLastNotDone = "the last scenario, which is not done";

struct NotDone {
  std::vector<std::string> scenarios;   // that were not begun
  size_t asked = 0;                     // with those that are done
  std::vector<std::string_view> flags;  // about the last scenario, without an answer: "--timeline"

  bool any() const { return !scenarios.empty() || !flags.empty(); }
  bool Lacks(std::string_view flag) const { return std::ranges::find(flags, flag) != flags.end(); }
  // "interrupted: 3 of 5 scenarios are not done, nor is --timeline"
  std::string Text() const;
};

// Text() with names, of many the first, as lines behind a table, and as Markdown; "" where all is
// done.
std::string NotDoneLines(const NotDone& missing);
std::string NotDoneMarkdown(const NotDone& missing);
// "interrupted" and "not_done" with all names, for behind the schema; nothing where all is done.
void WriteNotDone(const NotDone& missing, JsonWriter& json);
// Warns; what the command ends with.
Exit EndNotDone(const NotDone& missing, Session& session);

}  // namespace daydream
