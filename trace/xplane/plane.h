// One plane of an XSpace (openxla/tsl, profiler/protobuf/xplane.proto): a GPU or the host, with
// lines of events. Texts are numbers into tables of the plane. Nothing is copied but the tables.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace daydream {

struct XStat {
  std::string_view name, text;  // text: of strings and references
  int64_t number = 0;
};

struct XEvent {
  std::string_view name;
  int64_t offset_ps = 0, duration_ps = 0;
  std::vector<XStat> stats;
  // The stat of this name, or nullptr.
  const XStat* Find(std::string_view stat) const;
};

struct XLine {
  int64_t id = 0, timestamp_ns = 0;
  std::string_view name;
  std::vector<std::string_view> events;  // still packed
};

struct XPlane {
  std::string_view name;
  std::map<int64_t, std::string_view> event_names, stat_names;
  std::vector<XStat> stats;
  std::vector<XLine> lines;

  XEvent Unpack(std::string_view event) const;
  size_t events() const;
};

// The planes of a whole file. False when it is cut off or no XSpace.
bool ReadPlanes(std::string_view file, std::vector<XPlane>& planes);

// Whether a file that begins so is an XSpace: field 1 is a plane, whose field 2 is its name.
bool LooksLikeXSpace(std::string_view head);

}  // namespace daydream
