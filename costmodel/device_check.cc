#include "costmodel/device_check.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

namespace daydream {
namespace {

// Chosen: error correction takes up to 9 % of what is sold, units 7 %.
constexpr double kMemoryOff = 0.18;
// Chosen: the 80 GB of an A100 are 5 % faster on SXM than on PCIe, and data sheets round by up to
// 2.4 % (H200: 4.8 TB/s, by its clock 4.92).
constexpr double kVariantOff = 0.04;
// A name that says how much memory the host has.
constexpr std::string_view kHostMemoryInName = "GH200";

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool IsLetter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

// 40 of "A100-SXM4-40GB"; 0: the name says nothing.
double GigabytesInName(std::string_view name) {
  const size_t unit = name.find("GB");
  size_t begin = unit;
  if (unit == std::string_view::npos) return 0;
  while (begin > 0 && IsDigit(name[begin - 1])) --begin;
  if (begin == unit || unit - begin > 4 || (begin > 0 && IsLetter(name[begin - 1]))) return 0;
  return std::atof(std::string(name.substr(begin, unit - begin)).c_str());
}

// A chip of this name has another compute capability, in all its variants.
std::string OfName(const Device& d) {
  if (d.compute_major == 0) return "";
  const DeviceSpec* other = nullptr;
  for (const DeviceSpec& spec : DeviceSpecs()) {
    if (!HasWord(d.name, spec.name_words.front())) continue;
    if (spec.compute_major == d.compute_major && spec.compute_minor == d.compute_minor) return "";
    other = &spec;
  }
  if (other == nullptr) return "";
  return fmt::format("its name says {}, which has compute capability {}.{}, not {}.{}",
                     other->name_words.front(), other->compute_major, other->compute_minor,
                     d.compute_major, d.compute_minor);
}

std::string OfMemory(const Device& d) {
  const double said = GigabytesInName(d.name);
  if (said == 0 || d.memory_bytes == 0 || HasWord(d.name, kHostMemoryInName)) return "";
  const double has = static_cast<double>(d.memory_bytes) * 1e-9;
  if (has > said * (1 - kMemoryOff) && has < said * (1 + kMemoryOff)) return "";
  return fmt::format("its name says {:.0f} GB, its memory is {:.1f} GB", said, has);
}

// What one multiprocessor holds is the same in every variant of a chip.
std::string OfMultiprocessor(const Device& d) {
  const DeviceSpec* spec = MatchDevice(d).spec;
  if (spec == nullptr || spec->vendor != "NVIDIA") return "";
  if (!HasWord(d.name, spec->name_words.front())) return "";
  const auto differs = [](double recorded, double known) {
    return recorded > 0 && known > 0 && std::abs(recorded - known) > 0.01 * known;
  };
  if (differs(d.max_threads_per_multiprocessor, spec->threads_per_multiprocessor)) {
    return fmt::format("{} holds {} threads on a multiprocessor, this GPU {}", spec->name,
                       spec->threads_per_multiprocessor, d.max_threads_per_multiprocessor);
  }
  const double shared = static_cast<double>(d.shared_memory_per_multiprocessor) / 1024;
  if (differs(shared, spec->shared_memory_kb_per_multiprocessor)) {
    return fmt::format("{} has {:.0f} kB of shared memory on a multiprocessor, this GPU {:.0f}",
                       spec->name, spec->shared_memory_kb_per_multiprocessor, shared);
  }
  return "";
}

// Variants of a chip have other memory or clocks.
std::string OfVariant(const Device& d) {
  const DeviceMatch match = MatchDevice(d);
  // Clocks of other memory are set by who sells or owns the card.
  if (!match.sure || match.spec->memory != DeviceMemory::kHbm) return "";
  const auto known = [&](std::string_view field) {
    return std::ranges::none_of(match.spec->unsure,
                                [&](const std::string& u) { return u.starts_with(field); });
  };
  const double bandwidth = static_cast<double>(d.memory_bandwidth_kbps) * 1e-6;
  if (bandwidth > 0 && known("memory_gb_per_s") &&
      std::abs(bandwidth / match.spec->memory_gb_per_s - 1) > kVariantOff) {
    return fmt::format("{} has {:.0f} GB/s of memory, this GPU {:.0f}", match.spec->name,
                       match.spec->memory_gb_per_s, bandwidth);
  }
  const double clock = static_cast<double>(d.clock_khz) * 1e-3;
  if (known("boost_clock_mhz") && clock > match.spec->boost_clock_mhz * (1 + kVariantOff)) {
    return fmt::format("{} has a clock of up to {:.0f} MHz, this GPU {:.0f}", match.spec->name,
                       match.spec->boost_clock_mhz, clock);
  }
  return "";
}

// Behind `word`, which begins a name or a part of it: the number that follows, or 0.
int NumberBehind(std::string_view name, std::string_view word) {
  for (size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
    if (at > 0 && IsLetter(name[at - 1])) continue;
    size_t end = at + word.size();
    int number = 0;
    for (; end < name.size() && IsDigit(name[end]) && number < 1000; ++end) {
      number = 10 * number + (name[end] - '0');
    }
    // Compute capabilities from Maxwell to Blackwell.
    if (number >= 50 && number <= 121) return number;
  }
  return 0;
}

}  // namespace

std::string ContradictionIn(const Device& recorded) {
  if (HasWord(recorded.name, "MIG")) return "";
  for (const auto check : {OfName, OfMemory, OfMultiprocessor, OfVariant}) {
    if (std::string found = check(recorded); !found.empty()) return found;
  }
  return "";
}

int ArchitectureOf(std::string_view kernel) {
  for (std::string_view word : {"sm", "sm_", "Sm", "cutlass_"}) {
    if (const int number = NumberBehind(kernel, word); number > 0) return number / 10;
  }
  // Names of cuBLAS and cuDNN begin with that of the architecture.
  constexpr std::pair<std::string_view, int> kNames[] = {
      {"maxwell_", 5}, {"pascal_", 6}, {"volta_", 7},     {"turing_", 7},
      {"ampere_", 8},  {"hopper_", 9}, {"blackwell_", 10}};
  for (const auto& [name, major] : kNames) {
    if (kernel.starts_with(name)) return major;
  }
  return 0;
}

}  // namespace daydream
