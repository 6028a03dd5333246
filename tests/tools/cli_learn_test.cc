// whatif --measured --learn and --learned, through the program.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/predict/learned.h"
#include "trace/ddtrace/writer.h"
#include "trace/importer.h"

namespace daydream {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr const char* kTrace = DAYDREAM_SOURCE_DIR "/examples/launch-bound-synthetic.ddtrace";

class Learning : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("daydream-learn-{}", ::getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string Path(const std::string& name) { return (folder_ / name).string(); }
  static std::string Read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  // Exit status; output in the files out and err.
  int Run(const std::string& args) {
    int status = std::system(fmt::format("{} whatif {} {} >{} 2>{}", DAYDREAM_BINARY, kTrace, args,
                                         Path("out"), Path("err"))
                                 .c_str());
    return WEXITSTATUS(status);
  }
  nlohmann::json Main() {
    auto json = nlohmann::json::parse(Read(Path("out")));
    return json["scenarios"][json["main"].get<size_t>()];
  }

  fs::path folder_;
};

// The recorded trace, written again with times an hour later.
Trace ShiftedByAnHour() {
  Trace later = **ImportFile(kTrace);
  later.clock_origin_ns += int64_t{3600} * 1'000'000'000;
  return later;
}

// Another run, as if the optimization had brought nothing: all of it takes 0.1 % longer.
std::string Later(const std::string& path) {
  Trace later = ShiftedByAnHour();
  for (Instant& start : later.start) start.ns += start.ns / 1000;
  for (Duration& duration : later.duration) duration.ns += duration.ns / 1000;
  std::ofstream(path, std::ios::binary) << *SerializeDdtrace(later);
  return path;
}

TEST_F(Learning, LaterPredictionsAreCorrectedAndNarrowed) {
  const std::string ask = "--opt graphs --format json ";
  ASSERT_EQ(Run(ask), 0);
  auto plain = Main();
  EXPECT_EQ(plain["learned"]["rows"], 0);
  const std::string learn =
      fmt::format("{}--measured {} --learn {}", ask, Later(Path("later.ddtrace")), Path("mine"));
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Run(learn), 0) << Read(Path("err"));
  EXPECT_EQ(ParseLearned(Read(Path("mine")), "mine").value().size(), 1u)
      << "one measurement, said three times";
  ASSERT_EQ(Run(ask + "--learned " + Path("mine")), 0);
  auto learned = Main();
  EXPECT_EQ(learned["learned"]["rows"], 1);
  EXPECT_GT(learned["step_ns"], plain["step_ns"]);
  EXPECT_EQ(learned["causes"].back()["opt"], "(learned)");
}

TEST_F(Learning, ADefaultThatIsSpelledOutIsTheSameOptimization) {
  const std::string learn =
      fmt::format("--measured {} --learn {}", Later(Path("later.ddtrace")), Path("mine"));
  ASSERT_EQ(Run("--opt 'fuse(what=all)' " + learn), 0) << Read(Path("err"));
  ASSERT_EQ(Run("--opt fuse --format json --learned " + Path("mine")), 0);
  EXPECT_EQ(Main()["learned"]["rows"], 1);
}

TEST_F(Learning, AnotherProgramsRecordingIsToldAndNotLearnedFrom) {
  const std::string other = DAYDREAM_SOURCE_DIR "/examples/resnet50-synthetic.ddtrace";
  ASSERT_EQ(Run("--opt graphs --measured " + other), 0);
  EXPECT_THAT(Read(Path("err")), HasSubstr("W0606"));
  EXPECT_EQ(Run(fmt::format("--opt graphs --measured {} --learn {}", other, Path("mine"))), 4);
  EXPECT_FALSE(fs::exists(Path("mine")));
}

TEST_F(Learning, TheRecordingItselfIsNoMeasurement) {
  fs::copy_file(kTrace, Path("copy.ddtrace"));
  std::ofstream(Path("later.ddtrace"), std::ios::binary) << *SerializeDdtrace(ShiftedByAnHour());
  for (const std::string& same :
       {std::string(kTrace), Path("copy.ddtrace"), Path("later.ddtrace")}) {
    EXPECT_EQ(Run(fmt::format("--opt graphs --measured {} --learn {}", same, Path("mine"))), 4);
    EXPECT_THAT(Read(Path("err")), HasSubstr("it is the recording that the prediction was made"));
    EXPECT_FALSE(fs::exists(Path("mine")));
  }
}

// Five times is no error of a prediction (docs/accuracy.md).
TEST_F(Learning, WhatIsFarOffIsToldAndNotLearned) {
  Trace slow = **ImportFile(kTrace);
  for (Instant& start : slow.start) start.ns *= 5;
  for (Duration& duration : slow.duration) duration.ns *= 5;
  std::ofstream(Path("slow.ddtrace"), std::ios::binary) << *SerializeDdtrace(slow);
  const std::string ask = "--opt graphs --measured " + Path("slow.ddtrace");
  EXPECT_EQ(Run(ask), 0);
  EXPECT_THAT(Read(Path("err")), HasSubstr("W0606"));
  EXPECT_EQ(Run(ask + " --learn " + Path("mine")), 4);
  EXPECT_FALSE(fs::exists(Path("mine")));
}

TEST_F(Learning, ARowThatCannotBeIsRefused) {
  for (const char* times : {"1\t1\t999999999999", "100\t99999\t9"}) {
    std::ofstream(Path("odd")) << "daydream-learned 1\ngraphs\tA100\t" << times << "\tx\n";
    EXPECT_EQ(Run("--opt graphs --learned " + Path("odd")), 2) << times;
    EXPECT_THAT(Read(Path("err")), HasSubstr("odd:2"));
  }
}

TEST_F(Learning, AGpuWithoutANameIsCalledThat) {
  std::ofstream(Path("after.json")) << R"({"traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1, "dur": 9},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 2,
     "dur": 5, "args": {"correlation": 7}},
    {"ph": "X", "cat": "kernel", "name": "add", "pid": 0, "tid": 7, "ts": 8, "dur": 5,
     "args": {"device": 0, "stream": 7, "correlation": 7}}]})";
  ASSERT_EQ(Run("--opt graphs --measured " + Path("after.json")), 0) << Read(Path("err"));
  EXPECT_THAT(Read(Path("err")), HasSubstr("measured on a GPU that is not named"));
}

TEST_F(Learning, MistakesAreLocated) {
  EXPECT_EQ(Run("--opt graphs --learn " + Path("mine")), 2);
  EXPECT_THAT(Read(Path("err")), HasSubstr("E0104"));
  EXPECT_EQ(Run("--opt graphs --learned " + Path("missing")), 2);
  EXPECT_THAT(Read(Path("err")), HasSubstr("E0110"));
  std::ofstream(Path("bad")) << "daydream-learned 1\nnonsense\n";
  EXPECT_EQ(Run("--opt graphs --learned " + Path("bad")), 2);
  EXPECT_THAT(Read(Path("err")), HasSubstr("bad:2"));
  EXPECT_NE(Run(fmt::format("--opt graphs --measured {} --learn {}", Later(Path("later.ddtrace")),
                            Path("bad"))),
            0);
  EXPECT_EQ(Read(Path("bad")), "daydream-learned 1\nnonsense\n");
  EXPECT_EQ(Run(fmt::format("--opt free-gpu --measured {} --learn {}", kTrace, Path("mine"))), 4);
  EXPECT_THAT(Read(Path("err")), HasSubstr("E0606"));
  EXPECT_FALSE(fs::exists(Path("mine")));
}

}  // namespace
}  // namespace daydream
