// Names of kernels that are not those of the work of their operators are told.
#include "report/questions/name_findings.h"

#include <array>
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/build.h"
#include "tests/graph/trace_sketch.h"

namespace daydream {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::array<std::string_view, 6> kOps = {"aten::relu_", "aten::add_",       "aten::mul",
                                                  "aten::mm",    "aten::max_pool2d", "aten::sum"};

// 120 operators in turn, each with one kernel of the name that `name` gives it.
std::vector<Finding> Found(const std::function<std::string(size_t)>& name) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  for (size_t i = 0; i < 120; ++i) {
    const double us = 100 * static_cast<double>(i);
    s.Op(cpu, kOps[i % kOps.size()], us, 20);
    s.Launch(cpu, gpu, name(i), us + 5, 10, us + 20, 50);
  }
  auto built = BuildGraph(s.Build());
  EXPECT_TRUE(built.ok()) << built.status();
  return FindingsOfNames(built->graph);
}

std::string Right(size_t i) {
  const std::string_view op = kOps[i % kOps.size()];
  return op == "aten::mm" ? "ampere_sgemm_128x64_nn" : "vectorized_elementwise_kernel";
}

TEST(NameFindings, NoneOfTrueNames) { EXPECT_THAT(Found(Right), IsEmpty()); }

TEST(NameFindings, OneNameForAll) {
  const auto found = Found([](size_t) { return "kernel"; });
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kLost);
  EXPECT_THAT(found[0].text, HasSubstr("all 120 kernels have one name (kernel), and 6 kinds"));
  EXPECT_FALSE(DoubtOf(found).empty()) << "low confidence";
}

TEST(NameFindings, NamesOfOthers) {
  const auto found = Found([](size_t i) { return Right(i + i / kOps.size() % kOps.size()); });
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kWrongLaunch);
  EXPECT_THAT(found[0].text, HasSubstr("10 of 60 kernels of operators that work element by "
                                       "element multiply matrices by their names, as "
                                       "ampere_sgemm_128x64_nn of aten::"));
  EXPECT_FALSE(DoubtOf(found).empty()) << "low confidence";
}

TEST(NameFindings, AFewNamesSayNothing) {
  EXPECT_THAT(Found([](size_t i) { return i < 6 ? "ampere_sgemm_128x64_nn" : Right(i); }),
              IsEmpty());
}

}  // namespace
}  // namespace daydream
