#include "report/questions/time_findings.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/median.h"
#include "report/lane_rows.h"
#include "report/text/format.h"

namespace daydream {
namespace {

// Chosen: nobody waits a second for a GPU without a single call, and no single kernel takes one.
constexpr Duration kLong = Duration::Ns(1'000'000'000);
constexpr int64_t kFarLonger = 10;        // than all other GPU work
constexpr int64_t kFarLongerAlike = 100;  // than half of the kernels of its name
constexpr size_t kAlike = 4, kManyOthers = 100;
constexpr size_t kManyDuring = 10;   // chosen: a stream has one at a time
constexpr size_t kManyWithout = 10;  // one in as many GPU operations takes no time
// How finely a recording is looked through: parts of the shortest pause that counts, and at most.
constexpr int64_t kPlacesOfPause = 16, kMostPlaces = 1 << 20;

class TimeFindings {
 public:
  TimeFindings(const Graph& graph, const std::vector<bool>& counts, Duration step)
      : graph_(graph), counts_(counts), step_(step) {
    for (size_t i = 0; i < graph.size(); ++i) {
      const Task& t = graph.tasks()[i];
      if (Counted(t) && !t.removed && t.kind != TaskKind::kDelay) tasks_.push_back(TaskId(i));
    }
  }

  std::vector<Finding> Run() {
    FindPause();
    FindLongWork();
    FindNoTime();
    return std::move(out_);
  }

 private:
  bool Counted(const Task& t) const { return t.step < counts_.size() && counts_[t.step]; }
  bool IsLong(Duration d) const { return d >= kLong && d * 2 > step_; }
  Instant Start(TaskId t) const { return graph_.task(t).recorded_start; }
  double ShareOf(Duration d) const {
    return std::min(1.0, static_cast<double>(d.ns) / static_cast<double>(std::max(step_.ns, d.ns)));
  }

  // How many rows of the recording cover each of `places` equal parts of [begin, end), and pieces
  // of the host in steps that are not looked at.
  std::vector<int64_t> Covered(const Trace& trace, Instant begin, Instant end,
                               int64_t places) const {
    std::vector<int64_t> more(static_cast<size_t>(places) + 1);
    const int64_t width = (end - begin).ns / places + 1;
    const auto place = [&](Instant t) {
      return static_cast<size_t>(std::clamp<int64_t>((t - begin).ns / width, 0, places));
    };
    const auto cover = [&](Instant from, Instant to) {
      ++more[place(from)];
      if (const size_t after = place(to) + 1; after < more.size()) --more[after];
    };
    for (size_t row = 0; row < trace.rows(); ++row) cover(trace.start[row], trace.End(row));
    for (const Task& t : graph_.tasks()) {
      if (t.removed || t.kind != TaskKind::kHost || Counted(t)) continue;
      cover(t.recorded_start, t.recorded_start + t.duration + t.gap);
    }
    more.pop_back();
    std::partial_sum(more.begin(), more.end(), more.begin());
    return more;
  }

  void FindPause() {
    const Trace* trace = graph_.tables().trace.get();
    if (trace == nullptr || tasks_.empty()) return;
    Instant begin = Start(tasks_[0]), end = begin;
    for (TaskId t : tasks_) {
      begin = std::min(begin, Start(t));
      end = std::max(end, Start(t));
    }
    const Duration least = std::max(kLong, step_ / 2);
    if (end - begin < least) return;
    const int64_t places = std::min((end - begin).ns / (least.ns / kPlacesOfPause), kMostPlaces);
    const std::vector<int64_t> covered = Covered(*trace, begin, end, places);
    size_t longest = 0, behind = 0, free = 0;
    for (size_t i = 0; i < covered.size(); ++i) {
      free = covered[i] > 0 ? 0 : free + 1;
      if (free > longest) longest = free, behind = i + 1;
    }
    const Duration part = (end - begin) / places;
    const Duration pause = part * static_cast<int64_t>(longest);
    if (!IsLong(pause)) return;
    const Instant since = begin + part * static_cast<int64_t>(behind - longest);
    out_.push_back(
        {.kind = FindingKind::kPause,
         .about = About::kStep,
         .text = fmt::format("nothing at all was recorded for {}: the program paused, or "
                             "the time of what comes behind is wrong",
                             FormatTime(pause)),
         .where = fmt::format("from {} of the recording on", FormatTime(since - Instant{})),
         .time = pause,
         .share = ShareOf(pause),
         .fix = "if the program did not pause, the file is damaged: record again; "
                "--steps takes steps without it"});
  }

  void FindLongWork() {
    TaskId longest;
    Duration all;
    size_t others = 0;
    for (TaskId t : tasks_) {
      const Task& task = graph_.task(t);
      // Communication waits for other ranks, who may be late.
      if (!IsGpu(task.kind) || task.kind == TaskKind::kCollective) continue;
      all += task.duration;
      ++others;
      if (!longest.valid() || task.duration > graph_.task(longest).duration) longest = t;
    }
    if (!longest.valid()) return;
    const Duration time = graph_.task(longest).duration;
    if (const Duration usual = UsualTime(longest); usual > Duration{} && time * 2 > step_) {
      if (time >= usual * kFarLongerAlike) return TellLongWork(longest, usual);
    }
    if (const size_t during = BeginDuring(longest); during >= kManyDuring && time * 2 > step_) {
      TellOverlap(longest, during);
      return;
    }
    const bool among_many = others >= kManyOthers && time * 2 > step_;
    if (!(IsLong(time) || among_many) || time < (all - time) * kFarLonger) return;
    out_.push_back(
        {.kind = FindingKind::kPause,
         .about = About::kStep,
         .text = fmt::format("one piece of GPU work takes {}, more than {} times all other "
                             "GPU work: its time may be wrong",
                             FormatTime(time), kFarLonger),
         .where = fmt::format("{} on {}", graph_.TaskName(longest),
                              LaneTitle(graph_, graph_.task(longest).lane)),
         .time = time,
         .share = ShareOf(time),
         .fix = "if it does not run that long, the file is damaged: record again"});
  }

  // Of kernels of this name, where there are some; else nothing.
  Duration UsualTime(TaskId kernel) const {
    std::vector<Duration> alike;
    for (TaskId t : tasks_) {
      const Task& task = graph_.task(t);
      if (task.kind == TaskKind::kKernel && task.name == graph_.task(kernel).name) {
        alike.push_back(task.duration);
      }
    }
    return alike.size() < kAlike ? Duration{} : Median(std::move(alike));
  }

  // Work of the same stream that begins before this has ended, as none does but the next, where it
  // is launched so.
  size_t BeginDuring(TaskId longest) const {
    size_t during = 0;
    const Task& t = graph_.task(longest);
    const Instant end = t.recorded_start + t.duration;
    for (TaskId next = t.lane_next; next.valid(); next = graph_.task(next).lane_next) {
      const Task& behind = graph_.task(next);
      if (behind.kind == TaskKind::kDelay || behind.removed) continue;
      if (behind.recorded_start >= end) break;
      ++during;
    }
    return during;
  }

  void TellOverlap(TaskId longest, size_t during) {
    const Duration time = graph_.task(longest).duration;
    out_.push_back({.kind = FindingKind::kPause,
                    .about = About::kStep,
                    .text = fmt::format("one piece of GPU work takes {} of a step of {}, and {} "
                                        "others of its stream begin before it ends: its time is "
                                        "wrong",
                                        FormatTime(time), FormatTime(step_), FormatCount(during)),
                    .where = fmt::format("{} on {}", graph_.TaskName(longest),
                                         LaneTitle(graph_, graph_.task(longest).lane)),
                    .time = time,
                    .share = ShareOf(time),
                    .fix = "the file is damaged: record again"});
  }

  void TellLongWork(TaskId kernel, Duration usual) {
    const Duration time = graph_.task(kernel).duration;
    out_.push_back({.kind = FindingKind::kPause,
                    .about = About::kStep,
                    .text = fmt::format("one kernel takes {} of a step of {}, where half of those "
                                        "of its name take {} or less: its time may be wrong",
                                        FormatTime(time), FormatTime(step_), FormatTime(usual)),
                    .where = fmt::format("{} on {}", graph_.TaskName(kernel),
                                         LaneTitle(graph_, graph_.task(kernel).lane)),
                    .time = time,
                    .share = ShareOf(time),
                    .fix = "if it does not run that long, the file is damaged: record again"});
  }

  // None does on a GPU; one in a while is the rounding of a recorder that writes whole
  // microseconds.
  void FindNoTime() {
    const auto [without, all] = WithoutTime(graph_);
    if (without * kManyWithout < all || without == 0) return;
    const double share = static_cast<double>(without) / static_cast<double>(all);
    out_.push_back({.kind = FindingKind::kNoTime,
                    .about = About::kPredictions,
                    .text = fmt::format("{} of {} GPU operations take 0 ns, which none does",
                                        FormatCount(without), FormatCount(all)),
                    .where = {},
                    .time = {},
                    .share = share,
                    .fix = "the file is damaged, or its recorder failed: record again"});
  }

  const Graph& graph_;
  const std::vector<bool>& counts_;
  const Duration step_;
  std::vector<TaskId> tasks_;
  std::vector<Finding> out_;
};

}  // namespace

TimelessWork WithoutTime(const Graph& graph) {
  TimelessWork out;
  for (const Task& task : graph.tasks()) {
    if (task.removed || !IsGpu(task.kind) || task.kind == TaskKind::kDelay) continue;
    ++out.all;
    out.without += task.duration == Duration{};
  }
  return out;
}

std::vector<Finding> FindingsOfTimes(const Graph& graph, const std::vector<bool>& counts,
                                     Duration step) {
  return TimeFindings(graph, counts, step).Run();
}

}  // namespace daydream
