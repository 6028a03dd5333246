// Files that are named, and what there is to know about those that are read.
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "tests/trace/packed.h"
#include "tests/trace/recorded_files.h"
#include "trace/ddtrace/writer.h"
#include "trace/foreign/folder.h"
#include "trace/importer.h"
#include "trace/steps.h"

namespace daydream {
namespace {

TEST(ImportExamples, NsightSystems) {
  auto t = Load(ExampleFile("nsys-small.sqlite"));
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->provenance.importer, "nsys");
  EXPECT_EQ(Rows(*t, EventKind::kKernel), 20u);
  EXPECT_EQ(FindSteps(*t).steps.size(), 5u);
  EXPECT_EQ(t->dependencies.size(), 15u);
  ASSERT_EQ(t->devices.size(), 1u);
  EXPECT_EQ(t->devices[0].name, "NVIDIA A100-SXM4-40GB");
}

TEST(ImportExamples, ReadBackFromDdtraceAsTheyWere) {
  for (const char* name : {"nsys-small.sqlite", "rocprofv3-small.json", "jax-small.xplane.pb"}) {
    auto t = Load(ExampleFile(name));
    ASSERT_NE(t, nullptr);
    auto bytes = SerializeDdtrace(*t);
    ASSERT_TRUE(bytes.ok());
    auto again = ImportBytes(*bytes, name);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(TraceDifference(*t, **again), "") << name;
  }
}

struct Case {
  std::string_view bytes, what, fix;
};
const std::vector<Case>& Cases() {
  using namespace std::string_view_literals;
  static const std::vector<Case> cases = {
      Case{"NVIDIA Tegra Profiler Report 1.\n\x0b", "Nsight Systems report",
           "nsys export --type sqlite --output run.sqlite run.nsys-rep"},
      Case{"QDSTRM_FILE", "unfinished", "QdstrmImporter"},
      Case{"\x89HDF\r\n\x1a\n....", "HDF5", "nsys export"},
      Case{"PAR1....", "Parquet", "nsys export"},
      Case{"\xff\xff\xff\xff....", "Arrow", "nsys export"},
      Case{"NVR\0....."sv, "Nsight Compute", "nsys profile"},
      Case{"\x0a\x04\x40\x01\x50\x01", "Perfetto", "rocpd"},
      Case{R"([{"name": "NEGOTIATE_ALLREDUCE", "ph": "B"})", "Horovod", "torch.profiler"},
      Case{R"({"traceEvents": [{"ph": "M", "args": {"name": "/host:CPU"}}]})", "TensorBoard",
           ".xplane.pb"},
      Case{R"([{"name": "a", "ph": "X", "pid": "CUDA functions"}])", "old autograd",
           "export_chrome_trace"},
      Case{"\x80\x04\x95\x10", "pickle", "--memory"},
      Case{"\xfd"
           "7zXZ\0...."sv,
           "xz", "xz -dk run.nsys-rep"},
      Case{"BZh91AY&SY....", "bzip2", "bzip2 -dk run.nsys-rep"},
      Case{"\x04\x22\x4d\x18....", "LZ4", "lz4 -dk run.nsys-rep"},
      Case{"version https://git-lfs.github.com/spec/v1\n", "Git LFS", "git lfs pull"},
      Case{"<!DOCTYPE html><html>", "web page", "download"},
      Case{"\xff\xfe{\0\"\0"sv, "UTF-16", "iconv -f UTF-16"},
      Case{"NVIDIA Tegra Pro"
           "filer",
           "Nsight Systems report", "nsys export"},
  };
  return cases;
}

TEST(Foreign, EachFileIsNamedWithTheNextCommand) {
  for (const Case& c : Cases()) {
    const Diagnostic d = DiagnosticOf(ImportBytes(c.bytes, "run.nsys-rep").status());
    EXPECT_EQ(d.code, "E0204") << c.what;
    EXPECT_NE(d.what.find(c.what), std::string::npos) << d.what;
    EXPECT_NE(d.fix.find(c.fix), std::string::npos) << d.fix;
  }
}

// From its first bytes: a gigabyte is not read for that (a fifth of a second at least).
TEST(Foreign, AFileOfAnySizeIsNamedAtOnce) {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("dd-foreign-{}", getpid());
  for (const Case& c : Cases()) {
    std::ofstream(path, std::ios::binary) << c.bytes;
    std::filesystem::resize_file(path, uintmax_t{1} << 30);  // a hole, which takes no room
    const std::clock_t begin = std::clock();
    const Diagnostic d = DiagnosticOf(ImportFile(path.string()).status());
    const double ms = 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    EXPECT_EQ(d.code, "E0204") << c.what;
    EXPECT_LT(ms, 50) << c.what;
  }
  std::filesystem::remove(path);
}

// The next command works where the one before it was given.
TEST(Foreign, TheNextCommandNamesTheFileAsItWasGiven) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "two words";
  std::filesystem::create_directories(folder);
  const std::string report = (folder / "a.nsys-rep").string();
  std::ofstream(report) << "NVIDIA Tegra Profiler Report 1.";
  EXPECT_EQ(DiagnosticOf(ImportFile(report).status()).fix,
            fmt::format("nsys export --type sqlite --output '{}' '{}'",
                        (folder / "a.sqlite").string(), report));
  std::filesystem::remove_all(folder);
}

TEST(Foreign, OfAFolderOfJaxTheXplaneIsRead) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "jax";
  std::filesystem::create_directories(folder);
  const std::string part = (folder / "host.trace.json.gz").string();
  const std::string whole = (folder / "host.xplane.pb").string();
  for (const std::string& file : {part, whole}) std::ofstream(file) << "x";
  const auto traces = FindTraces(folder.string());
  ASSERT_TRUE(traces.ok()) << traces.status();
  EXPECT_EQ(traces->files, std::vector<std::string>{whole});
  EXPECT_EQ(traces->not_read, std::vector<std::string>{part});
  std::filesystem::remove_all(folder);
}

TEST(Foreign, WhatIsPackedIsUnpackedFirstForOthers) {
  const Diagnostic d =
      DiagnosticOf(ImportBytes(Gzip("NVIDIA Tegra Profiler Report 1."), "a.nsys-rep.gz").status());
  EXPECT_EQ(d.fix,
            "gzip -dk a.nsys-rep.gz, then nsys export --type sqlite --output a.sqlite "
            "a.nsys-rep");
  EXPECT_EQ(DiagnosticOf(ImportBytes(Gzip(Gzip("{}")), "a.json.gz").status()).fix,
            "gzip -dk a.json.gz, then name what it unpacks to");
}

TEST(Foreign, AFolderWithoutTracesSaysWhereTheyAre) {
  namespace fs = std::filesystem;
  const fs::path log = fs::path(testing::TempDir()) / "foreign_test_log";
  fs::remove_all(log);
  const auto write = [&](const fs::path& name) {
    fs::create_directories((log / name).parent_path());
    std::ofstream(log / name) << "x";
  };
  write("plugins/profile/2/host.xplane.pb");
  Diagnostic d = DiagnosticOf(TracesOfFolder(log.string()).status());
  EXPECT_EQ(d.code, "E0430");
  EXPECT_EQ(d.fix, "name that one: " + (log / "plugins/profile/2").string());
  write("plugins/profile/1/host.xplane.pb");
  d = DiagnosticOf(TracesOfFolder(log.string()).status());
  EXPECT_EQ(d.why, "folders below it are not looked into, and 2 of them do");
  EXPECT_NE(d.fix.find("bring their files into one"), d.fix.npos) << d.fix;
  write("b.nsys-rep");
  write("a.nsys-rep");
  d = DiagnosticOf(TracesOfFolder(log.string()).status());
  EXPECT_EQ(d.code, "E0204");
  const std::string a = (log / "a").string();
  EXPECT_EQ(d.fix,
            "of each: nsys export --type sqlite --output " + a + ".sqlite " + a + ".nsys-rep");
  fs::remove_all(log);
}

// Nothing that a plan must have is in these.
TEST(Foreign, NextToNothingIsNoChakraTrace) {
  for (std::string_view bytes : {"{}", "\n", "\n\n", "{\"a\": 1}"}) {
    const auto status = ImportBytes(bytes, "x.json").status();
    EXPECT_FALSE(status.ok()) << bytes;
    EXPECT_EQ(DiagnosticOf(status).fix.find("convert it again"), std::string::npos) << bytes;
  }
}

TEST(Foreign, JsonThatEndsTooEarlyIsNotJsonOfOthers) {
  EXPECT_NE(DiagnosticOf(ImportBytes("{\"schemaVersion\": 1, \"dev", "x.json").status())
                .why.find("ends before"),
            std::string::npos);
  EXPECT_NE(
      DiagnosticOf(ImportBytes("{\"schemaVersion\": 1}", "x.json").status()).why.find("without"),
      std::string::npos);
}

TEST(Foreign, ReportsSayWhichVersionExportsThem) {
  const Diagnostic d = DiagnosticOf(
      ImportBytes("NVIDIA Tegra Profiler Report 2023@4@4@54-234433681190v0", "a.nsys-rep")
          .status());
  EXPECT_NE(d.why.find("2023.4.4.54"), std::string::npos) << d.why;
}

TEST(Foreign, TracesOfThePyTorchProfilerAreNotTakenForOthers) {
  if (RealTraces().empty()) GTEST_SKIP() << "no real traces beside the repository";
  for (const std::string& name : RealTraces()) {
    const auto status = ImportFile((RealTraceFolder() / name).string()).status();
    EXPECT_TRUE(status.ok()) << name << ": " << status;
  }
}

}  // namespace
}  // namespace daydream
