// A Python pickle that is data and nothing else: dicts, lists, tuples, texts, numbers, None. What
// would import a name or call something is an error, so reading one runs nothing. Protocols 2 to 5
// (pickletools.py of Python lists the opcodes).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace daydream {

struct PickleValue {
  enum class Kind : uint8_t { kNone, kBool, kInt, kFloat, kText, kBytes, kList, kDict };
  Kind kind = Kind::kNone;
  uint32_t size = 0;  // of texts; lists and dicts: their place in the pickle
  union {
    int64_t number = 0;  // kInt, kBool
    double real;
    const char* text;
  };
};

// Texts point into the bytes that were read.
class Pickle {
 public:
  // Why the bytes cannot be read, in words, or empty. Fills `root()`. O(bytes).
  std::string Read(std::string_view bytes);

  const PickleValue& root() const { return root_; }
  // Of a list or tuple; of a dict keys and values in turns. Empty for everything else. Containers
  // may hold themselves: whoever walks them bounds the depth.
  std::span<const PickleValue> Items(const PickleValue& value) const;
  // The value of a key of a dict (the last one counts), or nullptr.
  const PickleValue* Find(const PickleValue& dict, std::string_view key) const;
  static std::string_view Text(const PickleValue& value);

 private:
  friend class PickleReader;
  std::vector<std::vector<PickleValue>> containers_;
  PickleValue root_;
};

}  // namespace daydream
