#include "report/predict/step_spread.h"

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <span>

#include "absl/container/flat_hash_map.h"
#include "report/windows.h"
#include "simulator/step_batch.h"

namespace daydream {
namespace {

constexpr size_t kMostSteps = 8;
// A piece that took a hundredth or a hundred times as long was not the same piece.
constexpr float kLeast = 0.01F, kMost = 100.0F;
constexpr uint32_t kNone = 0xffffffff;

// Evenly chosen members of `all`, at most kMostSteps.
std::vector<size_t> Choose(const std::vector<size_t>& all) {
  std::vector<size_t> chosen;
  const size_t n = std::min(all.size(), kMostSteps);
  for (size_t i = 0; i < n; ++i) chosen.push_back(all[i * all.size() / n]);
  return chosen;
}

double TimeOf(const Task& t) {
  return static_cast<double>((t.duration + std::max(t.gap, Duration{})).ns);
}

// The tasks of one piece, one for each compared step.
using Piece = std::array<uint32_t, kMostSteps>;

}  // namespace

StepSpread::StepSpread(const Graph& recorded) {
  const std::vector<size_t> counted = CountedSteps(recorded), compared = Choose(counted);
  steps_ = compared.size();
  slots_ = counted.size();
  if (steps_ < 2) return;
  std::vector<uint32_t> slot(recorded.steps().size(), kNone), place = slot;
  for (size_t i = 0; i < counted.size(); ++i) slot[counted[i]] = static_cast<uint32_t>(i);
  for (size_t i = 0; i < compared.size(); ++i) place[compared[i]] = static_cast<uint32_t>(i);

  using Key = std::pair<uint64_t, uint32_t>;  // lane and name, number
  absl::flat_hash_map<Key, uint32_t> piece_of;
  std::vector<Piece> pieces;
  std::vector<std::pair<uint32_t, uint32_t>> members;  // task, piece
  absl::flat_hash_map<std::pair<uint64_t, uint16_t>, uint32_t> met;
  for (const GraphLane& lane : recorded.lanes()) {
    for (TaskId t = lane.first; t.valid(); t = recorded.task(t).lane_next) {
      const Task& task = recorded.task(t);
      if (task.removed || task.step >= slot.size() || slot[task.step] == kNone) continue;
      if (TimeOf(task) <= 0) continue;
      const uint64_t name = uint64_t{task.lane.value} << 32 | task.name.value;
      const uint32_t number = met[{name, task.step}]++;
      auto [it, fresh] = piece_of.try_emplace({name, number}, static_cast<uint32_t>(pieces.size()));
      if (fresh) {
        pieces.emplace_back();
        pieces.back().fill(kNone);
      }
      if (place[task.step] != kNone) pieces[it->second][place[task.step]] = t.value;
      members.emplace_back(t.value, it->second);
    }
  }
  for (const auto& [id, piece] : members) {
    const Task& task = recorded.task(TaskId(id));
    const double own = TimeOf(task);
    std::array<float, kMostSteps> ratios;
    bool varies = false;
    for (size_t r = 0; r < steps_; ++r) {
      const uint32_t other = pieces[piece][r];
      ratios[r] = 1;
      if (other == kNone) continue;
      const double ratio = TimeOf(recorded.task(TaskId(other))) / own;
      ratios[r] = std::clamp(static_cast<float>(ratio), kLeast, kMost);
      varies |= ratios[r] != 1.0F;
    }
    if (!varies) continue;
    varying_.push_back({id, slot[task.step]});
    ratios_.insert(ratios_.end(), ratios.begin(), ratios.begin() + static_cast<ptrdiff_t>(steps_));
  }
}

std::vector<Duration> StepSpread::Resample(const Graph& graph, size_t count) const {
  if (steps_ < 2 || count == 0) return {};
  auto batch = StepBatch::Make(graph);
  if (!batch.ok()) return {};
  struct Place {
    StepBatch::Sums sums;
    bool has_gap;
  };
  std::vector<Place> places;
  // What each takes more than in the graph, by compared step: its durations, and its gaps if any.
  std::vector<int64_t> more;
  for (size_t i = 0; i < varying_.size(); ++i) {
    const TaskId id(varying_[i].task);
    const Task& t = graph.task(id);
    places.push_back({batch->sums(id), t.gap > Duration{}});
    const auto tell = [&](Duration own) {
      for (size_t r = 0; r < steps_; ++r) {
        const float taken = static_cast<float>(own.ns) * ratios_[i * steps_ + r];
        more.push_back(static_cast<int64_t>(taken) - own.ns);
      }
    };
    tell(t.duration);
    if (places[i].has_gap) tell(t.gap);
  }
  // With few steps the same ones are drawn again and again: each combination is played once.
  std::mt19937_64 random(1);
  std::map<std::vector<uint32_t>, size_t> known;
  std::vector<const std::vector<uint32_t>*> different;
  std::vector<size_t> draws;
  while (draws.size() < count) {
    std::vector<uint32_t> drawn(slots_);
    for (uint32_t& d : drawn) d = static_cast<uint32_t>(random() % steps_);
    auto [it, fresh] = known.try_emplace(std::move(drawn), different.size());
    if (fresh) different.push_back(&it->first);
    draws.push_back(it->second);
  }
  std::vector<Duration> played;
  std::vector<std::array<uint32_t, StepBatch::kWidth>> drawn(slots_);  // by step and scenario
  while (played.size() < different.size()) {
    for (size_t s = 0; s < StepBatch::kWidth; ++s) {
      const auto& steps = *different[std::min(played.size() + s, different.size() - 1)];
      for (size_t slot = 0; slot < slots_; ++slot) drawn[slot][s] = steps[slot];
    }
    batch->Reset();
    const int64_t* next = more.data();
    for (size_t i = 0; i < places.size(); ++i) {
      const auto& of = drawn[varying_[i].slot];
      const auto add = [&](int64_t* sums) {
        for (size_t s = 0; s < StepBatch::kWidth; ++s) sums[s] += next[of[s]];
        next += steps_;
      };
      add(places[i].sums.duration);
      if (places[i].has_gap) add(places[i].sums.gap);
    }
    for (Duration d : batch->Run()) played.push_back(d);
  }
  std::vector<Duration> steps;
  steps.reserve(draws.size());
  for (size_t d : draws) steps.push_back(played[d]);
  return steps;
}

}  // namespace daydream
