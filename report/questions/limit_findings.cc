#include "report/questions/limit_findings.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "report/text/format.h"
#include "transforms/analysis/roofline_times.h"

namespace daydream {
namespace {

// Chosen: single kernels may reach their limit, as where a clock is above the data sheet's.
constexpr double kTooMuchAtLimit = 0.20;
// Chosen: some files round to microseconds, and a card may be another variant of the one named.
constexpr Duration kRounding = Duration::Us(1);
constexpr double kFasterThanLink = 1.25;
// V100s of POWER9 hosts are joined to these by half of their links.
constexpr double kNvlinkToHost = 0.5;
// Their memory is the host's, too: nothing crosses a link.
constexpr std::string_view kSharedMemory[] = {"Jetson-AGX-Orin-64GB", "MI300A"};

bool OnHost(Memory m) { return m == Memory::kPageable || m == Memory::kPinned; }

// What joins the host with the GPU, in GB/s; 0: not known.
double ToHost(const DeviceSpec& device) {
  for (std::string_view name : kSharedMemory) {
    if (device.name == name) return device.memory_gb_per_s;
  }
  const bool volta = device.compute_major == 7 && device.compute_minor == 0;
  const double nvlink = volta ? device.nvlink_gb_per_s / 2 * kNvlinkToHost : 0;
  return device.pcie_gb_per_s > 0 ? std::max(device.pcie_gb_per_s, nvlink) : 0;
}

// The bytes a second that this copy cannot reach; 0: not known.
double FastestCopy(const CopyDetail& copy, const DeviceSpec& device) {
  if (copy.from == Memory::kDevice && copy.to == Memory::kDevice) {
    const bool cached = static_cast<double>(copy.bytes) <= 2e6 * device.l2_mb;
    return cached ? 0 : 1e9 * device.memory_gb_per_s;
  }
  const bool crosses = copy.from == Memory::kDevice
                           ? OnHost(copy.to)
                           : OnHost(copy.from) && copy.to == Memory::kDevice;
  return crosses ? 1e9 * ToHost(device) : 0;
}

void FindFastCopies(const Graph& graph, std::vector<Finding>& out) {
  KnownDevices devices(graph);
  Duration all, fast;
  size_t copies = 0;
  double most = 0, limit = 0;
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& t = graph.tasks()[i];
    if (t.removed || t.kind != TaskKind::kMemcpy || t.duration <= Duration{}) continue;
    all += t.duration;
    const CopyDetail* copy = graph.Copy(TaskId(i));
    const DeviceSpec* device = devices.Of(TaskId(i));
    if (copy == nullptr || device == nullptr) continue;
    const double fastest = FastestCopy(*copy, *device);
    const double rate = static_cast<double>(copy->bytes) / (t.duration + kRounding).seconds();
    if (fastest == 0 || rate <= kFasterThanLink * fastest) continue;
    fast += t.duration;
    ++copies;
    if (rate > most) most = rate, limit = fastest;
  }
  const double share = all.ns > 0 ? fast.seconds() / all.seconds() : 0;
  if (share < kTooMuchAtLimit) return;
  out.push_back(
      {.kind = FindingKind::kTooFast,
       .about = About::kPredictions,
       .text = fmt::format(
           "copies that take {} of the time of all ({}) move more bytes than the GPU can: "
           "up to {:.0f} GB/s where its link or memory reaches {:.0f}",
           FormatPercent(share, 0), FormatCount(copies), most / 1e9, limit / 1e9),
       .where = {},
       .time = {},
       .share = share,
       .fix = "sizes or times of copies are not those of this run: use the file as recorded"});
}

}  // namespace

std::vector<Finding> FindingsOfLimits(const Graph& graph) {
  RooflineTimes limits(graph);
  Duration all, at_limit;
  size_t kernels = 0;
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& t = graph.tasks()[i];
    if (t.removed || t.kind != TaskKind::kKernel || t.duration <= Duration{}) continue;
    all += t.duration;
    const auto least = limits.Of(TaskId(i));
    if (!least.has_value() || *least < t.duration) continue;
    at_limit += t.duration;
    ++kernels;
  }
  const double share = all.ns > 0 ? at_limit.seconds() / all.seconds() : 0;
  std::vector<Finding> out;
  FindFastCopies(graph, out);
  if (share < kTooMuchAtLimit) return out;
  out.push_back(
      {.kind = FindingKind::kTooFast,
       .about = About::kPredictions,
       .text = fmt::format("{} kernels, {} of the GPU time, take less than the data sheet of "
                           "the GPU allows for their shapes: shapes or times are not of this "
                           "run",
                           FormatCount(kernels), FormatPercent(share, 0)),
       .where = {},
       .time = {},
       .share = share,
       .fix = "use the execution trace of the same run with --shapes; times have to be in the "
              "unit of their format"});
  return out;
}

}  // namespace daydream
