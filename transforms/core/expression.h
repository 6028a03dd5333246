// Expressions of option files: arithmetic over a task's fields, with units.
//
//   EXPR  := numbers with units (12us, 64MiB, 25GB/s, 40%), + - * / ^, < <= > >= == !=,
//            and, or, not, ( ), fields, $parameters, gpu.NAME, gpu.peak(DTYPE), functions
//   if(CONDITION, A, B)   min(A, B, ...)   max(A, B, ...)
//   sum(A)   mean(A)   min(A)   max(A)   count()     over the tasks of a group
//
// Units are checked when the text is read: time, bytes, operations, and products of their powers;
// 5us + 3MB has no meaning. A literal 0 has any unit. There are no loops and no names but these,
// and an expression has at most 2,000 characters, 500 parts and a depth of 64.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "costmodel/device.h"
#include "transforms/core/params.h"

namespace daydream {

// Powers of the three base units: nanoseconds, bytes, floating-point operations.
struct Dimension {
  int8_t time = 0, bytes = 0, flops = 0;
  friend bool operator==(Dimension, Dimension) = default;
};
inline constexpr Dimension kPlain{};
inline constexpr Dimension kTime{.time = 1};
inline constexpr Dimension kByteCount{.bytes = 1};
// "time", "bytes / time", "a plain number".
std::string Describe(Dimension d);
Dimension DimensionOf(Unit unit);
// `value` as ParseValue gives it, in nanoseconds, bytes and operations.
double InBaseUnits(double value, Unit unit);

enum class Field : uint8_t {
  kTime,
  kGap,
  kBytes,
  kInBytes,
  kOutBytes,
  kFlops,
  kGrid,
  kBlock,
  kRegs,
  kLaunches,
};
inline constexpr size_t kFields = 10;
std::string_view FieldName(Field f);  // "in_bytes"
std::optional<Field> FindField(std::string_view name);

enum class GpuFact : uint8_t {
  kHbmBandwidth,
  kSustainedBandwidth,
  kPcieBandwidth,
  kMemory,
  kMultiprocessors,
  kPeak,
  kSustained,
};

enum class ExpressionOp : uint8_t {
  kNumber,
  kParam,
  kField,
  kGpu,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kPower,
  kNegate,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kEqual,
  kNotEqual,
  kAnd,
  kOr,
  kNot,
  kIf,
  kMin,
  kMax,
  kSumOf,
  kMeanOf,
  kMinOf,
  kMaxOf,
  kCount,
};

// Parts refer to earlier parts of the same expression.
struct ExpressionPart {
  ExpressionOp op = ExpressionOp::kNumber;
  double number = 0;              // kNumber
  uint32_t name = 0;              // kParam: index; kField: Field; kGpu: GpuFact
  DType dtype = DType::kUnknown;  // kGpu
  uint32_t a = 0, b = 0, c = 0;
};

struct Expression {
  std::string text;
  std::vector<ExpressionPart> parts;  // the last one is the value
  std::vector<std::string> params;    // names of $parameters, by index
  bool uses(Field field) const;
  // Its value where no task, GPU or parameter decides it.
  std::optional<double> constant() const;
};

// Where an expression stands decides what it may name.
enum class ExpressionUse : uint8_t {
  kTask,       // fields are those of one task; groups are all selected tasks
  kGroup,      // fields only inside of sum, mean, min, max: the tasks that are merged
  kCondition,  // true or false for one task; no groups
};

struct ExpressionError {
  size_t at = 0, length = 1;
  std::string what, hint;
  bool units = false;  // units that do not fit, rather than text that cannot be read
};

// Reads `text`. `params` are the names and units of $parameters; `wanted` is the dimension of the
// value (no meaning for conditions). Returns nullptr and fills `error` on the first mistake.
std::shared_ptr<const Expression> ParseExpression(
    std::string_view text, const std::map<std::string, Unit, std::less<>>& params,
    ExpressionUse use, Dimension wanted, ExpressionError& error);

// What an expression reads. Missing values are what a trace does not hold.
class ExpressionValues {
 public:
  virtual ~ExpressionValues() = default;
  virtual double Param(std::string_view name) const = 0;  // in base units
  virtual std::optional<double> Value(TaskId t, Field f) = 0;
  virtual std::optional<double> Value(TaskId t, GpuFact f, DType dtype) = 0;
};

// Evaluates one expression for tasks of one group. Aggregates are computed once.
class Evaluation {
 public:
  Evaluation(const Expression& expression, ExpressionValues& values,
             std::span<const TaskId> group = {});
  // For a task (kTask, kCondition: true is 1) or, with None, for the group as a whole. Nothing
  // when a value is missing; missing() then names it.
  std::optional<double> Of(TaskId t);
  std::string_view missing() const { return missing_; }

 private:
  std::optional<double> Eval(uint32_t part, TaskId t);
  std::optional<double> Combine(const ExpressionPart& p, TaskId t);
  std::optional<double> Aggregate(uint32_t part);
  const Expression& expression_;
  ExpressionValues& values_;
  std::span<const TaskId> group_;
  std::vector<std::optional<double>> aggregates_;
  std::vector<bool> known_;  // by part: the aggregate was computed
  std::string missing_;
};

}  // namespace daydream
