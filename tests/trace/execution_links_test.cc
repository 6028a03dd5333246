// Data dependencies of execution traces.
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/real_traces.h"
#include "tests/trace/kineto_text.h"
#include "trace/importer.h"
#include "trace/join/execution_links.h"

namespace daydream {
namespace {

// linear makes storage 20 out of 10 and 11, relu reads it, add_ writes into it again.
constexpr const char* kNodes = R"json({"schema": "1.0.1", "nodes": [
  {"name": "aten::addmm", "id": 3, "rf_id": 2, "parent": 2, "tid": 1,
   "inputs": [[1, 10, 0, 4, 4, "cuda:0"], [2, 11, 0, 4, 4, "cuda:0"]],
   "input_types": ["Tensor(float)", "Tensor(float)"],
   "outputs": [[3, 20, 0, 4, 4, "cuda:0"]], "output_types": ["Tensor(float)"]
},
  {"name": "aten::linear", "id": 2, "rf_id": 1, "parent": 1, "tid": 1,
   "inputs": [[1, 10, 0, 4, 4, "cuda:0"]], "input_types": ["Tensor(float)"],
   "outputs": [[3, 20, 0, 4, 4, "cuda:0"]], "output_types": ["Tensor(float)"]},
  {"name": "aten::relu", "id": 4, "rf_id": 3, "parent": 1, "tid": 1,
   "inputs": [[3, 20, 0, 4, 4, "cuda:0"]], "input_types": ["Tensor(float)"],
   "outputs": [[4, 21, 0, 4, 4, "cuda:0"]], "output_types": ["Tensor(float)"]},
  {"name": "aten::cat", "id": 5, "rf_id": 4, "parent": 1, "tid": 1,
   "inputs": [[[3, 20, 0, 4, 4, "cuda:0"], [4, 21, 0, 4, 4, "cuda:0"]], 0],
   "input_types": ["GenericList[Tensor(float),Tensor(float)]", "Int"],
   "outputs": [[5, 22, 0, 8, 4, "cuda:0"]], "output_types": ["Tensor(float)"]},
  {"name": "[pytorch|profiler|execution_graph|process]", "id": 1, "rf_id": 0, "parent": 1}]})json";

std::string WriteNodes(const std::string& text, const std::string& name) {
  std::string path = testing::TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

std::string Op(const char* name, int start, int duration) {
  return fmt::format(
      R"({{"ph": "X", "cat": "cpu_op", "name": "{}", "pid": 1, "tid": 1, "ts": {}, "dur": {}}})",
      name, start, duration);
}

// `rounds` iterations, each with an op that the execution trace does not have.
std::string Profile(int rounds) {
  std::string events;
  for (int r = 0; r < rounds; ++r) {
    const int t = r * 100;
    for (const std::string& op : {Op("aten::linear", t, 20), Op("aten::addmm", t + 5, 10),
                                  Op("aten::relu", t + 30, 5), Op("aten::cat", t + 40, 5)}) {
      events += (events.empty() ? "" : ",") + op;
    }
  }
  return R"({"traceEvents": [)" + events + "]}";
}

TEST(ExecutionLinks, OpsReadWhatTheLastWriterMadeInEveryRound) {
  const std::string path = WriteNodes(kNodes, "links.json");
  auto trace = ImportText(Profile(3));
  ASSERT_TRUE(trace.ok());
  LinksFound found;
  auto with = WithDependenciesOf(*trace, path, &found);
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ(found.nodes, 4u);
  EXPECT_EQ(found.linked, 4u);
  EXPECT_EQ(found.rounds, 3u);
  EXPECT_EQ(found.inputs, 6u);
  EXPECT_EQ(found.known, 3u);
  // relu and cat read what addmm wrote last, cat reads what relu wrote.
  EXPECT_EQ((*with)->dependencies.size(), 9u);
  for (const DataDependency& d : (*with)->dependencies) {
    EXPECT_LT((*with)->start[d.producer], (*with)->start[d.consumer]);
    EXPECT_NE((*with)->EventName(d.producer), "aten::linear");
  }
}

TEST(ExecutionLinks, AnotherProgramIsRefused) {
  const std::string path = WriteNodes(kNodes, "links-other.json");
  auto trace = ImportText(R"({"traceEvents": [)" + Op("aten::linear", 0, 5) + "," +
                          Op("aten::conv2d", 10, 5) + "]}");
  ASSERT_TRUE(trace.ok());
  LinksFound found;
  EXPECT_EQ(DiagnosticOf(WithDependenciesOf(*trace, path, &found).status()).code, "E0232");
}

// A thread makes storage 20, another reads it: as written, or the other way round in time.
TEST(ExecutionLinks, TimesThatContradictTheDataAreRefused) {
  const std::string path = WriteNodes(R"json({"schema": "1.0.1", "nodes": [
  {"name": "aten::mm", "id": 2, "rf_id": 1, "parent": 1, "tid": 1,
   "inputs": [[1, 10, 0, 4, 4, "cuda:0"]], "input_types": ["Tensor(float)"],
   "outputs": [[3, 20, 0, 4, 4, "cuda:0"]], "output_types": ["Tensor(float)"]},
  {"name": "aten::relu", "id": 3, "rf_id": 2, "parent": 1, "tid": 2,
   "inputs": [[3, 20, 0, 4, 4, "cuda:0"]], "input_types": ["Tensor(float)"],
   "outputs": [[4, 21, 0, 4, 4, "cuda:0"]], "output_types": ["Tensor(float)"]},
  {"name": "[pytorch|profiler|execution_graph|process]", "id": 1, "rf_id": 0, "parent": 1}]})json",
                                      "links-threads.json");
  auto profile = [](int reads_at) {
    std::string relu = Op("aten::relu", reads_at, 5);
    relu.replace(relu.find("\"tid\": 1"), 8, "\"tid\": 2");
    return R"({"traceEvents": [)" + Op("aten::mm", 100, 20) + "," + relu + "]}";
  };
  LinksFound found;
  auto after = ImportText(profile(150));
  ASSERT_TRUE(after.ok()) << after.status();
  auto with = WithDependenciesOf(*after, path, &found);
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ((*with)->dependencies.size(), 1u);

  auto before = ImportText(profile(50));
  ASSERT_TRUE(before.ok()) << before.status();
  const Diagnostic d = DiagnosticOf(WithDependenciesOf(*before, path, &found).status());
  EXPECT_EQ(d.code, "E0232");
  EXPECT_EQ(d.why, "aten::relu would read what aten::mm writes after it");
}

// Nineteen of twenty are enough, eighteen are not.
TEST(ExecutionLinks, NineteenOfTwentyNodesHaveToBeThere) {
  std::string nodes;
  for (int i = 0; i < 20; ++i) {
    nodes += fmt::format(R"({{"name": "aten::op{}", "id": {}, "rf_id": {}, "parent": 1, "tid": 1,
      "inputs": [], "input_types": [], "outputs": [], "output_types": []}},)",
                         i, i + 2, i + 1);
  }
  const std::string path =
      WriteNodes(R"({"schema": "1.0.1", "nodes": [)" + nodes +
                     R"({"name": "[pytorch|profiler|execution_graph|process]", "id": 1, "rf_id": 0,
              "parent": 1}]})",
                 "links-twenty.json");
  auto code_with = [&](int ops) {
    std::string events;
    for (int i = 0; i < ops; ++i) {
      events += (i > 0 ? "," : "") + Op(fmt::format("aten::op{}", i).c_str(), 10 * i, 5);
    }
    auto trace = ImportText(R"({"traceEvents": [)" + events + "]}");
    EXPECT_TRUE(trace.ok()) << trace.status();
    LinksFound found;
    return DiagnosticOf(WithDependenciesOf(*trace, path, &found).status()).code;
  };
  EXPECT_EQ(code_with(19), "");
  EXPECT_EQ(code_with(18), "E0232");
}

TEST(ExecutionLinks, RealFilesHaveTheirKnownInputs) {
  const auto folder = RealTraceFolder() / "chakra";
  if (!std::filesystem::exists(folder / "linear-et.json.gz")) {
    GTEST_SKIP() << "no real execution traces beside the repository";
  }
  struct Case {
    const char* name;
    size_t inputs, known;
  };
  for (const Case& c :
       {Case{"linear-et.json.gz", 1079, 901}, Case{"resnet-1gpu-et.json.gz", 22233, 16254}}) {
    auto execution = ReadExecutionTrace((folder / c.name).string());
    ASSERT_TRUE(execution.ok());
    LinksFound found;
    DependenciesOf(execution->nodes, &found);
    EXPECT_EQ(found.inputs, c.inputs) << c.name;
    EXPECT_EQ(found.known, c.known) << c.name;
  }
}

}  // namespace
}  // namespace daydream
