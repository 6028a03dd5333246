#include "trace/rocprof/rows.h"

#include <algorithm>

#include "trace/demangle.h"
#include "trace/json/text.h"

namespace daydream {
namespace {

constexpr int64_t kMaxNs = int64_t{1} << 61;

uint32_t Narrow(int64_t value) {
  return static_cast<uint32_t>(std::clamp<int64_t>(value, 0, UINT32_MAX));
}

std::string KernelName(std::string_view symbol) {
  if (symbol.ends_with(".kd")) symbol.remove_suffix(3);
  constexpr size_t kAnyLength = size_t{1} << 20;
  std::string clean;
  CleanText(Demangle(symbol, kAnyLength), false, &clean);
  return clean.empty() ? "unnamed kernel" : clean;
}

// As the PyTorch profiler writes it on AMD GPUs.
struct Direction {
  std::string_view word, name;
};
constexpr Direction kDirections[] = {
    {"HOST_TO_DEVICE", "Memcpy HtoD (Host -> Device)"},
    {"DEVICE_TO_HOST", "Memcpy DtoH (Device -> Host)"},
    {"DEVICE_TO_DEVICE", "Memcpy DtoD (Device -> Device)"},
    {"HOST_TO_HOST", "Memcpy HtoH (Host -> Host)"},
};

std::string_view CopyName(std::string_view direction) {
  for (const Direction& d : kDirections) {
    if (direction.ends_with(d.word)) return d.name;
  }
  return "Memcpy";
}

}  // namespace

void RocprofRows::AddAgent(int64_t id, bool gpu, std::string_view name) {
  if (!gpu || !devices_.try_emplace(id, static_cast<int32_t>(devices_.size())).second) return;
  std::string clean;
  CleanText(name, false, &clean);
  gpus_[id] = clean;
}

int32_t RocprofRows::DeviceOf(int64_t agent) const {
  const auto it = devices_.find(agent);
  return it == devices_.end() ? -1 : it->second;
}

bool RocprofRows::Times(const RocprofSpan& span, TraceBuilder::Event& event) {
  ++inputs_;
  const bool good = span.start >= 0 && span.end >= span.start && span.end <= kMaxNs;
  if (good) {
    event.start = Instant{span.start};
    event.duration = Duration{span.end - span.start};
  } else {
    ++damaged_;
    builder_.Count("records without a usable time", "start or end is missing or reversed", true);
  }
  return good;
}

void RocprofRows::Add(const TraceBuilder::Event& event, const RocprofSpan& span) {
  const bool gpu = IsGpuWork(event.kind);
  if (gpu) used_.insert(span.agent);
  const auto key = gpu ? LaneKey(true, DeviceOf(span.agent), span.stream)
                       : LaneKey(false, span.process, span.thread);
  OneLane& lane = lanes_[key];
  lane.first = std::min(lane.first, event.start);
  const bool fits = span.correlation > 0 && span.correlation < int64_t{UINT32_MAX};
  lane.rows.Add({.start = event.start,
                 .duration = event.duration,
                 .name = event.name,
                 .correlation = fits ? static_cast<uint32_t>(span.correlation) : 0,
                 .detail = event.detail,
                 .kind = event.kind});
}

// Lanes by what happened first on them, so that every format tells the same.
void RocprofRows::HandOut() {
  std::vector<std::pair<const LaneKey, OneLane>*> order;
  for (auto& lane : lanes_) order.push_back(&lane);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->second.first < b->second.first; });
  for (auto* each : order) {
    const auto& [gpu, owner, number] = each->first;
    const LaneId lane =
        gpu ? builder_.AddLane(LaneKind::kStream, 0, number, static_cast<int32_t>(owner))
            : builder_.AddLane(LaneKind::kThread, owner, number, -1);
    builder_.NameLane(lane, fmt::format("{} {}", gpu ? "stream" : "thread", number));
    each->second.rows.HandOut([&](const TraceRow& row, uint32_t) {
      builder_.AddEvent({.start = row.start,
                         .duration = row.duration,
                         .lane = lane,
                         .name = row.name,
                         .kind = row.kind,
                         .correlation = row.correlation,
                         .detail = row.detail});
    });
  }
}

void RocprofRows::AddDispatch(const RocprofSpan& span, std::string_view symbol,
                              const RocprofLaunch& launch) {
  TraceBuilder::Event event{.kind = EventKind::kKernel};
  if (!Times(span, event)) return;
  auto name = symbols_.find(symbol);
  if (name == symbols_.end()) {
    name = symbols_.emplace(symbol, builder_.names().Intern(KernelName(symbol))).first;
  }
  event.name = name->second;
  KernelDetail detail;
  for (size_t i = 0; i < 3; ++i) {
    const int64_t block = std::max<int64_t>(launch.block[i], 1);
    detail.block[i] = Narrow(launch.block[i]);
    detail.grid[i] = Narrow(launch.grid[i] / block + (launch.grid[i] % block != 0));
  }
  detail.registers_per_thread = Narrow(launch.registers);
  detail.shared_memory_bytes = Narrow(launch.shared_memory);
  event.detail = builder_.AddKernel(detail);
  Add(event, span);
}

void RocprofRows::AddCopy(const RocprofSpan& span, std::string_view direction, int64_t source,
                          int64_t destination, int64_t bytes) {
  TraceBuilder::Event event{.kind = EventKind::kMemcpy};
  if (!Times(span, event)) return;
  event.name = builder_.names().Intern(CopyName(direction));
  const auto memory = [&](int64_t agent) {
    return DeviceOf(agent) >= 0 ? Memory::kDevice : Memory::kUnknown;
  };
  event.detail = builder_.AddCopy({.bytes = static_cast<uint64_t>(std::max<int64_t>(bytes, 0)),
                                   .from = memory(source),
                                   .to = memory(destination)});
  RocprofSpan on = span;
  on.agent = DeviceOf(destination) >= 0 ? destination : source;
  Add(event, on);
}

void RocprofRows::AddRegion(const RocprofSpan& span, std::string_view category,
                            std::string_view name) {
  TraceBuilder::Event event;
  std::string clean;
  CleanText(name, false, &clean);
  if (category.starts_with("HIP")) {
    event.kind = EventKind::kCall;
  } else if (category.starts_with("MARKER") || category.starts_with("RCCL")) {
    event.kind = EventKind::kAnnotation;
  } else {
    ++inputs_;
    return builder_.Count("regions of other libraries", "HSA calls lie inside of HIP calls", false);
  }
  if (!Times(span, event)) return;
  calls_ += event.kind == EventKind::kCall;
  event.name = builder_.names().Intern(category.starts_with("RCCL") ? "RCCL:" + clean : clean);
  Add(event, span);
}

void RocprofRows::Skip(std::string_view what, std::string_view reason, uint64_t n) {
  inputs_ += n;
  builder_.Count(what, reason, false, n);
}

absl::Status RocprofRows::Finish() {
  HandOut();
  for (const auto& [agent, name] : gpus_) {
    if (used_.contains(agent)) builder_.AddDevice({.id = DeviceOf(agent), .name = name});
  }
  Provenance& provenance = builder_.provenance();
  provenance.input_events = inputs_;
  provenance.no_waits = calls_ == 0;
  if (calls_ == 0) {
    builder_.Count("recording without host calls",
                   "only questions about the GPU side can be answered: record with --hip-trace "
                   "--kernel-trace --memory-copy-trace --marker-trace",
                   false, 1, -1, false);
  }
  const double share =
      inputs_ == 0 ? 0 : static_cast<double>(damaged_) / static_cast<double>(inputs_);
  if (damaged_ == 0 || (!options_.strict && share <= options_.max_malformed)) {
    return absl::OkStatus();
  }
  return MakeStatus(absl::StatusCode::kDataLoss,
                    {.code = "E0210",
                     .what = fmt::format("{} of {} records have no usable time", damaged_, inputs_),
                     .where = source_,
                     .why = "start or end is missing or reversed",
                     .fix = "record again, or accept the loss with --max-errors 100%"});
}

}  // namespace daydream
