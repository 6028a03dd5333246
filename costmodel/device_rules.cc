// The rules that fill in what a description of a device leaves out, and the sentences about them.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/median.h"
#include "costmodel/device_fields.h"

namespace daydream {
namespace {

// The middle one of the known GPUs, for what a description leaves out and no other field tells.
template <class Number>
double MedianOf(Number DeviceSpec::*member) {
  std::vector<double> values;
  for (const DeviceSpec& spec : DeviceSpecs()) values.push_back(static_cast<double>(spec.*member));
  return Median(std::move(values));
}

double MedianBaseShare() {
  std::vector<double> shares;
  for (const DeviceSpec& spec : DeviceSpecs()) {
    shares.push_back(spec.base_clock_mhz / spec.boost_clock_mhz);
  }
  return Median(std::move(shares));
}

class Filler {
 public:
  Filler(std::span<const GivenField> fields, const ErrorAt& error, DescribedDevice& device)
      : fields_(fields), error_(error), device_(device), spec_(device.spec) {}

  absl::Status Run() {
    DD_RETURN_IF_ERROR(Require());
    FillArithmetic();
    DD_RETURN_IF_ERROR(CheckArithmetic());
    FillMemory();
    FillProcessor();
    FillLinks();
    TellUnmeasured();
    return absl::OkStatus();
  }

 private:
  const GivenField* Find(std::string_view name) const {
    for (const GivenField& field : fields_) {
      if (field.name == name) return &field;
    }
    return nullptr;
  }
  bool Given(std::string_view name) const { return Find(name) != nullptr; }

  template <class... Args>
  void Assume(fmt::format_string<Args...> f, Args&&... args) {
    device_.assumptions.push_back(fmt::format(f, std::forward<Args>(args)...));
  }
  absl::Status Missing(std::string_view what, std::string_view fix) {
    return error_(1, 1, 1,
                  {.code = "E0804",
                   .what = fmt::format("the description of the device lacks {}", what),
                   .why = "nothing else tells it",
                   .fix = std::string(fix)});
  }

  absl::Status Require() {
    if (spec_.name.empty()) return Missing("name", "add a line like: name: \"my-chip\"");
    if (!Given("multiprocessors")) {
      return Missing("multiprocessors", "add a line like: multiprocessors: 108");
    }
    if (!Given("memory_gb_per_s")) {
      return Missing("memory_gb_per_s", "add a line like: memory_gb_per_s: 1555");
    }
    const bool from_clock = Given("fp32_cores_per_multiprocessor") && Given("boost_clock_mhz");
    if (!Given("fp32_tflops") && !from_clock) {
      return Missing("fp32_tflops",
                     "add a line like: fp32_tflops: 19.5; or fp32_cores_per_multiprocessor and "
                     "boost_clock_mhz");
    }
    return absl::OkStatus();
  }

  // Two operations for each unit and clock.
  double PerClock() const {
    return 2e-6 * spec_.multiprocessors * spec_.fp32_cores_per_multiprocessor;
  }

  void FillArithmetic() {
    if (!Given("fp32_cores_per_multiprocessor")) {
      const double units = Given("boost_clock_mhz") ? spec_.fp32_tflops / spec_.boost_clock_mhz /
                                                          (2e-6 * spec_.multiprocessors)
                                                    : 128;
      spec_.fp32_cores_per_multiprocessor = std::max(1, static_cast<int>(std::lround(units)));
      Assume("fp32_cores_per_multiprocessor = {}: {}", spec_.fp32_cores_per_multiprocessor,
             Given("boost_clock_mhz") ? "from fp32_tflops and the clock" : "as most GPUs");
    }
    if (!Given("boost_clock_mhz")) {
      spec_.boost_clock_mhz = spec_.fp32_tflops / PerClock();
      Assume("boost_clock_mhz = {:.0f}: from fp32_tflops, two operations a unit and clock",
             spec_.boost_clock_mhz);
    }
    if (!Given("fp32_tflops")) {
      spec_.fp32_tflops = PerClock() * spec_.boost_clock_mhz;
      Assume("fp32_tflops = {:.4g}: two operations a unit and clock", spec_.fp32_tflops);
    }
    if (!Given("base_clock_mhz")) {
      const double share = MedianBaseShare();
      spec_.base_clock_mhz = spec_.boost_clock_mhz * share;
      Assume("base_clock_mhz = {:.0f}: {:.2f} of the boost clock, the middle of the known GPUs",
             spec_.base_clock_mhz, share);
    }
    for (const auto& [name, peak] :
         {std::pair{"tf32_tflops", spec_.tf32_tflops}, std::pair{"fp16_tflops", spec_.fp16_tflops},
          std::pair{"bf16_tflops", spec_.bf16_tflops}, std::pair{"fp8_tflops", spec_.fp8_tflops}}) {
      if (peak == 0 && !Given(name)) Assume("{} = 0: taken as not there", name);
    }
  }

  absl::Status CheckArithmetic() {
    if (spec_.base_clock_mhz > spec_.boost_clock_mhz) {
      const GivenField* at = Find("base_clock_mhz");
      return error_(at->line, at->column, at->name.size(),
                    {.code = "E0804", .what = "base_clock_mhz is above boost_clock_mhz"});
    }
    const double ratio = spec_.fp32_tflops / (PerClock() * spec_.boost_clock_mhz);
    if (ratio < 0.9 || ratio > 1.1) {
      Assume(
          "fp32_tflops is {:.2g} times what units and clock give (two operations each): taken as "
          "given",
          ratio);
    }
    return absl::OkStatus();
  }

  void FillMemory() {
    if (!Given("memory_class")) {
      spec_.memory = DeviceMemory::kGddr;
      Assume("memory_class = GDDR: sustains {:.2f} of memory_gb_per_s, as nobody measured",
             spec_.SustainedBandwidth() / (spec_.memory_gb_per_s * 1e9));
    }
    if (!Given("l2_mb")) Assume("l2_mb = 0: nothing is counted as saved by a cache");
    if (!Given("memory_gb")) Assume("memory_gb is not known: what fits is not checked");
    if (!Given("tdp_watts")) {
      Assume("tdp_watts is not known: fp32 is taken to run at the base clock");
    }
  }

  void FillProcessor() {
    if (spec_.vendor.empty()) {
      spec_.vendor = "unknown";
      Assume("vendor is not known: the library is taken to have every size of tile");
    } else if (spec_.vendor != "NVIDIA") {
      Assume("vendor {}: sizes of tiles are those of NVIDIA's library", spec_.vendor);
    } else if (!Given("compute_major")) {
      Assume("compute_major is not known: the library is taken to have every size of tile");
    }
    auto fill = [&](std::string_view name, auto DeviceSpec::*member) {
      if (Given(name)) return;
      spec_.*member =
          static_cast<std::remove_reference_t<decltype(spec_.*member)>>(MedianOf(member));
      Assume("{} = {}: the middle of the known GPUs", name, spec_.*member);
    };
    fill("threads_per_multiprocessor", &DeviceSpec::threads_per_multiprocessor);
    fill("registers_per_multiprocessor", &DeviceSpec::registers_per_multiprocessor);
    fill("shared_memory_kb_per_multiprocessor", &DeviceSpec::shared_memory_kb_per_multiprocessor);
  }

  void FillLinks() {
    if (!Given("pcie_gb_per_s")) {
      spec_.pcie_gb_per_s = MedianOf(&DeviceSpec::pcie_gb_per_s);
      Assume("pcie_gb_per_s = {}: the middle of the known GPUs", spec_.pcie_gb_per_s);
    }
    if (!Given("nvlink_gb_per_s")) Assume("nvlink_gb_per_s = 0: GPUs talk over PCIe");
  }

  void TellUnmeasured() {
    if (spec_.measured_fp32_gemm_tflops == 0) {
      Assume("products in fp32 sustain {:.4g} TFLOPS: a rule, not measured",
             spec_.SustainedTflops(DType::kFp32));
    }
    if (spec_.measured_tensor_share == 0 && spec_.fp16_tflops > 0) {
      Assume("products in fp16 sustain {:.4g} TFLOPS: a rule, not measured",
             spec_.SustainedTflops(DType::kFp16));
    }
    if (spec_.measured_bandwidth_share == 0) {
      Assume("memory sustains {:.4g} GB/s: a rule, not measured",
             spec_.SustainedBandwidth() * 1e-9);
    }
    for (const std::string& unsure : spec_.unsure) Assume("marked as unsure: {}", unsure);
  }

  std::span<const GivenField> fields_;
  const ErrorAt& error_;
  DescribedDevice& device_;
  DeviceSpec& spec_;
};

}  // namespace

absl::StatusOr<DescribedDevice> DescribeDevice(std::span<const GivenField> fields,
                                               const ErrorAt& error) {
  DescribedDevice device;
  DD_ASSIGN_OR_RETURN(device.spec, SpecOfFields(fields, error));
  DD_RETURN_IF_ERROR(Filler(fields, error, device).Run());
  return device;
}

}  // namespace daydream
