// What answers in Markdown have beside their tables.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tools/gate.h"

namespace daydream {

// Each line of a text as a line of its own: Markdown would fill a paragraph with them.
std::string LinesMarkdown(std::string_view text);
// The same of plain text: nothing in it acts (report/text/escape.h).
std::string PlainMarkdown(std::string_view text);

// What the gates of --fail-if say: an alert of GitHub, a quotation elsewhere; "" without gates.
// `of`, in Markdown, is what they were asked of.
std::string VerdictMarkdown(std::span<const Verdict> gates, std::string_view of);

}  // namespace daydream
