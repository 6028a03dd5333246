// The text of a surface file: lines of words apart by one space; lines that begin with # are
// remarks.
#pragma once

#include <string_view>
#include <vector>

namespace daydream {

std::vector<std::string_view> SplitAt(std::string_view text,
                                      char separator);  // without empty parts
std::vector<std::vector<std::string_view>> SurfaceLines(std::string_view text);
// Aborts for what is no number: the files are part of the program.
double SurfaceNumber(std::string_view word);

}  // namespace daydream
