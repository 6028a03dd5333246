// Traces of ranks become one, and a rank is taken out of it again.
#include "trace/join/ranks.h"

#include <filesystem>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/build.h"
#include "tests/real_traces.h"
#include "trace/ddtrace/writer.h"
#include "trace/importer.h"

namespace daydream {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kBoot = 5'000'000'000;  // when the run began, on the clock of its machine

// A rank of a run of two: six steps of a call, a kernel and a collective. All collectives end when
// the slower rank is there, 10 us after it; `clock` is what the rank's machine is ahead.
RankTrace MakeRank(int32_t rank, int64_t work_us, int64_t clock_ns, int collectives = 6) {
  TraceBuilder b;
  b.SetRank(rank, 2);
  b.AddDevice({.id = 0, .name = "GPU of rank " + std::to_string(rank)});
  b.provenance().input_events = static_cast<uint64_t>(18);
  const LaneId thread = b.AddLane(LaneKind::kThread, 100 + rank, 100 + rank, -1);
  const LaneId stream = b.AddLane(LaneKind::kStream, 0, 7, 0);
  const auto add = [&](LaneId lane, EventKind kind, const char* name, int64_t us, int64_t length_us,
                       uint32_t correlation) {
    b.AddEvent({.start = Instant{us * 1000 + kBoot + clock_ns},
                .duration = Duration::Us(length_us),
                .lane = lane,
                .name = b.names().Intern(name),
                .kind = kind,
                .correlation = correlation,
                .detail = kind == EventKind::kKernel ? b.AddKernel({}) : Id<void>::kNoneValue});
  };
  constexpr int64_t kSlowest = 60;
  for (int step = 0; step < 6; ++step) {
    const int64_t us = step * 100;
    const auto id = static_cast<uint32_t>(step + 1);
    add(thread, EventKind::kCall, "cudaLaunchKernel", us, 2, id);
    add(stream, EventKind::kKernel, "gemm", us + 3, work_us, id);
    if (step >= collectives) continue;
    const int64_t begin = us + 3 + work_us;
    add(stream, EventKind::kKernel, "ncclDevKernel_AllReduce", begin, us + kSlowest + 13 - begin,
        id);
  }
  auto trace = b.Build();
  EXPECT_TRUE(trace.ok());
  return {.file = "rank" + std::to_string(rank), .trace = *trace};
}

MergedRanks Merged(std::vector<RankTrace> ranks) {
  auto merged = MergeRanks(std::move(ranks), "run");
  EXPECT_TRUE(merged.ok()) << Message(merged.status());
  return merged.ok() ? *std::move(merged) : MergedRanks{};
}

// Starts of an event of a name, by rank, in us.
std::map<int32_t, std::vector<int64_t>> Starts(const Trace& t, std::string_view name) {
  std::map<int32_t, std::vector<int64_t>> starts;
  for (size_t row = 0; row < t.rows(); ++row) {
    if (t.EventName(row) != name) continue;
    starts[t.lanes[t.lane[row].index()].rank].push_back(t.start[row].ns / 1000);
  }
  return starts;
}

RecordedProcess On(const std::string& machine, std::optional<int64_t> wall = {}) {
  return {.session = "s", .host = machine, .boot = machine, .wall_offset_ns = wall};
}

TEST(Ranks, OfOneMachineShareItsClock) {
  RankTrace a = MakeRank(0, 20, 0), b = MakeRank(1, 60, 7000);
  a.process = b.process = On("a");
  const MergedRanks merged = Merged({b, a});
  EXPECT_EQ(merged.clocks[1].basis, ClockBasis::kSame);
  EXPECT_THAT(Starts(*merged.trace, "gemm")[0], ElementsAre(3, 103, 203, 303, 403, 503));
  EXPECT_THAT(Starts(*merged.trace, "gemm")[1], ElementsAre(10, 110, 210, 310, 410, 510))
      << "7 us later indeed, not corrected";
  EXPECT_EQ(merged.trace->ranks[0].rank, 0) << "in the order of their numbers";
  EXPECT_EQ(merged.trace->provenance.input_events, 36u);
}

TEST(Ranks, OfTwoMachinesAreAlignedByTheirCollectives) {
  // The other machine booted an hour before, and its wall clock is 3 ms ahead.
  const int64_t hour = 3'600'000'000'000, wall = 1'700'000'000'000'000'000;
  RankTrace a = MakeRank(0, 20, 0), b = MakeRank(1, 60, hour);
  a.process = On("a", wall);
  b.process = On("b", wall - hour + 3'000'000);
  const MergedRanks merged = Merged({a, b});
  const RankClock& clock = merged.clocks[1];
  EXPECT_EQ(clock.basis, ClockBasis::kCollectives);
  EXPECT_EQ(clock.collectives, 6u);
  EXPECT_EQ(clock.shift, Duration::Ms(-3));
  EXPECT_EQ(clock.spread, Duration{});
  EXPECT_EQ(Starts(*merged.trace, "gemm")[0], Starts(*merged.trace, "gemm")[1]);
}

TEST(Ranks, WithoutEnoughCollectivesWallClocksDecideOrNothing) {
  const int64_t wall = 1'700'000'000'000'000'000;
  RankTrace a = MakeRank(0, 20, 0, 3), b = MakeRank(1, 60, 500'000'000, 3);
  a.process = On("a", wall);
  b.process = On("b", wall - 500'000'000 + 5000);
  const MergedRanks merged = Merged({a, b});
  EXPECT_EQ(merged.clocks[1].basis, ClockBasis::kWall);
  EXPECT_EQ(Starts(*merged.trace, "gemm")[1][0], 8);
  b.process.wall_offset_ns.reset();
  const MergedRanks apart = Merged({a, b});
  EXPECT_EQ(apart.clocks[1].basis, ClockBasis::kNone);
  EXPECT_EQ(Starts(*apart.trace, "gemm")[1][0], 3) << "its own beginning";
  const ImportCount& count = apart.trace->provenance.counts.back();
  EXPECT_EQ(count.what, "ranks whose clock could not be aligned");
  EXPECT_EQ(count.count, 1u);
}

TEST(Ranks, HaveDevicesAndCorrelationIdsOfTheirOwn) {
  RankTrace a = MakeRank(0, 20, 0), b = MakeRank(1, 60, 0);
  a.process = b.process = On("a");
  const MergedRanks merged = Merged({a, b});
  const Trace& t = *merged.trace;
  ASSERT_EQ(t.devices.size(), 2u);
  EXPECT_EQ(t.FindDevice(1)->name, "GPU of rank 1");
  std::map<uint32_t, std::set<int32_t>> ranks;
  for (size_t row = 0; row < t.rows(); ++row) {
    const Lane& lane = t.lanes[t.lane[row].index()];
    ranks[t.correlation[row]].insert(lane.rank);
    if (lane.kind == LaneKind::kStream) {
      EXPECT_EQ(lane.device, lane.rank);
    }
  }
  EXPECT_EQ(ranks.size(), 12u);
  for (const auto& [id, of] : ranks) EXPECT_EQ(of.size(), 1u) << id;
}

TEST(Ranks, TakenOutOfAMergedTraceAreWhatTheyWere) {
  RankTrace a = MakeRank(0, 20, 0), b = MakeRank(1, 60, 0);
  a.process = b.process = On("a");
  const MergedRanks merged = Merged({a, b});
  // As a file, too.
  auto bytes = SerializeDdtrace(*merged.trace);
  ASSERT_TRUE(bytes.ok());
  auto read = ImportBytes(*bytes, "run.ddtrace");
  ASSERT_TRUE(read.ok()) << Message(read.status());
  for (size_t i = 0; i < 2; ++i) {
    auto one = TakeRank(**read, i);
    ASSERT_TRUE(one.ok());
    const Trace& was = i == 0 ? *a.trace : *b.trace;
    ASSERT_EQ((*one)->rows(), was.rows());
    EXPECT_EQ((*one)->ranks[0].rank, static_cast<int32_t>(i));
    EXPECT_EQ((*one)->clock_origin_ns, was.clock_origin_ns);
    for (size_t row = 0; row < was.rows(); ++row) {
      EXPECT_EQ((*one)->EventName(row), was.EventName(row));
      EXPECT_EQ((*one)->start[row], was.start[row]);
      EXPECT_EQ((*one)->duration[row], was.duration[row]);
    }
    const ImportCount& others = (*one)->provenance.counts.back();
    EXPECT_EQ(others.what, "events of other ranks");
    EXPECT_EQ(others.count + (*one)->rows(), (*read)->rows());
  }
}

RankTrace WithCost(RankTrace rank, double call_ns) {
  auto trace = std::make_shared<Trace>(*rank.trace);
  trace->provenance.cost = {.steps_with = 8,
                            .steps_without = 9,
                            .with = Duration::Us(120),
                            .without = Duration::Us(100),
                            .call = RecordingCost::Each{call_ns, 10}};
  rank.trace = std::move(trace);
  return rank;
}

double CallOf(const Trace& t) { return t.provenance.cost.call.value_or(RecordingCost::Each()).ns; }

TEST(Ranks, OfOneFileKeepWhatRecordingCostEach) {
  const std::vector<RankTrace> ranks = {WithCost(MakeRank(0, 20, 0), 3000), MakeRank(1, 60, 0),
                                        WithCost(MakeRank(2, 60, 0), 800)};
  const MergedRanks merged = Merged(ranks);
  EXPECT_EQ(merged.trace->provenance.cost, RecordingCost()) << "of no one rank";
  const auto bytes = SerializeDdtrace(*merged.trace);
  ASSERT_TRUE(bytes.ok());
  const auto read = ImportBytes(*bytes, "run.ddtrace");
  ASSERT_TRUE(read.ok()) << Message(read.status());
  // A part of the run, and a file that is merged with a further rank.
  const auto part = TakeTime(**read, Instant{}, Instant{} + Duration::Us(250), "a part");
  ASSERT_TRUE(part.ok());
  const MergedRanks again =
      Merged({{.file = "three", .trace = *read}, WithCost(MakeRank(3, 60, 0), 500)});
  for (size_t i = 0; i < ranks.size(); ++i) {
    for (const Trace* of : {merged.trace.get(), read->get(), again.trace.get()}) {
      const auto one = TakeRank(*of, i);
      ASSERT_TRUE(one.ok());
      EXPECT_EQ((*one)->provenance.cost, ranks[i].trace->provenance.cost) << i;
      EXPECT_TRUE((*one)->provenance.rank_costs.empty());
    }
    EXPECT_EQ((*part)->provenance.CostOfRank(i), ranks[i].trace->provenance.cost) << i;
  }
  EXPECT_EQ(CallOf(**TakeRank(*again.trace, 3)), 500);
}

// As files that were merged before each rank had a cost of its own.
TEST(Ranks, OfAFileWithOneCostAllHaveIt) {
  auto trace = std::make_shared<Trace>(*Merged({MakeRank(0, 20, 0), MakeRank(1, 60, 0)}).trace);
  EXPECT_TRUE(trace->provenance.rank_costs.empty());
  trace->provenance.cost.call = RecordingCost::Each{3000, 10};
  EXPECT_EQ(CallOf(**TakeRank(*trace, 1)), 3000);
}

TEST(Ranks, TheOneThatWaitsLeastIsTheLastToArrive) {
  RankTrace a = MakeRank(0, 20, 0), b = MakeRank(1, 60, 0);
  a.process = b.process = On("a");
  const MergedRanks merged = Merged({a, b});
  EXPECT_EQ(LastToArrive(*merged.trace), 1u);
  EXPECT_EQ(WorkOfRanks(*merged.trace)[0].collectives, Duration::Us(6 * 50));
  EXPECT_EQ(WorkOfRanks(*merged.trace)[1].gpu, Duration::Us(6 * 70));
}

TEST(Ranks, OfDifferentRunsAreRefused) {
  const auto refused = [](std::vector<RankTrace> ranks) {
    const auto merged = MergeRanks(std::move(ranks), "run");
    EXPECT_FALSE(merged.ok());
    EXPECT_EQ(DiagnosticOf(merged.status()).code, "E0431");
    return DiagnosticOf(merged.status()).what;
  };
  RankTrace a = MakeRank(0, 20, 0), b = MakeRank(1, 60, 0);
  EXPECT_THAT(refused({a, a}), HasSubstr("two of these traces are of rank 0"));
  a.process = b.process = On("a");
  b.process.session = "other";
  EXPECT_TRUE(MergeRanks({a, b}, "run").ok()) << "mpirun daydream trace has a session each";
  RankTrace later = MakeRank(1, 60, 60'000'000'000);
  later.process = b.process;
  EXPECT_THAT(refused({a, later}), HasSubstr("one after the other"));
  EXPECT_THAT(refused({MakeRank(-1, 20, 0), MakeRank(0, 20, 0)}),
              HasSubstr("does not say its rank"));
}

// The numbers differ, the events do not: nothing begins in the same nanosecond on two ranks, except
// by chance in a trace of a few rows.
TEST(Ranks, OneFileUnderTwoNumbersIsRefused) {
  const auto renumbered = [](const RankTrace& of, int32_t rank) {
    auto trace = std::make_shared<Trace>(*of.trace);
    trace->ranks[0].rank = rank;
    return RankTrace{.file = "copy", .trace = trace};
  };
  TraceBuilder b;
  b.SetRank(0, 2);
  const LaneId thread = b.AddLane(LaneKind::kThread, 100, 100, -1);
  for (int64_t i = 0; i < 100; ++i) {
    b.AddEvent({.start = Instant{i * 1000},
                .duration = Duration::Us(1),
                .lane = thread,
                .name = b.names().Intern("op"),
                .kind = EventKind::kOp});
  }
  const RankTrace large{.file = "rank0", .trace = *b.Build()};
  const absl::Status same = CheckOneRun({large, renumbered(large, 1)});
  EXPECT_EQ(DiagnosticOf(same).code, "E0431");
  EXPECT_THAT(DiagnosticOf(same).what, HasSubstr("hold the same events"));
  const RankTrace small = MakeRank(0, 20, 0);
  EXPECT_TRUE(CheckOneRun({small, renumbered(small, 1)}).ok());
}

// As the PyTorch profiler writes them, which says nothing of the machine.
TEST(Ranks, AnHourApartByTheirWallClocksAreNoRun) {
  constexpr int64_t kNow = 1'706'850'122'854'101'000, kMinute = 60'000'000'000;
  const auto merges = [&](int64_t first, int64_t second) {
    return MergeRanks({MakeRank(0, 20, first), MakeRank(1, 60, second)}, "run").ok();
  };
  EXPECT_TRUE(merges(kNow, kNow + 50 * kMinute));
  EXPECT_FALSE(merges(kNow, kNow + 70 * kMinute));
  EXPECT_FALSE(merges(kNow + int64_t{7} * 24 * 60 * kMinute, kNow));
  EXPECT_TRUE(merges(70 * kMinute, 1)) << "since a boot: no common clock";
  EXPECT_TRUE(merges(kNow, 1));
}

TEST(Ranks, EightOfARealStepMeetInTheirCollectives) {
  const auto folder = RealTraceFolder() / "ranks/megatron-tp8";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
  std::vector<RankTrace> ranks;
  for (int i = 0; i < 8; ++i) {
    const std::string file = folder / ("rank" + std::to_string(i) + ".json.gz");
    auto trace = ImportFile(file);
    ASSERT_TRUE(trace.ok()) << Message(trace.status());
    ranks.push_back({.file = file, .trace = *trace});
  }
  const MergedRanks merged = Merged(ranks);
  for (size_t i = 1; i < 8; ++i) {
    EXPECT_EQ(merged.clocks[i].basis, ClockBasis::kCollectives);
    EXPECT_GE(merged.clocks[i].collectives, 50u);
    EXPECT_LT(merged.clocks[i].spread, Duration::Us(100));
  }
  // ground-truth.md: rank 0 is the late one, the others wait for it (241 ms against 264 to 495 ms).
  EXPECT_EQ(LastToArrive(*merged.trace), 0u);
  for (size_t i = 0; i < 8; ++i) {
    auto one = TakeRank(*merged.trace, i);
    ASSERT_TRUE(one.ok());
    auto built = BuildGraph(*one), direct = BuildGraph(ranks[i].trace);
    ASSERT_TRUE(built.ok() && direct.ok());
    EXPECT_EQ(built->graph.size(), direct->graph.size());
    EXPECT_EQ(built->report.launched, direct->report.launched);
    EXPECT_EQ(built->report.event_waits, direct->report.event_waits);
  }
}

}  // namespace
}  // namespace daydream
