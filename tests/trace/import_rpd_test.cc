// RPD databases.
#include <gtest/gtest.h>

#include "graph/build.h"
#include "tests/trace/recorded_files.h"
#include "trace/steps.h"

namespace daydream {
namespace {

TEST(ImportExamples, Rpd) {
  const auto t = Load(ExampleFile("rpd-small.rpd"));
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->provenance.importer, "rpd");
  // 5 calls and 4 records of the queue a step; the last of these does no work.
  EXPECT_EQ(t->provenance.input_events, 4u * 9);
  EXPECT_EQ(t->rows(), 4u * 8);
  EXPECT_EQ(Joined(*t), std::pair(size_t{12}, size_t{0}));
  EXPECT_EQ(Rows(*t, EventKind::kMemcpy), 4u);
  EXPECT_EQ(Rows(*t, EventKind::kAnnotation), 4u);
  EXPECT_EQ(FindSteps(*t).steps.size(), 4u);
  ASSERT_EQ(t->kernels.size(), 1u) << "64 blocks, told in blocks by one call, in work-items by one";
  EXPECT_EQ(t->kernels[0].grid[0], 64u);
  EXPECT_EQ(t->copies[0].bytes, 4096u);
  for (size_t i = 0; i < t->names->size(); ++i) {
    EXPECT_EQ(t->names->Get(NameId(i)).find("secret"), std::string_view::npos);
  }
  const auto built = BuildGraph(t);
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(built->report.blocking_calls, 4u);
}

}  // namespace
}  // namespace daydream
