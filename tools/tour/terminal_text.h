// What commands of a lesson print, on a terminal that is narrower than the lessons are written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace daydream {

// The lines of a text, without their ends.
std::vector<std::string_view> TextLines(std::string_view text);

// How many blanks a line begins with.
size_t IndentOf(std::string_view line);

// Of what a command prints for a narrow terminal the part that `lines` keep of what it prints for a
// pipe, `wide`: up to the same row, for `lines` below 0 from the same row on; all of it for 0. A
// row is known by its first word. Empty: there is no such row.
std::string CutAlike(std::string_view narrow, std::string_view wide, int lines);

// A shell command in lines of at most `width` columns, which can still be copied: broken at blanks
// outside of quotes, with a backslash. The first line begins with `prompt`, the others below it.
std::string FoldedCommand(std::string_view prompt, std::string_view command, size_t width);

}  // namespace daydream
