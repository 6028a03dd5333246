#include "transforms/analysis/device_choice.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "costmodel/device_fields.h"
#include "costmodel/op_time.h"

namespace daydream {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::string Problem(const absl::Status& status) {
  const Diagnostic d = DiagnosticOf(status);
  return d.code + "|" + d.what + "|" + d.where + "|" + d.why;
}
std::string ProblemOf(const std::string& path, std::string_view text) {
  auto device = ReadDeviceText(path, text);
  return device.ok() ? "fine" : Problem(device.status());
}

constexpr std::string_view kYaml =
    "name: my-chip\n"
    "multiprocessors: 64\n"
    "fp32_tflops: 25\n"
    "fp16_tflops: 200\n"
    "memory_gb_per_s: 1000\n";

TEST(ChooseDevice, KnowsNamesAndTheirBeginnings) {
  EXPECT_EQ(ChooseDevice("a100_sxm4 80gb")->spec.name, "A100-SXM4-80GB");
  EXPECT_EQ(ChooseDevice("A10")->spec.name, "A10");
  const DeviceChoice h100 = *ChooseDevice("h100");
  EXPECT_EQ(h100.spec.name, "H100-SXM5-80GB");
  EXPECT_THAT(h100.assumptions, Contains(HasSubstr("of H100-PCIE-80GB, H100-SXM5-80GB")));
  EXPECT_THAT(Problem(ChooseDevice("H10").status()), HasSubstr("E0801|no GPU is known as 'H10'"));
  EXPECT_THAT(Problem(ChooseDevice("RTX409").status()), HasSubstr("did you mean 'RTX4090'"));
  EXPECT_EQ(ChooseDevice("Tesla V100-SXM2-32GB")->spec.name, "V100-SXM2-32GB");
  EXPECT_EQ(ChooseDevice("NVIDIA H100 80GB HBM3")->spec.name, "H100-SXM5-80GB");
  EXPECT_THAT(Problem(ChooseDevice("NVIDIA X9").status()), HasSubstr("no GPU is known as"));
  EXPECT_THAT(Problem(ChooseDevice(testing::TempDir()).status()), HasSubstr("it is a folder"));
  EXPECT_THAT(Problem(ChooseDevice("no/such.yaml").status()), HasSubstr("E0801"));
}

TEST(ChooseDevice, TakesWhatPeopleCallAGpu) {
  const std::pair<const char*, const char*> names[] = {
      {"A6000", "RTXA6000"},           {"RTX A6000", "RTXA6000"},
      {"NVIDIA A6000", "RTXA6000"},    {"4090", "RTX4090"},
      {"GeForce RTX 4090", "RTX4090"}, {"2080ti", "RTX2080Ti"},
      {"1080 Ti", "GTX1080Ti"},        {"H100 SXM", "H100-SXM5-80GB"},
      {"H100 PCIe", "H100-PCIE-80GB"}, {"A100 80GB", "A100-SXM4-80GB"},
      {"a100-40gb", "A100-SXM4-40GB"}, {"V100 32GB", "V100-SXM2-32GB"},
      {"Instinct MI300X", "MI300X"}};
  for (const auto& [name, known] : names) {
    const auto choice = ChooseDevice(name);
    ASSERT_TRUE(choice.ok()) << name;
    EXPECT_EQ(choice->spec.name, known) << name;
  }
  EXPECT_THAT(ChooseDevice("A100 80GB")->assumptions,
              Contains(HasSubstr("of A100-PCIE-80GB, A100-SXM4-80GB")));
  for (const auto& [name, known] : {std::pair("Tesla V100-DGXS-32GB", "V100-SXM2-32GB"),
                                    {"NVIDIA A100-PG509-200", "A100-SXM4-40GB"},
                                    {"AMD Instinct MI300X VF", "MI300X"}}) {
    const auto choice = ChooseDevice(name);
    ASSERT_TRUE(choice.ok()) << name << ", as a driver writes it";
    EXPECT_EQ(choice->spec.name, known);
  }
  // Another card is not taken for the one of a similar name.
  for (const char* name :
       {"3080 Ti", "4080 Super", "A6000 Ada", "A10G", "RTX", "V100 64GB", "RTX 4070 Ti",
        "NVIDIA GeForce RTX 3080 Ti", "NVIDIA GeForce RTX 4070 Ti", "NVIDIA GeForce RTX 4080 SUPER",
        "NVIDIA H100 NVL", "GeForce RTX 2080 SUPER", "GeForce RTX 2080",
        "NVIDIA GeForce RTX 3060 Laptop GPU", "Tesla V100-SXM2-16GB"}) {
    EXPECT_FALSE(ChooseDevice(name).ok()) << name;
  }
}

TEST(ChooseDevice, SuggestsNamesThatAreNear) {
  const std::pair<const char*, const char*> names[] = {
      {"A6000 Ada", "'RTXA6000'?"},
      {"A5000", "'RTXA6000'?"},
      {"4080 Super", "'RTX4080'?"},
      {"3080 Ti", "'RTX3080'?"},
      {"NVIDIA GeForce RTX 3080 Ti", "'RTX3080'?"},
      {"NVIDIA H100 NVL", "'H100-PCIE-80GB' or 'H100-SXM5-80GB'?"},
      {"A10G", "'A10'?"},
      {"H800", "'H100-PCIE-80GB' or 'H100-SXM5-80GB' or"},
      {"B100", "'B200-SXM-180GB' or 'B300"},
      {"L20", "'L4' or 'L40' or 'L40S'?"}};
  for (const auto& [name, near] : names) {
    EXPECT_THAT(Problem(ChooseDevice(name).status()),
                HasSubstr(std::string("did you mean ") + near))
        << name;
  }
}

TEST(ChooseDevice, TakesTheOnlyNameWithAllWords) {
  for (const char* name : {"orin", "Jetson Orin", "jetson-orin", "Orin 64GB"}) {
    const DeviceChoice orin = *ChooseDevice(name);
    EXPECT_EQ(orin.spec.name, "Jetson-AGX-Orin-64GB") << name;
    const bool sized = std::string_view(name).ends_with("64GB");
    EXPECT_NE(
        testing::Value(orin.assumptions, Contains(HasSubstr("is taken as Jetson-AGX-Orin-64GB"))),
        sized);
  }
  // Nothing else can be meant: that is no assumption.
  for (const char* name : {"A6000", "rtx a6000", "4090"}) {
    EXPECT_THAT((*ChooseDevice(name)).assumptions, testing::Not(Contains(HasSubstr("taken as"))))
        << name;
  }
  EXPECT_FALSE(ChooseDevice("PCIE").ok()) << "several";
  EXPECT_FALSE(ChooseDevice("96GB").ok()) << "a size, no chip";
  EXPECT_FALSE(ChooseDevice("Orin 40GB").ok());
}

TEST(DeviceFile, GivesAPredictionAndListsWhatNobodyVerified) {
  const DeviceChoice chip = *ReadDeviceText("my-chip.yaml", kYaml);
  EXPECT_EQ(chip.spec.multiprocessors, 64);
  EXPECT_EQ(chip.spec.boost_clock_mhz, 25 / (2e-6 * 64 * 128));
  const auto& a = chip.assumptions;
  for (const char* what :
       {"boost_clock_mhz = 1526", "base_clock_mhz", "tf32_tflops = 0", "memory_class = GDDR",
        "l2_mb = 0", "memory_gb is not known", "tdp_watts", "vendor", "pcie_gb_per_s",
        "nvlink_gb_per_s = 0", "threads_per_multiprocessor = 2048", "products in fp32 sustain",
        "products in fp16 sustain 120 TFLOPS: a rule, not measured",
        "memory sustains 870 GB/s: a rule, not measured"}) {
    EXPECT_THAT(a, Contains(HasSubstr(what)));
  }
  const OpTime time = PredictOp(chip.spec, WorkOfProduct({1, 4096, 4096, 4096}), DType::kFp16);
  EXPECT_GT(time.ns, time.bound_ns);
  // One line less to assume for each line that is given.
  const DeviceChoice more = *ReadDeviceText("my-chip.yaml", std::string(kYaml) + "l2_mb: 40\n");
  EXPECT_EQ(more.assumptions.size(), a.size() - 1);
}

TEST(DeviceFile, IsTheSameInEveryFormat) {
  const DeviceChoice yaml = *ReadDeviceText("x.yaml", kYaml);
  const DeviceChoice json = *ReadDeviceText(
      "x.json",
      "{\"name\": \"my-chip\", \"multiprocessors\": 64, \"fp32_tflops\": 25, \"fp16_tflops\": "
      "200, \"memory_gb_per_s\": 1000}");
  std::string text(kYaml);
  text.replace(text.find("my-chip"), 7, "\"my-chip\"");
  const DeviceChoice proto = *ReadDeviceText("x.textproto", text);
  EXPECT_EQ(DeviceTextproto(yaml.spec), DeviceTextproto(json.spec));
  EXPECT_EQ(DeviceTextproto(yaml.spec), DeviceTextproto(proto.spec));
  EXPECT_EQ(yaml.assumptions, proto.assumptions);
}

TEST(DeviceFile, OfEveryKnownGpuReadsBackAsItIs) {
  for (const DeviceSpec& spec : DeviceSpecs()) {
    const std::string text = DeviceTextproto(spec);
    const auto again = ReadDeviceText("again.textproto", text);
    ASSERT_TRUE(again.ok()) << text << Problem(again.status());
    EXPECT_EQ(DeviceTextproto(again->spec), text);
  }
}

TEST(DeviceFile, ErrorsNameTheirPlace) {
  const std::string yaml(kYaml);
  EXPECT_THAT(
      ProblemOf("a.yaml", yaml + "memory_gbps: 3\n"),
      HasSubstr("E0803|a device has no field 'memory_gbps'; did you mean 'memory_gb'?|a.yaml:6:1"));
  EXPECT_THAT(ProblemOf("a.yaml", yaml + "l2_md: 3\n"), HasSubstr("did you mean 'l2_mb'?"));
  EXPECT_THAT(ProblemOf("a.yaml", yaml + "l2_mb: 40MB\n"),
              HasSubstr("E0803|l2_mb: '40MB' is no value for it|a.yaml:6:1"));
  EXPECT_THAT(ProblemOf("a.yaml", yaml + "l2_mb: -1\n"), HasSubstr("from 0 to"));
  EXPECT_THAT(ProblemOf("a.yaml", yaml + "l2_mb: nan\n"), HasSubstr("E0803"));
  EXPECT_THAT(ProblemOf("a.yaml", yaml + "tdp_watts: [1, 2]\n"), HasSubstr("one value"));
  EXPECT_THAT(ProblemOf("a.yaml", yaml + "compute_major: 7.5\n"), HasSubstr("whole number"));
  EXPECT_THAT(ProblemOf("a.yaml", yaml + "memory_class: SRAM\n"), HasSubstr("'SRAM' is not known"));
  EXPECT_THAT(ProblemOf("a.yaml", yaml + "measured: {bandwidth_share: 3}\n"),
              HasSubstr("from 0.001 to 1"));
  EXPECT_THAT(ProblemOf("a.yaml", yaml + "unsure: {a: {b: c}}\n"), HasSubstr("E0803"));
  EXPECT_THAT(ProblemOf("a.yaml", yaml + "base_clock_mhz: 9000\n"),
              HasSubstr("E0804|base_clock_mhz is above boost_clock_mhz|a.yaml:6:1"));
  EXPECT_THAT(ProblemOf("a.yaml", "name: x\nmultiprocessors: 3\nmemory_gb_per_s: 3\n"),
              HasSubstr("E0804|the description of the device lacks fp32_tflops"));
  EXPECT_THAT(ProblemOf("a.yaml", "[1, 2]"), HasSubstr("E0802"));
  EXPECT_THAT(ProblemOf("a.yaml", ""), HasSubstr("E0402"));
  EXPECT_THAT(ProblemOf("a.textproto", "name: \"x\"\nspeed: 3\n"),
              HasSubstr("E0802|this is no description of a device|a.textproto:2:"));
  EXPECT_THAT(ProblemOf("a.textproto", "name: \"x\"\nmultiprocessors: many\n"),
              HasSubstr("a.textproto:2:18"));
  EXPECT_THAT(ProblemOf("a.textproto", "name: \"x\" multiprocessors: 0\n"), HasSubstr("E0803"));
  EXPECT_THAT(ProblemOf("a.textproto", std::string_view("\0\1\2", 3)), HasSubstr("E0802"));
  EXPECT_THAT(ProblemOf("a.textproto", "measured { measured { } }"), HasSubstr("E0802"));
}

}  // namespace
}  // namespace daydream
