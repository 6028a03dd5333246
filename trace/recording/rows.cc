#include "trace/recording/rows.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "absl/container/flat_hash_set.h"
#include "base/median.h"
#include "trace/range_names.h"
#include "trace/recording/collectives.h"
#include "trace/recording/cost.h"
#include "trace/recording/layers.h"

namespace daydream {
namespace {

std::vector<Instant> LayerMarkTimes(const std::vector<RecordedMark>& marks) {
  std::vector<Instant> out;
  for (const RecordedMark& mark : marks) {
    if (mark.kind == MarkKind::kLayerBegin || mark.kind == MarkKind::kLayerEnd ||
        mark.kind == MarkKind::kBackwardEnter || mark.kind == MarkKind::kBackwardExit) {
      out.push_back(mark.at);
    }
  }
  return out;
}

// The step that an instant lies in.
std::optional<size_t> StepAt(const MarkedProgram& program, Instant at) {
  const std::vector<MarkedStep>& steps = program.steps;
  const auto after = std::partition_point(steps.begin(), steps.end(),
                                          [&](const MarkedStep& s) { return s.begin <= at; });
  if (after == steps.begin() || (after - 1)->end <= at) return std::nullopt;
  return static_cast<size_t>(after - steps.begin()) - 1;
}

// So many steps without a call between two that were recorded lie between two windows; the recorder
// leaves more (kDetachedSteps of tracer/window.h). A program may do fewer by itself.
constexpr size_t kSilentSteps = 5;

Instant EndOf(const TraceBuilder::Event& event) { return event.start + event.duration; }

}  // namespace

void RecordingRows::AddWait(const TraceBuilder::Event& event, const SyncDetail& detail,
                            uint32_t context, uint64_t event_sync) {
  waits_.push_back({event, detail, context, event_sync});
}

bool RecordingRows::empty() const {
  return events_.empty() && waits_.empty() && records_.empty() && marks_.empty() && overheads_ == 0;
}

Instant RecordingRows::LastEnd() const {
  Instant end = Instant::Min();
  for (const TraceBuilder::Event& event : events_) end = std::max(end, EndOf(event));
  for (const RecordedMark& mark : marks_) end = std::max(end, mark.at);
  return end;
}

void RecordingRows::Join() {
  std::vector<EventWait> waits;
  for (Wait& wait : waits_) {
    SyncDetail& detail = wait.detail;
    const bool of_event =
        detail.kind == SyncKind::kStreamWaitEvent || detail.kind == SyncKind::kEvent;
    if (!of_event || detail.record_correlation != 0) continue;
    waits.push_back({wait.event.correlation, wait.context, wait.event_sync, &detail});
  }
  counts_.Input("event records", "the waits for them name them", false, records_.size());
  counts_.Note("waits for an event that was not seen recorded",
               "it was recorded before the recording began, or never", false,
               JoinWaits(std::move(records_), waits));
}

std::vector<uint64_t> RecordingRows::CallsOfSteps(const MarkedProgram& program) const {
  std::vector<uint64_t> calls(program.steps.size());
  for (const TraceBuilder::Event& event : events_) {
    if (event.kind != EventKind::kCall) continue;
    if (const auto step = StepAt(program, event.start)) ++calls[*step];
  }
  return calls;
}

std::vector<bool> RecordingRows::RecordedSteps(const std::vector<uint64_t>& calls) {
  // The recorder is switched in the marks of steps, on one thread: another thread may be in the
  // middle of a call then. So a few calls do not make a step.
  std::vector<uint64_t> some;
  std::copy_if(calls.begin(), calls.end(), std::back_inserter(some),
               [](uint64_t n) { return n > 0; });
  const uint64_t typical = Median(some);
  std::vector<bool> recorded(calls.size());
  for (size_t i = 0; i < calls.size(); ++i) recorded[i] = calls[i] > 0 && calls[i] * 10 >= typical;
  return recorded;
}

bool RecordingRows::Windows::Meet(Instant begin, Instant end) const {
  const auto next = std::partition_point(all_.begin(), all_.end(),
                                         [&](const Window& w) { return w.end <= begin; });
  return next != all_.end() && next->begin < end;
}

void RecordingRows::Windows::Clamp(MarkedSpan& span) const {
  const auto first = std::partition_point(all_.begin(), all_.end(),
                                          [&](const Window& w) { return w.end <= span.begin; });
  const auto behind = std::partition_point(all_.begin(), all_.end(),
                                           [&](const Window& w) { return w.begin < span.end; });
  span.begin = std::max(span.begin, first->begin);
  span.end = std::min(span.end, (behind - 1)->end);
}

RecordingRows::Windows RecordingRows::WindowsOf(const MarkedProgram& program,
                                                const std::vector<uint64_t>& calls_of_steps,
                                                const std::vector<bool>& recorded) const {
  std::vector<Window> windows;
  size_t silent = 0;  // steps without any call since the last one that was recorded
  for (size_t i = 0; i < recorded.size(); ++i) {
    silent += calls_of_steps[i] == 0;
    if (!recorded[i]) continue;
    if (windows.empty() || silent >= kSilentSteps) windows.push_back({program.steps[i].begin, {}});
    windows.back().end = program.steps[i].end;
    silent = 0;
  }
  if (!windows.empty() && windows.front().begin < windows.back().end)
    return Windows(std::move(windows));
  Window window{Instant{INT64_MAX}, Instant::Min()};
  // The recorder goes on with GPU work for a while after the last call, for what that launched.
  absl::flat_hash_set<uint32_t> calls;
  for (const TraceBuilder::Event& event : events_) {
    if (event.kind == EventKind::kCall) calls.insert(event.correlation);
  }
  for (const TraceBuilder::Event& event : events_) {
    if (!calls.empty() && !calls.contains(event.correlation)) continue;
    window.begin = std::min(window.begin, event.start - Duration{1});
    window.end = std::max(window.end, EndOf(event) + Duration{1});
  }
  if (events_.empty()) window = {Instant::Min(), Instant{INT64_MAX}};
  return Windows({window});
}

RecordingCost RecordingRows::CostOf(const MarkedProgram& program, const std::vector<bool>& recorded,
                                    const std::vector<Instant>& layer_marks) const {
  // The program ends in its last step.
  if (program.steps.size() < 2) return {};
  std::vector<SeenStep> steps(program.steps.size() - 1);
  for (size_t i = 0; i < steps.size(); ++i) {
    const MarkedStep& step = program.steps[i];
    steps[i] = {.time = step.end - step.begin, .recorded = recorded[i], .labelled = step.labelled};
  }
  const auto at = [&](Instant time) -> SeenStep* {
    const auto step = StepAt(program, time);
    return step && *step < steps.size() ? &steps[*step] : nullptr;
  };
  for (const TraceBuilder::Event& event : events_) {
    SeenStep* step = at(event.start);
    if (step == nullptr) continue;
    step->calls += event.kind == EventKind::kCall;
    if (!IsGpuWork(event.kind)) continue;
    ++step->work;
    step->gpu += event.duration;
  }
  for (Instant mark : layer_marks) {
    if (SeenStep* step = at(mark)) ++step->layer_marks;
  }
  return CostOfRecording(steps);
}

void RecordingRows::AddSpan(const MarkedSpan& span) {
  ++spans_;
  builder_.AddEvent({.start = span.begin,
                     .duration = span.end - span.begin,
                     .lane = span.lane,
                     .name = span.name,
                     .kind = span.kind});
}

void RecordingRows::AddSteps(const MarkedProgram& program, const std::vector<bool>& recorded) {
  for (size_t i = 0; i < recorded.size(); ++i) {
    if (!recorded[i]) continue;
    const MarkedStep& step = program.steps[i];
    const std::string_view prefix = step.labelled ? kLabelledStepRange : kStepRange;
    AddSpan({.lane = program.step_lane,
             .begin = step.begin,
             .end = step.end,
             .name = builder_.names().Intern(fmt::format("{}{}", prefix, step.number))});
  }
}

void RecordingRows::AddHoles(const Windows& windows, const std::vector<CallSpan>& calls,
                             LaneId step_lane) {
  if (windows.all().size() < 2) return;
  std::set<LaneId> threads = {step_lane};
  for (const CallSpan& call : calls) threads.insert(call.lane);
  const NameId name = builder_.names().Intern(kNotRecordedRange);
  for (size_t i = 0; i + 1 < windows.all().size(); ++i) {
    for (LaneId lane : threads) {
      AddSpan({.lane = lane,
               .begin = windows.all()[i].end,
               .end = windows.all()[i + 1].begin,
               .name = name});
    }
  }
}

void RecordingRows::AddSpans(std::vector<MarkedSpan> spans, const Windows& windows) {
  uint64_t outside = 0;
  // Of equally long spans the one that was closed last is around the others.
  for (size_t i = spans.size(); i-- > 0;) {
    MarkedSpan span = spans[i];
    if (!windows.Meet(span.begin, span.end)) {
      ++outside;
      continue;
    }
    windows.Clamp(span);
    AddSpan(span);
  }
  counts_.Note("ranges and layers outside of the recorded time", "nothing was recorded there",
               false, outside);
}

void RecordingRows::AddGraphLayers(const std::vector<MarkedSpan>& spans) {
  if (nodes_.empty()) return;
  const LayersByTime layers(spans, builder_.names());
  for (TraceBuilder::Event& event : events_) {
    if (event.kind != EventKind::kKernel || event.detail == Id<void>::kNoneValue) continue;
    KernelDetail kernel = builder_.kernel(event.detail);
    auto node = nodes_.find(kernel.graph_node);
    if (node == nodes_.end()) continue;
    if (const auto origin = nodes_.find(node->second.origin); origin != nodes_.end()) node = origin;
    const LayersByTime::Layer layer = layers.At(node->second.lane, node->second.created);
    if (!layer.path.valid()) continue;
    kernel.layer = layer.path;
    kernel.backward = layer.backward;
    event.detail = builder_.AddKernel(kernel);
  }
}

void RecordingRows::AddCollectives(const std::vector<MarkedSpan>& spans) {
  const CollectiveCalls calls(spans, builder_.names());
  if (calls.empty()) return;
  absl::flat_hash_map<uint32_t, CollectiveDetail> collectives;  // by correlation
  for (const TraceBuilder::Event& event : events_) {
    if (event.kind != EventKind::kCall || event.correlation == 0) continue;
    if (const auto detail = calls.At(event.lane, event.start)) {
      collectives.try_emplace(event.correlation, *detail);
    }
  }
  for (TraceBuilder::Event& event : events_) {
    if (event.kind != EventKind::kKernel || event.detail == Id<void>::kNoneValue) continue;
    const auto found = collectives.find(event.correlation);
    if (found == collectives.end()) continue;
    if (!IsCollectiveKernel(builder_.names().Get(event.name))) continue;
    KernelDetail kernel = builder_.kernel(event.detail);
    kernel.collective = builder_.AddCollective(found->second);
    event.detail = builder_.AddKernel(kernel);
  }
}

void RecordingRows::AddEvents(const Windows& windows) {
  uint64_t outside = 0;
  absl::flat_hash_map<uint32_t, bool> kept;  // calls, by correlation
  const auto within = [&](const TraceBuilder::Event& event) { return windows.Hold(event.start); };
  for (const TraceBuilder::Event& event : events_) {
    if (event.kind != EventKind::kCall || event.correlation == 0) continue;
    kept[event.correlation] |= within(event);
  }
  for (; !events_.empty(); events_.pop_front()) {
    const TraceBuilder::Event& event = events_.front();
    bool keep = within(event);
    if (event.kind != EventKind::kCall) {
      // GPU work belongs to the window as its call does; it may end later.
      const auto call = kept.find(event.correlation);
      keep = keep || (call != kept.end() && call->second);
    }
    keep ? builder_.AddEvent(event) : void(++outside);
  }
  for (; !waits_.empty(); waits_.pop_front()) {
    Wait& wait = waits_.front();
    const auto call = kept.find(wait.event.correlation);
    if (!within(wait.event) && (call == kept.end() || !call->second)) {
      ++outside;
      continue;
    }
    wait.event.detail = builder_.AddSync(wait.detail);
    builder_.AddEvent(wait.event);
  }
  counts_.Input("events outside of the recorded steps", "they belong to no step", false, outside);
}

void RecordingRows::AddFacts(const MarkedProgram& program, bool rank_known) {
  for (const auto& [what, value] : program.notes) builder_.AddSoftware(what, value);
  if (!rank_known && program.rank.rank >= 0) {
    builder_.SetRank(program.rank.rank, program.rank.world_size);
  }
}

void RecordingRows::CountRest(const MarkedProgram& program) {
  counts_.Input("profiler overhead",
                fmt::format("{:.1f} ms that the recording itself took", overhead_.ms()), false,
                overheads_);
  counts_.Note("ends of ranges that did not begin", "they began before the recording", false,
               program.ends_without_begin);
  counts_.Note("ranges and layers without an end", "they end where the recording does", false,
               program.begins_without_end);
  counts_.Note("marks of steps that were not used",
               "another thread or source marks the steps, or the number came twice", false,
               program.other_steps);
  counts_.Note("marks of an unknown kind", "written by a newer daydream", true, program.unknown);
  if (program.marks > spans_) {
    counts_.Input("marks", "two of them make a range; points and facts make none", false,
                  program.marks - spans_);
  }
}

void RecordingRows::Finish(bool rank_known) {
  if (empty()) return;
  Join();
  const std::vector<Instant> layer_marks = LayerMarkTimes(marks_);
  MarkedProgram program = ReadMarks(std::move(marks_), LastEnd(), builder_.names());
  const std::vector<uint64_t> calls_of_steps = CallsOfSteps(program);
  const std::vector<bool> recorded = RecordedSteps(calls_of_steps);
  const Windows windows = WindowsOf(program, calls_of_steps, recorded);
  builder_.provenance().cost = CostOf(program, recorded, layer_marks);
  std::vector<CallSpan> calls;
  for (const TraceBuilder::Event& event : events_) {
    if (event.kind == EventKind::kCall && windows.Hold(event.start)) {
      calls.push_back({event.lane, event.start, EndOf(event)});
    }
  }
  AddGraphLayers(program.spans);
  AddCollectives(program.spans);
  AddSteps(program, recorded);
  AddHoles(windows, calls, program.step_lane);
  AddSpans(EngineSpans(program.spans, calls, builder_.names()), windows);
  AddSpans(std::move(program.spans), windows);
  AddEvents(windows);
  AddFacts(program, rank_known);
  CountRest(program);
}

}  // namespace daydream
