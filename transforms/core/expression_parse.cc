// Reads the text of an expression and checks its units.
#include <algorithm>
#include <cmath>

#include "transforms/core/expression.h"
#include "transforms/core/expression_lexer.h"
#include "transforms/core/suggest.h"

namespace daydream {
namespace {

constexpr size_t kMostCharacters = 2000;
constexpr size_t kMostParts = 500;
constexpr int kDeepest = 64;
constexpr int kHighestPower = 8;

constexpr std::string_view kFunctions[] = {"if", "min", "max", "sum", "mean", "count"};

struct GpuName {
  std::string_view name;
  GpuFact fact;
  Dimension dimension;
  bool takes_dtype = false;
};
constexpr Dimension kByteRate{.time = -1, .bytes = 1};
constexpr Dimension kFlopPerTime{.time = -1, .flops = 1};
constexpr GpuName kGpuNames[] = {
    {"hbm_bw", GpuFact::kHbmBandwidth, kByteRate},
    {"sustained_bw", GpuFact::kSustainedBandwidth, kByteRate},
    {"pcie_bw", GpuFact::kPcieBandwidth, kByteRate},
    {"memory", GpuFact::kMemory, kByteCount},
    {"sms", GpuFact::kMultiprocessors, kPlain},
    {"peak", GpuFact::kPeak, kFlopPerTime, true},
    {"sustained", GpuFact::kSustained, kFlopPerTime, true},
};

struct Operator {
  std::string_view text;
  ExpressionOp op;
};
constexpr Operator kComparisons[] = {
    {"<=", ExpressionOp::kLessEqual}, {">=", ExpressionOp::kGreaterEqual},
    {"==", ExpressionOp::kEqual},     {"!=", ExpressionOp::kNotEqual},
    {"<", ExpressionOp::kLess},       {">", ExpressionOp::kGreater}};

Dimension FieldDimension(Field f) {
  switch (f) {
    case Field::kTime:
    case Field::kGap:
      return kTime;
    case Field::kBytes:
    case Field::kInBytes:
    case Field::kOutBytes:
      return kByteCount;
    case Field::kFlops:
      return {.flops = 1};
    default:
      return kPlain;
  }
}

// Of a part that was read: what its value is, and where it stands.
struct Typed {
  uint32_t part = 0;
  bool boolean = false;
  bool any = false;  // a literal 0, which has any unit
  Dimension dimension;
  size_t begin = 0, end = 0;
};

// Recursive descent; an empty optional means that error_ is set.
class Reader {
 public:
  using Params = std::map<std::string, Unit, std::less<>>;
  Reader(std::string_view text, const Params& params, ExpressionUse use, ExpressionError& error)
      : text_(text), in_(text), params_(params), use_(use), error_(error) {}

  std::shared_ptr<const Expression> Read(Dimension wanted) {
    if (text_.size() > kMostCharacters) {
      Fail(0, 1, fmt::format("an expression has at most {} characters", kMostCharacters), "");
      return nullptr;
    }
    auto value = Or();
    if (!value) return nullptr;
    in_.Skip();
    if (!in_.AtEnd()) {
      Fail(in_.at(), 1, "the expression cannot be read", "expected an operator or the end");
      return nullptr;
    }
    bool condition = use_ == ExpressionUse::kCondition;
    if (value->boolean != condition) {
      FailUnits(
          *value,
          condition ? "this is a number, not a condition" : "this is a condition, not a number",
          condition ? "compare it: time > 20us" : "choose with if(CONDITION, A, B)");
      return nullptr;
    }
    if (!condition && !value->any && value->dimension != wanted) {
      FailUnits(
          *value,
          fmt::format("the value is {}, not {}", Describe(value->dimension), Describe(wanted)), "");
      return nullptr;
    }
    expression_.text = std::string(text_);
    return std::make_shared<const Expression>(std::move(expression_));
  }

 private:
  using Result = std::optional<Typed>;

  std::nullopt_t Fail(size_t at, size_t length, std::string what, std::string hint) {
    error_ = {at, length, std::move(what), std::move(hint), false};
    return std::nullopt;
  }
  std::nullopt_t FailUnits(const Typed& where, std::string what, std::string hint) {
    error_ = {where.begin, where.end - where.begin, std::move(what), std::move(hint), true};
    return std::nullopt;
  }

  bool Take(std::string_view symbol) { return in_.Take(symbol); }
  bool TakeWord(std::string_view word) { return in_.TakeWord(word); }

  Result Add(ExpressionPart part, Typed typed) {
    if (expression_.parts.size() >= kMostParts) {
      return Fail(typed.begin, 1, fmt::format("an expression has at most {} parts", kMostParts),
                  "");
    }
    typed.part = static_cast<uint32_t>(expression_.parts.size());
    typed.end = in_.at();
    expression_.parts.push_back(part);
    return typed;
  }

  Result Or() {
    if (++depth_ > kDeepest) return Fail(in_.at(), 1, "the expression is nested too deep", "");
    Result left = And();
    while (left && TakeWord("or")) left = Logic(ExpressionOp::kOr, *left, And());
    --depth_;
    return left;
  }
  Result And() {
    Result left = Not();
    while (left && TakeWord("and")) left = Logic(ExpressionOp::kAnd, *left, Not());
    return left;
  }
  Result Logic(ExpressionOp op, const Typed& a, const Result& b) {
    if (!b) return std::nullopt;
    for (const Typed* t : {&a, &*b}) {
      if (!t->boolean) return FailUnits(*t, "this is a number, not a condition", "");
    }
    return Add({.op = op, .a = a.part, .b = b->part}, {.boolean = true, .begin = a.begin});
  }
  Result Not() {
    in_.Skip();
    size_t begin = in_.at();
    if (!TakeWord("not")) return Comparison();
    if (++depth_ > kDeepest) return Fail(in_.at(), 1, "the expression is nested too deep", "");
    Result a = Not();
    --depth_;
    if (!a) return std::nullopt;
    if (!a->boolean) return FailUnits(*a, "this is a number, not a condition", "");
    return Add({.op = ExpressionOp::kNot, .a = a->part}, {.boolean = true, .begin = begin});
  }
  Result Comparison() {
    Result a = Sum();
    if (!a) return a;
    for (const Operator& o : kComparisons) {
      if (!Take(o.text)) continue;
      Result b = Sum();
      if (!b) return b;
      if (!Join(*a, *b, "compared")) return std::nullopt;
      return Add({.op = o.op, .a = a->part, .b = b->part}, {.boolean = true, .begin = a->begin});
    }
    return a;
  }

  // The unit that two operands of one sum have in common; false when they have none.
  std::optional<Typed> Join(const Typed& a, const Typed& b, std::string_view how) {
    for (const Typed* t : {&a, &b}) {
      if (t->boolean) return FailUnits(*t, "this is a condition, not a number", "");
    }
    Typed joined{
        .any = a.any && b.any, .dimension = a.any ? b.dimension : a.dimension, .begin = a.begin};
    if (!a.any && !b.any && a.dimension != b.dimension) {
      return FailUnits(
          b,
          fmt::format("{} and {} cannot be {}", Describe(a.dimension), Describe(b.dimension), how),
          fmt::format("this is {}", Describe(b.dimension)));
    }
    return joined;
  }

  Result Sum() {
    Result left = Product();
    while (left) {
      ExpressionOp op;
      if (Take("+"))
        op = ExpressionOp::kAdd;
      else if (Take("-"))
        op = ExpressionOp::kSubtract;
      else
        break;
      Result right = Product();
      if (!right) return right;
      auto joined = Join(*left, *right, op == ExpressionOp::kAdd ? "added" : "subtracted");
      if (!joined) return std::nullopt;
      left = Add({.op = op, .a = left->part, .b = right->part}, *joined);
    }
    return left;
  }

  Result Product() {
    Result left = Unary();
    while (left) {
      bool divide = false;
      if (Take("*"))
        divide = false;
      else if (Take("/"))
        divide = true;
      else
        break;
      Result right = Unary();
      if (!right) return right;
      for (const Typed* t : {&*left, &*right}) {
        if (t->boolean) return FailUnits(*t, "this is a condition, not a number", "");
      }
      auto product = Multiplied(*left, *right, divide ? -1 : 1);
      if (!product) return std::nullopt;
      left = Add({.op = divide ? ExpressionOp::kDivide : ExpressionOp::kMultiply,
                  .a = left->part,
                  .b = right->part},
                 *product);
    }
    return left;
  }

  std::optional<Typed> Multiplied(const Typed& a, const Typed& b, int sign) {
    int time = a.dimension.time + sign * b.dimension.time;
    int bytes = a.dimension.bytes + sign * b.dimension.bytes;
    int flops = a.dimension.flops + sign * b.dimension.flops;
    for (int power : {time, bytes, flops}) {
      if (std::abs(power) > kHighestPower) return FailUnits(b, "the unit has too high a power", "");
    }
    return Typed{.dimension = {static_cast<int8_t>(time), static_cast<int8_t>(bytes),
                               static_cast<int8_t>(flops)},
                 .begin = a.begin};
  }

  Result Unary() {
    in_.Skip();
    size_t begin = in_.at();
    if (!Take("-")) return Power();
    if (++depth_ > kDeepest) return Fail(in_.at(), 1, "the expression is nested too deep", "");
    Result a = Unary();
    --depth_;
    if (!a) return a;
    if (a->boolean) return FailUnits(*a, "this is a condition, not a number", "");
    return Add({.op = ExpressionOp::kNegate, .a = a->part},
               {.any = a->any, .dimension = a->dimension, .begin = begin});
  }

  Result Power() {
    Result base = Primary();
    if (!base || !Take("^")) return base;
    if (++depth_ > kDeepest) return Fail(in_.at(), 1, "the expression is nested too deep", "");
    Result exponent = Unary();
    --depth_;
    if (!exponent) return exponent;
    if (base->boolean || exponent->boolean) return FailUnits(*base, "conditions have no power", "");
    if (exponent->dimension != kPlain) {
      return FailUnits(*exponent, "a power is a plain number",
                       fmt::format("this is {}", Describe(exponent->dimension)));
    }
    Typed result{.begin = base->begin};
    if (base->dimension != kPlain) {
      const ExpressionPart& p = expression_.parts[exponent->part];
      bool whole = p.op == ExpressionOp::kNumber && p.number == std::floor(p.number) &&
                   p.number <= kHighestPower;
      if (!whole) {
        return FailUnits(*exponent,
                         fmt::format("{} has whole powers only", Describe(base->dimension)),
                         "write a number");
      }
      Typed power = *base;
      power.dimension = {};
      for (int i = 0; i < static_cast<int>(p.number); ++i) {
        auto product = Multiplied(power, *base, 1);
        if (!product) return std::nullopt;
        power.dimension = product->dimension;
      }
      result.dimension = power.dimension;
    }
    return Add({.op = ExpressionOp::kPower, .a = base->part, .b = exponent->part}, result);
  }

  Result Primary() {
    in_.Skip();
    size_t begin = in_.at();
    if (in_.AtEnd()) {
      return Fail(in_.at(), 1, "the expression cannot be read", "expected a value");
    }
    if (Take("(")) {
      Result inner = Or();
      if (!inner) return inner;
      if (!Take(")")) return Fail(begin, 1, "this '(' is never closed", "");
      inner->begin = begin, inner->end = in_.at();
      return inner;
    }
    if (Take("$")) return Param(begin);
    if (in_.AtNumber()) return Number(begin);
    std::string_view word = in_.PeekWord();
    if (word.empty()) return Fail(in_.at(), 1, "the expression cannot be read", "expected a value");
    in_.Advance(word.size());
    if (word == "gpu" && Take(".")) return Gpu(begin);
    if (auto field = FindField(word)) return FieldValue(begin, *field);
    return Function(begin, word);
  }

  Result Number(size_t begin) {
    std::string_view word = in_.TakeNumber();
    auto quantity = ParseQuantity(word);
    if (!quantity.ok()) {
      return Fail(begin, word.size(), std::string(Message(quantity.status())), "");
    }
    return Add(
        {.number = InBaseUnits(quantity->value, quantity->unit)},
        {.any = quantity->value == 0, .dimension = DimensionOf(quantity->unit), .begin = begin});
  }

  Result Param(size_t begin) {
    std::string_view name = in_.PeekWord();
    in_.Advance(name.size());
    auto it = params_.find(name);
    if (it == params_.end()) {
      std::vector<std::string_view> names;
      for (const auto& [known, unit] : params_) names.push_back(known);
      std::string_view closest = Closest(name, names);
      return Fail(
          begin, name.size() + 1, fmt::format("there is no parameter '{}'", name),
          closest.empty() ? "params: declares them" : fmt::format("did you mean '${}'?", closest));
    }
    auto& known = expression_.params;
    auto place = std::find(known.begin(), known.end(), name);
    auto index = static_cast<uint32_t>(place - known.begin());
    if (place == known.end()) known.emplace_back(name);
    return Add({.op = ExpressionOp::kParam, .name = index},
               {.dimension = DimensionOf(it->second), .begin = begin});
  }

  Result FieldValue(size_t begin, Field field) {
    if (use_ == ExpressionUse::kGroup && !aggregate_) {
      return Fail(begin, FieldName(field).size(), "which of the merged tasks is meant?",
                  fmt::format("sum({0}), mean({0}), min({0}) or max({0})", FieldName(field)));
    }
    return Add({.op = ExpressionOp::kField, .name = static_cast<uint32_t>(field)},
               {.dimension = FieldDimension(field), .begin = begin});
  }

  Result Gpu(size_t begin) {
    std::string_view word = in_.PeekWord();
    in_.Advance(word.size());
    std::vector<std::string_view> names;
    for (const GpuName& g : kGpuNames) {
      names.push_back(g.name);
      if (g.name != word) continue;
      DType dtype = DType::kUnknown;
      if (g.takes_dtype) {
        size_t open = in_.at();
        if (!Take("(")) return Fail(open, 1, "which format?", "gpu.peak(fp32)");
        in_.Skip();
        std::string_view format = in_.PeekWord();
        for (DType d :
             {DType::kFp32, DType::kTf32, DType::kFp16, DType::kBf16, DType::kFp8, DType::kNvfp4}) {
          if (DTypeName(d) == format) dtype = d;
        }
        if (dtype == DType::kUnknown) {
          return Fail(in_.at(), format.size(), fmt::format("'{}' is not a format", format),
                      "fp32, tf32, fp16, bf16, fp8 or nvfp4");
        }
        in_.Advance(format.size());
        if (!Take(")")) return Fail(open, 1, "this '(' is never closed", "");
      }
      return Add({.op = ExpressionOp::kGpu, .name = static_cast<uint32_t>(g.fact), .dtype = dtype},
                 {.dimension = g.dimension, .begin = begin});
    }
    std::string_view closest = Closest(word, names);
    return Fail(begin, in_.at() - begin, fmt::format("the GPU has no '{}'", word),
                closest.empty() ? fmt::format("it has {}", fmt::join(names, ", "))
                                : fmt::format("did you mean 'gpu.{}'?", closest));
  }

  Result Function(size_t begin, std::string_view word) {
    if (std::find(std::begin(kFunctions), std::end(kFunctions), word) == std::end(kFunctions)) {
      std::vector<std::string_view> names(std::begin(kFunctions), std::end(kFunctions));
      for (size_t f = 0; f < kFields; ++f) names.push_back(FieldName(static_cast<Field>(f)));
      std::string_view closest = Closest(word, names);
      return Fail(
          begin, word.size(), fmt::format("'{}' is not known", word),
          closest.empty() ? "parameters begin with $" : fmt::format("did you mean '{}'?", closest));
    }
    size_t open = in_.at();
    if (!Take("(")) return Fail(open, 1, fmt::format("{} needs its arguments", word), "expected (");
    // min and max of one value run over a group; which it is shows at the comma.
    bool folds = word != "if" && word != "count";
    bool was_aggregate = aggregate_;
    std::vector<Typed> args;
    if (!Take(")")) {
      aggregate_ = aggregate_ || (folds && in_.OneArgument());
      if (aggregate_ && was_aggregate && folds && in_.OneArgument()) {
        return Fail(begin, word.size(), "sums of sums have no meaning here", "");
      }
      do {
        Result arg = Or();
        if (!arg) return arg;
        args.push_back(*arg);
      } while (Take(","));
      if (!Take(")")) return Fail(open, 1, "this '(' is never closed", "");
    }
    aggregate_ = was_aggregate;
    return Call(begin, word, args);
  }

  Result Call(size_t begin, std::string_view word, std::vector<Typed>& args) {
    size_t wanted = word == "if" ? 3 : word == "count" ? 0 : 1;
    bool list = (word == "min" || word == "max") && args.size() > 1;
    if (!list && args.size() != wanted) {
      return Fail(begin, in_.at() - begin,
                  fmt::format("{} takes {} value{}, not {}", word, wanted, wanted == 1 ? "" : "s",
                              args.size()),
                  "");
    }
    if (word == "if") return If(begin, args);
    ExpressionOp over = word == "sum"    ? ExpressionOp::kSumOf
                        : word == "mean" ? ExpressionOp::kMeanOf
                        : word == "min"  ? ExpressionOp::kMinOf
                        : word == "max"  ? ExpressionOp::kMaxOf
                                         : ExpressionOp::kCount;
    if (!list) {
      if (use_ == ExpressionUse::kCondition) {
        return Fail(begin, in_.at() - begin, fmt::format("{}() needs a group of tasks", word),
                    "a condition sees one task at a time");
      }
      if (args.empty()) return Add({.op = over}, {.begin = begin});
      if (args[0].boolean) return FailUnits(args[0], "this is a condition, not a number", "");
      return Add({.op = over, .a = args[0].part},
                 {.any = args[0].any, .dimension = args[0].dimension, .begin = begin});
    }
    Typed left = args[0];
    for (size_t i = 1; i < args.size(); ++i) {
      auto joined = Join(left, args[i], "compared");
      if (!joined) return std::nullopt;
      Result both = Add({.op = word == "min" ? ExpressionOp::kMin : ExpressionOp::kMax,
                         .a = left.part,
                         .b = args[i].part},
                        *joined);
      if (!both) return both;
      left = *both;
    }
    left.begin = begin;
    return left;
  }

  Result If(size_t begin, const std::vector<Typed>& args) {
    if (!args[0].boolean) {
      return FailUnits(args[0], "this is a number, not a condition", "compare it: time > 20us");
    }
    auto joined = Join(args[1], args[2], "alternatives");
    if (!joined) return std::nullopt;
    joined->begin = begin;
    return Add({.op = ExpressionOp::kIf, .a = args[0].part, .b = args[1].part, .c = args[2].part},
               *joined);
  }

  std::string_view text_;
  ExpressionLexer in_;
  const Params& params_;
  ExpressionUse use_;
  ExpressionError& error_;
  Expression expression_;
  int depth_ = 0;
  bool aggregate_ = false;  // inside of sum, mean, min, max over a group
};

}  // namespace

std::shared_ptr<const Expression> ParseExpression(
    std::string_view text, const std::map<std::string, Unit, std::less<>>& params,
    ExpressionUse use, Dimension wanted, ExpressionError& error) {
  return Reader(text, params, use, error).Read(wanted);
}

}  // namespace daydream
