// A GPU that the file names and that did not run these kernels, and memory that it does not have.
#include "report/questions/gpu_findings.h"

#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "costmodel/device_check.h"
#include "graph/build.h"
#include "tests/graph/trace_sketch.h"

namespace daydream {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Device A100() {
  return {.name = "NVIDIA A100-SXM4-40GB",
          .memory_bytes = 42297524224,
          .compute_major = 8,
          .compute_minor = 0,
          .multiprocessors = 108,
          .warp_size = 32,
          .max_threads_per_multiprocessor = 2048,
          .shared_memory_per_multiprocessor = 167936};
}

std::vector<Finding> Found(const Device& device, const std::string& kernel = "kernel",
                           const std::string& call = "cudaLaunchKernel",
                           const std::vector<Allocation>& allocations = {}) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  for (uint32_t i = 0; i < 60; ++i) {
    s.Call(cpu, call, 100 * i, 10, i + 1);
    s.Kernel(gpu, i % 10 == 0 ? kernel : "kernel", 100 * i + 20, 50, i + 1);
  }
  auto trace = std::make_shared<Trace>(*s.Build());
  trace->devices = {device};
  trace->allocations = allocations;
  auto built = BuildGraph(trace);
  EXPECT_TRUE(built.ok()) << built.status();
  return FindingsOfGpus(built->graph);
}

void ExpectOne(const std::vector<Finding>& found, std::string_view text) {
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kOtherGpu);
  EXPECT_THAT(found[0].text, HasSubstr(text));
  EXPECT_FALSE(DoubtOf(found).empty()) << "low confidence";
}

TEST(GpuFindings, NoneWhereAllFits) {
  Device d = A100();
  EXPECT_THAT(Found(d), IsEmpty());
  d.launched_multiprocessors = 108;
  EXPECT_THAT(Found(d, "sm80_xmma_gemm_f16f16"), IsEmpty());
  EXPECT_THAT(Found(d, "volta_sgemm_128x64_nn"), IsEmpty()) << "libraries keep older kernels";
  EXPECT_THAT(Found({}, "sm90_xmma_gemm"), IsEmpty()) << "nothing is said of the GPU";
}

TEST(GpuFindings, KernelsLaunchedOnAnotherNumberOfMultiprocessors) {
  Device d = A100();
  d.launched_multiprocessors = 80;
  ExpectOne(Found(d), "A100-SXM4-40GB has 108 multiprocessors, and its kernels were launched on 8");
}

TEST(GpuFindings, KernelsOfALaterArchitecture) {
  ExpectOne(Found(A100(), "sm90_xmma_gemm_bf16"), "6 of 60 kernels were built for 9.0 or later");
  ExpectOne(Found(A100(), "cutlass3x_sm100_tensorop_s64x128"), "built for 10.0 or later");
}

TEST(GpuFindings, CallsOfAnotherMaker) {
  ExpectOne(Found(A100(), "kernel", "hipLaunchKernel"),
            "is of NVIDIA, and its kernels were launched with HIP");
}

TEST(GpuFindings, PropertiesThatContradictEachOther) {
  Device d = A100();
  d.name = "Tesla V100-SXM2-32GB";
  ExpectOne(Found(d), "its name says V100, which has compute capability 7.0, not 8.0");
  d = A100();
  d.memory_bytes *= 2;
  ExpectOne(Found(d), "its name says 40 GB, its memory is 84.6 GB");
  d = A100();
  d.shared_memory_per_multiprocessor = 98304;
  ExpectOne(Found(d), "has 164 kB of shared memory on a multiprocessor, this GPU 96");
  d = A100();
  d.max_threads_per_multiprocessor = 1024;
  ExpectOne(Found(d), "holds 2048 threads on a multiprocessor, this GPU 1024");
}

TEST(GpuFindings, AnotherVariantOfTheChip) {
  Device d = A100();
  d.memory_bandwidth_kbps = 1'555'200'000;
  d.clock_khz = 1'410'000;
  EXPECT_THAT(Found(d), IsEmpty());
  d.memory_bandwidth_kbps = 2'039'000'000;
  ExpectOne(Found(d), "A100-SXM4-40GB has 1555 GB/s of memory, this GPU 2039");
  d = A100();
  d.name = "NVIDIA A100 80GB PCIe";
  d.memory_bytes = 85'000'000'000;
  d.memory_bandwidth_kbps = 1'935'360'000;
  EXPECT_THAT(Found(d), IsEmpty());
  d.memory_bandwidth_kbps = 2'039'000'000;
  ExpectOne(Found(d), "A100-PCIE-80GB has 1935 GB/s of memory, this GPU 2039");
  d = A100();
  d.clock_khz = 1'000'000;
  EXPECT_THAT(Found(d), IsEmpty()) << "an owner may lock it lower";
  d.clock_khz = 1'980'000;
  ExpectOne(Found(d), "A100-SXM4-40GB has a clock of up to 1410 MHz, this GPU 1980");
}

TEST(GpuFindings, PartsOfAGpuAndUnknownOnesContradictNothing) {
  Device d = A100();
  d.name = "NVIDIA A100-SXM4-40GB MIG 3g.20gb";
  d.multiprocessors = 42;
  d.memory_bytes /= 2;
  EXPECT_EQ(ContradictionIn(d), "");
  d.name = "NVIDIA GH200 480GB";
  d.compute_major = 9;
  d.memory_bytes = 96'000'000'000;
  EXPECT_EQ(ContradictionIn(d), "") << "the name tells the memory of the host";
  d.name = "NVIDIA RTX A2000 12GB";
  d.memory_bytes = 12'500'000'000;
  EXPECT_EQ(ContradictionIn(d), "") << "no A2";
}

TEST(GpuFindings, MoreMemoryThanThereIs) {
  const auto use = [](int64_t bytes) {
    const LaneId none;
    return Found(A100(), "kernel", "cudaLaunchKernel",
                 {{.at = Instant::AtNs(1000),
                   .lane = none,
                   .device = 0,
                   .bytes = 1'000'000,
                   .allocated = bytes,
                   .reserved = bytes}});
  };
  EXPECT_THAT(use(40'000'000'000), IsEmpty());
  const auto found = use(50'000'000'000);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kMemory);
  EXPECT_THAT(found[0].text, HasSubstr("50.0 GB of memory are in use at most"));
  EXPECT_FALSE(CautionOf(found).empty()) << "no high confidence";
}

TEST(GpuFindings, ArchitecturesThatNamesTell) {
  EXPECT_EQ(ArchitectureOf("sm80_xmma_fprop_implicit_gemm"), 8);
  EXPECT_EQ(ArchitectureOf("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm>"), 8);
  EXPECT_EQ(ArchitectureOf("cutlass3x_sm100_tensorop"), 10);
  EXPECT_EQ(ArchitectureOf("nvjet_sm90_hsh"), 9);
  EXPECT_EQ(ArchitectureOf("volta_sgemm_128x64_nn"), 7);
  EXPECT_EQ(ArchitectureOf("ampere_sgemm"), 8);
  EXPECT_EQ(ArchitectureOf("void prism60(float*)"), 0);
  EXPECT_EQ(ArchitectureOf("sm3_kernel"), 0);
  EXPECT_EQ(ArchitectureOf("vectorized_elementwise_kernel<4>"), 0);
}

}  // namespace
}  // namespace daydream
