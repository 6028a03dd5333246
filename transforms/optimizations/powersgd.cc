// powersgd: gradients are exchanged as products of two thin matrices.
#include <algorithm>
#include <cmath>

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
    {.name = "warm_start",
     .unit = Unit::kText,
     .text_fallback = "yes",
     .choices = kYesNoText,
     .help = "Q is that of the step before, else the host draws it anew and copies it to the GPU",
     .source = "warm_start=True of PyTorch's PowerSGDState"},
    kExchangeFabricParam,
};

// A matrix is compressed where that saves half of it: min_compression_rate=2 of PowerSGDState.
constexpr double kLeastSaving = 2;
// Ops for each column in PyTorch's _orthogonalize_gram_schmidt(): norm, add, div, mul, sum, mul,
// sub; each matrix by itself. Those on what is left touch it five times in all.
constexpr double kOpsPerColumn = 7, kTouches = 5;
// Ops beside a product: what is added, copied and kept.
constexpr double kOpsOfProducts = 4;
// torch.randn() of PyTorch 1.13 on one core of a server, for a number: 4.3 to 6.6 (measured).
constexpr double kNsToDraw = 5;
// Biases and weights of norms have no more elements than a layer has channels (chosen).
constexpr uint64_t kLongestVector = 4096;
// Passes over the gradients: adding the error, and keeping the new one.
constexpr double kErrorPasses = 3;

// What compressing one bucket takes.
struct Compressed {
  double plain = 0;                          // bytes that are exchanged as they are
  double left = 0, right = 0;                // bytes of P (rows x r) and Q (columns x r)
  double matrices = 0;                       // bytes that are compressed
  double flops = 0;                          // of one product of all matrices with a thin one
  double columns = 0;                        // of all P, and of all Q
  double left_passes = 0, right_passes = 0;  // through memory, to make those orthogonal
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
    out.columns += r;
    const double passes = kTouches * width * r * (r + 1) / 2;
    out.left_passes += passes * n, out.right_passes += passes * m;
  }
  return out;
}

class PowerSgd {
 public:
  PowerSgd(const Params& params, Editor& edit, Exchanges& exchanges)
      : edit_(edit),
        x_(exchanges),
        rank_(params["rank"]),
        overlaps_(params.text("overlap") == "yes"),
        warm_(params.text("warm_start") == "yes") {}

  absl::Status Run() {
    if (overlaps_) {
      stream_ = edit_.NewStream("PowerSGD", x_.compute);
      thread_ = edit_.NewLane("PowerSGD", LaneKind::kThread);
    }
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

  // Kernels on the GPU, and the host's ops that launch them.
  struct Part {
    TaskId host, kernel;
  };

  // The collective that is there sends P, with what is not compressed; Q follows it.
  absl::Status Replace(Exchange& e, const Compressed& c) {
    if (!e.before.valid()) return absl::OkStatus();
    const Duration product = Product(e, c), error = x_.Moves(e, kErrorPasses * c.matrices);
    Part at{.host = {}, .kernel = e.before};
    if (!overlaps_) {
      if (!warm_) DrawAnew(e, at, c);
      at = Orthogonalize(e, at, "PowerSGD: orthogonalize Q", c.columns, c.right_passes);
    }
    at = Products(e, at, "PowerSGD: P = M Q", error + product);
    edit_.AddEdge(at.kernel, e.collective, kStartLag, Rule::kEventWait);
    DD_RETURN_IF_ERROR(x_.Resize(e, CollectiveKind::kAllReduce, c.plain + c.left));
    if (!overlaps_) at.host = e.call;  // from here on behind the launch of the collective
    at = Orthogonalize(e, at, "PowerSGD: orthogonalize P", c.columns, c.left_passes);
    edit_.AddEdge(e.collective, at.kernel, {}, Rule::kEventWait);
    at = Products(e, at, "PowerSGD: Q = M' P", product);
    Exchange second = e;
    second.call = at.host;
    DD_ASSIGN_OR_RETURN(second.collective,
                        x_.AddBehind(second, e.collective, CollectiveKind::kAllReduce, c.right));
    edit_.AddEdge(at.kernel, second.collective, kStartLag, Rule::kEventWait);
    at = Products(e, at, "PowerSGD: M = P Q', keep the error", product + error);
    edit_.AddEdge(second.collective, at.kernel, {}, Rule::kEventWait);
    if (overlaps_ && e.after.valid()) edit_.AddEdge(at.kernel, e.after, {}, Rule::kEventWait);
    if (!overlaps_) HostWaits(e, at);  // torch.cuda.synchronize()
    // Buckets whose last gradient is ready behind the same kernel follow one another.
    for (Exchange& other : x_.all) {
      if (!overlaps_ && &other != &e && other.before == e.before) other.before = at.kernel;
    }
    e.before = at.kernel;
    return absl::OkStatus();
  }

  // Column by column: kernels run while the host launches the next.
  Part Orthogonalize(const Exchange& e, Part at, std::string_view name, double columns,
                     double bytes) {
    const double ops = kOpsPerColumn * columns;
    const Duration gpu = std::max(x_.Moves(e, bytes), Duration::Us(2).Scaled(ops));
    return Launch(e, at, name, gpu, ops, Anchor::kStart);
  }
  Part Products(const Exchange& e, Part at, std::string_view name, Duration gpu) {
    return Launch(e, at, name, gpu, kOpsOfProducts, Anchor::kEnd);
  }

  // Behind `at`, on both sides.
  Part Launch(const Exchange& e, Part at, std::string_view name, Duration gpu, double ops,
              Anchor anchor) {
    Graph& graph = edit_.graph();
    Task host = HostWork(e, name);
    host.duration = (overlaps_ ? x_.costs().launch : x_.costs().op).Scaled(ops);
    const Task kernel{.recorded_start = graph.task(at.kernel).recorded_start,
                      .duration = gpu,
                      .name = host.name,
                      .lane = overlaps_ ? stream_ : x_.compute,
                      .scope = graph.task(at.kernel).scope,
                      .step = e.step,
                      .kind = TaskKind::kKernel,
                      .phase = Phase::kBackward};
    Part out;
    if (overlaps_) {
      out = {.host = edit_.Append(host), .kernel = edit_.Append(kernel)};
      if (!at.host.valid()) {
        edit_.AddEdge(e.call, out.host, {}, Rule::kHandOff);
        edit_.AddEdge(at.kernel, out.kernel, {}, Rule::kEventWait);
      }
    } else {
      out = {.host = InsertHost(e, at, host), .kernel = edit_.InsertAfter(at.kernel, kernel)};
    }
    edit_.AddEdge(out.host, out.kernel, {}, Rule::kLaunch, anchor);
    return out;
  }

  // On the thread that launches the exchange.
  TaskId InsertHost(const Exchange& e, Part at, const Task& host) {
    return at.host.valid() ? edit_.InsertAfter(at.host, host) : edit_.InsertBefore(e.call, host);
  }
  Task HostWork(const Exchange& e, std::string_view name) {
    Graph& graph = edit_.graph();
    const Task& call = graph.task(e.call);
    return {.recorded_start = call.recorded_start,
            .name = graph.AddName(name),
            .lane = overlaps_ ? thread_ : call.lane,
            .scope = call.scope,
            .step = e.step,
            .kind = TaskKind::kCall,
            .phase = Phase::kBackward};
  }

  // Random numbers on the host, and a copy from pageable memory, which waits for all before it.
  void DrawAnew(const Exchange& e, Part& at, const Compressed& c) {
    Task draw = HostWork(e, "PowerSGD: draw Q");
    draw.duration = Duration::FromDouble(c.right / e.element_bytes * kNsToDraw);
    at.host = InsertHost(e, at, draw);
    HostWaits(e, at);
  }

  void HostWaits(const Exchange& e, Part& at) {
    Task wait = HostWork(e, "cudaStreamSynchronize");
    wait.kind = TaskKind::kWait;
    at.host = InsertHost(e, at, wait);
    edit_.AddEdge(at.kernel, at.host, {}, Rule::kHostWait, Anchor::kEnd, Anchor::kEnd);
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
    if (overlaps_ && !warm_) {
      changes.notes.push_back("warm_start=no is about PyTorch's hook: it changes nothing here");
    }
    changes.memory.push_back({.what = "what the approximation left of the gradients",
                              .bytes = static_cast<int64_t>(errors_),
                              .estimate = true});
  }

  Editor& edit_;
  Exchanges& x_;
  const double rank_;
  const bool overlaps_, warm_;
  LaneId stream_, thread_;  // of their own, where it overlaps
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
        "with the operations that launch them. By default as in PyTorch's hook: Q is made "
        "orthogonal, too, each matrix by itself, backward goes on behind it all, and the host "
        "waits for it at the end of each bucket; with warm_start=no it draws Q anew. With "
        "overlap=yes a thread and a stream of their own do it.",
    .ignores =
        "What it does to training, the first steps without compression, and how long a Q that was "
        "drawn anew takes to the GPU. With overlap=yes the kernels of the compression do not slow "
        "backward down.",
    .sources =
        "Vogels et al. 2019 (PowerSGD, NeurIPS); "
        "torch/distributed/algorithms/ddp_comm_hooks/powerSGD_hook.py",
    .advice = {.effort = "~5 lines", .risk = "numerics", .how = {}},
    .memory = MemoryEffect::kAdds,
    .memory_model = "The error of each compressed gradient, as large as the gradient.",
};

}  // namespace daydream
