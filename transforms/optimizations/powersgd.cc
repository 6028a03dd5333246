// powersgd: gradients are exchanged as products of two thin matrices.
#include <algorithm>
#include <cmath>
#include <map>

#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/parallel/exchange.h"

namespace daydream {
namespace {

constexpr std::string_view kYesNoText[] = {"yes", "no"};
constexpr ParamSpec kPowersgdParams[] = {
    {.name = "rank",
     .fallback = 1,
     .low = 1,
     .high = 4,
     .min = 1,
     .max = 1024,
     .help = "columns of the two matrices that stand for a gradient",
     .source = "matrix_approximation_rank=1 of PyTorch's PowerSGDState; the paper has 1 to 4",
     .whole = true},
    {.name = "overlap",
     .unit = Unit::kText,
     .text_fallback = "no",
     .choices = kYesNoText,
     .help = "compress and exchange beside backward, else backward waits for each bucket, as for "
             "PyTorch's hook",
     .source = "measured runs of both: docs/optimizations/powersgd.md"},
    kExchangeFabricParam,
};

// A matrix is compressed where that saves half of it: min_compression_rate=2 of PowerSGDState.
constexpr double kLeastSaving = 2;
// Ops for each column in PyTorch's _orthogonalize_gram_schmidt(): norm, add, div, mul, sum, mul,
// sub; of matrices of one shape together. Those on what is left touch it five times in all.
constexpr double kOpsPerColumn = 7, kTouches = 5;
// Biases and weights of norms have no more elements than a layer has channels (chosen).
constexpr uint64_t kLongestVector = 4096;
// Passes over the gradients: adding the error, and keeping the new one.
constexpr double kErrorPasses = 3;

// What compressing one bucket takes.
struct Compressed {
  double plain = 0;            // bytes that are exchanged as they are
  double left = 0, right = 0;  // bytes of P (rows x r) and Q (columns x r)
  double matrices = 0;         // bytes that are compressed
  double flops = 0;            // of one product of all matrices with a thin one
  double orthogonal_ops = 0, orthogonal_bytes = 0;
};

// Of a gradient whose shape was not recorded: a square matrix, unless it is as small as vectors
// are.
double RowsOf(const GradientSize& g) {
  if (g.rows > 0) return static_cast<double>(g.rows);
  return g.elements <= kLongestVector ? 1 : std::floor(std::sqrt(static_cast<double>(g.elements)));
}

Compressed Compress(const Exchange& e, double rank) {
  Compressed out;
  const double width = e.element_bytes;
  std::vector<GradientSize> gradients = e.gradients;
  if (gradients.empty()) {
    // Shapes are not known: one square matrix, as batched_powerSGD_hook() makes of a bucket.
    const auto side = static_cast<uint64_t>(std::sqrt(static_cast<double>(e.elements())));
    gradients.push_back({e.elements(), e.element_bytes, std::max<uint64_t>(side, 1)});
  }
  std::map<std::pair<double, double>, double> shapes;  // how many matrices of one shape
  for (const GradientSize& g : gradients) {
    const double n = RowsOf(g);
    const double m = static_cast<double>(g.elements) / n;
    const double r = std::min({rank, n, m});
    if (n < 2 || m < 2 || (n + m) * r * kLeastSaving >= n * m) {
      out.plain += static_cast<double>(g.bytes());
      continue;
    }
    out.left += n * r * width, out.right += m * r * width;
    out.matrices += static_cast<double>(g.bytes());
    out.flops += 2 * n * m * r;
    shapes[{n, r}] += 1;
  }
  for (const auto& [shape, count] : shapes) {
    out.orthogonal_ops += kOpsPerColumn * shape.second;
    out.orthogonal_bytes +=
        count * kTouches * width * shape.first * shape.second * (shape.second + 1) / 2;
  }
  return out;
}

class PowerSgd {
 public:
  PowerSgd(const Params& params, Editor& edit, Exchanges& exchanges)
      : edit_(edit),
        x_(exchanges),
        rank_(params["rank"]),
        overlaps_(params.text("overlap") == "yes") {}

  absl::Status Run() {
    if (overlaps_) side_ = edit_.NewStream("PowerSGD", x_.compute);
    for (Exchange& e : x_.all) {
      const Compressed c = Compress(e, rank_);
      shapeless_ += e.gradients.empty() || e.gradients.front().rows == 0;
      sent_ += c.plain + c.left + c.right;
      if (e.step == x_.all.front().step) errors_ += c.matrices;
      if (c.matrices > 0) DD_RETURN_IF_ERROR(Replace(e, c));
    }
    TellPowersgd();
    return absl::OkStatus();
  }

 private:
  Duration Product(const Exchange& e, const Compressed& c) {
    const DeviceSpec* device = x_.DeviceOf(e);
    const DType type = e.element_bytes == 2 ? DType::kFp16 : DType::kFp32;
    const double rate = device == nullptr ? 0 : device->SustainedTflops(type) * 1e3;  // per ns
    const Duration moves = x_.Moves(e, c.matrices + c.left + c.right);
    return rate > 0 ? std::max(moves, Duration::FromDouble(c.flops / rate)) : moves;
  }

  // The collective that is there sends P, with what is not compressed; Q follows it.
  absl::Status Replace(Exchange& e, const Compressed& c) {
    const Duration product = Product(e, c);
    const Duration first = x_.Moves(e, kErrorPasses * c.matrices) + product;
    const Duration columns =
        std::max(x_.Moves(e, c.orthogonal_bytes), Duration::Us(2).Scaled(c.orthogonal_ops));
    const Duration last = product + x_.Moves(e, kErrorPasses * c.matrices);
    if (!e.before.valid()) return absl::OkStatus();
    const TaskId p = Kernel(e, e.before, "PowerSGD: P = M Q", first, 4);
    edit_.AddEdge(p, e.collective, kStartLag, Rule::kEventWait);
    DD_RETURN_IF_ERROR(x_.Resize(e, CollectiveKind::kAllReduce, c.plain + c.left));
    const TaskId q = Kernel(e, p, "PowerSGD: orthogonalize P, Q = M' P", columns + product,
                            c.orthogonal_ops + 1);
    edit_.AddEdge(e.collective, q, {}, Rule::kEventWait);
    DD_ASSIGN_OR_RETURN(const TaskId second,
                        x_.AddBehind(e, e.collective, CollectiveKind::kAllReduce, c.right));
    edit_.AddEdge(q, second, kStartLag, Rule::kEventWait);
    const TaskId done = Kernel(e, q, "PowerSGD: M = P Q', keep the error", last, 4);
    edit_.AddEdge(second, done, {}, Rule::kEventWait);
    if (e.after.valid() && overlaps_) edit_.AddEdge(done, e.after, {}, Rule::kEventWait);
    // Buckets whose last gradient is ready behind the same kernel follow one another.
    for (Exchange& other : x_.all) {
      if (!overlaps_ && &other != &e && other.before == e.before) other.before = done;
    }
    e.before = done;
    return absl::OkStatus();
  }

  // Several kernels as one, behind `at` or on a stream beside it, and `ops` of the host.
  TaskId Kernel(const Exchange& e, TaskId at, std::string_view name, Duration duration,
                double ops) {
    Graph& graph = edit_.graph();
    const TaskId host =
        edit_.InsertBefore(e.call, {.recorded_start = graph.task(e.call).recorded_start,
                                    .duration = x_.costs().op.Scaled(ops),
                                    .name = graph.AddName(name),
                                    .lane = graph.task(e.call).lane,
                                    .scope = graph.task(e.call).scope,
                                    .step = e.step,
                                    .kind = TaskKind::kCall,
                                    .phase = Phase::kBackward});
    const Task task{.recorded_start = graph.task(at).recorded_start,
                    .duration = duration,
                    .name = graph.AddName(name),
                    .lane = overlaps_ ? side_ : x_.compute,
                    .scope = graph.task(at).scope,
                    .step = e.step,
                    .kind = TaskKind::kKernel,
                    .phase = Phase::kBackward};
    const TaskId kernel = overlaps_ ? edit_.Append(task) : edit_.InsertAfter(at, task);
    if (overlaps_ && at == e.before) edit_.AddEdge(at, kernel, {}, Rule::kEventWait);
    edit_.AddEdge(host, kernel, {}, Rule::kLaunch);
    return kernel;
  }

  void TellPowersgd() {
    double whole = 0;
    for (const Exchange& e : x_.all) whole += static_cast<double>(e.bytes);
    auto& changes = edit_.changes();
    changes.notes.push_back(
        fmt::format("{:.3g} times fewer bytes are exchanged", whole / std::max(sent_, 1.0)));
    if (shapeless_ > 0) {
      changes.notes.push_back(fmt::format(
          "shapes in {} buckets are not known: each counts as one square matrix", shapeless_));
    }
    changes.memory.push_back({.what = "what the approximation left of the gradients",
                              .bytes = static_cast<int64_t>(errors_),
                              .estimate = true});
  }

  Editor& edit_;
  Exchanges& x_;
  const double rank_;
  const bool overlaps_;
  LaneId side_;
  size_t shapeless_ = 0;
  double sent_ = 0, errors_ = 0;
};

absl::Status RunPowersgd(const Params& params, Editor& edit) {
  edit.BeginCause("gradients as products of thin matrices");
  DD_ASSIGN_OR_RETURN(Exchanges exchanges, Exchanges::Find(edit, params.text("fabric")));
  DD_RETURN_IF_ERROR(PowerSgd(params, edit, exchanges).Run());
  exchanges.Finish();
  return absl::OkStatus();
}

}  // namespace

constinit const Transform kPowersgd = {
    .name = "powersgd",
    .summary = "PowerSGD: gradients are exchanged as products of thin matrices",
    .params = kPowersgdParams,
    .apply = &RunPowersgd,
    .model =
        "A gradient of n x m elements is sent as P (n x r) and then Q (m x r), where that halves "
        "it; vectors and the like go with P as they are. Each bucket gets kernels for the error "
        "it kept, P = M Q, the orthogonalization of P column by column, Q = M'P and M = PQ', "
        "with the operations that launch them. By default backward goes on behind them, as in "
        "PyTorch's hook; with overlap=yes they have a stream of their own.",
    .ignores =
        "What it does to training, and the first steps without compression. With overlap=yes the "
        "kernels of the compression do not slow backward down.",
    .sources =
        "Vogels et al. 2019 (PowerSGD, NeurIPS); "
        "torch/distributed/algorithms/ddp_comm_hooks/powerSGD_hook.py",
    .memory = MemoryEffect::kAdds,
    .memory_model = "The error of each compressed gradient, as large as the gradient.",
};

}  // namespace daydream
