// The timelines of the page, packed: half a million slices take about a megabyte of the file.
#pragma once

#include <span>
#include <string>

#include "report/export/side.h"

namespace daydream {

// {"unit_ns", "merged_below_ns", "slices", "strings", "classes", "names", "sides", "data"}.
//
// Times count units of `unit_ns` from the first slice of all sides. "names" are [name, op, layer]
// (places in "strings") and a place in "classes". A side has a name, a description, "windows" of
// the steps that count as [step, begin, end], and "rows" with a title and a number of slices; the
// first row is its critical path by resource. "data" is base64 of gzip of the LEB128 numbers of all
// rows of all sides: for each row the gaps before its slices, then their lengths, their names, and
// how many tasks each stands for, less one.
//
// Beyond `most` slices, neighbours in a row become one slice with the name of the longest while
// they and what is between them take no longer than "merged_below_ns", the first power of two that
// is enough. REQUIRES: timelines with blockers. O(tasks log tasks).
std::string TimelineJson(std::span<const Side> sides, size_t most);

}  // namespace daydream
