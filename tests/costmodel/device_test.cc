#include "costmodel/device.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "trace/importer.h"

namespace daydream {
namespace {

using ::testing::HasSubstr;

TEST(DeviceSpecs, AreCompleteAndSorted) {
  ASSERT_GE(DeviceSpecs().size(), 42u);
  std::string last;
  for (const DeviceSpec& spec : DeviceSpecs()) {
    EXPECT_LT(last, spec.name);
    last = spec.name;
    EXPECT_FALSE(spec.source.empty()) << spec.name;
    EXPECT_FALSE(spec.name_words.empty()) << spec.name;
    EXPECT_GT(spec.multiprocessors, 0) << spec.name;
    EXPECT_GT(spec.fp32_tflops, 0) << spec.name;
    EXPECT_GT(spec.memory_gb, 0) << spec.name;
    EXPECT_GT(spec.boost_clock_mhz, spec.base_clock_mhz * 0.99) << spec.name;
    // Two operations per core and clock.
    const double from_cores =
        2e-6 * spec.multiprocessors * spec.fp32_cores_per_multiprocessor * spec.boost_clock_mhz;
    const double dual_issue = spec.vendor == "AMD" && spec.compute_minor >= 4 ? 2 : 1;
    EXPECT_NEAR(spec.fp32_tflops / (from_cores * dual_issue), 1, 0.02) << spec.name;
    EXPECT_LE(spec.SustainedBandwidth(), spec.memory_gb_per_s * 1e9) << spec.name;
    EXPECT_LE(spec.SustainedTflops(DType::kFp32), spec.Peak(DType::kFp32)) << spec.name;
  }
}

TEST(DeviceSpecs, AreFoundHoweverTheNameIsWritten) {
  EXPECT_EQ(FindDeviceSpec("a100 sxm4 40gb")->name, "A100-SXM4-40GB");
  EXPECT_EQ(FindDeviceSpec("h100_pcie_80gb")->name, "H100-PCIE-80GB");
  EXPECT_EQ(FindDeviceSpec("A101"), nullptr);
}

TEST(DeviceSpecs, SustainLessThanTheDataSheetSays) {
  // 0.97 of the rate at base clock; the power limit is lower.
  EXPECT_NEAR(FindDeviceSpec("H100-PCIE-80GB")->SustainedTflops(DType::kFp32),
              0.97 * 51.22 * 1095 / 1755, 1e-9);
  EXPECT_NEAR(FindDeviceSpec("H100-PCIE-80GB")->SustainedTflops(DType::kFp16), 0.6 * 756, 1e-9);
  EXPECT_EQ(FindDeviceSpec("P4")->SustainedTflops(DType::kFp16), 0);
  // Pascal reaches less of both: 0.843 in products, and two thirds of what a V100's memory
  // delivers.
  DeviceSpec p100 = *FindDeviceSpec("P100-PCIE-16GB");
  p100.measured_fp32_gemm_tflops = p100.measured_bandwidth_share = 0;
  EXPECT_NEAR(p100.SustainedTflops(DType::kFp32), 0.843 * 9.53, 1e-9);
  EXPECT_NEAR(p100.SustainedBandwidth() * 1.5,
              FindDeviceSpec("V100-PCIE-32GB")->SustainedBandwidth(), 1);
  // AMD's matrix cores multiply fp32, too; many small products in one call reach less of them.
  EXPECT_NEAR(FindDeviceSpec("MI250")->SustainedTflops(DType::kFp32), 0.648 * 45.3, 1e-9);
  EXPECT_NEAR(FindDeviceSpec("MI250")->SustainedTflops(DType::kFp32, true), 0.815 * 0.648 * 45.3,
              1e-9);
  EXPECT_EQ(FindDeviceSpec("V100-SXM2-32GB")->TensorPeak(DType::kTf32), 0);
}

TEST(DeviceSpecs, InStepsCardsThatTheirSlotFeedsRunAsTheirPowerAllows) {
  const DeviceSpec p4 = *FindDeviceSpec("P4");
  EXPECT_TRUE(p4.SlotPowered());
  EXPECT_GT(p4.SustainedTflops(DType::kFp32), 4.8);  // one product at a time, at boost
  EXPECT_NEAR(p4.InSteps().SustainedTflops(DType::kFp32), 0.843 * 75 / 16.5, 1e-9);
  EXPECT_EQ(p4.InSteps().SustainedBandwidth(), p4.SustainedBandwidth());
  // What was measured below the rule is at the limit already.
  const DeviceSpec t4 = *FindDeviceSpec("T4");
  EXPECT_EQ(t4.InSteps().SustainedTflops(DType::kFp32), t4.SustainedTflops(DType::kFp32));
  for (const DeviceSpec& spec : DeviceSpecs()) {
    if (spec.SlotPowered()) continue;
    EXPECT_TRUE(RunAlike(spec, spec.InSteps())) << spec.name;
  }
}

Device Recorded(std::string name, double gib, int major, int minor, int multiprocessors,
                int warp = 32) {
  return {.name = std::move(name),
          .memory_bytes = static_cast<uint64_t>(gib * (1 << 30)),
          .compute_major = major,
          .compute_minor = minor,
          .multiprocessors = multiprocessors,
          .warp_size = warp};
}

TEST(DeviceSpecs, SkipZerosFromAmpereAndCdna3On) {
  const auto skips = [](std::string_view name) {
    const DeviceSpec* spec = FindDeviceSpec(name);
    EXPECT_NE(spec, nullptr) << name;
    return spec != nullptr && spec->HasSparseTensorCores();
  };
  for (std::string_view name : {"A100-SXM4-40GB", "RTX4090", "H100-SXM5-80GB", "MI300X"}) {
    EXPECT_TRUE(skips(name)) << name;
  }
  for (std::string_view name : {"V100-SXM2-32GB", "RTX2080Ti", "P4", "MI210", "MI250"}) {
    EXPECT_FALSE(skips(name)) << name;
  }
}

TEST(MatchDevice, KnowsRecordedNames) {
  const auto name = [](const Device& d) {
    const DeviceMatch match = MatchDevice(d);
    return match.spec ? match.spec->name + (match.sure ? "" : "?") : "none";
  };
  EXPECT_EQ(name(Recorded("NVIDIA A100-PG509-200", 39.4, 8, 0, 108)), "A100-SXM4-40GB?");
  EXPECT_EQ(name(Recorded("NVIDIA A100-SXM4-80GB", 79.3, 8, 0, 108)), "A100-SXM4-80GB");
  EXPECT_EQ(name(Recorded("NVIDIA A100-PCIE-40GB", 39.4, 8, 0, 108)), "A100-PCIE-40GB");
  EXPECT_EQ(name(Recorded("Tesla V100-SXM2-16GB", 15.8, 7, 0, 80)), "V100-SXM2-32GB?");
  EXPECT_EQ(name(Recorded("Tesla V100-DGXS-32GB", 31.7, 7, 0, 80)), "V100-SXM2-32GB?");
  EXPECT_EQ(name(Recorded("NVIDIA H100 80GB HBM3", 79.2, 9, 0, 132)), "H100-SXM5-80GB");
  EXPECT_EQ(name(Recorded("NVIDIA B200", 178.4, 10, 0, 148)), "B200-SXM-180GB");
  EXPECT_EQ(name(Recorded("", 192, 9, 4, 304, 64)), "MI300X?");
  EXPECT_EQ(name(Recorded("AMD Instinct MI300X VF", 191.5, 9, 4, 304, 64)), "MI300X");
  EXPECT_EQ(name(Recorded("AMD Instinct MI210", 64, 9, 0, 104, 64)), "MI210");
  // One of two dies, as programs see it.
  EXPECT_EQ(name(Recorded("AMD Instinct MI250", 64, 9, 0, 104, 64)), "MI250");
  EXPECT_EQ(name(Recorded("NVIDIA GeForce RTX 2080 Ti", 10.8, 7, 5, 68)), "RTX2080Ti");
  EXPECT_EQ(name(Recorded("NVIDIA A10", 22.1, 8, 6, 72)), "A10");
  EXPECT_EQ(name(Recorded("NVIDIA RTX A6000", 47.5, 8, 6, 84)), "RTXA6000");
  EXPECT_EQ(name(Recorded("NVIDIA A40", 44.4, 8, 6, 84)), "A40");
  EXPECT_EQ(name(Recorded("NVIDIA L40", 44.5, 8, 9, 142)), "L40");
  EXPECT_EQ(name(Recorded("NVIDIA L40S", 44.5, 8, 9, 142)), "L40S");
  EXPECT_EQ(name(Recorded("NVIDIA GH200 480GB", 94.5, 9, 0, 132)), "GH200-96GB");
  EXPECT_EQ(name(Recorded("NVIDIA GeForce RTX 3080", 9.8, 8, 6, 68)), "RTX3080");
  EXPECT_EQ(name(Recorded("NVIDIA GeForce RTX 3060 Ti", 7.8, 8, 6, 38)), "none");
  EXPECT_EQ(name(Recorded("AMD Instinct MI325X", 255.7, 9, 4, 304, 64)), "MI325X");
  // Variants are other cards, taken by nothing but their numbers.
  const DeviceMatch ti = MatchDevice(Recorded("NVIDIA GeForce RTX 3090 Ti", 23.7, 8, 6, 84));
  EXPECT_FALSE(ti.named);
  EXPECT_THAT(ti.how, HasSubstr("no GPU of the name NVIDIA GeForce RTX 3090 Ti is known"));
  EXPECT_FALSE(MatchDevice(Recorded("NVIDIA GeForce RTX 4090 Laptop GPU", 15.7, 8, 9, 76)).named);
  EXPECT_TRUE(MatchDevice(Recorded("NVIDIA A100-PG509-200", 39.4, 8, 0, 108)).named);
  EXPECT_EQ(name({.name = "NVIDIA H100 NVL"}), "none");
  EXPECT_EQ(name({.name = "NVIDIA GeForce RTX 2080"}), "none");
  // A slice of a GPU and an unknown GPU are nothing that is known.
  EXPECT_EQ(name(Recorded("NVIDIA A100-SXM4-40GB MIG 3g.20gb", 19.5, 8, 0, 42)), "none");
  EXPECT_EQ(name(Recorded("NVIDIA RTX 9999", 100, 13, 0, 500)), "none");
  EXPECT_EQ(name(Device{}), "none");
  // Only a name.
  EXPECT_EQ(name(Recorded("Tesla T4", 0, 0, 0, 0, 0)), "T4?");
}

TEST(MatchDevice, SaysHowSureItIs) {
  EXPECT_THAT(MatchDevice(Recorded("Tesla V100-SXM2-16GB", 15.8, 7, 0, 80)).how,
              HasSubstr("nearest"));
  EXPECT_THAT(MatchDevice(Device{}).how, HasSubstr("no GPU"));
}

// What the driver said about the GPU; 0 where it was not recorded.
void ExpectAsRecorded(const DeviceSpec& spec, const Device& recorded) {
  if (recorded.max_threads_per_multiprocessor > 0) {
    EXPECT_EQ(spec.threads_per_multiprocessor, recorded.max_threads_per_multiprocessor);
  }
  if (recorded.registers_per_multiprocessor > 0) {
    EXPECT_EQ(spec.registers_per_multiprocessor, recorded.registers_per_multiprocessor);
  }
  if (recorded.shared_memory_per_multiprocessor > 0) {
    EXPECT_EQ(spec.shared_memory_kb_per_multiprocessor * 1024,
              static_cast<double>(recorded.shared_memory_per_multiprocessor))
        << spec.name;
  }
}

TEST(MatchDevice, FindsTheGpuOfEveryRealTraceThatNamesOne) {
  const std::filesystem::path root = DAYDREAM_DATA_DIR "/traces";
  std::error_code error;
  int traces = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root, error)) {
    if (!entry.path().string().ends_with(".json.gz")) continue;
    const auto trace = ImportFile(entry.path());
    if (!trace.ok() || (*trace)->devices.empty()) continue;
    ++traces;
    const DeviceMatch match = MatchDevice((*trace)->devices.front());
    EXPECT_NE(match.spec, nullptr) << entry.path() << match.how;
    if (match.spec != nullptr) ExpectAsRecorded(*match.spec, (*trace)->devices.front());
    fmt::print("{}: {}\n", entry.path().filename().string(), match.how);
  }
  if (traces == 0) GTEST_SKIP() << "no real traces beside the repository";
}

}  // namespace
}  // namespace daydream
