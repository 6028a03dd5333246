#include "transforms/analysis/rate_samples.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "base/median.h"
#include "costmodel/kernel_class.h"
#include "costmodel/transfer.h"
#include "transforms/analysis/op_work.h"
#include "transforms/core/source_text.h"

namespace daydream {
namespace {

constexpr size_t kMostSamples = 100'000;
constexpr double kLargest = 1e12;
// Of a tensor's side: the product of two still is a whole number of 64 bits.
constexpr double kLargestSide = 1e9;

struct Cell {
  std::string_view text;
  size_t column = 1;  // in the line
};

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

std::vector<Cell> CellsOf(std::string_view line) {
  std::vector<Cell> cells;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find(',', begin), line.size());
    cells.push_back({Trimmed(line.substr(begin, end - begin)), begin + 1});
    begin = end + 1;
  }
  return cells;
}

// Reads the lines below the head.
class RateTable {
 public:
  explicit RateTable(const SourceText& source) : source_(source) {}

  absl::StatusOr<std::vector<RateSample>> Read() {
    const std::vector<Cell> head = CellsOf(source_.Line(1));
    for (size_t i = 0; i < head.size(); ++i) columns_.try_emplace(std::string(head[i].text), i);
    for (const char* needed : {"op", "us"}) {
      if (!columns_.contains(needed)) {
        return Problem({1, 1}, fmt::format("the table has no column '{}'", needed),
                       "a first line like: op,b,m,k,n,h,bytes,dtype,us");
      }
    }
    std::vector<RateSample> samples;
    const size_t lines = std::count(source_.text().begin(), source_.text().end(), '\n') + 1;
    for (line_ = 2; line_ <= lines; ++line_) {
      const std::string_view line = Trimmed(source_.Line(line_));
      if (line.empty() || line.front() == '#') continue;
      if (samples.size() == kMostSamples) {
        return Problem({line_, 1}, fmt::format("more than {} lines", kMostSamples), "fewer do");
      }
      cells_ = CellsOf(source_.Line(line_));
      DD_ASSIGN_OR_RETURN(RateSample sample, ReadLine());
      samples.push_back(std::move(sample));
    }
    return samples;
  }

 private:
  absl::Status Problem(Place place, std::string what, std::string fix) const {
    return source_.Error(absl::StatusCode::kInvalidArgument, place, 1,
                         {.code = "E0805", .what = std::move(what), .fix = std::move(fix)});
  }

  // The cell, if there is one with text.
  std::optional<Cell> Find(std::string_view column) const {
    const auto it = columns_.find(column);
    if (it == columns_.end() || it->second >= cells_.size()) return std::nullopt;
    if (cells_[it->second].text.empty()) return std::nullopt;
    return cells_[it->second];
  }

  absl::StatusOr<double> Number(std::string_view column, std::optional<double> fallback = {}) {
    const std::optional<Cell> cell = Find(column);
    if (!cell && fallback) return *fallback;
    double value = 0;
    bool good = false;
    if (cell) {
      const auto [end, error] =
          std::from_chars(cell->text.data(), cell->text.data() + cell->text.size(), value);
      good = error == std::errc() && end == cell->text.data() + cell->text.size() && value > 0 &&
             value <= kLargest;
    }
    if (good) return value;
    return Problem({line_, cell ? cell->column : 1},
                   cell ? fmt::format("'{}' is no {}", cell->text, column)
                        : fmt::format("this operation needs a value in column '{}'", column),
                   "a number above 0, without a unit");
  }

  absl::StatusOr<int64_t> Whole(std::string_view column, std::optional<double> fallback = {}) {
    DD_ASSIGN_OR_RETURN(double value, Number(column, fallback));
    if (value <= kLargestSide && value >= 0.5) return static_cast<int64_t>(std::llround(value));
    return Problem({line_, Find(column)->column}, fmt::format("'{}' is no {}", value, column),
                   fmt::format("a whole number from 1 to {}", kLargestSide));
  }

  absl::StatusOr<DType> Format() {
    const std::optional<Cell> cell = Find("dtype");
    if (!cell) return DType::kFp32;
    for (DType d :
         {DType::kFp32, DType::kTf32, DType::kFp16, DType::kBf16, DType::kFp8, DType::kNvfp4}) {
      if (DTypeName(d) == cell->text) return d;
    }
    return Problem({line_, cell->column}, fmt::format("'{}' is no known format", cell->text),
                   "fp32, tf32, fp16, bf16, fp8 or nvfp4");
  }

  absl::StatusOr<OpWork> Work(const Cell& op, DType dtype) {
    if (op.text == "linear" || op.text == "bmm") {
      GemmShape shape;
      DD_ASSIGN_OR_RETURN(shape.batch, Whole("b", 1));
      DD_ASSIGN_OR_RETURN(shape.m, Whole("m"));
      DD_ASSIGN_OR_RETURN(shape.n, Whole("n"));
      DD_ASSIGN_OR_RETURN(shape.k, Whole("k"));
      if (op.text == "linear") shape.m *= shape.batch, shape.batch = 1;
      return WorkOfProduct(shape);
    }
    if (op.text == "softmax" || op.text == "layernorm") {
      RowShape rows{.op = op.text == "softmax" ? RowOp::kSoftmax : RowOp::kLayerNorm};
      DD_ASSIGN_OR_RETURN(rows.rows, Whole("b"));
      DD_ASSIGN_OR_RETURN(rows.columns, Whole("h"));
      return WorkOfRows(rows);
    }
    if (op.text == "memory") {
      DD_ASSIGN_OR_RETURN(double bytes, Number("bytes"));
      return WorkOfElements(bytes / DTypeBytes(dtype));
    }
    return Problem({line_, op.column}, fmt::format("'{}' is no known operation", op.text),
                   "linear, bmm, softmax, layernorm or memory");
  }

  absl::StatusOr<RateSample> ReadLine() {
    RateSample sample;
    const std::optional<Cell> op = Find("op");
    if (!op) return Problem({line_, 1}, "the line has no operation", "a name in column 'op'");
    DD_ASSIGN_OR_RETURN(sample.dtype, Format());
    DD_ASSIGN_OR_RETURN(sample.work, Work(*op, sample.dtype));
    DD_ASSIGN_OR_RETURN(double us, Number("us"));
    sample.ns = us * 1e3;
    return sample;
  }

  const SourceText& source_;
  std::map<std::string, size_t, std::less<>> columns_;
  std::vector<Cell> cells_;
  size_t line_ = 1;
};

}  // namespace

absl::StatusOr<std::vector<RateSample>> ReadRateTable(const std::string& path,
                                                      std::string_view text) {
  const SourceText source(path, text);
  if (const size_t at = FindNonText(text); at != std::string_view::npos) {
    return source.Error(absl::StatusCode::kInvalidArgument, {}, 1,
                        {.code = "E0805",
                         .what = "this is neither a table nor a recording",
                         .why = fmt::format("byte {} is none of a text", at)});
  }
  return RateTable(source).Read();
}

std::vector<RateSample> SamplesOf(const Graph& graph) {
  struct Call {
    Duration time;
    bool tensor = false;
    const OpWork* work = nullptr;
  };
  OpWorkTable works(graph);
  std::map<ScopeId, Call> calls;
  for (size_t i = 0; i < graph.size(); ++i) {
    const TaskId t(i);
    const Task& task = graph.task(t);
    if (task.removed || task.kind != TaskKind::kKernel) continue;
    const OpWorkTable::Op op = works.Of(t);
    if (op.work == nullptr) continue;
    Call& call = calls[op.scope];
    call.time += task.duration;
    call.work = op.work;
    call.tensor |= ClassifyKernel(graph.Name(task.name)).tensor_cores;
  }
  std::vector<RateSample> samples;
  std::vector<std::vector<double>> times;
  for (const auto& [scope, call] : calls) {
    RateSample sample{.work = *call.work, .dtype = call.work->dtype};
    if (sample.dtype == DType::kUnknown) sample.dtype = DType::kFp32;
    if (sample.dtype == DType::kFp32 && call.tensor && !sample.work.products.empty()) {
      sample.dtype = DType::kTf32;
    }
    size_t at = 0;
    while (at < samples.size() &&
           !(samples[at].work == sample.work && samples[at].dtype == sample.dtype)) {
      ++at;
    }
    if (at == samples.size()) {
      samples.push_back(std::move(sample));
      times.emplace_back();
    }
    times[at].push_back(static_cast<double>(call.time.ns));
  }
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i].ns = Median(times[i]);
  }
  return samples;
}

size_t Compare(std::vector<RateSample>& samples, const std::vector<RateSample>& other,
               const DeviceSpec& device) {
  OpTimes models(device);
  SourceBias bias;
  for (const RateSample& s : other) {
    const OpTime& model = models.Of(s.work, s.dtype);
    if (model.absolute()) bias.Add(FamilyOf(model), s.ns, model.ns);
  }
  size_t found = 0;
  for (RateSample& sample : samples) {
    const auto match = std::find_if(other.begin(), other.end(), [&](const RateSample& s) {
      return s.work == sample.work && s.dtype == sample.dtype;
    });
    if (match == other.end()) continue;
    const OpTime& model = models.Of(sample.work, sample.dtype);
    if (!model.absolute() || !(model.ns > 0)) continue;
    const double own = std::log(match->ns / model.ns) - bias.Of(FamilyOf(model));
    sample.own = std::exp(TransferRules{}.own * std::clamp(own, -1.0, 1.0));
    ++found;
  }
  return found;
}

}  // namespace daydream
