// Chrome, Perfetto, DOT and CSV exports of one small graph.
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "graph/text.h"
#include "report/export/chrome_trace.h"
#include "report/export/counters.h"
#include "report/export/dot.h"
#include "report/export/perfetto_trace.h"
#include "report/export/task_csv.h"
#include "report/lane_rows.h"
#include "report/summary.h"
#include "simulator/simulate.h"

namespace daydream {
namespace {

constexpr char kText[] = R"(
lane cpu0 thread
lane gpu0.7 stream
t0 cpu0 call 5us gap 1us "cudaLaunchKernel"
t1 gpu0.7 kernel 40us "sgemm" after t0 launch +2us
t2 cpu0 call 5us "cudaLaunchKernel"
t3 gpu0.7 kernel 10us "</script>\"x" after t2 launch +2us
t4 cpu0 wait "cudaDeviceSynchronize" until t3 hostwait +1us
)";

struct Fixture {
  Graph graph;
  Timeline timeline;
  std::vector<Side> sides;
  Fixture() {
    auto parsed = ParseGraph(kText);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    graph = *std::move(parsed);
    timeline = *Simulate(graph, {.blockers = true});
    sides = {{"before: replayed", "simulated", &graph, &timeline},
             {"after: x", "predicted", &graph, &timeline}};
  }
};

TEST(ChromeTrace, IsJsonWithOneProcessPerSide) {
  Fixture f;
  nlohmann::json json = nlohmann::json::parse(ChromeTrace(f.sides));
  std::map<int, int> kernels;
  for (const auto& e : json["traceEvents"]) {
    if (e["ph"] == "X" && e["cat"] == "kernel") ++kernels[e["pid"].get<int>()];
  }
  EXPECT_EQ(kernels, (std::map<int, int>{{1, 2}, {2, 2}}));
}

TEST(ChromeTrace, KeepsNanosecondsAndJoinsLaunches) {
  Fixture f;
  nlohmann::json json = nlohmann::json::parse(ChromeTrace(f.sides));
  int begins = 0, ends = 0;
  for (const auto& e : json["traceEvents"]) {
    begins += e["ph"] == "s";
    ends += e["ph"] == "f";
    if (e["ph"] == "X" && e["name"] == "sgemm") {
      EXPECT_EQ(e["ts"], 7.0);
      EXPECT_EQ(e["dur"], 40.0);
    }
  }
  EXPECT_EQ(begins, 4);
  EXPECT_EQ(ends, 4);
}

// A reader of the protobuf wire format, for checking what was written.
struct Field {
  uint64_t number = 0, value = 0;
  std::string_view bytes;
};

uint64_t ReadVarint(std::string_view& in) {
  uint64_t value = 0;
  for (int shift = 0; !in.empty() && shift < 64; shift += 7) {
    auto byte = static_cast<unsigned char>(in[0]);
    in.remove_prefix(1);
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) break;
  }
  return value;
}

std::vector<Field> Decode(std::string_view in) {
  std::vector<Field> fields;
  while (!in.empty()) {
    uint64_t key = ReadVarint(in);
    Field f{.number = key >> 3};
    if ((key & 7) == 0) {
      f.value = ReadVarint(in);
    } else {
      size_t size = (key & 7) == 1 ? 8 : ReadVarint(in);
      EXPECT_LE(size, in.size());
      f.bytes = in.substr(0, size);
      in.remove_prefix(std::min(size, in.size()));
    }
    fields.push_back(f);
  }
  return fields;
}

const Field* Find(const std::vector<Field>& fields, uint64_t number) {
  for (const Field& f : fields) {
    if (f.number == number) return &f;
  }
  return nullptr;
}

TEST(PerfettoTrace, SlicesOfEveryTrackNestAndAreInOrder) {
  Fixture f;
  std::string bytes = PerfettoTrace(f.sides);
  std::map<uint64_t, int> open;
  std::map<uint64_t, uint64_t> last;
  size_t tracks = 0, slices = 0, flows = 0, values = 0;
  for (const Field& packet : Decode(bytes)) {
    ASSERT_EQ(packet.number, 1u);
    auto fields = Decode(packet.bytes);
    tracks += Find(fields, 60) != nullptr;
    const Field* event = Find(fields, 11);
    if (event == nullptr) continue;
    auto e = Decode(event->bytes);
    uint64_t track = Find(e, 11)->value, type = Find(e, 9)->value, at = Find(fields, 8)->value;
    EXPECT_GE(at, last[track]);
    last[track] = at;
    if (type == 4) {
      EXPECT_LE(Find(e, 30)->value, 1u);
      ++values;
      continue;
    }
    open[track] += type == 1 ? 1 : -1;
    EXPECT_TRUE(open[track] == 0 || open[track] == 1);
    slices += type == 1;
    for (const Field& x : e) flows += x.number == 47;
  }
  for (auto [track, count] : open) EXPECT_EQ(count, 0);
  EXPECT_EQ(tracks, 2u * 6u);  // root, critical path, two lanes, two counters
  EXPECT_EQ(values, 2u * (2u + 4u));
  EXPECT_GE(slices, 2u * 5u);
  EXPECT_EQ(flows, 2u * 4u);
  EXPECT_EQ(bytes, PerfettoTrace(f.sides));
}

using Points = std::vector<std::pair<int64_t, int64_t>>;  // (us, value)

Points PointsOf(const std::vector<Counter>& counters, std::string_view name) {
  Points points;
  for (const Counter& c : counters) {
    if (c.name != name) continue;
    for (const auto& [at, value] : c.points) points.emplace_back(at.ns / 1000, value);
  }
  return points;
}

TEST(Counters, TellWorkAndWhatIsLaunched) {
  Fixture f;
  const std::vector<Counter> counters = CountersOf(f.sides[0]);
  EXPECT_EQ(PointsOf(counters, "GPU 0 busy"), (Points{{7, 1}, {57, 0}}));
  // The first call is back at 5 us and its kernel begins at 7; the second waits for the first.
  EXPECT_EQ(PointsOf(counters, "GPU 0 launch queue"), (Points{{5, 1}, {7, 0}, {11, 1}, {47, 0}}));
  EXPECT_EQ(counters.size(), 2u);
}

TEST(Counters, SumToWhatTheSummarySays) {
  auto graph = ParseGraph(R"(
lane gpu0.7 stream
lane gpu0.20 stream
t0 gpu0.7 kernel 10us "a"
t1 gpu0.20 collective 30us "nccl" after t0 transform -4us
t2 gpu0.7 kernel 5us "b" after t1 transform +8us
)");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Timeline timeline = *Simulate(*graph, {.blockers = true});
  const Summary summary = Summarize(*graph, timeline, GroupBy::kClass);
  const std::vector<Counter> counters = CountersOf({"", "", &*graph, &timeline});
  const auto time = [&](std::string_view name) {
    int64_t us = 0, begun = 0;
    for (const auto& [at, value] : PointsOf(counters, name))
      value > 0 ? begun = at : us += at - begun;
    return Duration::Us(us);
  };
  EXPECT_EQ(PointsOf(counters, "GPU 0 exposed communication"), (Points{{10, 1}, {36, 0}}));
  EXPECT_EQ(time("GPU 0 exposed communication"), summary.exposed_comm);
  EXPECT_EQ(time("GPU 0 busy"), summary.gpu_busy);
}

// The op that allocates began 10 us later than it does in the replay.
TEST(Counters, MemoryMovesWithTheHostWorkThatTookIt) {
  auto trace = std::make_shared<Trace>();
  for (const auto& [at, total] : {std::pair(105, 700), std::pair(108, 300)}) {
    trace->allocations.push_back(
        {.at = Instant::AtNs(at * 1000), .device = 0, .bytes = 1, .allocated = total});
  }
  auto tables = std::make_shared<GraphTables>();
  tables->trace = trace;
  tables->names = std::make_shared<StringPool>();
  Graph graph{std::shared_ptr<const GraphTables>(tables)};
  const LaneId host = graph.AddLane({});
  const LaneId gpu = graph.AddLane({.lane = {.kind = LaneKind::kStream, .device = 0, .number = 7}});
  graph.Append(
      {.recorded_start = Instant::AtNs(100'000), .duration = Duration::Us(20), .lane = host});
  graph.Append({.duration = Duration::Us(1), .lane = gpu, .kind = TaskKind::kKernel});
  const Timeline timeline = *Simulate(graph, {.blockers = true});
  Side side{"", "", &graph, &timeline};
  EXPECT_EQ(PointsOf(CountersOf(side), "GPU 0 memory"), (Points{{5, 700}, {8, 300}}));
  side.edited = true;
  EXPECT_EQ(PointsOf(CountersOf(side), "GPU 0 memory"), Points{}) << "nobody recorded that";
}

TEST(LaneRows, OverlappingTasksGetRowsOfTheirOwn) {
  Graph graph;
  LaneId lane = graph.AddLane({.lane = {.kind = LaneKind::kStream, .device = 0, .number = 7}});
  for (int i = 0; i < 3; ++i) {
    Task task{.duration = Duration::Us(10), .lane = lane, .kind = TaskKind::kKernel};
    task.overlaps = i > 0;
    graph.Append(task);
  }
  Timeline timeline;
  for (int64_t us : {0, 5, 12}) {
    timeline.start.push_back(Instant::AtNs(us * 1000));
    timeline.end.push_back(Instant::AtNs(us * 1000 + 10'000));
  }
  auto rows = SlicesByLane(graph, timeline);
  ASSERT_EQ(rows.size(), 1u);
  ASSERT_EQ(rows[0].size(), 2u);
  EXPECT_EQ(rows[0][0].size(), 2u);
  EXPECT_EQ(LaneTitle(graph, lane), "GPU 0 stream 7");
}

TEST(LaneTitle, SaysTheNumberOfAThreadOnce) {
  Graph graph;
  const auto title = [&](std::string_view name) {
    const LaneId lane = graph.AddLane(
        {.lane = {.kind = LaneKind::kThread, .name = graph.AddName(name), .number = 1}});
    return LaneTitle(graph, lane);
  };
  EXPECT_EQ(title(""), "thread 1");
  EXPECT_EQ(title("thread 1"), "thread 1");
  EXPECT_EQ(title("thread 1 (python)"), "thread 1 (python)");
  EXPECT_EQ(title("main"), "thread 1 (main)");
  EXPECT_EQ(title("thread 12"), "thread 1 (thread 12)") << "another number";
}

TEST(Dot, SaysWhatWasLeftOut) {
  Fixture f;
  std::string all = Dot(f.graph);
  EXPECT_NE(all.find("digraph"), std::string::npos);
  EXPECT_NE(all.find("t0 -> t1 [label=\"launch +2.0 us\""), std::string::npos) << all;
  std::string some = Dot(f.graph, {.max_tasks = 2});
  EXPECT_NE(some.find("the first 2 of 5 tasks"), std::string::npos);
  EXPECT_EQ(some.find("t4 "), std::string::npos);
}

TEST(TaskCsv, HasOneRowATask) {
  Fixture f;
  std::string text = TaskCsv(f.sides);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 2 * 5);
  EXPECT_NE(text.find(",sgemm,"), std::string::npos);
}

}  // namespace
}  // namespace daydream
