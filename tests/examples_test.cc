// The shipped traces are what their generator makes, and consistent.
#include <map>

#include <gtest/gtest.h>

#include "examples/models.h"
#include "tests/source_tree.h"
#include "trace/ddtrace/writer.h"
#include "trace/importer.h"
#include "trace/steps.h"

namespace daydream {
namespace {

// What is in `bytes`, packed again by this machine's zstd: another version packs differently.
std::string Repacked(std::string_view bytes) {
  auto trace = ImportBytes(bytes, "example");
  EXPECT_TRUE(trace.ok());
  if (!trace.ok()) return "";
  EXPECT_TRUE((*trace)->provenance.synthetic);
  return SerializeDdtrace(**trace).value_or("");
}

TEST(Examples, ShippedFilesAreWhatTheGeneratorMakes) {
  for (const examples::Model& model : examples::Models()) {
    auto trace = model.make();
    ASSERT_TRUE(trace.ok());
    auto bytes = SerializeDdtrace(**trace);
    ASSERT_TRUE(bytes.ok());
    std::string path = std::string(DAYDREAM_SOURCE_DIR "/examples/") + std::string(model.name) +
                       "-synthetic.ddtrace";
    std::string shipped = ReadText(path);
    EXPECT_LT(shipped.size(), size_t{1} << 20);
    // To renew them: build/release/examples/make_synthetic examples
    EXPECT_TRUE(Repacked(shipped) == Repacked(*bytes)) << path;
  }
}

TEST(Examples, GpuWorkStartsAfterItsLaunchAndInOrder) {
  for (const examples::Model& model : examples::Models()) {
    auto made = model.make();
    ASSERT_TRUE(made.ok());
    const Trace& trace = **made;
    std::map<uint32_t, Instant> call_start;
    for (size_t row = 0; row < trace.rows(); ++row) {
      if (trace.kind[row] == EventKind::kCall)
        call_start[trace.correlation[row]] = trace.start[row];
    }
    Instant stream_end = Instant::Min();
    size_t gpu_work = 0;
    for (size_t row = 0; row < trace.rows(); ++row) {
      if (!IsGpuWork(trace.kind[row])) continue;
      ++gpu_work;
      EXPECT_GE(trace.start[row], stream_end);
      stream_end = trace.End(row);
      ASSERT_TRUE(call_start.contains(trace.correlation[row]));
      EXPECT_GT(trace.start[row], call_start[trace.correlation[row]]);
    }
    EXPECT_GT(gpu_work, 1000u);
  }
}

TEST(Examples, StepsAreFoundFromTheirMarks) {
  for (const examples::Model& model : examples::Models()) {
    auto trace = model.make();
    ASSERT_TRUE(trace.ok());
    Steps steps = FindSteps(**trace);
    EXPECT_EQ(steps.method, StepMethod::kProfilerStep);
    EXPECT_GE(steps.measured(), 4u);
  }
}

}  // namespace
}  // namespace daydream
