#include "tools/input/kernel_questions.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "costmodel/surface_lines.h"
#include "transforms/core/source_text.h"

namespace daydream {
namespace {

constexpr size_t kKernelsMostTableBytes = 64 << 20;
constexpr int64_t kMostSize = int64_t{1} << 40;

constexpr int64_t kMostLstmSize = int64_t{1} << 24;
constexpr int64_t kMostRowSize = int64_t{1} << 30;
constexpr DType kKernelDTypes[] = {DType::kFp32, DType::kTf32,  DType::kFp16, DType::kBf16,
                                   DType::kFp8,  DType::kNvfp4, DType::kInt8, DType::kInt8Weights};

std::optional<DType> TypeNamed(std::string_view name) {
  for (size_t i = 0; i < std::size(kKernelTypes); ++i) {
    if (kKernelTypes[i] == name) return kKernelDTypes[i];
  }
  return std::nullopt;
}

absl::Status BadValue(std::string_view what, std::string_view value, std::string_view fix) {
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      {.code = "E0104", .what = fmt::format("{} is not {}", value, what), .fix = std::string(fix)});
}

std::optional<int64_t> Size(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value < 1 || value > kMostSize) return std::nullopt;
  return value;
}

KernelQuestion ProductOf(const GemmShape& shape, DType dtype) {
  KernelQuestion q{.work = WorkOfProduct(shape), .dtype = dtype};
  q.text =
      fmt::format("{}{}x{}x{} {}", shape.batch > 1 ? fmt::format("{} times ", shape.batch) : "",
                  shape.m, shape.n, shape.k, DTypeName(dtype));
  return q;
}

absl::StatusOr<KernelQuestion> ReadGemm(std::string_view text, DType dtype) {
  const std::vector<std::string_view> parts = SplitAt(text, 'x');
  std::vector<int64_t> sizes;
  for (std::string_view part : parts) {
    if (const auto size = Size(part)) sizes.push_back(*size);
  }
  if (sizes.size() != parts.size() || (sizes.size() != 3 && sizes.size() != 4)) {
    return BadValue("a product", text,
                    "--gemm 4096x1024x8192 (m x n x k), or 16x512x512x64 for 16 of them");
  }
  GemmShape shape;
  if (sizes.size() == 4) shape.batch = sizes[0];
  shape.m = sizes[sizes.size() - 3], shape.n = sizes[sizes.size() - 2], shape.k = sizes.back();
  return ProductOf(shape, dtype);
}

// A kernel that is given by two sizes, or by one.
absl::StatusOr<std::vector<int64_t>> ReadSizes(std::string_view what, std::string_view text,
                                               size_t count, std::string_view fix) {
  std::vector<int64_t> sizes;
  for (std::string_view part : SplitAt(text, 'x')) {
    const auto size = Size(part);
    if (!size) return BadValue(what, text, fix);
    sizes.push_back(*size);
  }
  // So that no product of sizes leaves what an integer holds.
  const bool good = sizes.size() == count && *std::max_element(sizes.begin(), sizes.end()) <=
                                                 (count > 1 ? kMostRowSize : kMostSize);
  if (!good) return BadValue(what, text, fix);
  return sizes;
}

absl::StatusOr<KernelQuestion> ReadElementwise(std::string_view text, DType dtype) {
  double elements = 1;
  for (std::string_view part : SplitAt(text, 'x')) {
    const auto size = Size(part);
    if (!size) return BadValue("a tensor's shape", text, "--elementwise 8192x4096");
    elements *= static_cast<double>(*size);
  }
  // Reads one tensor and writes one.
  KernelQuestion q{
      .work = WorkOfElements(2 * elements), .memory = MemoryKernel::kElementwise, .dtype = dtype};
  q.text = fmt::format("elementwise {} {}", text, DTypeName(dtype));
  return q;
}

absl::StatusOr<KernelQuestion> ReadLayerNorm(std::string_view text, DType dtype) {
  DD_ASSIGN_OR_RETURN(
      const std::vector<int64_t> sizes,
      ReadSizes("a layer norm", text, 2, "--layer-norm 8192x1024 (rows x columns)"));
  const RowShape rows{.op = RowOp::kLayerNorm, .rows = sizes[0], .columns = sizes[1]};
  KernelQuestion q{.work = WorkOfRows(rows), .memory = MemoryKernel::kLayerNorm, .dtype = dtype};
  q.text = fmt::format("layer norm {} {}", text, DTypeName(dtype));
  return q;
}

absl::StatusOr<KernelQuestion> ReadEmbedding(std::string_view text, DType dtype) {
  DD_ASSIGN_OR_RETURN(
      const std::vector<int64_t> sizes,
      ReadSizes("an embedding", text, 2, "--embedding 8192x1024 (lookups x width of a row)"));
  KernelQuestion q{.work = WorkOfEmbedding(sizes[0], sizes[1], dtype),
                   .memory = MemoryKernel::kEmbedding,
                   .dtype = dtype};
  q.text = fmt::format("embedding {} {}", text, DTypeName(dtype));
  return q;
}

absl::StatusOr<KernelQuestion> ReadAdam(std::string_view text, DType dtype) {
  DD_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                      ReadSizes("a number of parameters", text, 1, "--adam 110000000"));
  KernelQuestion q{.work = WorkOfAdam(sizes[0]), .memory = MemoryKernel::kAdam, .dtype = dtype};
  q.text = fmt::format("fused Adam {} {}", text, DTypeName(dtype));
  return q;
}

absl::StatusOr<KernelQuestion> ReadAttention(std::string_view text, bool causal, bool backward) {
  std::vector<double> sizes;
  const std::vector<std::string_view> parts = SplitAt(text, 'x');
  for (std::string_view part : parts) {
    if (const auto size = Size(part)) sizes.push_back(static_cast<double>(*size));
  }
  const bool good = sizes.size() == parts.size() && (sizes.size() == 4 || sizes.size() == 5) &&
                    (sizes.size() == 4 || (sizes[4] <= sizes[1]));
  if (!good) {
    return BadValue("attention", text,
                    "--attention 8x16x2048x128 (batch x heads x length x width of a head), and x "
                    "heads of keys at the end where these are fewer");
  }
  KernelQuestion q{.attention = SelfAttention{.batch = sizes[0],
                                              .length = sizes[2],
                                              .heads = sizes[1],
                                              .kv_heads = sizes.size() == 5 ? sizes[4] : sizes[1],
                                              .width = sizes[3],
                                              .causal = causal},
                   .backward = backward};
  q.work.flops = q.attention->Flops() * (backward ? kAttentionBackwardWork : 1);
  q.text = fmt::format("{}attention {} bf16{}", causal ? "causal " : "", text,
                       backward ? " backward" : "");
  return q;
}

absl::StatusOr<KernelQuestion> ReadLstm(std::string_view text, DType dtype) {
  std::vector<int64_t> sizes;
  const std::vector<std::string_view> parts = SplitAt(text, 'x');
  for (std::string_view part : parts) {
    if (const auto size = Size(part)) sizes.push_back(*size);
  }
  // So that no product of sizes leaves what an integer holds.
  const bool good = sizes.size() == parts.size() && sizes.size() == 5 &&
                    *std::max_element(sizes.begin(), sizes.end()) <= kMostLstmSize;
  if (!good) {
    return BadValue("an LSTM", text,
                    "--lstm 4x50x128x1024x1024 (layers x steps x batch x inputs x width, each at "
                    "most 2^24)");
  }
  KernelQuestion q{.lstm = LstmShape{sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]},
                   .dtype = dtype};
  q.work.flops = q.lstm->Flops();
  q.text = fmt::format("LSTM {} {}", text, DTypeName(dtype));
  return q;
}

absl::Status TableError(const std::string& path, size_t line, std::string_view what) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0104",
                     .what = fmt::format("{}:{}: {}", path, line, what),
                     .fix = "a head like m,n,k,batch,dtype (batch and dtype may be missing), then "
                            "a line for each product"});
}

absl::StatusOr<std::vector<KernelQuestion>> ReadTable(const std::string& path, DType fallback) {
  DD_ASSIGN_OR_RETURN(
      const std::string text,
      ReadTextFile(path, kKernelsMostTableBytes,
                   {.code = "E0201", .what = "the table of products cannot be read"}));
  std::vector<std::string_view> head;
  std::vector<KernelQuestion> questions;
  size_t number = 0;
  for (std::string_view line : SplitAt(text, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::vector<std::string_view> cells = SplitAt(line, ',');
    if (head.empty()) {
      head = cells;
      continue;
    }
    if (cells.size() != head.size())
      return TableError(path, number, "another number of cells than the head has");
    GemmShape shape;
    DType dtype = fallback;
    for (size_t i = 0; i < head.size(); ++i) {
      int64_t* target = head[i] == "m"       ? &shape.m
                        : head[i] == "n"     ? &shape.n
                        : head[i] == "k"     ? &shape.k
                        : head[i] == "batch" ? &shape.batch
                                             : nullptr;
      if (target != nullptr) {
        const auto size = Size(cells[i]);
        if (!size)
          return TableError(path, number, fmt::format("{} = '{}' is no size", head[i], cells[i]));
        *target = *size;
      } else if (head[i] == "dtype") {
        const auto named = TypeNamed(cells[i]);
        if (!named) return TableError(path, number, fmt::format("'{}' is no format", cells[i]));
        dtype = *named;
      }
    }
    if (shape.m < 1 || shape.n < 1 || shape.k < 1)
      return TableError(path, number, "m, n or k is missing");
    questions.push_back(ProductOf(shape, dtype));
  }
  return questions;
}

}  // namespace

absl::StatusOr<std::vector<KernelQuestion>> KernelQuestions(const Args& args) {
  const DType dtype = *TypeNamed(args.Get("--dtype"));
  std::vector<KernelQuestion> questions;
  const auto add = [&](std::string_view flag, auto read) {
    for (const std::string& text : args.All(flag)) {
      DD_ASSIGN_OR_RETURN(KernelQuestion q, read(text));
      questions.push_back(std::move(q));
    }
    return absl::OkStatus();
  };
  const auto in_format = [dtype](auto read) {
    return [=](std::string_view text) { return read(text, dtype); };
  };
  DD_RETURN_IF_ERROR(add("--gemm", in_format(ReadGemm)));
  DD_RETURN_IF_ERROR(add("--attention", [&](std::string_view text) {
    return ReadAttention(text, args.Has("--causal"), args.Has("--backward"));
  }));
  DD_RETURN_IF_ERROR(add("--elementwise", in_format(ReadElementwise)));
  DD_RETURN_IF_ERROR(add("--layer-norm", in_format(ReadLayerNorm)));
  DD_RETURN_IF_ERROR(add("--embedding", in_format(ReadEmbedding)));
  DD_RETURN_IF_ERROR(add("--adam", in_format(ReadAdam)));
  DD_RETURN_IF_ERROR(add("--lstm", in_format(ReadLstm)));
  if (args.Has("--csv")) {
    DD_ASSIGN_OR_RETURN(std::vector<KernelQuestion> table,
                        ReadTable(std::string(args.Get("--csv")), dtype));
    std::move(table.begin(), table.end(), std::back_inserter(questions));
  }
  if (questions.empty()) {
    return MakeStatus(
        absl::StatusCode::kInvalidArgument,
        {.code = "E0104",
         .what = "no kernel is given",
         .fix = "--gemm 4096x4096x4096, --attention 8x16x2048x128, --elementwise "
                "8192x4096, --layer-norm 8192x1024, --embedding 8192x1024, --adam 110000000, "
                "--lstm 4x50x128x1024x1024, or --csv FILE"});
  }
  return questions;
}

}  // namespace daydream
