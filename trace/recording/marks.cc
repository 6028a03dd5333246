#include "trace/recording/marks.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "trace/recording/backward.h"

namespace daydream {
namespace {

// Marks of one thread, read with a stack of ranges and one of layers.
class ThreadMarks {
 public:
  ThreadMarks(LaneId lane, StringPool& names, MarkedProgram& out)
      : lane_(lane), names_(names), out_(out) {}

  void Read(const RecordedMark& mark) {
    switch (mark.kind) {
      case MarkKind::kRangeBegin:
        return ranges_.push_back({mark.at, mark.name, mark.bytes, {}});
      case MarkKind::kRangeEnd:
        return Close(ranges_, mark.at, EventKind::kAnnotation);
      case MarkKind::kLayerBegin:
        return layers_.push_back({mark.at, PathOf(mark.name)});
      case MarkKind::kLayerEnd:
        return Close(layers_, mark.at, EventKind::kFrame);
      case MarkKind::kCollective:
        if (!ranges_.empty()) ranges_.back().group = mark.name, ranges_.back().number = mark.value;
        return;
      default:
        return;
    }
  }

  void Finish(Instant end) {
    out_.begins_without_end += ranges_.size() + layers_.size();
    while (!ranges_.empty()) Close(ranges_, end, EventKind::kAnnotation);
    while (!layers_.empty()) Close(layers_, end, EventKind::kFrame);
  }

 private:
  struct Open {
    Instant begin;
    NameId name;
    uint64_t bytes = 0;
    NameId group;
    int64_t number = -1;
  };

  // Layers of the PyTorch side have a full path and say so by naming their class; others are
  // called as the program likes, and are a part of what is around them.
  NameId PathOf(NameId mark) {
    const std::string text(names_.Get(mark));
    if (text.find('\t') != std::string::npos || layers_.empty()) return LayerPath(mark, names_);
    constexpr size_t kLongestPath = 512;  // longer ones are not joined: bounds memory
    std::string path(names_.Get(layers_.back().name));
    if (path.size() + text.size() > kLongestPath || text.starts_with(path + ".")) return mark;
    return names_.Intern(path + "." + text);
  }

  void Close(std::vector<Open>& open, Instant at, EventKind kind) {
    if (open.empty()) {
      ++out_.ends_without_begin;
      return;
    }
    const Open& last = open.back();
    out_.spans.push_back({.lane = lane_,
                          .begin = last.begin,
                          .end = std::max(at, last.begin),
                          .name = last.name,
                          .kind = kind,
                          .bytes = last.bytes,
                          .group = last.group,
                          .number = last.number});
    open.pop_back();
  }

  LaneId lane_;
  StringPool& names_;
  MarkedProgram& out_;
  std::vector<Open> ranges_, layers_;
};

// Marks of steps have the name of their source, of which the recorder uses the last ("torch").
NameId StepSource(const std::vector<RecordedMark>& marks) {
  for (size_t i = marks.size(); i-- > 0;) {
    if (marks[i].kind == MarkKind::kStep) return marks[i].name;
  }
  return {};
}

// The thread with most steps says what the steps are.
LaneId StepLane(const std::vector<RecordedMark>& marks, NameId source) {
  absl::flat_hash_map<uint32_t, uint64_t> count;
  LaneId best;
  for (const RecordedMark& mark : marks) {
    if (mark.kind == MarkKind::kStep && mark.name == source) ++count[mark.lane.value];
  }
  for (const auto& [lane, n] : count) {
    const uint64_t most = best.valid() ? count[best.value] : 0;
    if (n > most || (n == most && LaneId(lane) < best)) best = LaneId(lane);
  }
  return best;
}

void ReadSteps(const std::vector<RecordedMark>& marks, Instant end, MarkedProgram& out) {
  const NameId source = StepSource(marks);
  out.step_lane = StepLane(marks, source);
  for (const RecordedMark& mark : marks) {
    if (mark.kind != MarkKind::kStep) continue;
    const bool again = !out.steps.empty() && out.steps.back().number == mark.value;
    if (mark.lane != out.step_lane || mark.name != source || again) {
      ++out.other_steps;
      continue;
    }
    if (!out.steps.empty()) out.steps.back().end = mark.at;
    out.steps.push_back({.begin = mark.at, .end = std::max(end, mark.at), .number = mark.value});
  }
}

// A step is labelled when its layers were marked during a tenth of it or more: the marks that
// begin and end labelling stand near those of the steps. And when it holds most of the time in
// which they were: the first recorded step may begin long before.
void LabelSteps(const std::vector<RecordedMark>& marks, Instant end, MarkedProgram& out) {
  std::optional<Instant> begin;
  const auto label = [&](Instant from, Instant to) {
    auto step = std::partition_point(out.steps.begin(), out.steps.end(),
                                     [&](const MarkedStep& s) { return s.end <= from; });
    auto most = out.steps.end();
    Duration longest;
    for (; step != out.steps.end() && step->begin < to; ++step) {
      const Duration both = std::min(to, step->end) - std::max(from, step->begin);
      if (both.ns >= (step->end - step->begin).ns / 10) step->labelled = true;
      if (both > longest) most = step, longest = both;
    }
    if (most != out.steps.end()) most->labelled = true;
  };
  for (const RecordedMark& mark : marks) {
    if (mark.kind == MarkKind::kLabelsBegin && !begin) begin = mark.at;
    if (mark.kind != MarkKind::kLabelsEnd || !begin) continue;
    label(*begin, mark.at);
    begin.reset();
  }
  if (begin) label(*begin, end);
}

void ReadFact(const RecordedMark& mark, const StringPool& names, MarkedProgram& out) {
  if (mark.kind == MarkKind::kRank) {
    const auto value = static_cast<uint64_t>(mark.value);
    out.rank = {static_cast<int32_t>(value >> 32), static_cast<int32_t>(value & 0xffffffff)};
  } else if (mark.kind == MarkKind::kNote) {
    const std::string_view text = names.Get(mark.name);
    const size_t equal = text.find('=');
    if (equal == std::string_view::npos) return;
    out.notes.emplace_back(text.substr(0, equal), text.substr(equal + 1));
  } else if (mark.kind == MarkKind::kPoint) {
    ++out.points;
  } else if (mark.kind == MarkKind::kUnknown) {
    ++out.unknown;
  }
}

}  // namespace

MarkedProgram ReadMarks(std::vector<RecordedMark> marks, Instant end, StringPool& names) {
  MarkedProgram out;
  out.marks = marks.size();
  std::stable_sort(marks.begin(), marks.end(),
                   [](const RecordedMark& a, const RecordedMark& b) { return a.at < b.at; });
  absl::flat_hash_map<uint32_t, size_t> index;
  std::vector<ThreadMarks> threads;
  for (const RecordedMark& mark : marks) {
    const auto [it, fresh] = index.try_emplace(mark.lane.value, threads.size());
    if (fresh) threads.emplace_back(mark.lane, names, out);
    threads[it->second].Read(mark);
    ReadFact(mark, names, out);
  }
  for (ThreadMarks& thread : threads) thread.Finish(end);
  ReadSteps(marks, end, out);
  LabelSteps(marks, end, out);
  ReadBackwardLayers(marks, end, names, out);
  return out;
}

}  // namespace daydream
