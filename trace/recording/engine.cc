#include "trace/recording/engine.h"

#include <algorithm>
#include <map>

#include "trace/range_names.h"

namespace daydream {
namespace {

// Of the thread in question: how much of it lies in the passes of other threads.
struct Work {
  uint64_t calls = 0, inside = 0;
  bool layers = false;
  std::map<size_t, MarkedSpan> in_pass;  // by pass
  std::vector<MarkedSpan> alone;         // layers outside of any pass
};

class Engines {
 public:
  Engines(std::span<const MarkedSpan> spans, StringPool& names)
      : range_(names.Intern(kEngineRange)) {
    for (const MarkedSpan& span : spans) {
      if (span.kind == EventKind::kAnnotation && names.Get(span.name) == kBackwardRange) {
        passes_.push_back(span);
      }
    }
    std::sort(passes_.begin(), passes_.end(), [](const MarkedSpan& a, const MarkedSpan& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    Instant reach = Instant::Min();
    std::erase_if(passes_, [&](const MarkedSpan& pass) {
      const bool nested = pass.begin < reach;
      reach = std::max(reach, pass.end);
      return nested;
    });
  }

  void AddCall(const CallSpan& call) {
    Work& work = work_[call.lane.value];
    ++work.calls;
    const size_t pass = PassAt(call.begin);
    if (pass == passes_.size() || passes_[pass].lane == call.lane) return;
    ++work.inside;
    Extend(work, pass, call.lane, call.begin, call.end);
  }

  void AddLayer(const MarkedSpan& layer) {
    Work& work = work_[layer.lane.value];
    const size_t pass = PassAt(layer.begin);
    if (pass < passes_.size() && passes_[pass].lane == layer.lane) return;
    work.layers = true;
    if (pass < passes_.size()) {
      Extend(work, pass, layer.lane, layer.begin, layer.end);
    } else {
      work.alone.push_back({layer.lane, layer.begin, layer.end, range_});
    }
  }

  std::vector<MarkedSpan> Take() {
    std::vector<MarkedSpan> out;
    for (auto& [lane, work] : work_) {
      if (!work.layers && work.inside * 10 < work.calls * 9) continue;
      for (const auto& [pass, span] : work.in_pass) out.push_back(span);
      out.insert(out.end(), work.alone.begin(), work.alone.end());
    }
    return out;
  }

 private:
  // The pass around `t`, or the number of passes.
  size_t PassAt(Instant t) const {
    const auto after = std::partition_point(passes_.begin(), passes_.end(),
                                            [&](const MarkedSpan& p) { return p.begin <= t; });
    if (after == passes_.begin() || (after - 1)->end <= t) return passes_.size();
    return static_cast<size_t>(after - passes_.begin()) - 1;
  }

  void Extend(Work& work, size_t pass, LaneId lane, Instant begin, Instant end) {
    const auto [it, fresh] = work.in_pass.try_emplace(pass, MarkedSpan{lane, begin, end, range_});
    it->second.begin = std::min(it->second.begin, begin);
    it->second.end = std::max(it->second.end, end);
  }

  const NameId range_;
  std::vector<MarkedSpan> passes_;  // outermost ones, in time order
  std::map<uint32_t, Work> work_;   // by lane
};

}  // namespace

std::vector<MarkedSpan> EngineSpans(std::span<const MarkedSpan> spans,
                                    std::span<const CallSpan> calls, StringPool& names) {
  Engines engines(spans, names);
  for (const CallSpan& call : calls) engines.AddCall(call);
  for (const MarkedSpan& span : spans) {
    if (span.backward) engines.AddLayer(span);
  }
  return engines.Take();
}

}  // namespace daydream
