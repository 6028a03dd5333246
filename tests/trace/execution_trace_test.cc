#include "trace/join/execution_trace.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/build.h"
#include "tests/real_traces.h"
#include "trace/importer.h"
#include "trace/trace_builder.h"

namespace daydream {
namespace {

std::string Written(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

// Three products, as a profile without shapes has them.
std::shared_ptr<const Trace> Profile(int products) {
  std::string text = "{\"traceEvents\": [";
  for (int i = 0; i < products; ++i) {
    text += fmt::format(
        "{}{{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"pid\": 1, \"tid\": 1, "
        "\"ts\": {}, \"dur\": 5, \"args\": {{}}}}",
        i == 0 ? "" : ", ", 10 * i);
  }
  auto trace = ImportBytes(text + "]}", "profile.json");
  EXPECT_TRUE(trace.ok()) << trace.status();
  return *trace;
}

std::string Node(int id, const std::string& shapes) {
  return fmt::format(
      "{{\"id\": {}, \"name\": \"aten::mm\", \"inputs\": {{\"values\": [], \"shapes\": {}, "
      "\"types\": [\"Tensor(float)\", \"Tensor(float)\", \"GenericList[Int,Int]\"]}}}}",
      id, shapes);
}

std::vector<std::string> ShapesOf(const Trace& trace) {
  std::vector<std::string> shapes;
  for (size_t row = 0; row < trace.rows(); ++row) {
    if (trace.kind[row] != EventKind::kOp) continue;
    const uint32_t detail = trace.detail[row];
    const bool known = detail < trace.ops.size() && trace.ops[detail].shapes.valid();
    shapes.emplace_back(known ? trace.Name(trace.ops[detail].shapes) : "");
  }
  return shapes;
}

TEST(ExecutionTrace, OpsGetTheirShapesByNameAndOrderHoweverManyRounds) {
  // Not in the order of time; ids are.
  const std::string path = Written("et.json", "{\"schema\": \"1.1.1\", \"nodes\": [" +
                                                  Node(9, "[[2, 3], [3, 4], [[], []]]") + ", " +
                                                  Node(3, "[[8, 8], [8, 8], [[], []]]") + "]}");
  ShapesFound found;
  auto with = WithShapesOf(Profile(4), path, &found);
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ(found.matched, 4u);
  EXPECT_THAT(ShapesOf(**with),
              testing::ElementsAre("[[8, 8], [8, 8], []]", "[[2, 3], [3, 4], []]",
                                   "[[8, 8], [8, 8], []]", "[[2, 3], [3, 4], []]"));
  EXPECT_EQ((*with)->Name((*with)->ops[(*with)->detail[0]].types),
            "[\"float\", \"float\", \"GenericList[Int,Int]\"]");
}

TEST(ExecutionTrace, OldFilesKeepShapesBesideTheInputs) {
  const std::string path =
      Written("old.json",
              "{\"schema\": \"1.0.1\", \"nodes\": [{\"name\": \"aten::mm\", \"id\": 3, \"inputs\": "
              "[[1, 2], "
              "[3]], \"input_shapes\": [[2, 3], [3, 4]], \"input_types\": [\"Tensor(c10::Half)\", "
              "\"Tensor(c10::Half)\"]}]}");
  ShapesFound found;
  auto with = WithShapesOf(Profile(3), path, &found);
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_THAT(ShapesOf(**with), testing::Each("[[2, 3], [3, 4]]"));
}

TEST(ExecutionTrace, APartOfARoundGetsNone) {
  const std::string path = Written("et.json", "{\"nodes\": [" + Node(3, "[[8, 8], [8, 8], []]") +
                                                  ", " + Node(9, "[[2, 3], [3, 4], []]") + "]}");
  ShapesFound found;
  auto with = WithShapesOf(Profile(3), path, &found);
  ASSERT_FALSE(with.ok());
  EXPECT_EQ(DiagnosticOf(with.status()).code, "E0813");
}

TEST(ExecutionTrace, WhatIsNoneIsRefused) {
  for (const char* text : {"", "[1, 2]", "{\"nodes\": 3}", "{\"nodes\": [{\"id\": 1", "{\"nodes\"",
                           "{\"nodes\": [{\"name\": \"a\", \"inputs\": {\"shapes\": [["}) {
    ShapesFound found;
    auto with = WithShapesOf(Profile(3), Written("bad.json", text), &found);
    EXPECT_FALSE(with.ok()) << text;
  }
}

std::shared_ptr<const Trace> ProfileOf(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += fmt::format(
        "{}{{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"{}\", \"pid\": 1, \"tid\": 1, "
        "\"ts\": {}, \"dur\": 5}}",
        text.empty() ? "" : ", ", name, 10 + text.size());
  }
  auto trace = ImportBytes("{\"traceEvents\": [" + text + "]}", "profile.json");
  EXPECT_TRUE(trace.ok()) << trace.status();
  return *trace;
}

std::string NodesOf(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += fmt::format(
        "{}{{\"id\": {}, \"name\": \"{}\", \"inputs\": {{\"values\": [], \"shapes\": [[2, 3]], "
        "\"types\": [\"Tensor(float)\"]}}}}",
        text.empty() ? "" : ", ", 10 + text.size(), name);
  }
  return Written("names.json", "{\"nodes\": [" + text + "]}");
}

TEST(ExecutionTrace, OfAnotherProgramIsRefusedThoughItsNamesAreThere) {
  // Each name is there in whole rounds, but four products to a sum here and one there.
  const std::string path = NodesOf({"aten::mm", "aten::mm", "aten::add", "aten::add", "aten::mul"});
  ShapesFound found;
  auto with = WithShapesOf(
      ProfileOf({"aten::mm", "aten::mm", "aten::mm", "aten::mm", "aten::mm", "aten::mm", "aten::mm",
                 "aten::mm", "aten::add", "aten::add", "aten::mul", "aten::mul", "aten::mul"}),
      path, &found);
  ASSERT_FALSE(with.ok());
  EXPECT_EQ(DiagnosticOf(with.status()).code, "E0813");
  EXPECT_THAT(DiagnosticOf(with.status()).why, testing::HasSubstr("2 of its 5 nodes"));
}

TEST(ExecutionTrace, AnOpMoreOftenThanTheOthersGetsNoShapes) {
  std::vector<std::string> nodes(4, "aten::mm"), ops = nodes;
  nodes.push_back("aten::add");
  ops.insert(ops.end(), {"aten::add", "aten::add"});
  ShapesFound found;
  auto with = WithShapesOf(ProfileOf(ops), NodesOf(nodes), &found);
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ(found.matched, 4u);
  EXPECT_EQ(found.agree, 4u);
  EXPECT_TRUE(found.doubtful());
  EXPECT_EQ(ShapesOf(**with).back(), "");
}

TEST(ExecutionTrace, OfALinearModelHasNoShapesForAResNet) {
  if (RealTraces().empty()) GTEST_SKIP() << "no real traces beside the repository";
  for (const char* name :
       {"training/resnet18-bs128-2080ti.json.gz", "gpus/resnet50-bs32.v100-sxm2.json.gz"}) {
    auto trace = ImportFile((RealTraceFolder() / name).string());
    ASSERT_TRUE(trace.ok());
    ShapesFound found;
    const auto with =
        WithShapesOf(*trace, (RealTraceFolder() / "chakra/linear-et.json.gz").string(), &found);
    EXPECT_EQ(DiagnosticOf(with.status()).code, "E0813") << name;
  }
}

// Recorded by others on another machine: the same network and batch.
TEST(ExecutionTrace, GivesAResNetItsShapes) {
  if (RealTraces().empty()) GTEST_SKIP() << "no real traces beside the repository";
  auto trace = ImportFile((RealTraceFolder() / "gpus/resnet50-bs32.v100-sxm2.json.gz").string());
  ASSERT_TRUE(trace.ok());
  ShapesFound found;
  auto with =
      WithShapesOf(*trace, (RealTraceFolder() / "chakra/resnet-1gpu-et.json.gz").string(), &found);
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ(found.matched, found.ops);
  EXPECT_FALSE(found.doubtful());
}

}  // namespace
}  // namespace daydream
