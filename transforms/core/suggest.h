// "Did you mean": the closest of a list of names.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace daydream {

// Single-character edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`.
// O(|a| |b|); texts beyond 64 characters count as far apart.
size_t EditDistance(std::string_view a, std::string_view b);

// The candidate within two edits of `word` (one edit for words of three characters or less), the
// first of the closest; empty when there is none.
std::string_view Closest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace daydream
