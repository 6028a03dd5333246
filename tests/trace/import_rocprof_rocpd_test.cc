// rocprofv3, as JSON and as rocpd.
#include <filesystem>

#include "tests/trace/recorded_files.h"
#include "trace/steps.h"

namespace daydream {
namespace {

TEST(ImportExamples, Rocprofv3GivesTheSameTraceWhateverTheFormat) {
  auto json = Load(ExampleFile("rocprofv3-small.json"));
  auto three = Load(ExampleFile("rocpd-schema3-small.db"));
  auto four = Load(ExampleFile("rocpd-schema4-small.db"));
  ASSERT_TRUE(json && three && four);
  EXPECT_EQ(json->provenance.importer, "rocprof");
  EXPECT_EQ(three->provenance.importer, "rocpd");
  EXPECT_EQ(Difference(*json, *three), "");
  EXPECT_EQ(Difference(*json, *four), "");
  EXPECT_EQ(Joined(*json), std::pair(size_t{12}, size_t{0}));
  EXPECT_EQ(json->kernels[0].grid[0], 64u) << "16384 work-items in groups of 256";
  EXPECT_EQ(FindSteps(*json).steps.size(), 4u);
  EXPECT_FALSE(json->provenance.no_waits);
}

TEST(ImportSamples, Rocprofv3) {
  if (!std::filesystem::exists(Sample("rocprof"))) GTEST_SKIP() << "no samples beside";
  auto json = Load(Sample("rocprof/dispatches-mi350x_results.json.gz"));
  auto db = Load(Sample("rocprof/dispatches-mi350x.rocpd.db"));
  ASSERT_TRUE(json && db);
  EXPECT_EQ(Rows(*json, EventKind::kKernel), 4000u);
  EXPECT_EQ(json->lanes.size(), 6u) << "streams, not queues";
  EXPECT_TRUE(json->provenance.no_waits);
  EXPECT_EQ(Difference(*json, *db), "");
}

}  // namespace
}  // namespace daydream
