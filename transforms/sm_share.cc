#include "transforms/sm_share.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace daydream {
namespace {

// CUDA C++ Programming Guide, technical specifications by compute capability: maximum number of
// resident blocks per multiprocessor.
uint32_t MostBlocks(int major, int minor) {
  if (major == 7 && minor == 5) return 16;
  if (major == 8 && (minor == 6 || minor == 7)) return 16;
  if (major == 8 && minor == 9) return 24;
  return 32;
}

uint64_t Product(const std::array<uint32_t, 3>& d) { return uint64_t{d[0]} * d[1] * d[2]; }

int64_t Or(int64_t recorded, int64_t known) { return recorded > 0 ? recorded : known; }

constexpr double kNever = 1e300;

// One pass over time; each event starts or ends something.
class SharedSchedule {
 public:
  SharedSchedule(std::span<const SharedWork> work, Duration latency)
      : work_(work), latency_(static_cast<double>(latency.ns)), times_(work.size()) {
    left_.resize(work.size());
    for (uint32_t i = 0; i < work.size(); ++i) {
      left_[i] = static_cast<double>(work[i].duration.ns);
      if (streams_.size() <= work[i].stream) streams_.resize(work[i].stream + size_t{1});
      streams_[work[i].stream].push_back(i);
    }
    next_.assign(streams_.size(), 0);
    ended_.assign(work.size(), kNever);
    running_.assign(streams_.size(), false);
  }

  std::vector<SharedTime> Run() {
    double now = 0;
    for (size_t done = 0; done < work_.size();) {
      double begins = kNever, share = 0;
      for (size_t s = 0; s < streams_.size(); ++s) {
        if (next_[s] == streams_[s].size()) continue;
        const uint32_t i = streams_[s][next_[s]];
        if (!running_[s]) {
          const double at = Begin(i);
          if (at > now) {
            begins = std::min(begins, at);
            continue;
          }
          running_[s] = true;
          times_[i].start = Duration::FromDouble(now);
        }
        share += work_[i].share;
      }
      const double slower = std::max(share, 1.0);
      double next = begins;
      ForRunning([&](uint32_t i, size_t) { next = std::min(next, now + left_[i] * slower); });
      DD_CHECK(next < kNever);  // needs are earlier numbers, so something can always run
      ForRunning([&](uint32_t i, size_t s) {
        left_[i] -= (next - now) / slower;
        if (left_[i] > 1e-3) return;
        ended_[i] = next;
        times_[i].end = Duration::FromDouble(next);
        running_[s] = false;
        ++next_[s], ++done;
      });
      now = next;
    }
    return times_;
  }

 private:
  template <class F>
  void ForRunning(F f) {
    for (size_t s = 0; s < streams_.size(); ++s) {
      if (running_[s]) f(streams_[s][next_[s]], s);
    }
  }

  double Begin(uint32_t i) const {
    double at = static_cast<double>(work_[i].ready.ns);
    for (uint32_t n : work_[i].needs) {
      if (ended_[n] == kNever) return kNever;
      at = std::max(at, ended_[n] + (work_[n].stream == work_[i].stream ? 0 : latency_));
    }
    return at;
  }

  std::span<const SharedWork> work_;
  double latency_;
  std::vector<SharedTime> times_;
  std::vector<double> left_, ended_;  // ns
  std::vector<std::vector<uint32_t>> streams_;
  std::vector<size_t> next_;  // by stream
  std::vector<bool> running_;
};

}  // namespace

uint32_t BlocksPerMultiprocessor(const KernelDetail& kernel, const Device& device,
                                 const DeviceSpec* spec) {
  const auto threads = static_cast<int64_t>(Product(kernel.block));
  if (threads <= 0) return 0;
  const int64_t warp = Or(device.warp_size, 32);
  const int64_t rounded = (threads + warp - 1) / warp * warp;
  const DeviceSpec none;
  const DeviceSpec& known = spec != nullptr ? *spec : none;
  const int64_t most_threads =
      Or(device.max_threads_per_multiprocessor, known.threads_per_multiprocessor);
  const int64_t registers =
      Or(device.registers_per_multiprocessor, known.registers_per_multiprocessor);
  const int64_t shared = Or(device.shared_memory_per_multiprocessor,
                            static_cast<int64_t>(known.shared_memory_kb_per_multiprocessor * 1024));
  if (most_threads <= 0) return 0;
  int64_t blocks = std::min<int64_t>(MostBlocks(Or(device.compute_major, known.compute_major),
                                                Or(device.compute_minor, known.compute_minor)),
                                     most_threads / rounded);
  if (kernel.registers_per_thread > 0 && registers > 0) {
    blocks = std::min(blocks, registers / (rounded * kernel.registers_per_thread));
  }
  if (kernel.shared_memory_bytes > 0 && shared > 0) {
    blocks = std::min(blocks, shared / kernel.shared_memory_bytes);
  }
  return static_cast<uint32_t>(std::max<int64_t>(blocks, 1));
}

std::optional<double> SmShare(const KernelDetail& kernel, const Device& device,
                              const DeviceSpec* spec) {
  const uint64_t blocks = Product(kernel.grid);
  const int64_t processors =
      Or(device.multiprocessors, spec != nullptr ? spec->multiprocessors : 0);
  const uint32_t each = BlocksPerMultiprocessor(kernel, device, spec);
  if (blocks == 0 || each == 0 || processors <= 0) return std::nullopt;
  return std::min(1.0, static_cast<double>(blocks) /
                           (static_cast<double>(processors) * static_cast<double>(each)));
}

std::vector<SharedTime> ScheduleShared(std::span<const SharedWork> work, Duration latency) {
  if (work.empty()) return {};
  return SharedSchedule(work, latency).Run();
}

}  // namespace daydream
