// YAML without its surprises: a tree of maps, lists and texts with their places.
//
// yaml-cpp reads the text; this walk refuses what people never mean: keys given twice, anchors,
// aliases, tags, several documents, nesting beyond 32, more than 10,000 values. Every scalar stays
// the text that was written ("no" is no boolean, "010" is no 8). JSON is read the same way.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transforms/core/source_text.h"

namespace daydream {

struct YamlNode {
  enum class Kind : uint8_t { kNothing, kText, kList, kMap };
  Kind kind = Kind::kNothing;
  Place place;
  std::string text;             // kText
  bool quoted = false;          // kText: stands in quotes, or is a block
  std::vector<YamlNode> items;  // kList: its items; kMap: its values, in the order written
  struct Key {
    std::string text;
    Place place;
  };
  std::vector<Key> keys;  // kMap: as long as items

  bool is_text() const { return kind == Kind::kText; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_map() const { return kind == Kind::kMap; }
  // The value of `key` in a map; nullptr when there is none.
  const YamlNode* Find(std::string_view key) const;
};

inline constexpr size_t kMostYamlBytes = 256 << 10;

// InvalidArgument with E0401 (too large, no text), E0402 (no YAML), E0403 (YAML that is not
// accepted) or E0404 (a key given twice) at its place.
absl::StatusOr<YamlNode> ReadStrictYaml(const SourceText& source);

// The place of byte `offset` of a scalar's text, when the scalar stands in the source as it is
// (no escapes, one line); else the place of the scalar.
Place PlaceInside(const SourceText& source, const YamlNode& scalar, size_t offset);

}  // namespace daydream
