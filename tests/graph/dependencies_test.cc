// What recorders and execution traces know of who needs what, as evidence for the rules. Times are
// in microseconds.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/graph/built_sketch.h"

namespace daydream {
namespace {

// A thread that hands over a job at 10 to one that has done another before: [30, 50].
struct TwoThreads {
  TraceSketch s;
  LaneId main = s.Thread(), worker = s.Thread(200), gpu = s.Stream();

  BuiltGraph Make(double other_job_ends, bool said) {
    s.Mark(main, "Enqueue", 0, 10);
    const uint32_t producer = s.Last();
    s.Mark(worker, "Execute", 2, other_job_ends - 2);
    s.Mark(worker, "Execute", 30, 20);
    if (said) s.Depend(producer, s.Last());
    s.Launch(worker, gpu, "k", 35, 5, 45, 10);
    return Build(s);
  }
};

TEST(JobRule, AJobBeginsAsMuchEarlierAsItIsHandedOver) {
  TwoThreads threads;
  BuiltGraph built = threads.Make(/*other_job_ends=*/5, /*said=*/true);
  EXPECT_EQ(built.report.handoffs, 1u);
  ExpectReplaysExactly(built.graph);
  Graph& g = built.graph;
  SetDuration(g, Find(g, "Enqueue", TaskKind::kHost), 4);
  EXPECT_EQ(EndUs(Play(g), Find(g, "k", TaskKind::kKernel)), 55 - 6);
}

TEST(JobRule, AThreadThatIsBusyBeginsWhenItCan) {
  TwoThreads threads;
  BuiltGraph built = threads.Make(/*other_job_ends=*/30, /*said=*/true);
  EXPECT_EQ(built.report.handoffs, 1u);
  ExpectReplaysExactly(built.graph);
  Graph& g = built.graph;
  const TaskId enqueue = Find(g, "Enqueue", TaskKind::kHost);
  SetDuration(g, enqueue, 4);
  EXPECT_EQ(EndUs(Play(g), Find(g, "k", TaskKind::kKernel)), 55);
  SetDuration(g, enqueue, 36);  // now it is handed over later than the thread is free
  EXPECT_EQ(EndUs(Play(g), Find(g, "k", TaskKind::kKernel)), 55 + 6);
}

TEST(JobRule, WithoutARecordThreadsKeepTheirTimes) {
  TwoThreads threads;
  BuiltGraph built = threads.Make(/*other_job_ends=*/5, /*said=*/false);
  EXPECT_EQ(built.report.handoffs, 0u);
  Graph& g = built.graph;
  SetDuration(g, Find(g, "Enqueue", TaskKind::kHost), 4);
  EXPECT_EQ(EndUs(Play(g), Find(g, "k", TaskKind::kKernel)), 55);
}

// Stream 9 waits for an event of stream 7 or 8; the op behind the wait reads what ran on 7.
TEST(EventRule, AStreamThatMadeWhatIsReadIsTheOneWaitedFor) {
  for (const bool known : {false, true}) {
    TraceSketch s;
    LaneId cpu = s.Thread(), seven = s.Stream(7), eight = s.Stream(8), nine = s.Stream(9);
    s.Op(cpu, "aten::mm", 0, 10);
    const uint32_t producer = s.Last();
    s.Launch(cpu, seven, "mm", 1, 4, 8, 60);
    s.Op(cpu, "aten::add", 12, 8);
    s.Launch(cpu, eight, "add", 13, 4, 20, 10);
    s.Call(cpu, "cudaStreamWaitEvent", 22, 1, 1);
    s.Op(cpu, "aten::relu", 25, 10);
    if (known) s.Depend(producer, s.Last());
    s.Launch(cpu, nine, "relu", 26, 4, 69, 10);
    BuiltGraph built = Build(s);
    std::vector<std::string_view> waited_for;
    for (const Edge& e : built.graph.edges()) {
      if (e.rule == Rule::kEventWait) waited_for.push_back(built.graph.TaskName(e.from));
    }
    // Without the execution trace: for the stream that the thread used last.
    EXPECT_EQ(std::count(waited_for.begin(), waited_for.end(), "add"), known ? 0 : 1);
    EXPECT_EQ(waited_for.back(), "mm");  // if not by the wait, then for the processors (rule G6)
    ExpectReplaysExactly(built.graph);
  }
}

}  // namespace
}  // namespace daydream
