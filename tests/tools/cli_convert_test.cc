// Reports of Nsight Systems, exported by an `nsys` that is a script here.
#include <sys/stat.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/cli_fixture.h"

namespace daydream {
namespace {

using testing::HasSubstr;
using testing::Not;

class Convert : public CliFixture {
 protected:
  // `script` runs with the words after "nsys" in $1, $2..; they are kept in the file "words".
  void FakeNsys(const std::string& script) const {
    std::filesystem::create_directories(Path("bin"));
    std::filesystem::create_directories(Path("tmp"));
    Write("bin/nsys", "#!/bin/sh\necho \"$@\" > " + Path("words") + "\necho exporting\n" + script);
    ASSERT_EQ(chmod(Path("bin/nsys").c_str(), 0755), 0);
    Write("run.nsys-rep", "NVIDIA Tegra Profiler Report 2023@4@4@54-234433681190v0");
  }
  CliResult WithNsys(const std::string& args) const {
    return Run(args, "TMPDIR=" + Path("tmp") + " PATH=" + Path("bin") + ":$PATH");
  }
};

constexpr char kExport[] = "cp " DAYDREAM_SOURCE_DIR "/examples/imports/nsys-small.sqlite \"$5\"\n";

TEST_F(Convert, NsysExportsAReportIntoAFolderThatIsGoneAfterwards) {
  FakeNsys(kExport);
  const CliResult r = WithNsys("info " + Path("run.nsys-rep") + " --convert --format json");
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("\"events\": 85"));
  EXPECT_THAT(r.out, Not(HasSubstr("exporting"))) << "standard output is for results";
  EXPECT_THAT(r.err, HasSubstr("running: nsys export --type sqlite --output " + Path("tmp")));
  EXPECT_THAT(r.out, HasSubstr("\"run.sqlite\"")) << "it is called as the report";
  EXPECT_THAT(ReadAll(Path("words")), HasSubstr(Path("run.nsys-rep")));
  EXPECT_TRUE(std::filesystem::is_empty(Path("tmp")));
}

TEST_F(Convert, NothingRunsUnlessItIsAskedFor) {
  FakeNsys(kExport);
  const CliResult r = WithNsys("info " + Path("run.nsys-rep"));
  EXPECT_EQ(r.exit, 3);
  EXPECT_THAT(r.err, HasSubstr("fix: nsys export --type sqlite"));
  EXPECT_FALSE(std::filesystem::exists(Path("words")));
}

TEST_F(Convert, AnExportThatFailsIsNoTrace) {
  for (const char* script : {"exit 3\n", "exit 0\n", "kill -9 $$\n"}) {
    FakeNsys(script);
    const CliResult r = WithNsys("info " + Path("run.nsys-rep") + " --convert");
    EXPECT_EQ(r.exit, 3) << script;
    EXPECT_THAT(r.err, HasSubstr("error[E0231]: nsys could not export this report")) << script;
    EXPECT_TRUE(std::filesystem::is_empty(Path("tmp"))) << script;
  }
}

TEST_F(Convert, APackedReportIsNotHandedOver) {
  FakeNsys(kExport);
  ASSERT_EQ(system(fmt::format("gzip {}", Path("run.nsys-rep")).c_str()), 0);
  const CliResult r = WithNsys("info " + Path("run.nsys-rep.gz") + " --convert");
  EXPECT_EQ(r.exit, 3);
  EXPECT_THAT(r.err, HasSubstr("fix: unpack it, as with gzip -dk " + Path("run.nsys-rep.gz")));
  EXPECT_FALSE(std::filesystem::exists(Path("words")));
}

TEST_F(Convert, AMissingNsysIsSaid) {
  Write("run.nsys-rep", "NVIDIA Tegra Profiler Report 1.");
  const CliResult r = Run("info " + Path("run.nsys-rep") + " --convert", "PATH=" + Path("none"));
  EXPECT_EQ(r.exit, 3);
  EXPECT_THAT(r.err, HasSubstr("--convert needs nsys, which cannot be run"));
}

}  // namespace
}  // namespace daydream
