// Published figures without traces, as a table of directions and size classes.
#pragma once

#include <filesystem>
#include <string>

namespace daydream {

// A section of docs/accuracy.md: a row for each line of `csv`, predicted from a trace in `traces`.
std::string PublishedSection(const std::filesystem::path& traces, const std::filesystem::path& csv);

}  // namespace daydream
