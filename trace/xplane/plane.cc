#include "trace/xplane/plane.h"

#include <protozero/pbf_reader.hpp>

namespace daydream {
namespace {

using protozero::pbf_reader;

std::string_view View(pbf_reader& reader) {
  const auto view = reader.get_view();
  return {view.data(), view.size()};
}

pbf_reader Message(std::string_view bytes) { return pbf_reader(bytes.data(), bytes.size()); }

// Tables are maps: entries {1: key, 2: {1: id, 2: name}}.
void ReadEntry(std::string_view entry, std::map<int64_t, std::string_view>& table) {
  pbf_reader reader = Message(entry);
  int64_t key = 0;
  std::string_view name;
  while (reader.next()) {
    if (reader.tag() == 1 && reader.wire_type() == protozero::pbf_wire_type::varint) {
      key = reader.get_int64();
    } else if (reader.tag() == 2 &&
               reader.wire_type() == protozero::pbf_wire_type::length_delimited) {
      pbf_reader value = Message(View(reader));
      while (value.next()) {
        if (value.tag() == 2 && value.wire_type() == protozero::pbf_wire_type::length_delimited) {
          name = View(value);
        } else {
          value.skip();
        }
      }
    } else {
      reader.skip();
    }
  }
  table[key] = name;
}

XStat ReadStat(std::string_view bytes, const std::map<int64_t, std::string_view>& names) {
  XStat stat;
  const auto name_of = [&](int64_t id) {
    const auto it = names.find(id);
    return it == names.end() ? std::string_view() : it->second;
  };
  pbf_reader reader = Message(bytes);
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case protozero::tag_and_type(1, protozero::pbf_wire_type::varint):
        stat.name = name_of(reader.get_int64());
        break;
      case protozero::tag_and_type(2, protozero::pbf_wire_type::fixed64): {
        const double value = reader.get_double();
        stat.number = value > -9e18 && value < 9e18 ? static_cast<int64_t>(value) : 0;
        break;
      }
      case protozero::tag_and_type(3, protozero::pbf_wire_type::varint):
      case protozero::tag_and_type(4, protozero::pbf_wire_type::varint):
        stat.number = static_cast<int64_t>(reader.get_uint64());
        break;
      case protozero::tag_and_type(5, protozero::pbf_wire_type::length_delimited):
        stat.text = View(reader);
        break;
      case protozero::tag_and_type(7, protozero::pbf_wire_type::varint):
        stat.text = name_of(static_cast<int64_t>(reader.get_uint64()));
        break;
      default:
        reader.skip();
    }
  }
  return stat;
}

XLine ReadLine(std::string_view bytes) {
  XLine line;
  pbf_reader reader = Message(bytes);
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case protozero::tag_and_type(1, protozero::pbf_wire_type::varint):
        line.id = reader.get_int64();
        break;
      case protozero::tag_and_type(2, protozero::pbf_wire_type::length_delimited):
        line.name = View(reader);
        break;
      case protozero::tag_and_type(3, protozero::pbf_wire_type::varint):
        line.timestamp_ns = reader.get_int64();
        break;
      case protozero::tag_and_type(4, protozero::pbf_wire_type::length_delimited):
        line.events.push_back(View(reader));
        break;
      default:
        reader.skip();
    }
  }
  return line;
}

XPlane ReadPlane(std::string_view bytes) {
  XPlane plane;
  std::vector<std::string_view> stats;
  pbf_reader reader = Message(bytes);
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case protozero::tag_and_type(2, protozero::pbf_wire_type::length_delimited):
        plane.name = View(reader);
        break;
      case protozero::tag_and_type(3, protozero::pbf_wire_type::length_delimited):
        plane.lines.push_back(ReadLine(View(reader)));
        break;
      case protozero::tag_and_type(4, protozero::pbf_wire_type::length_delimited):
        ReadEntry(View(reader), plane.event_names);
        break;
      case protozero::tag_and_type(5, protozero::pbf_wire_type::length_delimited):
        ReadEntry(View(reader), plane.stat_names);
        break;
      case protozero::tag_and_type(6, protozero::pbf_wire_type::length_delimited):
        stats.push_back(View(reader));
        break;
      default:
        reader.skip();
    }
  }
  for (std::string_view stat : stats) plane.stats.push_back(ReadStat(stat, plane.stat_names));
  return plane;
}

}  // namespace

const XStat* XEvent::Find(std::string_view stat) const {
  for (const XStat& s : stats) {
    if (s.name == stat) return &s;
  }
  return nullptr;
}

XEvent XPlane::Unpack(std::string_view bytes) const {
  XEvent event;
  try {
    pbf_reader reader = Message(bytes);
    while (reader.next()) {
      switch (reader.tag_and_type()) {
        case protozero::tag_and_type(1, protozero::pbf_wire_type::varint): {
          const auto it = event_names.find(reader.get_int64());
          if (it != event_names.end()) event.name = it->second;
          break;
        }
        case protozero::tag_and_type(2, protozero::pbf_wire_type::varint):
          event.offset_ps = reader.get_int64();
          break;
        case protozero::tag_and_type(3, protozero::pbf_wire_type::varint):
          event.duration_ps = reader.get_int64();
          break;
        case protozero::tag_and_type(4, protozero::pbf_wire_type::length_delimited):
          event.stats.push_back(ReadStat(View(reader), stat_names));
          break;
        default:
          reader.skip();
      }
    }
  } catch (const protozero::exception&) {
    event.duration_ps = -1;  // no event has this: it is counted as damaged
  }
  return event;
}

size_t XPlane::events() const {
  size_t events = 0;
  for (const XLine& line : lines) events += line.events.size();
  return events;
}

bool ReadPlanes(std::string_view file, std::vector<XPlane>& planes) {
  try {
    pbf_reader reader = Message(file);
    while (reader.next()) {
      if (reader.tag_and_type() ==
          protozero::tag_and_type(1, protozero::pbf_wire_type::length_delimited)) {
        planes.push_back(ReadPlane(View(reader)));
      } else {
        reader.skip();
      }
    }
  } catch (const protozero::exception&) {
    return false;
  }
  return true;
}

bool LooksLikeXSpace(std::string_view head) {
  if (!head.starts_with('\x0a')) return false;
  // {1: length} {1: id}? {2: name}
  size_t at = 1;
  while (at < head.size() && at < 11 && (head[at] & '\x80') != 0) ++at;
  ++at;
  if (at + 1 < head.size() && head[at] == '\x08') {
    ++at;
    while (at < head.size() && (head[at] & '\x80') != 0) ++at;
    ++at;
  }
  if (at + 2 >= head.size() || head[at] != '\x12') return false;
  const auto size = static_cast<unsigned char>(head[at + 1]);
  const std::string_view name = head.substr(at + 2, size);
  return name.starts_with("/host:") || name.starts_with("/device:") ||
         name.starts_with("Task Environment") || name.starts_with("#Chip");
}

}  // namespace daydream
