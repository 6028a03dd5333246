#include "transforms/core/expression.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace daydream {
namespace {

constexpr std::array<std::string_view, kFields> kFieldNames = {
    "time", "gap", "bytes", "in_bytes", "out_bytes", "flops", "grid", "block", "regs", "launches"};

class NoValues : public ExpressionValues {
 public:
  double Param(std::string_view) const override { return 0; }
  std::optional<double> Value(TaskId, Field) override { return std::nullopt; }
  std::optional<double> Value(TaskId, GpuFact, DType) override { return std::nullopt; }
};

// Whether the value of a part follows from the parts before it.
bool FollowsFromText(const ExpressionPart& part) {
  switch (part.op) {
    case ExpressionOp::kParam:
    case ExpressionOp::kField:
    case ExpressionOp::kGpu:
    case ExpressionOp::kSumOf:
    case ExpressionOp::kMeanOf:
    case ExpressionOp::kMinOf:
    case ExpressionOp::kMaxOf:
    case ExpressionOp::kCount:
      return false;
    default:
      return true;
  }
}

}  // namespace

std::string_view FieldName(Field f) { return kFieldNames[static_cast<size_t>(f)]; }

std::optional<Field> FindField(std::string_view name) {
  auto it = std::find(kFieldNames.begin(), kFieldNames.end(), name);
  if (it == kFieldNames.end()) return std::nullopt;
  return static_cast<Field>(it - kFieldNames.begin());
}

std::string Describe(Dimension d) {
  std::string above, below;
  auto add = [&](std::string_view name, int power) {
    std::string& side = power > 0 ? above : below;
    for (int i = 0; i < std::abs(power); ++i) {
      side += fmt::format("{}{}", side.empty() ? "" : " ", name);
    }
  };
  add("time", d.time), add("bytes", d.bytes), add("flops", d.flops);
  if (above.empty() && below.empty()) return "a plain number";
  if (above.empty()) above = "1";
  return below.empty() ? above : fmt::format("{} per {}", above, below);
}

Dimension DimensionOf(Unit unit) {
  switch (unit) {
    case Unit::kDuration:
      return kTime;
    case Unit::kBytes:
      return kByteCount;
    case Unit::kBandwidth:
      return {.time = -1, .bytes = 1};
    case Unit::kFlops:
      return {.flops = 1};
    case Unit::kFlopRate:
      return {.time = -1, .flops = 1};
    default:
      return kPlain;
  }
}

double InBaseUnits(double value, Unit unit) {
  bool rate = unit == Unit::kBandwidth || unit == Unit::kFlopRate;
  return rate ? value / 1e9 : value;
}

bool Expression::uses(Field field) const {
  return std::any_of(parts.begin(), parts.end(), [&](const ExpressionPart& p) {
    return p.op == ExpressionOp::kField && p.name == static_cast<uint32_t>(field);
  });
}

std::optional<double> Expression::constant() const {
  if (!std::all_of(parts.begin(), parts.end(), FollowsFromText)) return std::nullopt;
  NoValues none;
  return Evaluation(*this, none).Of(TaskId::None());
}

Evaluation::Evaluation(const Expression& expression, ExpressionValues& values,
                       std::span<const TaskId> group)
    : expression_(expression),
      values_(values),
      group_(group),
      aggregates_(expression.parts.size()),
      known_(expression.parts.size(), false) {}

std::optional<double> Evaluation::Of(TaskId t) {
  return Eval(static_cast<uint32_t>(expression_.parts.size() - 1), t);
}

std::optional<double> Evaluation::Eval(uint32_t part, TaskId t) {
  const ExpressionPart& p = expression_.parts[part];
  switch (p.op) {
    case ExpressionOp::kNumber:
      return p.number;
    case ExpressionOp::kParam:
      return values_.Param(expression_.params[p.name]);
    case ExpressionOp::kField: {
      auto value = values_.Value(t, static_cast<Field>(p.name));
      if (!value) missing_ = FieldName(static_cast<Field>(p.name));
      return value;
    }
    case ExpressionOp::kGpu: {
      TaskId of = t.valid() || group_.empty() ? t : group_.front();
      auto value = values_.Value(of, static_cast<GpuFact>(p.name), p.dtype);
      if (!value) missing_ = "gpu";
      return value;
    }
    case ExpressionOp::kSumOf:
    case ExpressionOp::kMeanOf:
    case ExpressionOp::kMinOf:
    case ExpressionOp::kMaxOf:
    case ExpressionOp::kCount:
      return Aggregate(part);
    default:
      return Combine(p, t);
  }
}

std::optional<double> Evaluation::Combine(const ExpressionPart& p, TaskId t) {
  auto a = Eval(p.a, t);
  if (!a) return a;
  switch (p.op) {
    case ExpressionOp::kIf:
      return Eval(*a != 0 ? p.b : p.c, t);
    case ExpressionOp::kNegate:
      return -*a;
    case ExpressionOp::kNot:
      return *a == 0;
    case ExpressionOp::kAnd:
      if (*a == 0) return 0.0;
      break;
    case ExpressionOp::kOr:
      if (*a != 0) return 1.0;
      break;
    default:
      break;
  }
  auto b = Eval(p.b, t);
  if (!b) return b;
  switch (p.op) {
    case ExpressionOp::kAdd:
      return *a + *b;
    case ExpressionOp::kSubtract:
      return *a - *b;
    case ExpressionOp::kMultiply:
      return *a * *b;
    case ExpressionOp::kDivide:
      return *a / *b;
    case ExpressionOp::kPower:
      return std::pow(*a, *b);
    case ExpressionOp::kMin:
      return std::min(*a, *b);
    case ExpressionOp::kMax:
      return std::max(*a, *b);
    case ExpressionOp::kLess:
      return *a < *b;
    case ExpressionOp::kLessEqual:
      return *a <= *b;
    case ExpressionOp::kGreater:
      return *a > *b;
    case ExpressionOp::kGreaterEqual:
      return *a >= *b;
    case ExpressionOp::kEqual:
      return *a == *b;
    case ExpressionOp::kNotEqual:
      return *a != *b;
    case ExpressionOp::kAnd:
    case ExpressionOp::kOr:
      return *b != 0;
    default:
      return std::nullopt;
  }
}

std::optional<double> Evaluation::Aggregate(uint32_t part) {
  if (known_[part]) return aggregates_[part];
  const ExpressionPart& p = expression_.parts[part];
  std::optional<double> result;
  if (p.op == ExpressionOp::kCount) {
    result = static_cast<double>(group_.size());
  } else {
    double sum = 0, least = 0, most = 0;
    bool first = true;
    result = 0;
    for (TaskId t : group_) {
      auto value = Eval(p.a, t);
      if (!value) {
        result = std::nullopt;
        break;
      }
      sum += *value;
      least = first ? *value : std::min(least, *value);
      most = first ? *value : std::max(most, *value);
      first = false;
    }
    if (result) {
      result = p.op == ExpressionOp::kSumOf   ? sum
               : p.op == ExpressionOp::kMinOf ? least
               : p.op == ExpressionOp::kMaxOf ? most
               : group_.empty()               ? 0
                                              : sum / static_cast<double>(group_.size());
    }
  }
  known_[part] = true;
  return aggregates_[part] = result;
}

}  // namespace daydream
