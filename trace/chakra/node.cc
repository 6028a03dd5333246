#include "trace/chakra/node.h"

#include <protozero/pbf_reader.hpp>

#include "trace/bytes/varint.h"

namespace daydream {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

std::string_view View(pbf_reader& reader) {
  const auto view = reader.get_view();
  return {view.data(), view.size()};
}

// Lists of numbers are packed or not.
void ReadIds(pbf_reader& reader, std::vector<uint64_t>& ids) {
  if (reader.wire_type() == pbf_wire_type::varint) {
    ids.push_back(reader.get_uint64());
  } else if (reader.wire_type() == pbf_wire_type::length_delimited) {
    std::string_view packed = View(reader);
    for (uint64_t id = 0; ReadVarint(packed, id);) ids.push_back(id);
  } else {
    reader.skip();
  }
}

// {1: name, 2: text, 3..: one value of one of many types}
void ReadAttribute(std::string_view message, ChakraNode& node) {
  pbf_reader reader(message.data(), message.size());
  std::string_view name, text;
  int64_t number = -1;
  while (reader.next()) {
    const bool first = reader.tag() == 1;
    if (reader.wire_type() == pbf_wire_type::length_delimited) {
      (first ? name : text) = View(reader);
    } else if (reader.wire_type() == pbf_wire_type::varint) {
      number = reader.get_int64();
    } else {
      reader.skip();
    }
  }
  // sint32 and sint64 would be coded in another way; nobody uses them for these.
  if (name == "is_cpu_op") node.on_cpu = number != 0;
  if (name == "tid" || name == "stream" || name == "stream_id") node.thread = number;
  if (name == "comm_type") node.comm_type = number;
  if (name == "comm_size") node.comm_bytes = number;
  if (name == "tensor_size") node.tensor_bytes = number;
  if (name == "duration_ns") node.duration_ns = number;
  if (name == "pg_name") node.group = text;
}

}  // namespace

bool NextMessage(std::string_view& bytes, std::string_view& message) {
  std::string_view rest = bytes;
  uint64_t size = 0;
  if (!ReadVarint(rest, size) || size > rest.size()) return false;
  message = rest.substr(0, size);
  bytes = rest.substr(size);
  return true;
}

bool ReadNode(std::string_view message, ChakraNode& node) {
  try {
    pbf_reader reader(message.data(), message.size());
    while (reader.next()) {
      const bool number = reader.wire_type() == pbf_wire_type::varint;
      const bool text = reader.wire_type() == pbf_wire_type::length_delimited;
      if (reader.tag() == 1 && number) {
        node.id = reader.get_uint64();
      } else if (reader.tag() == 2 && text) {
        node.name = View(reader);
      } else if (reader.tag() == 3 && number) {
        node.type = reader.get_int64();
      } else if (reader.tag() == 4 || reader.tag() == 5) {
        ReadIds(reader, node.after);
      } else if (reader.tag() == 7 && number) {
        node.duration_us = reader.get_uint64();
        node.has_duration = true;
      } else if (reader.tag() == 10 && text) {
        ReadAttribute(View(reader), node);
      } else {
        reader.skip();
      }
    }
  } catch (const protozero::exception&) {
    return false;
  }
  return true;
}

bool LooksLikeChakra(std::string_view head) {
  uint64_t size = 0;
  if (!ReadVarint(head, size) || size < 2) return false;
  std::string_view message = head.substr(0, size);
  const bool whole = message.size() == size;
  // 1: version ("0.0.4"); 2: attribute {1: name, ..}
  bool any = false;
  while (!message.empty()) {
    const char tag = message[0];
    if (tag != '\x0a' && tag != '\x12') return false;
    message.remove_prefix(1);
    uint64_t length = 0;
    if (!ReadVarint(message, length)) return any && !whole;
    const std::string_view field = message.substr(0, length);
    if (tag == '\x0a') {
      if (field.empty() || field.find_first_not_of("0123456789.") != std::string_view::npos) {
        return false;
      }
    } else if (!field.starts_with('\x0a')) {
      return false;
    }
    any = true;
    if (length > message.size()) return !whole;
    message.remove_prefix(length);
  }
  return any;
}

}  // namespace daydream
