// gist: encodes what ReLU keeps for backward, for the time of two more kernels a tensor.
#include <algorithm>
#include <map>

#include "absl/container/flat_hash_set.h"
#include "base/text.h"
#include "costmodel/device.h"
#include "costmodel/roofline.h"
#include "transforms/analysis/precision.h"
#include "transforms/analysis/saved_tensors.h"
#include "transforms/core/floor_param.h"
#include "transforms/core/transform.h"
#include "transforms/edits/inserted_kernel.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

constexpr ParamSpec kGistParams[] = {
    {.name = "sparsity",
     .unit = Unit::kShare,
     .fallback = 0.5,
     .low = 0.4,
     .high = 0.9,
     .max = 1,
     .help = "share of zeros in the result of a ReLU",
     .source = "design estimate, not measured: of values around zero, as norms make them, ReLU "
               "makes half zero"},
    kFloorParam,
};

// Gist, section 4: rows of 256 columns make an index fit a byte, and each row has a pointer.
constexpr double kIndexBytes = 1, kPointerBytes = 4, kColumns = 256;

// The result of a ReLU that is kept for backward, and the op that reads it.
struct GistStash {
  size_t relu = 0, reader = 0;  // rows of ForwardOps()
  bool binarize = false;
  double bytes = 0, encoded = 0;
};

bool IsRelu(const ForwardOp& op) {
  return op.shape.known() && (op.shape.name == "relu" || op.shape.name == "clamp_min" ||
                              op.shape.name == "threshold" || op.shape.name == "cudnn_relu");
}

class Gist {
 public:
  Gist(const Params& params, Editor& edit)
      : params_(params),
        edit_(edit),
        floor_(Duration::FromDouble(params["floor"])),
        ops_(ForwardOps(edit.graph())) {}

  absl::Status Run() {
    DD_RETURN_IF_ERROR(CheckTrained("gist", graph(), ops_));
    DD_RETURN_IF_ERROR(CheckShapes("gist", ops_));
    FindStashes();
    if (stashes_.empty()) {
      edit_.changes().notes.push_back("no ReLU whose result a convolution or a pooling reads");
      return absl::OkStatus();
    }
    device_ = DeviceOf(graph(), ops_[stashes_.front().relu].last).spec;
    const HostCosts costs = MeasureHostCosts(graph());
    const NameId call = edit_.graph().AddName("cudaLaunchKernel");
    InsertedKernel encode{.after = true, .op = edit_.graph().AddName("gist::encode"), .call = call};
    InsertedKernel decode{.op = edit_.graph().AddName("gist::decode"), .call = call};
    for (const GistStash& s : stashes_) {
      const Duration time = TimeOf(s);
      edit_.BeginCause(s.binarize ? "masks of ReLU encoded" : "results of ReLU encoded");
      encode.at = ops_[s.reader].last;
      encode.name = edit_.graph().AddName(s.binarize ? "gist_binarize" : "gist_dense_to_csr");
      encode.duration = time;
      InsertKernel(edit_, encode, costs);
      ++kernels_;
      if (s.binarize) continue;  // ReLU's backward reads the mask itself
      edit_.BeginCause("results of ReLU decoded");
      decode.at = ops_[s.reader].backward;
      decode.name = edit_.graph().AddName("gist_csr_to_dense");
      decode.duration = time;
      InsertKernel(edit_, decode, costs);
      ++kernels_;
    }
    TellGist();
    return absl::OkStatus();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }

  // What a ReLU's result takes in the sparse form: values, indices and pointers to rows.
  double SparseBytes(const ForwardOp& op) const {
    const double width = op.kept / op.elements;
    return op.elements *
           ((1 - params_["sparsity"]) * (width + kIndexBytes) + kPointerBytes / kColumns);
  }

  void FindStashes() {
    for (size_t i = 0; i + 1 < ops_.size(); ++i) {
      const ForwardOp& relu = ops_[i];
      const ForwardOp& reader = ops_[i + 1];
      if (!IsRelu(relu) || relu.kept <= 0 || !reader.shape.known()) continue;
      // What is made again, or waits in host memory, is not worth it.
      if (relu.change != nullptr && !relu.change->returns.empty()) continue;
      if (reader.step != relu.step || reader.pass != relu.pass) continue;
      if (reader.elements != relu.elements || !reader.backward.valid()) continue;
      const bool pool = Contains(reader.shape.name, "max_pool");
      const bool conv = Contains(reader.shape.name, "conv");
      if (!pool && !conv) continue;
      GistStash s{.relu = i, .reader = i + 1, .binarize = pool, .bytes = relu.kept};
      s.encoded = pool ? relu.elements / 8 : SparseBytes(relu);
      if (s.encoded < s.bytes) stashes_.push_back(s);
    }
  }

  // Reads one form and writes the other. Without a known GPU, at the rate of the ReLU itself, which
  // reads and writes the whole tensor.
  Duration TimeOf(const GistStash& s) const {
    const double bytes = s.bytes + s.encoded;
    double ns = 0;
    if (device_ != nullptr) {
      ns = MemoryNs(*device_, bytes);
    } else {
      ns = static_cast<double>(graph().task(ops_[s.relu].last).duration.ns) * bytes / (2 * s.bytes);
    }
    return std::max(floor_, Duration::FromDouble(ns));
  }

  void TellGist() {
    std::map<std::pair<uint16_t, uint16_t>, std::pair<size_t, size_t>> passes;
    std::pair<size_t, size_t> most;     // masks, sparse
    absl::flat_hash_set<ScopeId> done;  // copies of a layer share their ops
    for (const GistStash& s : stashes_) {
      const ForwardOp& relu = ops_[s.relu];
      auto& count = passes[{relu.step, relu.pass}];
      ++(s.binarize ? count.first : count.second);
      most = std::max(most, count);
      if (!done.insert(relu.shape.scope).second) continue;
      OpChange& change = edit_.ChangeOp(relu.shape.scope);
      // A decoded tensor is there again while it is used.
      if (!s.binarize) {
        change.returns.push_back(
            {.unit = edit_.NewUnit(), .from = ops_[s.reader].backward, .share = change.kept});
      }
      change.kept *= s.encoded / s.bytes;
    }
    edit_.changes().memory.push_back(
        {.what = fmt::format("{} results of ReLU are kept as masks, {} in a sparse form",
                             most.first, most.second),
         .kept = true});
    edit_.changes().notes.push_back(fmt::format("{} encode and decode kernels, at {}", kernels_,
                                                device_ != nullptr
                                                    ? "the sustained bandwidth of the GPU"
                                                    : "the rate of the ReLU kernels"));
  }

  const Params& params_;
  Editor& edit_;
  const Duration floor_;
  const std::vector<ForwardOp> ops_;
  std::vector<GistStash> stashes_;
  const DeviceSpec* device_ = nullptr;
  size_t kernels_ = 0;
};

absl::Status RunGist(const Params& params, Editor& edit) { return Gist(params, edit).Run(); }

constexpr Conflict kGistConflicts[] = {
    {.with = "batch", .reason = "what is encoded would keep its size", .comes = Conflict::kAfter},
    {.with = "hidden", .reason = "what is encoded would keep its size", .comes = Conflict::kAfter},
    {.with = "amp", .reason = "what is encoded would keep its width", .comes = Conflict::kAfter}};

}  // namespace

constinit const Transform kGist = {
    .name = "gist",
    .summary = "Results of ReLU are kept encoded for the backward pass",
    .params = kGistParams,
    .apply = &RunGist,
    .model =
        "A ReLU whose result only a max pooling reads keeps one bit an element (Binarize); one "
        "that a convolution reads keeps values that are not zero, an index of a byte for each and "
        "a pointer for each 256 elements (SSDC). An encode kernel runs after the reader's forward "
        "work and, for the sparse form, a decode kernel before its backward work; each reads one "
        "form and writes the other at the sustained memory bandwidth of the GPU, without a known "
        "GPU at the rate of the ReLU kernel.",
    .ignores =
        "Reduced precision of other tensors (DPR, lossy); the shorter ReLU backward with a mask; "
        "indices that a pooling keeps; the real sparsity, which changes with training.",
    .sources = "Jain et al.: Gist (ISCA 2018), section 4",
    .advice = {.effort = "~200 lines",
               .risk = "own kernels",
               .how = "torch.autograd.graph.saved_tensors_hooks(encode, decode) around ReLU"},
    .conflicts = kGistConflicts,
    .twice = "what is encoded already would be encoded again",
    .memory_model =
        "A mask is an eighth of a byte an element; the sparse form has values that are not zero, "
        "a byte of index for each and 4 bytes for every 256 elements. A decoded tensor is there "
        "in full while backward uses it.",
};

}  // namespace daydream
