#include "trace/join/memory_snapshot.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "trace/bytes/source.h"
#include "trace/join/pickle.h"

namespace daydream {
namespace {

using Kind = PickleValue::Kind;

constexpr int64_t kMostSnapshotBytes = int64_t{4} << 30;
constexpr int64_t kMostMemory = int64_t{1} << 44;  // of one entry
constexpr int64_t kLatestUs = int64_t{1} << 51;    // 71 years

absl::Status NoSnapshot(const std::string& path, std::string why) {
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      {.code = "E0233",
       .what = "no allocations can be taken from this file",
       .where = path,
       .why = std::move(why),
       .fix = "torch.cuda.memory._record_memory_history() before the run that is profiled, "
              "torch.cuda.memory._dump_snapshot(\"memory.pickle\") after it"});
}

int64_t IntOf(const Pickle& pickle, const PickleValue& dict, std::string_view key,
              int64_t fallback) {
  const PickleValue* value = pickle.Find(dict, key);
  return value != nullptr && value->kind == Kind::kInt ? value->number : fallback;
}

int64_t SizeOf(const Pickle& pickle, const PickleValue& dict, std::string_view key) {
  return std::clamp<int64_t>(IntOf(pickle, dict, key, 0), 0, kMostMemory);
}

// One entry of a device's history: what it adds to or takes from the two sums.
struct Change {
  int64_t us = 0;
  int64_t allocated = 0, reserved = 0;
};

Change ChangeOf(const Pickle& pickle, const PickleValue& entry) {
  const PickleValue* action = pickle.Find(entry, "action");
  const std::string_view what = action == nullptr ? "" : Pickle::Text(*action);
  const int64_t bytes = SizeOf(pickle, entry, "size");
  Change change{.us = IntOf(pickle, entry, "time_us", -1)};
  if (what == "alloc") change.allocated = bytes;
  if (what == "free_completed") change.allocated = -bytes;
  if (what == "segment_alloc" || what == "segment_map") change.reserved = bytes;
  if (what == "segment_free" || what == "segment_unmap") change.reserved = -bytes;
  return change;
}

// Bytes in use, of one device.
struct Level {
  int64_t allocated = 0, reserved = 0;

  // Nonsense does not overflow.
  void Add(int64_t to_allocated, int64_t to_reserved) {
    constexpr int64_t kMost = int64_t{1} << 60;
    allocated = std::clamp(allocated + to_allocated, -kMost, kMost);
    reserved = std::clamp(reserved + to_reserved, -kMost, kMost);
  }
};

// Blocks in use by what was asked for, as in the history; older snapshots know what was given only.
int64_t InUse(const Pickle& pickle, const PickleValue& segment) {
  int64_t bytes = 0;
  const PickleValue* blocks = pickle.Find(segment, "blocks");
  if (blocks == nullptr) return SizeOf(pickle, segment, "active_size");
  for (const PickleValue& block : pickle.Items(*blocks)) {
    const PickleValue* state = pickle.Find(block, "state");
    if (state == nullptr || !Pickle::Text(*state).starts_with("active")) continue;
    const bool asked = pickle.Find(block, "requested_size") != nullptr;
    bytes = std::min(bytes + SizeOf(pickle, block, asked ? "requested_size" : "size"), kMostMemory);
  }
  return bytes;
}

std::map<int64_t, Level> LevelsAtEnd(const Pickle& pickle) {
  std::map<int64_t, Level> levels;
  const PickleValue* segments = pickle.Find(pickle.root(), "segments");
  if (segments == nullptr) return levels;
  for (const PickleValue& segment : pickle.Items(*segments)) {
    Level& level = levels[IntOf(pickle, segment, "device", 0)];
    level.Add(InUse(pickle, segment), SizeOf(pickle, segment, "total_size"));
  }
  return levels;
}

// The histories of all devices, one after the other.
class History {
 public:
  History(const Trace& trace, MemoryFound* found) : trace_(trace), found_(found) {
    for (size_t row = 0; row < trace.rows(); ++row) last_ = std::max(last_, trace.End(row));
  }

  void Add(int32_t device, const std::vector<Change>& changes, Level end) {
    Level sum, lowest;
    for (const Change& c : changes) {
      sum.Add(c.allocated, c.reserved);
      lowest = {std::min(lowest.allocated, sum.allocated), std::min(lowest.reserved, sum.reserved)};
    }
    Level now{end.allocated - sum.allocated, end.reserved - sum.reserved};
    found_->inconsistent |=
        now.allocated + lowest.allocated < 0 || now.reserved + lowest.reserved < 0;
    now = {std::max(now.allocated, -lowest.allocated), std::max(now.reserved, -lowest.reserved)};
    for (const Change& c : changes) {
      now.Add(c.allocated, c.reserved);
      if (c.allocated == 0) continue;
      ++found_->events;
      if (c.us < 0) continue;
      first_us_ = std::min(first_us_, c.us);
      last_us_ = std::max(last_us_, c.us);
      const Instant at{c.us * 1000 - trace_.clock_origin_ns};
      if (at < Instant{} || at > last_) continue;
      ++found_->in_window;
      allocations_.push_back({.at = at,
                              .device = device,
                              .bytes = c.allocated,
                              .allocated = now.allocated,
                              .reserved = now.reserved});
    }
  }

  // Why nothing was taken.
  std::string Nothing() const {
    if (found_->events == 0) return "its history is empty: nothing was recorded";
    if (last_us_ < 0) return "its entries have no times: PyTorch writes them from 2.1 on";
    const int64_t begin_us = trace_.clock_origin_ns / 1000;
    // Others count from the start of the machine: no trace is from before September 2001.
    constexpr int64_t kSecond = 1000000, kFirst = 1000000000 * kSecond;
    if (begin_us < kFirst) return "the trace does not say at what time of day it was recorded";
    const bool before = last_us_ < begin_us;
    const int64_t apart = before ? begin_us - last_us_ : first_us_ - begin_us - last_.ns / 1000;
    return fmt::format("its history {} the trace {} by {} s: they are of different runs",
                       before ? "ends before" : "begins after", before ? "begins" : "ends",
                       std::max<int64_t>(apart, 0) / kSecond);
  }

  std::vector<Allocation> Take() {
    std::stable_sort(allocations_.begin(), allocations_.end(),
                     [](const Allocation& a, const Allocation& b) { return a.at < b.at; });
    return std::move(allocations_);
  }

 private:
  const Trace& trace_;
  MemoryFound* found_;
  Instant last_;
  int64_t first_us_ = std::numeric_limits<int64_t>::max(), last_us_ = -1;
  std::vector<Allocation> allocations_;
};

std::set<int32_t> GpusOf(const Trace& trace) {
  std::set<int32_t> gpus;
  for (const Lane& lane : trace.lanes) {
    if (lane.kind == LaneKind::kStream && lane.device >= 0) gpus.insert(lane.device);
  }
  return gpus;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Trace>> WithMemoryOf(std::shared_ptr<const Trace> trace,
                                                          const std::string& path,
                                                          MemoryFound* found) {
  DD_ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> source, OpenFile(path, kMostSnapshotBytes));
  DD_ASSIGN_OR_RETURN(const std::string bytes, ReadAll(*source));
  return WithMemoryIn(std::move(trace), bytes, path, found);
}

absl::StatusOr<std::shared_ptr<const Trace>> WithMemoryIn(std::shared_ptr<const Trace> trace,
                                                          std::string_view bytes,
                                                          const std::string& path,
                                                          MemoryFound* found) {
  if (!bytes.starts_with('\x80')) return NoSnapshot(path, "it is no pickle");
  Pickle pickle;
  const std::string bad = pickle.Read(bytes);
  if (!bad.empty()) return NoSnapshot(path, fmt::format("as a pickle of data, {}", bad));
  const PickleValue* devices = pickle.Find(pickle.root(), "device_traces");
  if (devices == nullptr) return NoSnapshot(path, "it has no \"device_traces\"");

  std::map<int64_t, Level> ends = LevelsAtEnd(pickle);
  const std::set<int32_t> gpus = GpusOf(*trace);
  const std::span<const PickleValue> histories = pickle.Items(*devices);
  const auto used =
      std::count_if(histories.begin(), histories.end(),
                    [&](const PickleValue& history) { return !pickle.Items(history).empty(); });
  History history(*trace, found);
  for (size_t d = 0; d < histories.size(); ++d) {
    std::vector<Change> changes;
    for (const PickleValue& entry : pickle.Items(histories[d])) {
      changes.push_back(ChangeOf(pickle, entry));
      if (changes.back().us > kLatestUs) changes.back().us = -1;
    }
    // A process may call another GPU its first one than the recorder does.
    const bool alone = used == 1 && gpus.size() == 1;
    history.Add(alone ? *gpus.begin() : static_cast<int32_t>(d), changes,
                ends[static_cast<int64_t>(d)]);
  }
  if (found->in_window == 0) return NoSnapshot(path, history.Nothing());
  auto with = std::make_shared<Trace>(*trace);
  found->replaced = with->allocations.size();
  with->allocations = history.Take();
  return std::shared_ptr<const Trace>(std::move(with));
}

}  // namespace daydream
