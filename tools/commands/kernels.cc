#include <cmath>

#include "costmodel/op_time.h"
#include "costmodel/roofline.h"
#include "costmodel/surface.h"
#include "report/text/format.h"
#include "report/text/json_writer.h"
#include "report/text/table.h"
#include "tools/command.h"
#include "tools/input/kernel_questions.h"
#include "transforms/analysis/device_choice.h"

namespace daydream {
namespace {

struct Answer {
  double us = 0, low_us = 0, high_us = 0, bound_us = 0;
  std::string_view limiter;  // "arithmetic", "memory", "launch"
  std::string from;          // what the number rests on
  std::string terms;
};

// Products whose rows are no multiples of 16 bytes have no rows but those of one GPU: the spread of
// the model of waves.
constexpr double kUnalignedSpread = 1.25;

Answer OnSurface(const Surface& surface, const DeviceSpec& device, const KernelQuestion& q,
                 const OpTime& time, bool with_cast, Answer answer) {
  const GemmShape& product = q.work.products[0];
  const SurfaceTime s = TimeOnSurface(surface, device, q.dtype, product, with_cast);
  const KernelRange range = RangeOnSurface(surface, device, q.dtype, product, with_cast);
  const double unaligned_us = UnalignedNs(device, q.dtype, product) * 1e-3;
  answer.us = std::max({s.ns * 1e-3, answer.bound_us, unaligned_us});
  answer.low_us = std::max(range.low_ns * 1e-3, std::min(answer.bound_us, answer.us));
  answer.high_us = std::max(range.high_ns * 1e-3, unaligned_us * kUnalignedSpread);
  answer.limiter = unaligned_us * 1e3 > s.ns ? "alignment"
                   : s.launch_bound()        ? "launch"
                   : s.memory_bound()        ? "memory"
                                             : "arithmetic";
  answer.from = fmt::format("{} {} products measured on {}{}", surface.shapes,
                            DTypeName(surface.format), surface.device,
                            surface.measured ? "" : "; no GPU of this generation was measured");
  const bool lent = surface.format != q.dtype && q.dtype != DType::kFp16;
  if (lent) answer.from += fmt::format("; none in {}", DTypeName(q.dtype));
  answer.terms = Explain(time);
  if (with_cast) {
    answer.from += ", with the cast of A";
    answer.terms = fmt::format(
        "arithmetic {:.1f} us, memory {:.1f} us, launch {:.1f} us, cast {:.1f} us, measured "
        "against model {:.2f} x",
        s.compute_ns * 1e-3, s.memory_ns * 1e-3, s.launch_ns * 1e-3, s.cast_ns * 1e-3,
        std::exp(s.correction));
  }
  return answer;
}

Answer OfAttention(const DeviceSpec& device, const SelfAttention& shape) {
  const AttentionTime time = TimeOfAttention(device, shape);
  return {.us = time.ns * 1e-3,
          .low_us = time.low_ns * 1e-3,
          .high_us = time.high_ns * 1e-3,
          .bound_us = shape.Flops() / device.TensorPeak(DType::kBf16) * 1e-6,
          .limiter = 2 * time.launch_ns > time.ns       ? "launch"
                     : time.memory_ns > time.compute_ns ? "memory"
                                                        : "arithmetic",
          .from = fmt::format("{} kinds of attention measured on {}", time.shapes, time.device),
          .terms = fmt::format("arithmetic {:.1f} us, memory {:.1f} us, launch {:.1f} us, {:.1f} "
                               "waves, measured against model {:.2f} x",
                               time.compute_ns * 1e-3, time.memory_ns * 1e-3, time.launch_ns * 1e-3,
                               time.waves, std::exp(time.correction))};
}

Answer OfAttentionBackward(const DeviceSpec& device, const KernelQuestion& q) {
  const AttentionBackwardTime time = TimeOfAttentionBackward(device, *q.attention);
  return {
      .us = time.ns * 1e-3,
      .low_us = time.low_ns * 1e-3,
      .high_us = time.high_ns * 1e-3,
      .bound_us = q.work.flops / device.TensorPeak(DType::kBf16) * 1e-6,
      .limiter = 2 * time.start_ns > time.ns        ? "launch"
                 : time.memory_ns > time.compute_ns ? "memory"
                                                    : "arithmetic",
      .from =
          "published: FlashAttention-2 backward (Shah et al., 2024, H100; Dao, 2023, A100); "
          "not measured by shape",
      .terms = fmt::format("arithmetic {:.1f} us, memory {:.1f} us, starts {:.1f} us",
                           time.compute_ns * 1e-3, time.memory_ns * 1e-3, time.start_ns * 1e-3)};
}

Answer OfLstm(const DeviceSpec& device, const LstmShape& shape, DType dtype) {
  const LstmTime time = TimeOfLstm(device, shape, dtype);
  return {.us = time.ns * 1e-3,
          .low_us = time.low_ns * 1e-3,
          .high_us = time.high_ns * 1e-3,
          .bound_us = shape.Flops() / device.Peak(dtype) * 1e-6,
          .limiter = time.waits() ? "steps" : "arithmetic",
          .from =
              "model: products and cells of all layers, or the chain of steps; one LSTM was "
              "measured, in fp32 on an H200",
          .terms = fmt::format("all work {:.1f} us, steps one after the other {:.1f} us, one of "
                               "them {:.1f} us",
                               time.work_ns * 1e-3, time.chain_ns * 1e-3, time.link_ns * 1e-3)};
}

Answer OfMemory(const DeviceSpec& device, const KernelQuestion& q) {
  const MemoryKernelTime m = TimeOfMemoryKernel(device, *q.memory, q.work, q.dtype);
  return {.us = m.ns * 1e-3,
          .low_us = m.low_ns * 1e-3,
          .high_us = m.high_ns * 1e-3,
          .bound_us = m.time.bound_ns * 1e-3,
          .limiter = m.starts() ? "launch" : "memory",
          .from = fmt::format("model: {}; {}", MethodName(m.time.method),
                              MemoryKernelEvidence(*q.memory)),
          .terms = fmt::format("{}; nothing cached {:.1f} us{}", Explain(m.time), m.cold_ns * 1e-3,
                               m.elements_ns > 0 ? fmt::format(", an element at a time {:.1f} us",
                                                               m.elements_ns * 1e-3)
                                                 : "")};
}

// The rows of narrow formats hold the cast of A: such a product has two times.
bool HasCast(const DeviceSpec& device, const KernelQuestion& q) {
  const bool narrow = q.dtype == DType::kFp8 || q.dtype == DType::kNvfp4;
  return narrow && q.product() && SurfaceOf(device, q.dtype, /*with_cast=*/true) != nullptr;
}

Answer AnswerFor(const DeviceSpec& device, const KernelQuestion& q, bool with_cast) {
  if (q.attention && q.backward) return OfAttentionBackward(device, q);
  if (q.attention) return OfAttention(device, *q.attention);
  if (q.lstm) return OfLstm(device, *q.lstm, q.dtype);
  if (q.memory) return OfMemory(device, q);
  const OpTime time = PredictOp(device, q.work, q.dtype);
  Answer answer;
  answer.bound_us = time.bound_ns * 1e-3;
  if (const Surface* surface = SurfaceOf(device, q.dtype, with_cast)) {
    return OnSurface(*surface, device, q, time, with_cast, answer);
  }
  answer.us = std::max(time.ns, kKernelFloorNs) * 1e-3;
  answer.low_us = std::max(answer.us * time.low_ns / time.ns, std::min(answer.bound_us, answer.us));
  answer.high_us = answer.us * time.high_ns / time.ns;
  answer.limiter = time.ns < kKernelFloorNs      ? "launch"
                   : 2 * time.bound_ns < time.ns ? "latency"
                                                 : "arithmetic";
  answer.from = fmt::format("model: {}", MethodName(time.method));
  answer.terms = Explain(time);
  return answer;
}

void WriteTime(JsonWriter& json, const Answer& a) {
  json.Key("us").Rounded(a.us, 3);
  json.Key("interval_us").BeginInlineArray().Rounded(a.low_us, 3).Rounded(a.high_us, 3).EndArray();
  json.Key("bound_us").Rounded(a.bound_us, 3).Key("limiter").String(a.limiter);
  json.Key("from").String(a.from);
}

void WriteAnswers(JsonWriter& json, const DeviceSpec& gpu, const KernelQuestion& q) {
  const bool has_cast = HasCast(gpu, q);
  json.BeginObject().Key("gpu").String(gpu.name);
  WriteTime(json, AnswerFor(gpu, q, has_cast));
  if (has_cast) {
    json.Key("without_cast").BeginObject();
    WriteTime(json, AnswerFor(gpu, q, false));
    json.EndObject();
  }
  json.EndObject();
}

std::string KernelsJson(std::span<const KernelQuestion> questions,
                        std::span<const DeviceSpec* const> gpus) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("daydream.kernels/1").Key("kernels").BeginArray();
  for (const KernelQuestion& q : questions) {
    json.BeginObject().Key("kernel").String(q.text).Key("dtype").String(DTypeName(q.dtype));
    json.Key("gflop").Rounded(q.work.flops * 1e-9, 6).Key("on").BeginArray();
    for (const DeviceSpec* gpu : gpus) WriteAnswers(json, *gpu, q);
    json.EndArray().EndObject();
  }
  return json.EndArray().EndObject().Take() + "\n";
}

Table MakeKernelsTable(std::span<const KernelQuestion> questions,
                       std::span<const DeviceSpec* const> gpus) {
  std::vector<Column> columns = {{"kernel", Align::kLeft},
                                 {"GPU", Align::kLeft},
                                 {"us"},
                                 {"low"},
                                 {"high"},
                                 {"limited by", Align::kLeft},
                                 {"TFLOPS"}};
  if (gpus.size() > 1) columns.push_back({"speed"});
  Table table(std::move(columns));
  auto add = [&](const KernelQuestion& q, const DeviceSpec& gpu, bool with_cast, double& first) {
    const Answer a = AnswerFor(gpu, q, with_cast);
    if (first == 0) first = a.us;
    const double tflops = q.work.flops / a.us * 1e-6;
    const bool cast_before = !with_cast && HasCast(gpu, q);
    std::vector<std::string> cells = {q.text + (cast_before ? ", without the cast of A" : ""),
                                      gpu.name,
                                      fmt::format("{:.1f}", a.us),
                                      fmt::format("{:.1f}", a.low_us),
                                      fmt::format("{:.1f}", a.high_us),
                                      std::string(a.limiter),
                                      tflops > 0 ? fmt::format("{:.1f}", tflops) : "-"};
    if (gpus.size() > 1) cells.push_back(fmt::format("{:.2f}x", first / a.us));
    table.AddRow(std::move(cells));
  };
  for (const KernelQuestion& q : questions) {
    double first = 0, first_without = 0;
    for (const DeviceSpec* gpu : gpus) add(q, *gpu, HasCast(*gpu, q), first);
    for (const DeviceSpec* gpu : gpus) {
      if (HasCast(*gpu, q)) add(q, *gpu, false, first_without);
    }
  }
  return table;
}

std::string KernelsScreen(std::span<const KernelQuestion> questions,
                          std::span<const DeviceSpec* const> gpus, const Session& session) {
  std::string text = MakeKernelsTable(questions, gpus).Text(session.table_style()) + "\n";
  if (questions.size() == 1) {
    for (const DeviceSpec* gpu : gpus) {
      for (bool with_cast : {true, false}) {
        if (with_cast && !HasCast(*gpu, questions[0])) continue;
        const Answer a = AnswerFor(*gpu, questions[0], with_cast);
        text += fmt::format("  {}: {}\n    {}\n", Printable(gpu->name), a.from, a.terms);
      }
    }
  }
  return text +
         "  us: a burst with warm caches and its launch. low to high: nine of ten measurements, "
         "from\n  kernels alone (a CUDA graph, a profiler) to long steps, where power limits the "
         "clock\n";
}

// A format that a GPU has no cores for is refused, not answered with another one's time.
absl::Status CheckFormat(const DeviceSpec& gpu, const KernelQuestion& q) {
  if (q.attention && q.backward && !TimeOfAttentionBackward(gpu, *q.attention).known()) {
    return MakeStatus(
        absl::StatusCode::kInvalidArgument,
        {.code = "E0104",
         .what = fmt::format("backward of this attention was not published for GPUs like the {}",
                             gpu.name),
         .fix = "--gpu A100, H100 or H200, and heads of up to 128; or without --backward"});
  }
  if (q.attention && !q.backward && TimeOfAttention(gpu, *q.attention).device.empty()) {
    return MakeStatus(
        absl::StatusCode::kInvalidArgument,
        {.code = "E0104",
         .what = fmt::format("this attention was not measured on GPUs like the {}", gpu.name),
         .fix = "--gpu H100, A100 (with --causal), B200 or L40S"});
  }
  const bool weights = q.dtype == DType::kInt8Weights;
  if ((q.product() && q.dtype == DType::kInt8) || (weights && !q.product() && !q.attention)) {
    return MakeStatus(
        absl::StatusCode::kInvalidArgument,
        {.code = "E0104",
         .what = q.product() ? "no product on int8 cores was measured, on any GPU"
                             : "int8_wo is a format of products (16 bit times weights in int8)",
         .fix = q.product() ? "--dtype int8_wo --gpu A100: weights in int8, multiplied in 16 bit"
                            : "--dtype int8, or --gemm MxNxK"});
  }
  if (q.product() && weights && SurfaceOf(gpu, q.dtype) == nullptr) {
    return MakeStatus(
        absl::StatusCode::kInvalidArgument,
        {.code = "E0104",
         .what = fmt::format("int8_wo was not measured on GPUs like the {}", gpu.name),
         .fix = "--gpu A100 or A30, the generation that was"});
  }
  // LSTMs of narrow formats are not what cuDNN has.
  if (q.lstm && DTypeBytes(q.dtype) < 2) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0104",
                       .what = fmt::format("no LSTM in {} is known", DTypeName(q.dtype)),
                       .fix = "--dtype fp32, tf32, fp16 or bf16"});
  }
  const bool vector = (!q.product() && !q.lstm) || q.dtype == DType::kFp32;
  if (vector || gpu.TensorPeak(q.dtype) > 0) return absl::OkStatus();
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      {.code = "E0104",
       .what = fmt::format("the {} has no tensor cores for {}", gpu.name, DTypeName(q.dtype)),
       .fix = "another --dtype, or another --gpu"});
}

absl::StatusOr<Exit> RunKernels(const Args& args, Session& session) {
  if (!args.Has("--gpu")) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0104",
                       .what = "--gpu is needed",
                       .fix = "--gpu H100, or a file that describes a GPU"});
  }
  std::vector<DeviceChoice> chosen;
  for (std::string_view flag : {"--gpu", "--vs"}) {
    if (!args.Has(flag)) continue;
    DD_ASSIGN_OR_RETURN(DeviceChoice choice, ChooseDevice(args.Get(flag)));
    chosen.push_back(std::move(choice));
  }
  DD_ASSIGN_OR_RETURN(const std::vector<KernelQuestion> questions, KernelQuestions(args));
  session.Progress(fmt::format("timing {}", Plural(questions.size(), "kernel")));
  std::vector<const DeviceSpec*> gpus;
  gpus.reserve(chosen.size());
  for (const DeviceChoice& choice : chosen) gpus.push_back(&choice.spec);
  for (const DeviceSpec* gpu : gpus) {
    for (const KernelQuestion& q : questions) DD_RETURN_IF_ERROR(CheckFormat(*gpu, q));
  }
  DD_RETURN_IF_ERROR(session.WriteResult(
      args, {.table = [&] { return KernelsScreen(questions, gpus, session); },
             .json = [&] { return KernelsJson(questions, gpus); },
             .csv = [&] { return MakeKernelsTable(questions, gpus).Csv(); },
             .markdown = [&] { return MakeKernelsTable(questions, gpus).Markdown(); }}));
  return Exit::kOk;
}

constexpr Flag kKernelsFlags[] = {
    {.name = "--gpu", .value = "GPU", .help = "a known GPU, or a file that describes one"},
    {.name = "--vs", .value = "GPU", .help = "another one, beside it"},
    {.name = "--gemm",
     .value = "MxNxK",
     .help = "a product of M x K and K x N; BxMxNxK: B of them",
     .repeats = true},
    {.name = "--attention",
     .value = "BxHxLxW",
     .help = "fused self-attention: examples, heads, length, width of a head",
     .repeats = true},
    {.name = "--causal", .help = "attention with a causal mask"},
    {.name = "--backward", .help = "attention backward (A100, H100 and their like)"},
    {.name = "--elementwise",
     .value = "SHAPE",
     .help = "reads a tensor and writes one, like 8192x4096",
     .repeats = true},
    {.name = "--layer-norm",
     .value = "RxC",
     .help = "layer norm forward of R rows of C",
     .repeats = true},
    {.name = "--embedding",
     .value = "NxW",
     .help = "N lookups of rows of W in a table",
     .repeats = true},
    {.name = "--adam",
     .value = "N",
     .help = "one step of fused Adam for N parameters, all in one format",
     .repeats = true},
    {.name = "--lstm",
     .value = "LxTxBxIxH",
     .help = "LSTM layers forward: layers, steps, batch, inputs, width of a layer",
     .repeats = true},
    {.name = "--csv",
     .value = "FILE",
     .help = "products, one a line, with a head: m,n,k,batch,dtype"},
    {.name = "--dtype",
     .value = "FORMAT",
     .help = "format of the operands",
     .fallback = "bf16",
     .choices = kKernelTypes},
};

}  // namespace

const Command kKernelsCommand = {
    .name = "kernels",
    .summary = "how long single kernels take on a GPU, without a trace",
    .usage = "--gpu GPU --gemm MxNxK [--dtype FORMAT] [--vs GPU] [--csv FILE]",
    .details =
        R"(Prints the time of matrix products, attention and kernels of memory, what nine of ten
measurements of such kernels lie between, and what limits them. Products in 16 bit, fp8 and
nvfp4, and attention forward, come from measured surfaces (docs/cost-model.md); attention
backward from what was published; layer norm, lookups in an embedding, fused Adam and
elementwise kernels from the bytes that they move; the rest from the model of waves. Each answer
says what it rests on. Products in fp8 and nvfp4 have two times: with the cast of A, as they were
measured, and without. JSON has the second as without_cast. int8_wo is 16 bit times weights in
int8, which the kernel makes 16 bit again, as on an A100 under TensorRT-LLM; no product on int8
cores was measured, so int8 is for elementwise kernels. An LSTM takes the longer of all its work
and of its steps one after the other.)",
    .examples = "daydream kernels --gpu H100 --gemm 4096x4096x4096 --dtype bf16 --vs B200",
    .flags = kKernelsFlags,
    .takes = {.result = true, .times = false},
    .run = RunKernels,
};

}  // namespace daydream
