// Files that are named, and what there is to know about those that are read.
#include <string_view>

#include "tests/trace/recorded_files.h"
#include "trace/ddtrace/writer.h"
#include "trace/foreign/facts.h"
#include "trace/steps.h"

namespace daydream {
namespace {

TEST(ImportExamples, NsightSystems) {
  auto t = Load(Example("nsys-small.sqlite"));
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
    auto t = Load(Example(name));
    ASSERT_NE(t, nullptr);
    auto bytes = SerializeDdtrace(*t);
    ASSERT_TRUE(bytes.ok());
    auto again = ImportBytes(*bytes, name);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(TraceDifference(*t, **again), "") << name;
  }
}

TEST(Importers, EachSaysHowItIsRecordedAndWhatItAnswers) {
  EXPECT_EQ(AllFormatFacts().size(), Importers().size());
  for (const Importer* importer : Importers()) {
    const FormatFacts* facts = FindFormatFacts(importer->name);
    ASSERT_NE(facts, nullptr) << importer->name;
    EXPECT_FALSE(facts->record.empty());
  }
}

TEST(Foreign, EachFileIsNamedWithTheNextCommand) {
  using namespace std::string_view_literals;
  struct Case {
    std::string_view bytes, what, fix;
  };
  for (const Case& c : {
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
       }) {
    const Diagnostic d = DiagnosticOf(ImportBytes(c.bytes, "run.nsys-rep").status());
    EXPECT_EQ(d.code, "E0204") << c.what;
    EXPECT_NE(d.what.find(c.what), std::string::npos) << d.what;
    EXPECT_NE(d.fix.find(c.fix), std::string::npos) << d.fix;
  }
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
