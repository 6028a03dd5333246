#include "transforms/analysis/kept_peak.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace daydream {
namespace {

// What is on the GPU during one pass, by place in the order of backward work.
class Levels {
 public:
  void Add(const ForwardOp& op) {
    if (op.backward.valid()) {
      // There from the beginning, and until its own backward work is done.
      Change(0, op.kept);
      Change(After(op.backward_order), -op.kept);
      orders_[op.backward] = op.backward_order;
    } else {
      Change(0, op.kept);
    }
    if (op.change == nullptr) return;
    for (const OpChange::Return& r : op.change->returns) {
      Unit& unit = units_[{r.unit, op.copy}];
      unit.bytes += r.share * op.needed;
      if (op.copy == 0) unit.from = r.from;
      if (!op.backward.valid()) continue;
      unit.begin = std::min(unit.begin, op.backward_order);
      unit.end = std::max(unit.end, op.backward_order);
    }
  }

  double Peak() {
    for (const auto& [id, unit] : units_) {
      size_t begin = unit.begin;
      const auto from = orders_.find(unit.from);
      if (from != orders_.end()) begin = std::min(begin, from->second);
      if (begin == SIZE_MAX) {  // nobody knows when
        Change(0, unit.bytes);
        continue;
      }
      Change(At(begin), unit.bytes);
      Change(After(unit.end), -unit.bytes);
    }
    double level = 0, peak = 0;
    for (const auto& [place, change] : changes_) {
      level += change;
      peak = std::max(peak, level);
    }
    return peak;
  }

 private:
  struct Unit {
    double bytes = 0;
    size_t begin = SIZE_MAX, end = 0;
    TaskId from;
  };
  static size_t At(size_t order) { return 2 * order; }
  static size_t After(size_t order) { return 2 * order + 1; }
  void Change(size_t place, double bytes) { changes_[place] += bytes; }

  std::map<size_t, double> changes_;
  std::map<std::pair<uint32_t, uint16_t>, Unit> units_;
  absl::flat_hash_map<TaskId, size_t> orders_;
};

// Calls `each` with the ops of one pass after the other.
void ForEachPass(std::span<const ForwardOp> ops,
                 const std::function<void(std::span<const ForwardOp>)>& each) {
  for (size_t begin = 0; begin < ops.size();) {
    size_t end = begin;
    while (end < ops.size() && ops[end].step == ops[begin].step &&
           ops[end].pass == ops[begin].pass) {
      ++end;
    }
    each(ops.subspan(begin, end - begin));
    begin = end;
  }
}

}  // namespace

double MostInAPass(std::span<const ForwardOp> ops,
                   const std::function<double(const ForwardOp&)>& of) {
  double most = 0;
  ForEachPass(ops, [&](std::span<const ForwardOp> pass) {
    double sum = 0;
    for (const ForwardOp& op : pass) sum += of(op);
    most = std::max(most, sum);
  });
  return most;
}

double PeakOfKept(std::span<const ForwardOp> ops) {
  double peak = 0;
  ForEachPass(ops, [&](std::span<const ForwardOp> pass) {
    Levels levels;
    for (const ForwardOp& op : pass) levels.Add(op);
    peak = std::max(peak, levels.Peak());
  });
  return peak;
}

}  // namespace daydream
