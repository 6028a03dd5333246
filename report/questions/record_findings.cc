#include "report/questions/record_findings.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/median.h"
#include "base/text.h"
#include "graph/call_kinds.h"
#include "report/questions/recorder_findings.h"
#include "report/summary.h"
#include "report/text/format.h"
#include "trace/range_names.h"
#include "trace/rows/far_events.h"

namespace daydream {
namespace {

// Chosen, as in the header; none of the recordings beside the repository comes near.
constexpr size_t kOneInTen = 10, kOneInAHundred = 100;
// Chosen: medians of the recordings beside the repository are 1.3 (a MI210) to 12 us, those of CUDA
// 3.3 us (a H100) or more.
constexpr Duration kShortestLaunch = Duration::Ns(600), kShortestOfCuda = Duration::Ns(1'200);
constexpr Duration kLongestLaunch = Duration::Ns(1'000'000);
// Below that many, ten times fewer begins say nothing.
constexpr size_t kFewOps = 50;
// As importers of Nsight Systems and rocprof call it.
constexpr std::string_view kUnnamedKernel = "unnamed kernel";

double ShareOf(size_t part, size_t all) {
  return static_cast<double>(part) / static_cast<double>(all);
}

class RecordFindings {
 public:
  explicit RecordFindings(const Graph& graph)
      : graph_(graph), trace_(*graph.tables().trace), kinds_(graph) {}

  std::vector<Finding> Run() {
    FindLosses();
    FindUnits();
    FindNoOperators();
    FindCallsOutside();
    FindNoHandOver();
    FindNameless();
    FindTwice();
    FindWrongLaunches();
    FindCallsWithoutTime();
    FindOpsAtOnce();
    return std::move(out_);
  }

 private:
  void Add(FindingKind kind, std::string text, double share, std::string_view fix) {
    // In another unit, the step itself is.
    const About about = kind == FindingKind::kUnits ? About::kStep : About::kPredictions;
    out_.push_back({.kind = kind,
                    .about = about,
                    .text = std::move(text),
                    .where = {},
                    .time = {},
                    .share = share,
                    .fix = std::string(fix)});
  }

  // Where losses are told one by one (W0203), few change no answer.
  void FindLosses() {
    const Provenance& origin = trace_.provenance;
    uint64_t lost = 0;
    const ImportCount* most = nullptr;
    for (const ImportCount& c : origin.counts) {
      if (!c.loss || c.repair || c.what == kOtherWindows) continue;
      lost += std::min(c.count, origin.input_events);
      if (most == nullptr || c.count > most->count) most = &c;
    }
    if (lost == 0 || ShareOf(lost, origin.input_events) * kOneInAHundred < 1) return;
    Add(FindingKind::kLost,
        fmt::format("{} of {} recorded events are lost, most of them {} ({}): what they did is "
                    "missing in the step",
                    FormatCount(lost), FormatCount(origin.input_events), Printable(most->what),
                    Printable(most->reason)),
        ShareOf(lost, origin.input_events), "record again; `daydream info` lists what is lost");
  }

  // No stream begins the same work twice in one nanosecond.
  void FindTwice() {
    size_t all = 0, twice = 0;
    for (size_t lane = 0; lane + 1 < trace_.lane_begin.size(); ++lane) {
      if (trace_.lanes[lane].kind != LaneKind::kStream) continue;
      std::vector<std::tuple<Instant, Instant, uint32_t>> seen;
      for (size_t row = trace_.lane_begin[lane]; row < trace_.lane_begin[lane + 1]; ++row) {
        if (!IsGpuWork(trace_.kind[row])) continue;
        seen.emplace_back(trace_.start[row], trace_.End(row), trace_.name[row].value);
      }
      std::sort(seen.begin(), seen.end());
      all += seen.size();
      for (size_t i = 1; i < seen.size(); ++i) twice += seen[i] == seen[i - 1];
    }
    if (twice * kOneInAHundred < all || twice == 0) return;
    Add(FindingKind::kTwice,
        fmt::format("{} of {} GPU operations are in the file twice: the same work, stream and time",
                    FormatCount(twice), FormatCount(all)),
        ShareOf(twice, all), "it was merged or written twice: use the file as it was recorded");
  }

  // On AMD kernels copy.
  bool CannotLaunch(NameId call) {
    if (!graph_.Name(call).starts_with("cu")) return false;
    const CallKind kind = kinds_.Of(call);
    return kind == CallKind::kCopyAsync || kind == CallKind::kCopy || kind == CallKind::kMemset ||
           kind == CallKind::kDeviceSync || kind == CallKind::kStreamSync ||
           kind == CallKind::kEventSync || kind == CallKind::kFree;
  }

  void FindWrongLaunches() {
    size_t all = 0, wrong = 0;
    std::vector<TaskId> launched(graph_.size());  // by call: its first kernel
    std::vector<bool> seen(graph_.size());
    for (const Edge& e : graph_.edges()) {
      if (e.rule != Rule::kLaunch || graph_.task(e.to).kind != TaskKind::kKernel) continue;
      if (seen[e.to.index()]) continue;  // held by its call in more than one way
      if (IsGuessed(graph_, e.to)) continue;
      seen[e.to.index()] = true;
      ++all;
      const NameId call = graph_.task(e.from).name;
      const bool again = launched[e.from.index()].valid() && kinds_.Of(call) == CallKind::kLaunch &&
                         !Contains(graph_.Name(call), "MultiDevice");
      wrong += CannotLaunch(call) || again;
      launched[e.from.index()] = e.to;
    }
    if (wrong * kOneInAHundred < all || wrong == 0) return;
    Add(FindingKind::kWrongLaunch,
        fmt::format("{} of {} kernels hang on a call that cannot have launched them: it copies, "
                    "waits, or has launched another",
                    FormatCount(wrong), FormatCount(all)),
        ShareOf(wrong, all),
        "correlation ids are mixed up, as where two processes are merged into one file: use the "
        "file of each process");
  }

  // A launch takes some microseconds wherever it was recorded.
  void FindUnits() {
    std::vector<Duration> calls;
    size_t cuda = 0;
    for (size_t row = 0; row < trace_.rows(); ++row) {
      if (trace_.kind[row] != EventKind::kCall || trace_.duration[row] <= Duration{}) continue;
      if (kinds_.Of(trace_.name[row]) == CallKind::kLaunch) {
        calls.push_back(trace_.duration[row]);
        cuda += trace_.EventName(row).starts_with("cu");
      }
    }
    if (calls.size() < kFewOps) return;
    const Duration shortest = 2 * cuda > calls.size() ? kShortestOfCuda : kShortestLaunch;
    const Duration usual = Median(std::move(calls));
    if (usual >= shortest && usual <= kLongestLaunch) return;
    Add(FindingKind::kUnits,
        fmt::format("half of the launches take {} or {} on the host, where some microseconds are "
                    "usual: the times look as if they were written in another unit",
                    FormatTime(usual), usual < shortest ? "less" : "more"),
        1, "times of this format are in microseconds (ts, dur): ask the program that wrote it");
  }

  // Which thread goes on when is told by operators: those of the backward pass, or the range that
  // our recorder leaves around it.
  void FindNoOperators() {
    std::set<LaneId> threads;
    for (size_t row = 0; row < trace_.rows(); ++row) {
      if (trace_.kind[row] == EventKind::kOp || trace_.EventName(row) == kEngineRange) return;
      if (trace_.kind[row] != EventKind::kCall || trace_.correlation[row] == 0) continue;
      const CallKind kind = kinds_.Of(trace_.name[row]);
      if (kind == CallKind::kLaunch || kind == CallKind::kGraphLaunch) {
        threads.insert(trace_.lane[row]);
      }
    }
    if (threads.size() < 2) return;
    Add(FindingKind::kNoOperators,
        fmt::format("{} threads launch work, and no operators were recorded that tell which waits "
                    "for which: what lies between their calls stays as long as it was",
                    threads.size()),
        1, AdviceOn(graph_).both);
  }

  // Calls belong to the operator around them, on their thread: it has their layer and phase. Those
  // of a thread whose operators were not recorded belong to none, and neither do all of a file
  // whose rows of calls have other ids. Which thread waits for which is not known either.
  void FindCallsOutside() {
    size_t all = 0, outside = 0, ops = 0;
    for (size_t lane = 0; lane + 1 < trace_.lane_begin.size(); ++lane) {
      Instant end = Instant::Min();
      size_t calls = 0;
      bool inside = false;
      for (size_t row = trace_.lane_begin[lane]; row < trace_.lane_begin[lane + 1]; ++row) {
        if (trace_.kind[row] == EventKind::kOp) {
          ++ops;
          end = std::max(end, trace_.End(row));
        }
        if (trace_.kind[row] != EventKind::kCall || trace_.correlation[row] == 0) continue;
        const CallKind kind = kinds_.Of(trace_.name[row]);
        if (kind != CallKind::kLaunch && kind != CallKind::kGraphLaunch) continue;
        inside |= trace_.start[row] < end;
        ++calls;
      }
      all += calls;
      outside += inside ? 0 : calls;
    }
    if (outside < kFewOps || ops < kFewOps || outside * kOneInTen < all) return;
    Add(FindingKind::kNoOperators,
        fmt::format("{} of {} launches are of threads of which no launch lies within one of the {} "
                    "operators: what belongs to which operator, layer and pass is not known there, "
                    "nor which thread waits for which",
                    FormatCount(outside), FormatCount(all), FormatCount(ops)),
        ShareOf(outside, all),
        "record CUDA calls and operators of the same threads, and use the file as it was recorded");
  }

  // Threads that launch a tenth or more each, one of which neither waits for another nor is waited
  // for: it stays where it was, whatever becomes of the others.
  void FindNoHandOver() {
    std::map<LaneId, size_t> launches;
    std::set<LaneId> joined;
    size_t all = 0;
    for (const Edge& e : graph_.edges()) {
      const Task &from = graph_.task(e.from), &to = graph_.task(e.to);
      if (e.rule == Rule::kLaunch) ++launches[from.lane], ++all;
      if (!IsHost(from.kind) || !IsHost(to.kind) || from.lane == to.lane) continue;
      joined.insert(from.lane);
      joined.insert(to.lane);
    }
    std::erase_if(launches, [&](const auto& l) { return l.second * kOneInTen < all; });
    size_t alone = 0, of = 0;
    for (const auto& [lane, n] : launches) {
      if (joined.contains(lane)) continue;
      ++alone;
      of += n;
    }
    const auto ops = static_cast<size_t>(std::ranges::count(trace_.kind, EventKind::kOp));
    if (launches.size() < 2 || alone == 0 || all < kFewOps || ops < kFewOps) return;
    Add(FindingKind::kNoOperators,
        fmt::format("{} threads launch work, and nothing tells which waits for which of {} of them "
                    "({} of {} launches), as for the backward pass, whose operators autograd "
                    "names: what lies between their calls stays as long as it was",
                    launches.size(), alone, FormatCount(of), FormatCount(all)),
        ShareOf(of, all), AdviceOn(graph_).both);
  }

  // Nothing can be said of the kind of a kernel without its name.
  void FindNameless() {
    size_t all = 0, nameless = 0;
    for (size_t row = 0; row < trace_.rows(); ++row) {
      if (trace_.kind[row] != EventKind::kKernel) continue;
      ++all;
      const std::string_view name = trace_.EventName(row);
      nameless += name.empty() || name == kUnnamedKernel;
    }
    if (nameless == 0 || nameless * kOneInTen < all) return;
    Add(FindingKind::kLost,
        fmt::format("{} of {} kernels have no name: what they do is not known",
                    FormatCount(nameless), FormatCount(all)),
        ShareOf(nameless, all),
        trace_.provenance.importer == "nsys"
            ? "names are missing in the file (StringIds, of Nsight Systems): export it again"
            : "names are missing in the file: record or export it again");
  }

  void FindCallsWithoutTime() {
    size_t all = 0, without = 0;
    for (size_t row = 0; row < trace_.rows(); ++row) {
      if (trace_.kind[row] != EventKind::kCall || trace_.correlation[row] == 0) continue;
      const CallKind kind = kinds_.Of(trace_.name[row]);
      if (kind != CallKind::kLaunch && kind != CallKind::kGraphLaunch) continue;
      ++all;
      without += trace_.End(row) <= trace_.start[row];
    }
    if (without * kOneInTen < all || without == 0) return;
    Add(FindingKind::kNoTime,
        fmt::format("{} of {} launches take 0 ns on the host, which none does",
                    FormatCount(without), FormatCount(all)),
        ShareOf(without, all), "the file is damaged, or its recorder failed: record again");
  }

  void FindOpsAtOnce() {
    size_t all = 0, most = 0;  // instants of one thread, whose rows are sorted
    for (size_t lane = 0; lane < trace_.lanes.size(); ++lane) {
      size_t of_lane = 0;
      Instant last = Instant::Min();
      for (size_t row = trace_.lane_begin[lane]; row < trace_.lane_begin[lane + 1]; ++row) {
        if (trace_.kind[row] != EventKind::kOp) continue;
        ++all;
        of_lane += trace_.start[row] != last;
        last = trace_.start[row];
      }
      most = std::max(most, of_lane);
    }
    if (all < kFewOps || most * kOneInTen > all) return;
    std::vector<Instant> begins;
    for (size_t row = 0; row < trace_.rows(); ++row) {
      if (trace_.kind[row] == EventKind::kOp) begins.push_back(trace_.start[row]);
    }
    std::sort(begins.begin(), begins.end());
    begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
    if (begins.size() * kOneInTen > all) return;
    Add(FindingKind::kNoTime,
        fmt::format("{} operators begin at {}: their times are not those of a run",
                    FormatCount(all), Plural(begins.size(), "instant")),
        1 - ShareOf(begins.size(), all),
        "the file is damaged, or its recorder failed: record again");
  }

  const Graph& graph_;
  const Trace& trace_;
  CallKinds kinds_;
  std::vector<Finding> out_;
};

}  // namespace

std::vector<Finding> FindingsOfRecords(const Graph& graph) {
  if (graph.tables().trace == nullptr) return {};
  return RecordFindings(graph).Run();
}

}  // namespace daydream
