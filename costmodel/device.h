// GPUs: what they are and what they sustain. Data in costmodel/devices/, one file per GPU.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace daydream {

// Number formats that matter for speed. kTf32 is fp32 data multiplied by tensor cores.
// kInt8Weights: 16 bit times weights in int8, which the kernel makes 16 bit again (AIConfigurator's
// int8_wo).
enum class DType : uint8_t {
  kUnknown,
  kFp64,
  kFp32,
  kTf32,
  kFp16,
  kBf16,
  kFp8,
  kInt8,
  kNvfp4,
  kInt8Weights
};
std::string_view DTypeName(DType dtype);  // "fp16"
// Bytes of one element in memory; 4 for kUnknown. nvfp4: 4 bits, and 8 for the scale of 16 elements
// (NVIDIA, "Introducing NVFP4 for Efficient and Accurate Low-Precision Inference", 2025).
double DTypeBytes(DType dtype);

enum class DeviceMemory : uint8_t { kHbm, kGddrEcc, kGddr };

struct DeviceSpec {
  std::string name;    // "A100-SXM4-40GB"
  std::string vendor;  // "NVIDIA"
  int compute_major = 0, compute_minor = 0;
  int multiprocessors = 0;
  int fp32_cores_per_multiprocessor = 0;
  double base_clock_mhz = 0, boost_clock_mhz = 0;
  double fp32_tflops = 0;                                                    // vector units
  double tf32_tflops = 0, fp16_tflops = 0, bf16_tflops = 0, fp8_tflops = 0;  // dense, 0 = none
  double nvfp4_tflops = 0;
  double fp32_matrix_tflops = 0;  // matrix cores on fp32 data, as AMD's have them
  double memory_gb_per_s = 0;
  DeviceMemory memory = DeviceMemory::kHbm;
  double memory_gb = 0;
  double l2_mb = 0;
  double tdp_watts = 0;
  int threads_per_multiprocessor = 0;
  int registers_per_multiprocessor = 0;
  double shared_memory_kb_per_multiprocessor = 0;
  double nvlink_gb_per_s = 0;  // all links, both directions
  double pcie_gb_per_s = 0;    // one direction
  std::vector<std::string> name_words;
  std::string source;
  std::vector<std::string> unsure;
  double measured_fp32_gemm_tflops = 0;  // 0 = not measured
  double measured_fp32_batched_gemm_tflops = 0;
  double measured_bandwidth_share = 0;
  double measured_tensor_share = 0;
  std::string measured_source;
  std::vector<std::string> measured_residuals;

  // Data-sheet rate of tensor (matrix) cores in TFLOPS; 0 when there are none for `dtype`.
  double TensorPeak(DType dtype) const;
  // Whether they skip the zeros of 2:4 sparse operands: NVIDIA from compute capability 8.0 (PTX
  // ISA, mma.sp), AMD from CDNA3, which runtimes number 9.4 (AMD Matrix Instruction Calculator:
  // sparse instructions are of the MI300; hipSPARSELt documentation).
  bool HasSparseTensorCores() const;
  // The larger of the two kinds of units, by data sheet: no product in `dtype` is faster.
  double Peak(DType dtype) const;
  // TFLOPS that a long matrix product sustains, on tensor cores for all but NVIDIA's fp32. 0 when
  // the device cannot run `dtype` at a rate that is known here.
  double SustainedTflops(DType dtype, bool batched = false) const;
  // The same by rule, whatever was measured: for what is compared between GPUs and is not the
  // product that was measured.
  double RuleTflops(DType dtype) const;
  // The rule for products in fp32 themselves: a library of Pascal reaches less.
  double ProductTflops() const;
  // What convolutions reach in `dtype` of the rate that products do. 1, but on Hopper's tensor
  // cores 0.629, the part of the peak that Ampere's instruction (mma.sync) reaches there on average
  // (Luo et al., arXiv:2402.13499, 2024). That convolutions run on it is assumed: no recording of
  // cuDNN on Hopper is at hand.
  double ConvolutionShare(DType dtype) const;
  // Whether the slot is its only supply (PCI Express Card Electromechanical Specification: 75 W).
  bool SlotPowered() const { return tdp_watts > 0 && tdp_watts <= 75; }
  // As it runs a step, which lasts. Products that are timed one by one start cool and run at boost;
  // a card that its slot feeds falls to what its power allows, so that none is faster than by rule.
  DeviceSpec InSteps() const;
  // Bytes per second that a long copy inside device memory sustains.
  double SustainedBandwidth() const;
};

// All that decides how long work takes on a GPU is the same, whatever the names are.
bool RunAlike(const DeviceSpec& a, const DeviceSpec& b);

// All known GPUs, sorted by name.
std::span<const DeviceSpec> DeviceSpecs();
// By name; letter case, spaces, '-' and '_' do not matter. nullptr when not known.
const DeviceSpec* FindDeviceSpec(std::string_view name);

// True when `word` stands alone in `name`: "A10" is not in "A100-SXM4-40GB".
bool HasWord(std::string_view name, std::string_view word);

struct DeviceMatch {
  const DeviceSpec* spec = nullptr;  // nullptr: no known GPU is close
  bool sure = false;                 // name, multiprocessors and memory all fit
  bool named = false;                // the recorded name is that of this chip
  // For people: "A100-SXM4-40GB, by its name", "A100-SXM4-40GB, by 108 multiprocessors and
  // 40 GB; the name NVIDIA A100-PG509-200 does not say which A100", "no GPU like ... is known".
  std::string how;
};
// The known GPU that is most like the recorded one. Another chip never matches: compute
// capability and number of multiprocessors must fit where they were recorded, and so must words of
// variants, which are other cards ("RTX 3080 Ti", "H100 NVL").
DeviceMatch MatchDevice(const Device& recorded);

}  // namespace daydream
