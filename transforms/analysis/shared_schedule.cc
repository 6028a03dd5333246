#include "transforms/analysis/shared_schedule.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "costmodel/occupancy.h"

namespace daydream {
namespace {

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

std::optional<double> SmShare(const DeviceSpec& device, const KernelDetail& kernel) {
  const LaunchShape launch = LaunchShapeOf(kernel);
  const bool known = launch.blocks > 0 && launch.threads_per_block > 0 &&
                     device.multiprocessors > 0 && device.threads_per_multiprocessor > 0;
  if (!known) return std::nullopt;
  return std::min(1.0, launch.blocks / WaveSize(device, launch));
}

std::vector<SharedTime> ScheduleShared(std::span<const SharedWork> work, Duration latency) {
  if (work.empty()) return {};
  return SharedSchedule(work, latency).Run();
}

}  // namespace daydream
