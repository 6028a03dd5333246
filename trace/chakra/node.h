// Nodes of a Chakra execution trace (.et; mlcommons/chakra, schema/protobuf/et_def.proto): a
// sequence of messages, each after its length. The first one is about the file, all others are
// nodes. A file is one rank.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace daydream {

// How names of nodes begin that are no work but time between it, in files that we write: lags of
// edges, gaps of lanes, and points that edges hang on.
inline constexpr std::string_view kChakraLag = "daydream lag";
inline constexpr std::string_view kChakraGap = "daydream gap";
inline constexpr std::string_view kChakraPoint = "daydream point";

struct ChakraNode {
  static constexpr std::string_view kBetween = "daydream ";
  enum Type : uint8_t {
    kInvalid,
    kMetadata,
    kLoad,
    kStore,
    kCompute,
    kSend,
    kReceive,
    kCollective,
  };

  uint64_t id = 0;
  std::string_view name;
  int64_t type = kInvalid;
  std::vector<uint64_t> after;  // control and data dependencies
  uint64_t duration_us = 0;
  bool has_duration = false;
  // Attributes. Numbers come as any of the integer types.
  int64_t on_cpu = -1;  // is_cpu_op: -1 = it does not say
  int64_t thread = -1;  // tid: of CPU nodes; of others the stream
  int64_t comm_type = -1, comm_bytes = -1, tensor_bytes = -1;
  int64_t duration_ns = -1;  // of our own exports: the whole of it
  std::string_view group;    // pg_name

  // Of our own exports: time between two pieces of work (kChakraLag and its like).
  bool is_between() const { return name.starts_with(kBetween); }
  bool is_communication() const { return type >= kSend && type <= kCollective; }
};

// Takes one message off the front. False when there is no whole one.
bool NextMessage(std::string_view& bytes, std::string_view& message);
// False when the message is damaged.
bool ReadNode(std::string_view message, ChakraNode& node);

// Whether a file that begins so is one: its first message holds a version or attributes, and
// nothing else.
bool LooksLikeChakra(std::string_view head);

}  // namespace daydream
