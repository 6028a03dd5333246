// The rows of a recording while it is read. What a row means can depend on any other (a wait on
// the record of its event, a call on the marks around it), and rows come in any order; so they
// gather here, and Finish() hands them to the TraceBuilder.
#pragma once

#include <deque>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "trace/recording/counts.h"
#include "trace/recording/engine.h"
#include "trace/recording/marks.h"
#include "trace/recording/waits.h"
#include "trace/trace_builder.h"

namespace daydream {

class RecordingRows {
 public:
  RecordingRows(TraceBuilder& builder, DdtraceCounts& counts)
      : builder_(builder), counts_(counts) {}

  // Calls and GPU work.
  void AddEvent(const TraceBuilder::Event& event) { events_.push_back(event); }
  // A wait, without its detail.
  void AddWait(const TraceBuilder::Event& event, const SyncDetail& detail, uint32_t context,
               uint64_t event_sync);
  void AddEventRecord(const EventRecord& record) { records_.push_back(record); }
  void AddMark(const RecordedMark& mark) { marks_.push_back(mark); }
  // A node of a CUDA graph was made by code of `lane`, or is a clone of `origin` (0: of none).
  void AddGraphNode(uint64_t node, uint64_t origin, LaneId lane, Instant created) {
    nodes_.insert_or_assign(node, GraphNode{origin, lane, created});
  }
  void AddOverhead(Duration time) { ++overheads_, overhead_ += time; }

  // Nothing was added.
  bool empty() const;
  // Adds rows and counts to the builder. `rank_known`: the rank that marks say is not needed.
  void Finish(bool rank_known);

 private:
  struct Wait {
    TraceBuilder::Event event;
    SyncDetail detail;
    uint32_t context = 0;
    uint64_t event_sync = 0;
  };
  struct GraphNode {
    uint64_t origin = 0;
    LaneId lane;
    Instant created;
  };
  // What of the time belongs to the trace: a stretch, or several where nothing was recorded between
  // them.
  struct Window {
    Instant begin, end;
  };
  class Windows {
   public:
    explicit Windows(std::vector<Window> all) : all_(std::move(all)) {}
    bool Hold(Instant at) const { return Meet(at, at + Duration{1}); }
    bool Meet(Instant begin, Instant end) const;
    // Without what of it lies before the first window that it meets and after the last.
    void Clamp(MarkedSpan& span) const;
    std::span<const Window> all() const { return all_; }

   private:
    std::vector<Window> all_;  // in order, at least one
  };

  Instant LastEnd() const;
  void Join();
  std::vector<uint64_t> CallsOfSteps(const MarkedProgram& program) const;
  // The steps that were recorded: those with about as many calls as the others have. The others
  // tell what recording costs.
  static std::vector<bool> RecordedSteps(const std::vector<uint64_t>& calls);
  Windows WindowsOf(const MarkedProgram& program, const std::vector<uint64_t>& calls_of_steps,
                    const std::vector<bool>& recorded) const;
  RecordingCost CostOf(const MarkedProgram& program, const std::vector<bool>& recorded,
                       const std::vector<Instant>& layer_marks) const;
  void AddSteps(const MarkedProgram& program, const std::vector<bool>& recorded);
  void AddSpans(std::vector<MarkedSpan> spans, const Windows& windows);
  void AddSpan(const MarkedSpan& span);
  // On every thread: nobody waited or worked there for all that is known.
  void AddHoles(const Windows& windows, const std::vector<CallSpan>& calls, LaneId step_lane);
  // Gives kernels of CUDA graphs the layer that was being worked on when their node was made.
  void AddGraphLayers(const std::vector<MarkedSpan>& spans);
  // Tells kernels of collectives how much they move, and which call of which group they are.
  void AddCollectives(const std::vector<MarkedSpan>& spans);
  void AddEvents(const Windows& windows);
  void AddFacts(const MarkedProgram& program, bool rank_known);
  void CountRest(const MarkedProgram& program);

  TraceBuilder& builder_;
  DdtraceCounts& counts_;
  std::deque<TraceBuilder::Event> events_;
  std::deque<Wait> waits_;
  std::vector<EventRecord> records_;
  std::vector<RecordedMark> marks_;
  absl::flat_hash_map<uint64_t, GraphNode> nodes_;
  uint64_t overheads_ = 0, spans_ = 0;
  Duration overhead_;
};

}  // namespace daydream
