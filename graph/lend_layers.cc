#include "graph/lend_layers.h"

#include <algorithm>
#include <span>
#include <vector>

#include "absl/hash/hash.h"

namespace daydream {
namespace {

// Calls that only one of two steps makes, at most: beyond, what is between the equal beginning and
// the equal end of the steps stays without a counterpart. Bounds time and memory of Align().
constexpr size_t kMostEdits = 1000;

struct Entry {
  uint64_t key = 0;
  TaskId call;
};
using Sequence = std::vector<Entry>;

// Myers, "An O(ND) difference algorithm and its variations" (1986): the longest common subsequence
// of `a` and `b`, as pairs of positions. Empty when the two differ in more than kMostEdits.
std::vector<std::pair<size_t, size_t>> CommonSubsequence(std::span<const Entry> a,
                                                         std::span<const Entry> b) {
  const auto n = static_cast<int64_t>(a.size()), m = static_cast<int64_t>(b.size());
  const auto most = static_cast<int64_t>(std::min(kMostEdits, a.size() + b.size()));
  // reach[k + most]: the furthest x on the diagonal x - y = k.
  std::vector<int64_t> reach(static_cast<size_t>(2 * most + 2), 0);
  std::vector<std::vector<int64_t>> history;
  const auto at = [&](std::vector<int64_t>& r, int64_t k) -> int64_t& {
    return r[static_cast<size_t>(k + most)];
  };
  int64_t edits = -1;
  for (int64_t d = 0; d <= most && edits < 0; ++d) {
    for (int64_t k = -d; k <= d; k += 2) {
      const bool down = k == -d || (k != d && at(reach, k - 1) < at(reach, k + 1));
      int64_t x = d == 0 ? 0 : down ? at(reach, k + 1) : at(reach, k - 1) + 1;
      int64_t y = x - k;
      while (x < n && y < m && a[static_cast<size_t>(x)].key == b[static_cast<size_t>(y)].key) {
        ++x, ++y;
      }
      at(reach, k) = x;
      if (x >= n && y >= m) edits = d;
    }
    // Only diagonals -d..d are set.
    history.emplace_back(reach.begin() + (most - d), reach.begin() + (most + d + 1));
  }
  std::vector<std::pair<size_t, size_t>> pairs;
  if (edits < 0) return pairs;
  // Back along the path: equal entries, then the edit before them, and so on.
  int64_t x = n;
  for (int64_t d = edits, k = n - m; d >= 0; --d) {
    int64_t edited = 0, from = 0;  // x behind the edit, and before it
    bool down = false;
    if (d > 0) {
      const std::vector<int64_t>& before = history[static_cast<size_t>(d - 1)];
      const auto get = [&](int64_t diagonal) {
        return before[static_cast<size_t>(diagonal + d - 1)];
      };
      down = k == -d || (k != d && get(k - 1) < get(k + 1));
      from = down ? get(k + 1) : get(k - 1);
      edited = down ? from : from + 1;
    }
    for (; x > edited; --x) pairs.emplace_back(x - 1, x - 1 - k);
    x = from;
    k += down ? 1 : -1;
  }
  std::reverse(pairs.begin(), pairs.end());
  return pairs;
}

size_t EqualBegin(const Sequence& a, const Sequence& b) {
  const size_t most = std::min(a.size(), b.size());
  size_t n = 0;
  while (n < most && a[n].key == b[n].key) ++n;
  return n;
}

size_t EqualEnd(const Sequence& a, const Sequence& b, size_t begin) {
  const size_t most = std::min(a.size(), b.size()) - begin;
  size_t n = 0;
  while (n < most && a[a.size() - 1 - n].key == b[b.size() - 1 - n].key) ++n;
  return n;
}

// For each entry of `to`, the entry of `from` that it corresponds to, or Builder::kNone.
std::vector<uint32_t> Align(const Sequence& from, const Sequence& to) {
  std::vector<uint32_t> match(to.size(), Builder::kNone);
  const size_t begin = EqualBegin(from, to), end = EqualEnd(from, to, begin);
  for (size_t i = 0; i < begin; ++i) match[i] = static_cast<uint32_t>(i);
  for (size_t i = 1; i <= end; ++i) {
    match[to.size() - i] = static_cast<uint32_t>(from.size() - i);
  }
  const auto middle = [&](const Sequence& s) {
    return std::span(s).subspan(begin, s.size() - begin - end);
  };
  for (const auto& [x, y] : CommonSubsequence(middle(from), middle(to))) {
    match[begin + y] = static_cast<uint32_t>(begin + x);
  }
  return match;
}

class Lender {
 public:
  explicit Lender(Builder& b) : b_(b) {}

  void Run() {
    const std::vector<Step>& steps = b_.report.steps.steps;
    const size_t n = std::min(steps.size(), b_.graph.steps().size());
    for (size_t i = 0; i < n; ++i) {
      if (steps[i].labelled) lenders_.push_back(i);
    }
    if (lenders_.empty() || b_.graph.steps().size() < 2) return;
    for (const HostThread& thread : b_.threads) LendOn(thread, n);
    for (const GpuOp& op : b_.ops) {
      if (!op.call.valid()) continue;
      Task& work = b_.graph.mutable_task(op.task);
      const bool had = work.layer.valid();
      Give(b_.graph.task(op.call), work);
      if (!had && work.layer.valid()) b_.report.mapped_kernel_time += work.duration;
    }
  }

 private:
  // Of one of Builder::calls.
  uint64_t KeyOf(uint32_t call) const {
    const uint32_t op = b_.ops_of_call[call].first;
    const NameId name = b_.calls[call].name;
    if (op == Builder::kNone) return absl::HashOf(name.value);
    const Task& work = b_.graph.task(b_.ops[op].task);
    const KernelDetail* kernel = b_.graph.Kernel(b_.ops[op].task);
    if (kernel == nullptr) return absl::HashOf(name.value, work.name.value);
    return absl::HashOf(name.value, work.name.value, kernel->grid, kernel->block);
  }

  void LendOn(const HostThread& thread, size_t steps) {
    std::vector<Sequence> sequences(steps);
    for (uint32_t i = thread.first_call; i < thread.end_call; ++i) {
      const HostCall& call = b_.calls[i];
      const uint16_t step = b_.step_of_task[call.task.index()];
      if (step >= steps || call.kind == CallKind::kQuery) continue;
      sequences[step].push_back({KeyOf(i), call.task});
    }
    for (size_t step = 0; step < steps; ++step) {
      if (b_.report.steps.steps[step].labelled || sequences[step].empty()) continue;
      Lend(sequences[LenderOf(sequences, step)], sequences[step]);
    }
  }

  // The step with marks that is most like this one at its beginning and end; the last of several.
  size_t LenderOf(const std::vector<Sequence>& sequences, size_t step) const {
    size_t best = lenders_.back(), most = 0;
    for (size_t lender : lenders_) {
      const Sequence &from = sequences[lender], &to = sequences[step];
      const size_t begin = EqualBegin(from, to);
      const size_t equal = begin + EqualEnd(from, to, begin);
      if (equal >= most) best = lender, most = equal;
    }
    return best;
  }

  void Lend(const Sequence& from, const Sequence& to) {
    const std::vector<uint32_t> match = Align(from, to);
    const Task* before = nullptr;  // counterpart of the last call that has one
    size_t open = 0;               // first of the calls since then
    for (size_t i = 0; i < to.size(); ++i) {
      if (match[i] == Builder::kNone) continue;
      const Task& lender = b_.graph.task(from[match[i]].call);
      const bool same = before != nullptr && before->layer == lender.layer;
      for (; same && open < i; ++open) Give(lender, b_.graph.mutable_task(to[open].call));
      Give(lender, b_.graph.mutable_task(to[i].call));
      ++b_.report.matched_calls;
      before = &lender;
      open = i + 1;
    }
    b_.report.unlabelled_calls += to.size();
  }

  static void Give(const Task& from, Task& to) {
    if (!to.layer.valid()) to.layer = from.layer;
    if (to.phase == Phase::kNone) to.phase = from.phase;
  }

  Builder& b_;
  std::vector<size_t> lenders_;  // steps with marks
};

}  // namespace

void LendLayers(Builder& b) { Lender(b).Run(); }

}  // namespace daydream
