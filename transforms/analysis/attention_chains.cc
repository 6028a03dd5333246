#include "transforms/analysis/attention_chains.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "costmodel/roofline.h"
#include "costmodel/tiles.h"

namespace daydream {
namespace {

// Kernels looked at on each side of a softmax: scaling, masks, dropout and layout take a handful.
constexpr size_t kReach = 16;

class ChainFinder {
 public:
  ChainFinder(const Editor& edit, const DeviceSpec& device)
      : graph_(edit.graph()),
        device_(device),
        works_(graph_),
        shapes_(graph_),
        classes_(graph_),
        held_(graph_.size()) {
    for (const Edge& e : graph_.edges()) {
      if (e.rule == Rule::kLaunch || e.rule == Rule::kQueue) continue;
      held_[e.from.index()] = held_[e.to.index()] = true;
    }
  }

  AttentionSearch Run() {
    for (const GraphLane& lane : graph_.lanes()) {
      if (lane.lane.kind != LaneKind::kStream) continue;
      kernels_.clear();
      for (TaskId t = lane.first; t.valid(); t = graph_.task(t).lane_next) {
        const Task& task = graph_.task(t);
        if (!task.removed && task.kind == TaskKind::kKernel) kernels_.push_back(t);
      }
      size_t free = 0;  // kernels before this one belong to a chain already
      for (size_t i = 0; i < kernels_.size(); ++i) {
        if (IsSoftmax(kernels_[i])) free = std::max(free, TryAround(i, free));
      }
    }
    return std::move(search_);
  }

 private:
  bool IsSoftmax(TaskId t) {
    if (classes_.Of(t) != KernelClass::kSoftmax) return false;
    const OpShape& shape = shapes_.Of(t);
    if (!shape.known()) {
      ++search_.unshaped;
      return false;
    }
    return Contains(shape.name, "softmax") && !Contains(shape.name, "log_softmax") &&
           shape.inputs[0].size() >= 3;
  }

  const GemmShape* Product(TaskId t) {
    const OpWorkTable::Op op = works_.Of(t);
    bool product = op.work != nullptr && op.work->kind == OpWork::Kind::kGemm;
    return product ? &op.work->products[0] : nullptr;
  }

  // Collects kernels from `from` in steps of `by` until `products` products of the right size were
  // met. What works on other sizes in between stays outside of the chain.
  template <typename Fits>
  bool Collect(size_t from, int by, size_t products, size_t limit, double scores, const Fits& fits,
               std::vector<size_t>& chain) {
    size_t met = 0, i = from;
    for (size_t n = 0; n < kReach && met < products; ++n) {
      if (by < 0 ? i <= limit : i + 1 >= kernels_.size()) break;
      i = by < 0 ? i - 1 : i + 1;
      const Task& task = graph_.task(kernels_[i]);
      if (task.step != graph_.task(kernels_[from]).step || held_[kernels_[i].index()]) break;
      const KernelClass kind = classes_.Of(kernels_[i]);
      if (kind == KernelClass::kGemm) {
        const GemmShape* product = Product(kernels_[i]);
        if (product == nullptr || !fits(*product)) break;
        chain.push_back(i);
        ++met;
        continue;
      }
      const bool pointwise = kind == KernelClass::kElementwise || kind == KernelClass::kCopy;
      if (!pointwise) break;
      if (shapes_.Of(kernels_[i]).largest == scores) chain.push_back(i);
    }
    // Nothing beyond the last product belongs to it.
    return met > 0 && (met == products || products == 2);
  }

  // Returns the first kernel that is still free.
  size_t TryAround(size_t at, size_t free) {
    const OpShape& softmax = shapes_.Of(kernels_[at]);
    const Dims& dims = softmax.inputs[0];
    const auto keys = static_cast<double>(dims.back());
    const auto queries = static_cast<double>(dims[dims.size() - 2]);
    const double scores = softmax.largest;
    const bool backward = Contains(softmax.name, "backward");
    auto makes = [&](const GemmShape& p) {
      return static_cast<double>(p.batch) * static_cast<double>(p.m) * static_cast<double>(p.n) ==
                 scores &&
             static_cast<double>(p.n) == keys;
    };
    auto takes = [&](const GemmShape& p) {
      return static_cast<double>(p.batch) * static_cast<double>(p.m) * static_cast<double>(p.k) ==
             scores;
    };
    auto either = [&](const GemmShape& p) { return makes(p) || takes(p); };
    std::vector<size_t> chain{at};
    bool found = backward ? Collect(at, -1, 2, free, scores, either, chain) &&
                                Collect(at, +1, 2, free, scores, takes, chain)
                          : Collect(at, -1, 1, free, scores, makes, chain) &&
                                Collect(at, +1, 1, free, scores, takes, chain);
    if (!found) return free;
    std::sort(chain.begin(), chain.end());
    Trim(chain);
    Add(chain, at, {scores, queries, keys}, backward, softmax.dtype);
    return chain.back() + 1;
  }

  // A chain begins and ends with a product: elementwise work beyond belongs to something else.
  void Trim(std::vector<size_t>& chain) {
    auto is_product = [&](size_t i) { return Product(kernels_[i]) != nullptr; };
    while (chain.size() > 2 && !is_product(chain.back())) chain.pop_back();
    auto first = std::find_if(chain.begin(), chain.end(), is_product);
    chain.erase(chain.begin(), first);
  }

  struct Sizes {
    double scores, queries, keys;
  };

  // What an op adds to the scores or multiplies them with before the softmax at `at`, as large as
  // they are or smaller. An operand of their size after it is the mask of a dropout, which a fused
  // kernel draws itself.
  double MaskElements(size_t i, size_t at, double scores) {
    if (classes_.Of(kernels_[i]) == KernelClass::kCopy) return 0;
    double mask = 0;
    bool own = false;  // one operand is the scores themselves
    for (const Dims& dims : shapes_.Of(kernels_[i]).inputs) {
      const double n = ElementsOf(dims);
      if (n == scores && !std::exchange(own, true)) continue;
      if (n > 1 && (n < scores || (n == scores && i < at))) mask += n;
    }
    return mask;
  }

  void Add(const std::vector<size_t>& chain, size_t at, const Sizes& sizes, bool backward,
           DType dtype) {
    AttentionChain found;
    found.dtype = dtype == DType::kUnknown ? DType::kFp32 : dtype;
    found.shape = {.heads = sizes.scores / (sizes.queries * sizes.keys),
                   .queries = sizes.queries,
                   .keys = sizes.keys,
                   .backward = backward};
    const double bytes = DTypeBytes(found.dtype);
    double& mask = found.shape.mask_elements;
    for (size_t i : chain) {
      const TaskId t = kernels_[i];
      found.kernels.push_back(t);
      const OpShape& shape = shapes_.Of(t);
      if (const GemmShape* p = Product(t)) {
        found.before_ns += GemmNs(device_, *p, found.dtype, /*batched=*/true);
        const bool makes = static_cast<double>(p->batch * p->m * p->n) == sizes.scores &&
                           static_cast<double>(p->n) == sizes.keys;
        const auto width = static_cast<double>(makes ? p->k : p->n);
        found.shape.width = std::max(found.shape.width, width);
        // baddbmm adds its first operand to the product.
        if (makes && Contains(shape.name, "baddbmm")) mask += ElementsOf(shape.inputs[0]);
        continue;
      }
      found.selects |= Contains(shape.name, "where") || Contains(shape.name, "masked_fill");
      double elements = shape.largest;
      for (const Dims& dims : shape.inputs) elements += ElementsOf(dims);
      if (!backward) mask += MaskElements(i, at, sizes.scores);
      found.before_ns += MemoryNs(device_, bytes * elements);
    }
    if (!(found.shape.width > 0)) return;
    // Backward computes the scores again and reads the mask again; the last one of a size that ran
    // forward is the first one back.
    std::vector<double>& masks =
        masks_[{graph_.task(kernels_[at]).step, found.shape.heads, sizes.queries, sizes.keys}];
    if (!backward) {
      masks.push_back(mask);
    } else if (mask = 0; !masks.empty()) {
      mask = masks.back();
      masks.pop_back();
    }
    search_.chains.push_back(std::move(found));
  }

  const Graph& graph_;
  const DeviceSpec& device_;
  OpWorkTable works_;
  OpShapes shapes_;
  KernelClasses classes_;
  std::vector<bool> held_;  // by task: takes part in an edge other than launches
  std::vector<TaskId> kernels_;
  // Elements of masks that ran forward, by step, heads, queries and keys.
  std::map<std::tuple<uint16_t, double, double, double>, std::vector<double>> masks_;
  AttentionSearch search_;
};

}  // namespace

AttentionSearch FindAttention(const Editor& edit, const DeviceSpec& device) {
  return ChainFinder(edit, device).Run();
}

}  // namespace daydream
