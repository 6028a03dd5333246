// The timelines of the page, packed: half a million slices take less than a megabyte of the file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "report/export/side.h"

namespace daydream {

// What edited each task last.
struct TaskCauses {
  struct Cause {
    std::string what, opt;  // as those of a prediction: "elementwise kernels merged", "fuse"
  };
  std::vector<Cause> causes;
  std::vector<uint32_t> of;  // by task: 1 + a place in `causes`, or 0; what is behind its end is 0
};

// {"unit_ns", "merged_below_ns", "slices", "causes", "text", "sides", "data"}.
//
// Times count units of `unit_ns` from the first slice of all sides. "text" is base64 of gzip of
// {"strings", "classes", "names"}; "names" are four columns: name, op and layer (places in
// "strings") and a place in "classes". A side has a name, a description, "windows" of the steps
// that count as [step, begin, end], and "rows" with a title and a number of slices; the first row
// is its critical path by resource. "data" is base64 of gzip of LEB128 numbers, row after row of
// all sides, column after column: the pause before each slice, its length, its name, how many tasks
// it stands for, less one, and 1 + the place in "causes" of what edited the longest of them that
// was edited, or 0. Pauses and lengths are zigzag. A cause has "what", "opt" and the number of its
// "slices".
//
// A row with "like", the place of a row of the first side, has a column before these: 0 for a slice
// that is not in that row, else 1 + zigzag of its place there, counted from behind the last one
// that was found. Pauses and lengths of such slices are differences to those there, and the name is
// 0 where it is the same, else 1 + name. Most of what is after a change is as it was before it.
//
// Beyond `most` slices, or 2.2 bytes for each of so many, neighbours in a row become one slice with
// the name of the longest while they and what is between them take no longer than
// "merged_below_ns", the first power of two that is enough. REQUIRES: timelines with blockers.
// O(tasks log tasks).
std::string TimelineJson(std::span<const Side> sides, const TaskCauses& causes, size_t most);

}  // namespace daydream
