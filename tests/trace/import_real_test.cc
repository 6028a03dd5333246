// Traces that other people recorded: each imports whole, whatever generation wrote it.
#include <algorithm>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/real_traces.h"
#include "tests/trace/kineto_text.h"
#include "trace/steps.h"

namespace daydream {
namespace {

std::string ReadText(const std::string& path) {
  std::string text;
  auto source = OpenFile(path, int64_t{1} << 30);
  if (!source.ok()) return text;
  for (;;) {
    auto chunk = (*source)->Next();
    if (!chunk.ok() || chunk->empty()) return text;
    text += *chunk;
  }
}

// Events of a file, counted in a way that has nothing to do with the importer: each has one
// "ph" key, and real traces have it nowhere else.
size_t CountPhases(std::string_view text) {
  size_t n = 0;
  for (size_t at = text.find("\"ph\":"); at != std::string_view::npos;
       at = text.find("\"ph\":", at + 5)) {
    ++n;
  }
  return n;
}

std::shared_ptr<const Trace> Load(const std::string& name) {
  auto trace = ImportFile((RealTraceFolder() / name).string());
  EXPECT_TRUE(trace.ok()) << name << ": " << Message(trace.status());
  return trace.ok() ? *trace : nullptr;
}

TEST(ImportReal, EveryEventIsARowOrCounted) {
  if (RealTraces().empty()) GTEST_SKIP() << "no real traces beside the repository";
  for (const std::string& name : RealTraces()) {
    auto trace = Load(name);
    ASSERT_NE(trace, nullptr);
    size_t events = CountPhases(ReadText((RealTraceFolder() / name).string()));
    EXPECT_EQ(trace->provenance.input_events, events) << name;
    EXPECT_EQ(AccountedFor(*trace), events) << name;
    EXPECT_GT(trace->rows(), 0u) << name;
    for (const ImportCount& count : trace->provenance.counts) {
      EXPECT_FALSE(count.loss) << name << ": " << count.what;
    }
  }
}

TEST(ImportReal, OtherFormatsFailWithAClearError) {
  if (RealTraces().empty()) GTEST_SKIP() << "no real traces beside the repository";
  for (const char* name : {"chakra/linear-et.json.gz", "chakra/resnet-1gpu-et.json.gz"}) {
    auto trace = ImportFile((RealTraceFolder() / name).string());
    EXPECT_EQ(DiagnosticOf(trace.status()).code, "E0204") << name;
    EXPECT_FALSE(DiagnosticOf(trace.status()).fix.empty()) << name;
  }
}

TEST(ImportReal, StepsAreWhereTheyAreKnownToBe) {
  if (RealTraces().empty()) GTEST_SKIP() << "no real traces beside the repository";
  struct Case {
    const char* name;
    StepMethod method;
    size_t steps, measured;
  };
  for (const Case& c : {
           Case{"training/resnet18-bs128-2080ti.json.gz", StepMethod::kAnnotation, 30, 29},
           Case{"training/resnet18-ddp-mi300x.json.gz", StepMethod::kAnnotation, 5, 4},
           Case{"training/sharded-v100-rank1of2.json.gz", StepMethod::kProfilerStep, 5, 4},
           Case{"training/recsys-a100-rank3of8.json.gz", StepMethod::kProfilerStep, 6, 5},
           Case{"loader/resnet50-v100.workers0.a.json.gz", StepMethod::kProfilerStep, 6, 5},
           Case{"copies/copy-a100.pinned.json.gz", StepMethod::kProfilerStep, 10, 9},
           Case{"odd/mi250-rocm.json.gz", StepMethod::kProfilerStep, 2, 1},
           Case{"batch/particle-transformer.bs64.json.gz", StepMethod::kWindow, 1, 1},
           Case{"graphs/sam-a100.compile-default.json.gz", StepMethod::kWindow, 1, 1},
       }) {
    auto trace = Load(c.name);
    ASSERT_NE(trace, nullptr);
    Steps steps = FindSteps(*trace);
    EXPECT_EQ(steps.method, c.method) << c.name;
    EXPECT_EQ(steps.steps.size(), c.steps) << c.name;
    EXPECT_EQ(steps.measured(), c.measured) << c.name;
    for (size_t i = 1; i < steps.steps.size(); ++i) {
      EXPECT_LE(steps.steps[i - 1].end, steps.steps[i].begin) << c.name;
    }
  }
}

TEST(ImportReal, SynchronisationRecordsAreKept) {
  if (RealTraces().empty()) GTEST_SKIP() << "no real traces beside the repository";
  auto trace = Load("odd/event-sync-multi-stream-a100.json.gz");
  ASSERT_NE(trace, nullptr);
  EXPECT_EQ(std::count(trace->kind.begin(), trace->kind.end(), EventKind::kSync), 5);
}

}  // namespace
}  // namespace daydream
