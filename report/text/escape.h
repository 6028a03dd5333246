// Text from the input in texts of ours. Names of kernels, threads and files are whatever a file
// says; in each format they may be shown but not act.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace daydream {

// Length of the well-formed UTF-8 sequence at text[i], or 0 (Unicode standard, table 3-7).
size_t Utf8Length(std::string_view text, size_t i);
// Whether a reader does not see this character or sees others in another order for it: controls
// (C0, DEL, C1), marks of direction (as in CVE-2021-42574), characters without width, separators of
// lines, tags and characters for private use.
bool IsHidden(char32_t character);
// The character that `length` bytes at text[i] stand for. REQUIRES: length = Utf8Length(text, i).
char32_t DecodeUtf8(std::string_view text, size_t i, size_t length);

// For terminals, of whole texts: hidden characters and what is no UTF-8 become '?', as in
// Printable() (report/text/format.h); line ends and tabs stay, and with `colors` these (ESC [
// digits m), too.
std::string PrintableText(std::string_view text, bool colors);

// For Markdown, in a table or out of one: Printable(), on one line, with what makes tables, links,
// code, emphasis and HTML taken literally.
std::string MarkdownText(std::string_view text);
// For HTML, between tags and inside of quoted attributes: Printable(), with & < > " ' as entities.
std::string HtmlText(std::string_view text);

}  // namespace daydream
