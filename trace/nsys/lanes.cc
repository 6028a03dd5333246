#include "trace/nsys/lanes.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace daydream {
namespace {

constexpr int64_t kIdMask = 0xffffff;

int64_t ProcessBits(int64_t global) {
  return static_cast<int64_t>(static_cast<uint64_t>(global) >> 24);
}

}  // namespace

uint32_t NsysLanes::Process(int64_t global) {
  const int64_t bits = ProcessBits(global);
  if (bits == last_process_) return last_place_;
  const auto [it, fresh] = places_.try_emplace(bits, static_cast<uint32_t>(processes_.size()));
  if (fresh) processes_.push_back({.global = bits});
  last_process_ = bits;
  last_place_ = it->second;
  return last_place_;
}

LaneId NsysLanes::Thread(int64_t global) {
  if (global == last_thread_ && last_thread_lane_.valid()) return last_thread_lane_;
  const uint32_t process = Process(global);
  auto [it, fresh] = threads_.try_emplace(global, LaneId());
  if (fresh) {
    const int64_t thread = global & kIdMask;
    it->second = builder_.AddLane(LaneKind::kThread, ProcessBits(global), thread, -1,
                                  static_cast<int32_t>(process));
    builder_.NameLane(it->second, fmt::format("thread {}", thread));
    lanes_.resize(builder_.lanes());
    lanes_[it->second.index()] = {process, -1};
  }
  last_thread_ = global;
  last_thread_lane_ = it->second;
  return last_thread_lane_;
}

LaneId NsysLanes::Stream(const NsysStream& s) {
  if (s == last_stream_ && last_stream_lane_.valid()) return last_stream_lane_;
  const uint32_t process = Process(s.process);
  ProcessState& state = processes_[process];
  if (s.device >= 0 && (state.lowest_device < 0 || s.device < state.lowest_device)) {
    state.lowest_device = s.device;
  }
  device_of_context_.try_emplace({process, s.context}, s.device);
  auto [it, fresh] = streams_.try_emplace({process, s.device, s.stream, s.context}, LaneId());
  if (fresh) {
    auto same = streams_.lower_bound({process, s.device, s.stream, INT64_MIN});
    bool taken = false;
    for (; same != streams_.end(); ++same) {
      const auto& [p, device, stream, context] = same->first;
      if (p != process || device != s.device || stream != s.stream) break;
      taken |= same->second.valid();
    }
    const auto device = static_cast<int32_t>(std::clamp<int64_t>(s.device, -1, INT32_MAX));
    it->second = builder_.AddLane(LaneKind::kStream, taken ? s.context : 0, s.stream, device,
                                  static_cast<int32_t>(process));
    builder_.NameLane(it->second, taken
                                      ? fmt::format("stream {} of context {}", s.stream, s.context)
                                      : fmt::format("stream {}", s.stream));
    lanes_.resize(builder_.lanes());
    lanes_[it->second.index()] = {process, s.context};
  }
  last_stream_ = s;
  last_stream_lane_ = it->second;
  return last_stream_lane_;
}

int64_t NsysLanes::DeviceOf(uint32_t process, int64_t context, int64_t fallback) const {
  const auto it = device_of_context_.find({process, context});
  return it == device_of_context_.end() ? fallback : it->second;
}

// 31 processes count their calls in 27 bits each; what does not fit gets numbers of its own.
uint32_t NsysLanes::Correlation(uint32_t process, int64_t id) {
  constexpr uint32_t kBits = 27, kOdd = 31;
  if (id == 0) return 0;
  if (process < kOdd && id > 0 && id < int64_t{1} << kBits) {
    return process << kBits | static_cast<uint32_t>(id);
  }
  if (odd_correlations_.size() + 1 >= size_t{1} << kBits) return 0;
  const auto next = kOdd << kBits | static_cast<uint32_t>(odd_correlations_.size() + 1);
  return odd_correlations_.try_emplace({process, id}, next).first->second;
}

void NsysLanes::NameThread(int64_t global, std::string_view name) {
  const auto it = threads_.find(global);
  if (it != threads_.end() && !name.empty()) builder_.NameLane(it->second, name);
}

void NsysLanes::SetStreamType(int64_t process_id, int64_t context, int64_t stream,
                              StreamType type) {
  if (by_info_.empty()) {
    for (const auto& [key, lane] : streams_) {
      const auto& [process, device, number, of_context] = key;
      by_info_[{processes_[process].global & kIdMask, of_context, number}].push_back(lane);
    }
  }
  const auto it = by_info_.find({process_id, context, stream});
  if (it == by_info_.end()) return;
  for (LaneId lane : it->second) builder_.SetStreamType(lane, type);
}

std::vector<int32_t> NsysLanes::RanksOfProcesses() {
  std::vector<uint32_t> order;
  for (uint32_t p = 0; p < processes_.size(); ++p) {
    if (processes_[p].lowest_device >= 0) order.push_back(p);
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(processes_[a].lowest_device, processes_[a].global) <
           std::pair(processes_[b].lowest_device, processes_[b].global);
  });
  std::vector<int32_t> ranks(processes_.size(), 0);
  for (size_t r = 0; r < order.size(); ++r) ranks[order[r]] = static_cast<int32_t>(r);
  if (order.size() > 1) {
    for (size_t r = 0; r < order.size(); ++r) builder_.AddRank(static_cast<int32_t>(r), -1);
    builder_.Count("processes whose rank is assumed",
                   "the file does not say: they are ordered by GPU, then by process", false,
                   order.size(), -1, false);
    builder_.Count("processes without GPU work", "their threads are shown with the first rank",
                   false, processes_.size() - order.size(), -1, false);
  }
  return ranks;
}

std::vector<NsysLanes::DeviceUse> NsysLanes::FinishLanes() {
  const std::vector<int32_t> ranks = RanksOfProcesses();
  std::set<int64_t> machines;
  for (const ProcessState& p : processes_) machines.insert(p.global >> 24);
  std::map<std::tuple<int32_t, uint32_t, int32_t>, int32_t> devices;  // rank, process, own number
  for (size_t l = 0; l < lanes_.size(); ++l) {
    const Lane& lane = builder_.lane(LaneId(l));
    if (lane.kind == LaneKind::kStream && lane.device >= 0) {
      const uint32_t process = lanes_[l].process;
      devices[{ranks[process], process, lane.device}] = lane.device;
    }
  }
  std::set<int32_t> taken;
  std::vector<DeviceUse> used;
  for (auto& [key, device] : devices) {
    while (!taken.insert(device).second) ++device;
    used.emplace_back(processes_[std::get<1>(key)].global & kIdMask, std::get<2>(key), device);
  }
  for (size_t l = 0; l < lanes_.size(); ++l) {
    Lane lane = builder_.lane(LaneId(l));
    lane.rank = ranks[lanes_[l].process];
    if (lane.kind == LaneKind::kThread && machines.size() == 1) lane.process &= kIdMask;
    if (lane.kind == LaneKind::kStream && lane.device >= 0) {
      lane.device = devices[{lane.rank, lanes_[l].process, lane.device}];
    }
    builder_.SetLane(LaneId(l), lane);
  }
  return used;
}

}  // namespace daydream
