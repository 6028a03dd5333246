// pin-memory: blocking copies become asynchronous, on a lane of their own where that is possible.
#include <algorithm>
#include <array>
#include <map>

#include "base/median.h"
#include "graph/facts.h"
#include "graph/order.h"
#include "transforms/analysis/gpu_waits.h"
#include "transforms/analysis/host_calls.h"
#include "transforms/analysis/link_rate.h"
#include "transforms/core/transform.h"
#include "transforms/edits/blocking_copies.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

constexpr ParamSpec kPinMemoryParams[] = {
    {.name = "rate",
     .unit = Unit::kBandwidth,
     .fallback = 0,
     .max = 1e12,
     .help = "rate of pinned copies; 0 = from this trace",
     .source = "pinned copies of the trace, else what its pageable copies show of the link, but no "
               "more than 78 % of what PCIe is rated at"},
    {.name = "staging",
     .unit = Unit::kBytes,
     .fallback = 512 << 10,
     .low = 400 << 10,
     .high = 1 << 20,
     .min = 4096,
     .max = 64 << 20,
     .help = "bytes still on their way when the call of a pageable copy to the GPU returns",
     .source = "the part of pageable copies that follows the return of their call: 34 us on a "
               "2080 Ti, 46 to 58 us on a V100, both on PCIe 3.0 x16 (12.3 GB/s usable)"},
};

// All copies of a graph, in an order in which they can run: recorded times alone would mix those of
// repeated steps.
struct CopiesInOrder {
  std::vector<TaskId> copies;
};

CopiesInOrder FindCopiesInOrder(const Graph& graph) {
  return {OrderInTime(
      graph, [](const Task& task) { return task.kind == TaskKind::kMemcpy && !task.removed; })};
}

struct PageableCopy {
  TaskId copy, call;
  CopyWay direction = kToDevice;
  uint64_t bytes = 0;
};

// What the copies of a trace show of the link between host and GPU, in bytes per second.
struct LinkRate {
  std::array<double, 2> pinned{};  // median of large pinned copies, by direction
  double fastest = 0;              // of large pageable copies
  std::vector<double> tails;  // seconds of pageable copies that follow the return of their call
  double usable = 0;          // what the GPU's link can carry; 0: not known
  // The fastest copy, or what the tails show; no more than is usable.
  double Told(double staging) const {
    std::vector<double> rates;
    for (double tail : tails) rates.push_back(staging / tail);
    const double told = std::max(fastest, Median(rates));
    return usable > 0 ? std::min(told, usable) : told;
  }
};

class PinMemory {
 public:
  PinMemory(const Params& params, Editor& edit) : params_(params), edit_(edit) {}

  absl::Status Run() {
    edit_.NeedEditsWhereOthers(  // what the link and the cost of a call are told by
        [](const Task& t) { return IsHost(t.kind) || t.kind == TaskKind::kMemcpy; });
    FindCopies();
    if (copies_.empty()) {
      edit_.changes().notes.push_back("no copy between pageable memory and a GPU in this trace");
      return absl::OkStatus();
    }
    waits_ = WaitsForGpu(graph());
    MeasureLink();
    async_copy_ = MeasureHostCosts(edit_.graph()).copy;
    uint64_t read_at_once = 0, to_host = 0;
    for (const PageableCopy& c : copies_) {
      if (c.direction == kToHost && NeedsResult(graph(), c.copy)) {
        ++read_at_once;
        continue;
      }
      Shorten(c);
      Unblock(c);
      GiveOwnLane(c);
      if (c.direction == kToHost) ++to_host;
    }
    TellCopies();
    TellPinMemory(read_at_once, to_host);
    return absl::OkStatus();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }

  // Own lanes take copies in order.
  void FindCopies() {
    const auto all =
        FactOfWiring<CopiesInOrder>(graph(), [this] { return FindCopiesInOrder(graph()); });
    for (TaskId t : all->copies) {
      const CopyDetail* d = graph().Copy(t);
      if (d == nullptr) continue;
      if (d->from == Memory::kPageable && d->to == Memory::kDevice) {
        copies_.push_back({t, edit_.LaunchOf(t), kToDevice, d->bytes});
      } else if (d->from == Memory::kDevice && d->to == Memory::kPageable) {
        copies_.push_back({t, edit_.LaunchOf(t), kToHost, d->bytes});
      }
    }
  }

  void MeasureLink() {
    link_.pinned = PinnedRates(graph());
    for (const PageableCopy& c : copies_) {
      if (c.bytes >= kLargeCopy) {
        link_.fastest = std::max(link_.fastest, CopyRate(c.bytes, graph().task(c.copy).duration));
      }
    }
    for (const Edge& e : graph().edges()) {
      // The call returned while the last staging buffer was still being sent.
      if (e.rule != Rule::kHostWait || e.lag >= Duration{}) continue;
      const CopyDetail* d = graph().Copy(e.from);
      if (d != nullptr && d->from == Memory::kPageable && d->bytes >= kLargeCopy) {
        link_.tails.push_back((-e.lag).seconds());
      }
    }
    link_.usable = UsableLinkRate(graph(), copies_.front().copy);
    const auto told = [this](const Params& params) {
      return link_.tails.empty() ? link_.Told(0) : link_.Told(params["staging"]);
    };
    told_ = told(params_);
    told_at_ends_ = edit_.AtEnds([&](const EndView& at) { return told(at.params()); });
  }

  // `told`: by LinkRate.
  double RateOf(CopyWay way, double told) const {
    if (params_["rate"] > 0) return params_["rate"];
    if (link_.pinned[way] > 0) return link_.pinned[way];
    CopyWay other = way == kToDevice ? kToHost : kToDevice;
    if (link_.pinned[other] > 0) return link_.pinned[other];
    return told;
  }
  double RateOf(CopyWay way) const { return RateOf(way, told_); }

  // What a copy takes that takes `now`.
  Duration Pinned(const PageableCopy& c, double told, Duration now) const {
    const double rate = RateOf(c.direction, told);
    const Duration pinned =
        std::max(std::min(now, kCopyLatency),
                 Duration::FromDouble(static_cast<double>(c.bytes) / rate * 1e9));
    // What this trace tells of the link is a lower limit; a given rate is not.
    return pinned < now || params_["rate"] > 0 ? pinned : now;
  }

  void Shorten(const PageableCopy& c) {
    if (RateOf(c.direction) <= 0) return;
    edit_.BeginCause("pinned copies run at the rate of the link");
    const Duration now = graph().task(c.copy).duration;
    std::vector<Duration> at_ends;
    for (double told : told_at_ends_) at_ends.push_back(Pinned(c, told, now));
    const Duration then = Pinned(c, told_, now);
    if (then != now || params_["rate"] > 0) edit_.SetDuration(c.copy, then);
    edit_.SetAtEnds(c.copy, at_ends);
  }

  // The call returns at once, and the synchronization that a blocking copy ends with is gone.
  void Unblock(const PageableCopy& c) {
    if (!c.call.valid()) return;
    edit_.BeginCause("the host no longer waits for copies");
    unblocked_.push_back({c.copy, c.call});
    ReturnAtOnce(edit_, c.call, waits_, async_copy_);
  }

  LaneId CopyLane(const PageableCopy& c) {
    const LaneId from = graph().task(c.copy).lane;
    auto [it, inserted] =
        lanes_.try_emplace({graph().lane(from).lane.device, c.direction}, LaneId::None());
    if (inserted) {
      it->second = edit_.NewStream(
          c.direction == kToDevice ? "pinned copies to the GPU" : "pinned copies to the host",
          from);
    }
    return it->second;
  }

  void GiveOwnLane(const PageableCopy& c) {
    edit_.BeginCause("copies run beside kernels");
    TaskId before = graph().task(c.copy).lane_prev, after = graph().task(c.copy).lane_next;
    if (before.valid() && graph().task(before).kind == TaskKind::kDelay) {
      edit_.Remove({&before, 1});
    }
    if (graph().task(c.copy).gap != Duration{}) edit_.SetGap(c.copy, {});
    LaneId lane = CopyLane(c);
    edit_.Move(c.copy, lane, graph().lane(lane).last);
    if (c.direction == kToDevice) {
      if (after.valid()) edit_.AddEdge(c.copy, after, {});
      return;
    }
    if (before.valid()) edit_.AddEdge(before, c.copy, {});
    const TaskId wait = c.call.valid() ? WaitBehind(c.call) : TaskId::None();
    if (wait.valid()) {
      edit_.AddEdge(c.copy, wait, {}, Rule::kTransform, Anchor::kEnd, Anchor::kEnd);
    }
  }

  // The next call of the thread that waits for the GPU. What lies before it is noted, so that many
  // questions go over a thread once.
  TaskId WaitBehind(TaskId call) {
    for (size_t i = behind_.size(); i < waits_.size(); ++i) behind_.emplace_back(i);
    std::vector<TaskId> passed;
    TaskId t = call;
    do {
      passed.push_back(t);
      const TaskId known = behind_[t.index()];
      t = known == t ? graph().task(t).lane_next : known;
    } while (t.valid() && (!waits_[t.index()] || graph().task(t).removed));
    for (const TaskId before : passed) behind_[before.index()] = t;
    return t;
  }

  // Which copies this is about, largest first: a program has others, and some are pinned already.
  void TellCopies() {
    struct Site {
      uint64_t bytes = 0, copies = 0;
    };
    for (CopyWay way : {kToDevice, kToHost}) {
      std::map<std::string, Site> sites;
      uint64_t all = 0;
      for (const PageableCopy& c : copies_) {
        const bool stays = way == kToHost && NeedsResult(graph(), c.copy);
        if (c.direction != way || stays) continue;
        Site& site = sites[c.call.valid() ? SiteOf(graph(), c.call) : "an unrecorded call"];
        site.bytes += c.bytes, ++site.copies, ++all;
      }
      if (sites.empty()) continue;
      const auto largest = std::max_element(sites.begin(), sites.end(), [](auto& a, auto& b) {
        return a.second.bytes < b.second.bytes;
      });
      edit_.changes().notes.push_back(
          fmt::format("{} pageable cop{} {}, most bytes by {} ({} of {:.3g} MB each)", all,
                      all == 1 ? "y" : "ies", way == kToDevice ? "to the GPU" : "to the host",
                      largest->first, largest->second.copies,
                      static_cast<double>(largest->second.bytes) * 1e-6 /
                          static_cast<double>(largest->second.copies)));
    }
  }

  void TellPinMemory(uint64_t read_at_once, uint64_t to_host) {
    // Calls that were not split in two waited for their copy themselves.
    std::sort(unblocked_.begin(), unblocked_.end());
    edit_.DropEdges([&](const Graph&, const Edge& e) {
      return e.rule == Rule::kHostWait &&
             std::binary_search(unblocked_.begin(), unblocked_.end(), std::pair(e.from, e.to));
    });
    auto& notes = edit_.changes().notes;
    bool measured = params_["rate"] == 0 && link_.pinned[kToDevice] + link_.pinned[kToHost] > 0;
    if (RateOf(kToDevice) > 0) {
      notes.push_back(
          fmt::format("pinned copies run at {:.1f} GB/s to the GPU and {:.1f} GB/s to "
                      "the host ({})",
                      RateOf(kToDevice) / 1e9, RateOf(kToHost) / 1e9,
                      params_["rate"] > 0 ? "as given"
                      : measured          ? "pinned copies of this trace"
                                          : "told from its pageable copies"));
    } else {
      notes.push_back(
          "the rate of pinned copies is not known, as no copy moves a MiB: copies keep their time");
    }
    if (read_at_once > 0) {
      notes.push_back(
          fmt::format("{} copies to the host are read at once and keep blocking", read_at_once));
    }
    if (to_host > 0) {
      edit_.changes().conditions.push_back(fmt::format(
          "{} copies to the host no longer block: right only where the host reads them after a "
          "later synchronization",
          to_host));
    }
  }

  const Params& params_;
  Editor& edit_;
  std::vector<PageableCopy> copies_;
  std::vector<bool> waits_;  // by task: it waits for the GPU
  std::vector<TaskId>
      behind_;  // by task: where the next that waits is sought, itself where unknown
  std::vector<std::pair<TaskId, TaskId>> unblocked_;  // copy, its call
  std::map<std::pair<int32_t, CopyWay>, LaneId> lanes_;
  LinkRate link_;
  double told_ = 0;
  std::vector<double> told_at_ends_;
  Duration async_copy_;
};

absl::Status RunPinMemory(const Params& params, Editor& edit) {
  return PinMemory(params, edit).Run();
}

}  // namespace

constinit const Transform kPinMemory = {
    .name = "pin-memory",
    .summary = "Copies use pinned memory and do not block the host",
    .params = kPinMemoryParams,
    .ends = AtEnds::kTold,
    .apply = &RunPinMemory,
    .model =
        "Copies between pageable memory and a GPU become asynchronous: the call costs what "
        "an asynchronous copy call costs in this trace, the synchronization after it goes, "
        "and the copy runs on a lane of its own for each direction. The next operation of "
        "the stream waits for a copy to the GPU; a copy to the host waits for the operation "
        "before it, and the next blocking call of the thread waits for the copy. Copies "
        "run at the rate of this trace's pinned copies; without any, at what its pageable "
        "copies show of the link, but no faster than the link can. Steps begin with the first work "
        "of the lanes on which they began before.",
    .ignores =
        "Pinning the batch itself (a thread of the loader does it), several GPUs on one "
        "link, and what host code reads before the next synchronization.",
    .sources =
        "CUDA C++ Programming Guide, page-locked memory; design evidence: returns of "
        "pageable copy calls before the end of their copy",
    .advice = {.effort = "2 lines",
               .risk = "races",
               .how =
                   "a batch: DataLoader(..., pin_memory=True), then batch.to(device, "
                   "non_blocking=True); results: copy_ into torch.empty(..., pin_memory=True) with "
                   "non_blocking=True, read after a synchronization; a note of whatif names the "
                   "copies"},
    .twice = "the copies read pinned memory already",
    .memory = MemoryEffect::kNone,
    .memory_model = "None on the GPU: pinned memory is the host's.",
};

}  // namespace daydream
