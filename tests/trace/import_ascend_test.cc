// trace_view.json of torch_npu, by what is published of its layout: no real file was at hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/build.h"
#include "tests/trace/kineto_text.h"

namespace daydream {
namespace {

// Thread 7 runs an operator, and launches on thread 8: add by connection, mul by a flow that begins
// in its call; relu names a connection that no call has. Times are text, the device has no
// category.
constexpr char kFile[] = R"([
  {"ph": "M", "name": "process_name", "pid": 90, "args": {"name": "Ascend Hardware"}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 7, "ts": "1000.000",
   "dur": 20.5, "args": {"Sequence number": 3}},
  {"ph": "X", "name": "AscendCL@aclnnAdd", "pid": 2, "tid": 8, "ts": "1010.000", "dur": "9.000",
   "args": {"connection_id": 41}},
  {"ph": "X", "name": "Node@launch", "pid": 2, "tid": 8, "ts": "1012.000", "dur": 4,
   "args": {"connection_id": 41}},
  {"ph": "X", "name": "Node@launch", "pid": 2, "tid": 8, "ts": "1030.000", "dur": 4,
   "args": {"connection_id": 42}},
  {"ph": "X", "name": "AddTask", "pid": 90, "tid": 2, "ts": "1040.250", "dur": 10,
   "args": {"Task Type": "AI_VECTOR_CORE", "Stream Id": 2, "Task Id": 5, "connection_id": 41}},
  {"ph": "s", "bp": "e", "name": "HostToDevice9", "cat": "HostToDevice", "id": "9", "pid": 2,
   "tid": 8, "ts": "1031.000"},
  {"ph": "f", "bp": "e", "name": "HostToDevice9", "cat": "HostToDevice", "id": "9", "pid": 90,
   "tid": 2, "ts": "1051.000"},
  {"ph": "X", "name": "MulTask", "pid": 90, "tid": 2, "ts": "1051.000", "dur": 5,
   "args": {"Task Type": "AI_CORE", "Stream Id": 2}},
  {"ph": "X", "name": "ReluTask", "pid": 90, "tid": 2, "ts": "1060.000", "dur": 5,
   "args": {"Task Type": "AI_CORE", "Stream Id": 2, "connection_id": 99}},
  {"ph": "X", "name": "copy", "pid": 90, "tid": 3, "ts": "1070.000", "dur": 5,
   "args": {"Task Type": "MEMCPY_ASYNC", "Stream Id": 3}},
  {"ph": "X", "name": "EVENT_WAIT", "pid": 90, "tid": 3, "ts": "1068.000", "dur": 2,
   "args": {"Task Type": "EVENT_WAIT", "Stream Id": 3}},
  {"ph": "X", "name": "hcom_allReduce", "pid": 91, "tid": 0, "ts": "1068.000", "dur": 2,
   "args": {"connection_id": 41}}
])";

TEST(ImportAscend, TasksAreJoinedByConnectionOrFlow) {
  const auto imported = ImportText(kFile, {.max_malformed = 0});
  ASSERT_TRUE(imported.ok()) << imported.status();
  const Trace& t = **imported;
  EXPECT_EQ(AccountedFor(t), t.provenance.input_events);
  std::vector<std::string> rows;
  uint32_t add = 0, mul = 0;
  for (size_t row = 0; row < t.rows(); ++row) {
    const Lane& lane = t.lanes[t.lane[row].index()];
    if (t.kind[row] == EventKind::kCall) {
      (t.start[row].ns + t.clock_origin_ns < 1'020'000 ? add : mul) = t.correlation[row];
    }
    if (!IsGpuWork(t.kind[row])) continue;
    EXPECT_EQ(lane.device, 0);
    rows.push_back(fmt::format("{} on {} by {}", t.EventName(row), lane.number,
                               t.correlation[row] == 0     ? "none"
                               : t.correlation[row] == add ? "add"
                               : t.correlation[row] == mul ? "mul"
                                                           : "?"));
  }
  EXPECT_THAT(rows, testing::UnorderedElementsAre("AddTask on 2 by add", "MulTask on 2 by mul",
                                                  "ReluTask on 2 by none", "copy on 3 by none"));
  EXPECT_NE(add, mul);
  EXPECT_EQ(CountOf(t, "event tasks of a device"), 1u);
  EXPECT_EQ(CountOf(t, "device tasks without a call"), 2u);
  EXPECT_EQ(CountOf(t, "events without a category"), 1u) << "the collective of another process";
  EXPECT_TRUE(t.provenance.no_waits) << "nothing says when the host waited";
  EXPECT_TRUE(BuildGraph(*imported).ok());
}

}  // namespace
}  // namespace daydream
