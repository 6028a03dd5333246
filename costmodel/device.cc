#include "costmodel/device.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/format.h>
#include <tuple>

#include "base/check.h"
#include "costmodel/device_fields.h"
#include "costmodel/device_texts.h"

namespace daydream {
namespace {

// What a GPU sustains, as a share of its data sheet. Fitted to the training half of the kernel
// timings published with NeuSight (P4, P100, V100, T4, A100-40GB; fp32), then checked on others.
// fp32 products run at the clock that base clock and power allow, not at boost.
constexpr double kFp32Share = 0.97;  // of the rate at that clock; from V100
// Pascal's library reaches less in products: P4 4.81 of 5.7 TFLOPS. P100 had no part in it.
constexpr double kFp32SharePascal = 0.843;
constexpr double kWattsPerTflop = 16.5;     // fp32; from T4 and P4, which power limits
constexpr double kTensorShare = 0.60;       // of the dense tensor peak; H100 fp16 products agree
constexpr double kHbmShare = 0.887605;      // from A100
constexpr double kGddrEccShare = 0.747119;  // from T4 and P4
// NVIDIA, "Tesla V100 GPU Architecture" (WP-08608-001, 2017): 1.5 times the memory bandwidth that a
// P100 delivers. V100 delivers 0.930 of 900 GB/s in the same data, P100 promises 732.
constexpr double kHbmSharePascal = 0.930222 * 900 / 1.5 / 732;
constexpr double kGddrShare = 0.87;  // no data: HBM's figure
// AMD, whose matrix cores multiply fp32, too: fitted to two thirds of the products and to the
// elementwise operations of MI100 and MI210 in the same data (costmodel/fit/amd.py).
constexpr double kFp32MatrixShare = 0.648;    // of the peak of the matrix cores
constexpr double kFp32MatrixBatched = 0.815;  // of that, where many products are one call
constexpr double kAmdHbmShare = 0.813;

std::vector<DeviceSpec> ParseAll() {
  std::vector<DeviceSpec> specs;
  for (const DeviceText& device : DeviceTexts()) {
    // The texts are part of the program; a test parses each of them.
    auto fields = FieldsOfTextproto(device.text, PlainError);
    DD_CHECK(fields.ok());
    auto spec = SpecOfFields(*fields, PlainError);
    DD_CHECK(spec.ok());
    specs.push_back(*std::move(spec));
  }
  std::sort(specs.begin(), specs.end(),
            [](const DeviceSpec& a, const DeviceSpec& b) { return a.name < b.name; });
  return specs;
}

bool IsPascal(const DeviceSpec& device) {
  return device.vendor == "NVIDIA" && device.compute_major == 6;
}

bool IsWordChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// Letters and digits only, in lower case.
std::string Folded(std::string_view name) {
  std::string folded = Lower(name);
  std::erase_if(folded, [](char c) { return !IsWordChar(c); });
  return folded;
}

double RecordedGib(const Device& recorded) {
  return static_cast<double>(recorded.memory_bytes) / (1 << 30);
}

// The runtime reports less than is sold: up to 9 % where error correction takes its part. Variants
// of a chip differ by more.
bool MemoryFits(const Device& recorded, const DeviceSpec& spec) {
  return recorded.memory_bytes > 0 && std::abs(RecordedGib(recorded) / spec.memory_gb - 1) < 0.1;
}

bool IsSameChip(const Device& recorded, const DeviceSpec& spec) {
  const bool has_capability = recorded.compute_major != 0 || recorded.compute_minor != 0;
  if (has_capability && (recorded.compute_major != spec.compute_major ||
                         recorded.compute_minor != spec.compute_minor)) {
    return false;
  }
  // AMD's data-centre GPUs run 64 threads together, NVIDIA's 32.
  if (recorded.warp_size != 0 && (recorded.warp_size == 64) != (spec.vendor == "AMD")) {
    return false;
  }
  return recorded.multiprocessors == 0 || recorded.multiprocessors == spec.multiprocessors;
}

// Names that differ in one of these are of different cards.
constexpr std::string_view kVariants[] = {"Ti",     "SUPER", "NVL", "Laptop",
                                          "Mobile", "Max-Q", "Ada", "D"};

// Whether `name` is of this chip, and of this variant of it.
bool Names(std::string_view name, const DeviceSpec& spec) {
  if (!HasWord(name, spec.name_words.front())) return false;
  return std::ranges::all_of(kVariants, [&](std::string_view variant) {
    return HasWord(name, variant) == (std::ranges::count(spec.name_words, variant) > 0);
  });
}

struct Candidate {
  const DeviceSpec* spec = nullptr;
  size_t words = 0;  // words of its name that the recorded name holds
  bool memory = false, named = false;
  int Score() const { return static_cast<int>(2 * words) + (memory ? 3 : 0); }
};

std::string Describe(const Device& recorded, const Candidate& best, bool sure) {
  if (sure) return fmt::format("{}, by its name", best.spec->name);
  std::string how = fmt::format("{}, by {} multiprocessors and {:.0f} GB", best.spec->name,
                                recorded.multiprocessors,
                                best.memory ? best.spec->memory_gb : RecordedGib(recorded));
  if (recorded.multiprocessors == 0) {
    how = fmt::format("{}, by its name only: multiprocessors were not recorded", best.spec->name);
  } else if (recorded.name.empty()) {
    how += "; no name was recorded";
  } else if (!best.named) {
    how += fmt::format("; no GPU of the name {} is known", recorded.name);
  } else if (!best.memory) {
    how += fmt::format("; one with {:.0f} GB is the nearest that is known", best.spec->memory_gb);
  } else {
    how += fmt::format("; the name {} does not say more", recorded.name);
  }
  return how;
}

}  // namespace

bool HasWord(std::string_view name, std::string_view word) {
  const std::string in = Lower(name), what = Lower(word);
  for (size_t at = in.find(what); at != std::string::npos; at = in.find(what, at + 1)) {
    const size_t end = at + what.size();
    if ((at == 0 || !IsWordChar(in[at - 1])) && (end == in.size() || !IsWordChar(in[end]))) {
      return true;
    }
  }
  return false;
}

std::string_view DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kUnknown:
      return "unknown";
    case DType::kFp64:
      return "fp64";
    case DType::kFp32:
      return "fp32";
    case DType::kTf32:
      return "tf32";
    case DType::kFp16:
      return "fp16";
    case DType::kBf16:
      return "bf16";
    case DType::kFp8:
      return "fp8";
    case DType::kInt8:
      return "int8";
    case DType::kNvfp4:
      return "nvfp4";
    case DType::kInt8Weights:
      return "int8_wo";
  }
  return "unknown";
}

double DTypeBytes(DType dtype) {
  switch (dtype) {
    case DType::kFp64:
      return 8;
    case DType::kFp16:
    case DType::kBf16:
      return 2;
    case DType::kFp8:
    case DType::kInt8:
      return 1;
    case DType::kNvfp4:
      return 0.5 + 1.0 / 16;
    case DType::kInt8Weights:  // of B; A and C are in 16 bit
      return 1;
    case DType::kUnknown:
    case DType::kFp32:
    case DType::kTf32:
      return 4;
  }
  return 4;
}

double DeviceSpec::TensorPeak(DType dtype) const {
  switch (dtype) {
    case DType::kTf32:
      return tf32_tflops;
    case DType::kFp16:
      return fp16_tflops;
    case DType::kBf16:
    case DType::kInt8Weights:
      return bf16_tflops;
    case DType::kFp8:
      return fp8_tflops;
    case DType::kNvfp4:
      return nvfp4_tflops;
    case DType::kFp32:
    case DType::kUnknown:
      return fp32_matrix_tflops;
    default:
      return 0;
  }
}

double DeviceSpec::Peak(DType dtype) const { return std::max(TensorPeak(dtype), fp32_tflops); }

double DeviceSpec::RuleTflops(DType dtype) const {
  if (dtype != DType::kFp32 && dtype != DType::kUnknown) return kTensorShare * TensorPeak(dtype);
  if (fp32_matrix_tflops > 0) return kFp32MatrixShare * fp32_matrix_tflops;
  const double at_base_clock = fp32_tflops * base_clock_mhz / boost_clock_mhz;
  const double at_power_limit = tdp_watts / kWattsPerTflop;
  return kFp32Share * std::min(fp32_tflops, std::max(at_base_clock, at_power_limit));
}

double DeviceSpec::ProductTflops() const {
  return RuleTflops(DType::kFp32) * (IsPascal(*this) ? kFp32SharePascal / kFp32Share : 1);
}

DeviceSpec DeviceSpec::InSteps() const {
  DeviceSpec spec = *this;
  if (!SlotPowered()) return spec;
  const double most = ProductTflops();
  for (double* rate : {&spec.measured_fp32_gemm_tflops, &spec.measured_fp32_batched_gemm_tflops}) {
    if (*rate > 0) *rate = std::min(*rate, most);
  }
  return spec;
}

double DeviceSpec::ConvolutionShare(DType dtype) const {
  constexpr double kMmaOnHopper = 0.629;
  const bool hopper = vendor == "NVIDIA" && compute_major == 9;
  return hopper && TensorPeak(dtype) > 0 ? kMmaOnHopper : 1;
}

bool DeviceSpec::HasSparseTensorCores() const {
  if (vendor == "AMD") return compute_major == 9 && compute_minor >= 4;
  return vendor == "NVIDIA" && compute_major >= 8;
}

double DeviceSpec::SustainedTflops(DType dtype, bool batched) const {
  if (dtype != DType::kFp32 && dtype != DType::kUnknown) {
    return measured_tensor_share > 0 ? measured_tensor_share * TensorPeak(dtype)
                                     : RuleTflops(dtype);
  }
  const double measured = batched ? measured_fp32_batched_gemm_tflops : measured_fp32_gemm_tflops;
  if (measured > 0) return measured;
  const bool many = batched && fp32_matrix_tflops > 0;
  return ProductTflops() * (many ? kFp32MatrixBatched : 1);
}

double DeviceSpec::SustainedBandwidth() const {
  double share = measured_bandwidth_share;
  if (share <= 0) {
    switch (memory) {
      case DeviceMemory::kHbm:
        share = vendor == "AMD" ? kAmdHbmShare : IsPascal(*this) ? kHbmSharePascal : kHbmShare;
        break;
      case DeviceMemory::kGddrEcc:
        share = kGddrEccShare;
        break;
      case DeviceMemory::kGddr:
        share = kGddrShare;
        break;
    }
  }
  return memory_gb_per_s * 1e9 * share;
}

std::span<const DeviceSpec> DeviceSpecs() {
  static const auto* const specs = new std::vector<DeviceSpec>(ParseAll());
  return *specs;
}

const DeviceSpec* FindDeviceSpec(std::string_view name) {
  const std::string folded = Folded(name);
  for (const DeviceSpec& spec : DeviceSpecs()) {
    if (Folded(spec.name) == folded) return &spec;
  }
  return nullptr;
}

bool RunAlike(const DeviceSpec& a, const DeviceSpec& b) {
  const auto facts = [](const DeviceSpec& d) {
    return std::tie(d.vendor, d.compute_major, d.compute_minor, d.multiprocessors,
                    d.fp32_cores_per_multiprocessor, d.base_clock_mhz, d.boost_clock_mhz,
                    d.fp32_tflops, d.tf32_tflops, d.fp16_tflops, d.bf16_tflops, d.fp8_tflops,
                    d.nvfp4_tflops, d.fp32_matrix_tflops, d.memory_gb_per_s, d.memory, d.l2_mb,
                    d.tdp_watts, d.threads_per_multiprocessor, d.registers_per_multiprocessor,
                    d.shared_memory_kb_per_multiprocessor, d.measured_fp32_gemm_tflops,
                    d.measured_fp32_batched_gemm_tflops, d.measured_bandwidth_share,
                    d.measured_tensor_share);
  };
  return facts(a) == facts(b);
}

DeviceMatch MatchDevice(const Device& recorded) {
  Candidate best;
  for (const DeviceSpec& spec : DeviceSpecs()) {
    if (!IsSameChip(recorded, spec)) continue;
    Candidate candidate{
        .spec = &spec, .memory = MemoryFits(recorded, spec), .named = Names(recorded.name, spec)};
    for (const std::string& word : spec.name_words) {
      candidate.words += candidate.named && HasWord(recorded.name, word) ? 1 : 0;
    }
    // Without numbers the name has to say it.
    if (recorded.multiprocessors == 0 && !candidate.named) continue;
    // Of equals, the one with more power: names that say nothing are those of server modules.
    if (!best.spec || candidate.Score() > best.Score() ||
        (candidate.Score() == best.Score() && spec.tdp_watts > best.spec->tdp_watts)) {
      best = candidate;
    }
  }
  if (!best.spec) {
    const std::string name = recorded.name.empty() ? "without a name" : recorded.name;
    return {.how = fmt::format("no GPU like this one is known: {}, {} multiprocessors", name,
                               recorded.multiprocessors)};
  }
  const bool sure =
      best.memory && best.words == best.spec->name_words.size() && recorded.multiprocessors > 0;
  return {
      .spec = best.spec, .sure = sure, .named = best.named, .how = Describe(recorded, best, sure)};
}

}  // namespace daydream
