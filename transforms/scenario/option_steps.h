// What an option file asks for, once it was read: steps of a selector and actions. Plain data.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "costmodel/device.h"
#include "transforms/core/expression.h"
#include "transforms/core/select.h"
#include "transforms/core/source_text.h"
#include "transforms/core/transform.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

using ExpressionPtr = std::shared_ptr<const Expression>;

// Longer times are mistakes, and sums of them would not fit 64 bits.
inline constexpr double kLongestNs = 1e13;
inline constexpr double kMostBytes = 1e15;

// A stream to put work on: a new one of this name, or the one with this number on the same device.
struct StreamTarget {
  std::string name;    // new(NAME)
  int64_t number = 0;  // when name is empty
};

struct ScaleAction {
  ExpressionPtr time, bytes;  // factors; nullptr: not given
  // To the roofline: kernels of known work take what the GPU needs at least for it in this format
  // (unknown: their own), over `efficiency`; never longer than now.
  bool roofline = false;
  DType dtype = DType::kUnknown;
  ExpressionPtr efficiency;  // nullptr: 1
};
struct SetAction {
  ExpressionPtr time, gap;
  std::optional<Memory> memory;  // what pageable and pinned memory becomes
  std::string name;
};
struct RemoveAction {
  bool bridge = true;  // what waited for a removed task waits for what that waited for
};
// Which dependencies of a task outlive its leaving a stream.
enum class KeepOrder : uint8_t { kByDirection, kBoth, kBefore, kAfter, kNone };
struct MoveAction {
  StreamTarget stream;
  KeepOrder keep = KeepOrder::kByDirection;
};
struct UnblockAction {};
struct PriorityAction {
  int32_t priority = 0;
};
// The task starts in the step before, no earlier than the first task of `after` there.
struct ShiftAction {
  Selector after;
  Anchor edge = Anchor::kStart;
  bool launch = false;  // its launch moves, too: behind that of the first task of `after`
};
enum class GroupKey : uint8_t { kStep, kModule, kPhase, kOp, kStream, kRun };
struct FuseAction {
  std::vector<GroupKey> group_by;
  std::string name;
  ExpressionPtr time;
  bool keep_launches = false, keep_host = false;
};
struct InsertAction {
  TaskKind kind = TaskKind::kKernel;  // kHost for cpu
  std::string name;
  ExpressionPtr time, bytes;
  Memory from = Memory::kDevice, to = Memory::kDevice;  // kMemcpy
  bool before = false, launch = true;
  std::optional<StreamTarget> stream;
};
// `select` of the step holds what waits.
struct LinkAction {
  Selector from;
  ExpressionPtr lag;
  bool unlink = false;
};
struct UseAction {
  std::vector<Application> applications;  // built-in ones
};

struct OptionAction {
  Place place;
  std::string verb;  // "fuse"
  std::variant<ScaleAction, SetAction, RemoveAction, MoveAction, UnblockAction, PriorityAction,
               ShiftAction, FuseAction, InsertAction, LinkAction, UseAction>
      what;
};

// What the report calls the change by an action of a step without `cause`.
std::string CauseOf(const OptionAction& action);

struct OptionStep {
  Place place;
  std::string cause;               // for the report; empty: made of the verb
  std::optional<Selector> select;  // nothing for `use`
  std::vector<OptionAction> actions;
};

struct OptionCheck {
  Place place;
  Selector of;
  uint64_t at_least = 1, at_most = UINT64_MAX;
};

// A field that the file needs, or another thing that traces may lack.
struct OptionNeed {
  Place place;
  std::string word;
};

struct OptionProgram {
  std::vector<OptionNeed> needs;
  struct Definition {
    std::string name;
    Place place;
    Selector selector;
  };
  std::vector<Definition> define;
  std::vector<OptionStep> steps;
  std::vector<OptionCheck> checks;
  Place memory_place;
  ExpressionPtr
      memory;  // bytes that the peak of GPU memory changes by; null: the file does not say
};

}  // namespace daydream
