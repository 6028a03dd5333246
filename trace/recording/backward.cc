#include "trace/recording/backward.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "trace/range_names.h"

namespace daydream {
namespace {

struct Pass {
  LaneId lane;  // that called the backward pass
  Instant begin, end;
  bool outermost = true;
};

// All backward passes, in the order in which they end.
std::vector<Pass> PassesOf(const MarkedProgram& program, const StringPool& names) {
  std::vector<Pass> passes;
  for (const MarkedSpan& span : program.spans) {
    if (span.kind != EventKind::kAnnotation || names.Get(span.name) != kBackwardRange) continue;
    passes.push_back({span.lane, span.begin, span.end});
  }
  std::sort(passes.begin(), passes.end(), [](const Pass& a, const Pass& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  Instant reach = Instant::Min();
  for (Pass& pass : passes) {
    pass.outermost = pass.begin >= reach;
    reach = std::max(reach, pass.end);
  }
  std::stable_sort(passes.begin(), passes.end(),
                   [](const Pass& a, const Pass& b) { return a.end < b.end; });
  return passes;
}

class BackwardLayers {
 public:
  BackwardLayers(StringPool& names, MarkedProgram& out) : names_(names), out_(out) {}

  void Enter(const RecordedMark& mark) {
    const Key key{mark.name.value, mark.value};
    if (left_.contains(key) || entered_.contains(key)) return;
    const std::string_view text = names_.Get(mark.name);
    const std::string_view path = text.substr(0, text.find('\t'));
    const auto depth = static_cast<uint64_t>(std::count(path.begin(), path.end(), '.'));
    const Entry entry{mark.lane, depth, next_++, mark.at};
    entered_.emplace(key, entry);
    Thread& thread = threads_[mark.lane.value];
    thread.by_depth.emplace(std::pair(entry.depth, entry.order), key);
    thread.by_order.emplace(entry.order, key);
    Update(mark.lane, thread, mark.at);
  }

  // A layer that is left before it was entered does nothing (its output is its input); the mark
  // that enters it comes next.
  void Exit(const RecordedMark& mark) {
    const Key key{mark.name.value, mark.value};
    left_.insert(key);
    const auto it = entered_.find(key);
    if (it == entered_.end()) return;
    const LaneId lane = it->second.lane;
    Thread& thread = threads_[lane.value];
    Erase(thread, key);
    Update(lane, thread, mark.at);
  }

  void End(const Pass& pass) {
    if (!pass.outermost) {
      // A backward pass inside another one (a recomputed block) runs on its caller's thread.
      if (auto it = threads_.find(pass.lane.value); it != threads_.end()) {
        LeaveSince(pass.begin, pass.lane, it->second, pass.end);
      }
      return;
    }
    for (auto& [lane, thread] : threads_) {
      LeaveSince(Instant::Min(), LaneId(lane), thread, pass.end);
    }
    threads_.clear();
    left_.clear();
  }

  void Finish(Instant end) {
    out_.begins_without_end += entered_.size();
    for (auto& [lane, thread] : threads_) LeaveSince(Instant::Min(), LaneId(lane), thread, end);
  }

 private:
  using Key = std::pair<uint32_t, int64_t>;  // layer and number of its forward call
  struct Entry {
    LaneId lane;
    uint64_t depth = 0, order = 0;
    Instant at;
  };
  struct Thread {
    std::map<std::pair<uint64_t, uint64_t>, Key> by_depth;  // and order
    std::map<uint64_t, Key> by_order;
    NameId now;  // mark of the layer being worked on; None between layers
    Instant since;
  };

  void Erase(Thread& thread, Key key) {
    const auto it = entered_.find(key);
    thread.by_depth.erase({it->second.depth, it->second.order});
    thread.by_order.erase(it->second.order);
    entered_.erase(it);
  }

  void LeaveSince(Instant begin, LaneId lane, Thread& thread, Instant at) {
    while (!thread.by_order.empty()) {
      const Key key = thread.by_order.rbegin()->second;
      if (entered_.find(key)->second.at < begin) break;
      Erase(thread, key);
    }
    Update(lane, thread, at);
  }

  // Begins a new span when another layer is now the deepest.
  void Update(LaneId lane, Thread& thread, Instant at) {
    const NameId deepest =
        thread.by_depth.empty() ? NameId::None() : NameId(thread.by_depth.rbegin()->second.first);
    if (deepest == thread.now) return;
    if (thread.now.valid() && at > thread.since) {
      out_.spans.push_back({lane, thread.since, at, LayerPath(thread.now, names_),
                            EventKind::kFrame, /*backward=*/true});
    }
    thread.now = deepest;
    thread.since = at;
  }

  StringPool& names_;
  MarkedProgram& out_;
  std::map<uint32_t, Thread> threads_;  // by lane; those that entered a layer in this pass
  absl::flat_hash_map<Key, Entry> entered_;
  absl::flat_hash_set<Key> left_;  // in this pass
  uint64_t next_ = 0;
};

}  // namespace

NameId LayerPath(NameId mark, StringPool& names) {
  const std::string text(names.Get(mark));
  const size_t tab = text.find('\t');
  return tab == std::string::npos ? mark : names.Intern(text.substr(0, tab));
}

void ReadBackwardLayers(const std::vector<RecordedMark>& marks, Instant end, StringPool& names,
                        MarkedProgram& out) {
  const std::vector<Pass> passes = PassesOf(out, names);
  BackwardLayers layers(names, out);
  size_t next = 0;
  for (const RecordedMark& mark : marks) {
    const bool enter = mark.kind == MarkKind::kBackwardEnter;
    if (!enter && mark.kind != MarkKind::kBackwardExit) continue;
    for (; next < passes.size() && passes[next].end <= mark.at; ++next) layers.End(passes[next]);
    enter ? layers.Enter(mark) : layers.Exit(mark);
  }
  for (; next < passes.size(); ++next) layers.End(passes[next]);
  layers.Finish(end);
}

}  // namespace daydream
