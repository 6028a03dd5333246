// What a result of `whatif`, or a page, does not hold because it was told to stop (Ctrl-C).
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
  std::vector<std::string_view> parts;  // of the answer that are missing: "--timeline"

  bool any() const { return !scenarios.empty() || !parts.empty(); }
  bool Lacks(std::string_view part) const { return std::ranges::find(parts, part) != parts.end(); }
};

// "3 of 5 scenarios are not done, nor --timeline"
std::string NotDoneText(const NotDone& missing);
// The same with names, of many scenarios the first: "...: amp, fuse, amp + fuse".
std::string NotDoneNames(const NotDone& missing);
// That as lines behind a table, and as Markdown; "" where all is done.
std::string NotDoneLines(const NotDone& missing);
std::string NotDoneMarkdown(const NotDone& missing);
// "interrupted" and "not_done" with all names, for behind the schema; nothing where all is done.
void WriteNotDone(const NotDone& missing, JsonWriter& json);
// Warns; what the command ends with.
Exit EndNotDone(const NotDone& missing, Session& session);

}  // namespace daydream
