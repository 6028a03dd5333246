// Numbers as people read them. ASCII only and the same in every locale.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace daydream {

enum class TimeUnit : uint8_t { kAuto, kNs, kUs, kMs, kS };

// "182.4 ms", "509 us", "13 us"; auto picks the unit that leaves one to four digits. Every printed
// time is made here.
std::string FormatTime(Duration d, TimeUnit unit = TimeUnit::kAuto);
// The same with a sign: "+2.5 ms", "-38.1 ms".
std::string FormatChange(Duration d, TimeUnit unit = TimeUnit::kAuto);
// The unit FormatTime would pick for `d`, so that a column can use one unit throughout; or what a
// reader wishes.
TimeUnit UnitFor(Duration d, TimeUnit wish = TimeUnit::kAuto);
std::string_view UnitName(TimeUnit unit);
// "ns", "us", "ms" or "s"; anything else is auto.
TimeUnit ParseTimeUnit(std::string_view name);
// The number alone, in `unit`: "182.4"; below ten
// seconds with as much in seconds as in ms, and whole in ns.
std::string TimeIn(Duration d, TimeUnit unit, int decimals = 1);

std::string FormatCount(uint64_t n);                              // "1,392"
std::string FormatPercent(double share, int decimals = 1);        // 0.408 -> "40.8 %"
std::string FormatSignedPercent(double share, int decimals = 1);  // "+0.2 %"
std::string FormatSpeedup(double factor);                         // "1.42x"
std::string FormatBytes(uint64_t bytes);                          // "7.2 MB" (powers of 1000)
// "1 step", "8 steps".
std::string Plural(uint64_t n, std::string_view noun);

// Columns that `text` takes in a terminal, counting code points; broken UTF-8 counts bytes.
size_t DisplayWidth(std::string_view text);
// At most `width` columns, cut in the middle, with "..." in place of what is missing.
std::string CutMiddle(std::string_view text, size_t width);
// The same for texts that stand below each other: where two that differ would read alike, they are
// cut elsewhere, or else numbered.
std::vector<std::string> CutApart(const std::vector<std::string>& texts, size_t width);
// Control characters, newlines and escape sequences become '?': names come from the input.
std::string Printable(std::string_view text);

}  // namespace daydream
