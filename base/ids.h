// Dense typed indices. An Id<Tag> is a row number in exactly one table; mixing up two tables is
// a compile error. `Id::None()` means "no row" and compares unequal to every valid row.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

namespace daydream {

template <class Tag>
struct Id {
  static constexpr uint32_t kNoneValue = std::numeric_limits<uint32_t>::max();

  uint32_t value = kNoneValue;

  constexpr Id() = default;
  constexpr explicit Id(uint32_t v) : value(v) {}
  constexpr explicit Id(size_t v) : value(static_cast<uint32_t>(v)) {}
  constexpr explicit Id(int v) : value(static_cast<uint32_t>(v)) {}

  static constexpr Id None() { return Id(); }
  constexpr bool valid() const { return value != kNoneValue; }
  constexpr size_t index() const { return value; }

  friend constexpr bool operator==(Id, Id) = default;
  friend constexpr auto operator<=>(Id, Id) = default;
  template <class H>
  friend H AbslHashValue(H h, Id id) {
    return H::combine(std::move(h), id.value);
  }
};

using NameId = Id<struct NameTag>;    // text in a StringPool
using LaneId = Id<struct LaneTag>;    // a CPU thread, GPU stream or communication channel
using EventId = Id<struct EventTag>;  // a row of Trace
using ScopeId = Id<struct ScopeTag>;  // a named range on a CPU thread (op, annotation, module)
using TaskId = Id<struct TaskTag>;    // a row of Graph and of Timeline
using LayerId = Id<struct LayerTag>;  // a layer of the network

}  // namespace daydream
