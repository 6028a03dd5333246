#include "report/questions/joint_causes.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

namespace daydream {
namespace {

size_t SlowestOf(const JointReplay& replay) {
  size_t slowest = 0;
  for (size_t r = 1; r < replay.ranks.size(); ++r) {
    if (replay.ranks[r].own_step > replay.ranks[slowest].own_step) slowest = r;
  }
  return slowest;
}

// A part of the own cycle, as part of the own step.
Duration OwnPerStep(Duration part, const RankAccount& account) {
  if (account.own_step == account.own_cycle || account.own_cycle <= Duration{}) return part;
  return part.Scaled(static_cast<double>(account.own_step.ns) /
                     static_cast<double>(account.own_cycle.ns));
}

}  // namespace

std::vector<CauseShare> ShareByRank(const JointRun& run, const JointAnswer& before,
                                    const JointAnswer& after, std::string_view opt) {
  std::vector<CauseShare> shares;
  Duration rest = after.step - before.step;
  const auto add = [&](std::string what, CauseKind kind, Duration delta) {
    rest = rest - delta;
    if (delta == Duration{}) return;
    shares.push_back({.what = std::move(what),
                      .kind = kind,
                      .opt = kind == CauseKind::kJoint ? "" : std::string(opt),
                      .delta = delta,
                      .gpu = {},
                      .host = {}});
  };
  const size_t was = SlowestOf(before.replay), is = SlowestOf(after.replay);
  const RankAccount &old = before.replay.ranks[was], &now = after.replay.ranks[was];
  constexpr std::pair<Duration BoundBy::*, std::string_view> kParts[] = {
      {&BoundBy::cpu, "host work"},
      {&BoundBy::gpu, "GPU work"},
      {&BoundBy::comm, "transfers"},
      {&BoundBy::data, "loading of data"}};
  for (const auto& [part, name] : kParts) {
    add(fmt::format("{} on the longest path of rank {}, the slowest", name, run.Number(was)),
        CauseKind::kOptimization,
        OwnPerStep(now.own_path.*part, now) - OwnPerStep(old.own_path.*part, old));
  }
  if (is != was) {
    add(fmt::format("rank {} is the slowest then", run.Number(is)), CauseKind::kJoint,
        after.replay.ranks[is].own_step - now.own_step);
  }
  add("ranks wait for one another", CauseKind::kJoint, rest);
  MergeShares(shares);
  return shares;
}

void MergeShares(std::vector<CauseShare>& shares) {
  std::vector<CauseShare> merged;
  for (CauseShare& s : shares) {
    const auto same = std::find_if(merged.begin(), merged.end(), [&](const CauseShare& m) {
      return m.what == s.what && m.opt == s.opt && m.kind == s.kind;
    });
    if (same == merged.end()) {
      merged.push_back(std::move(s));
    } else {
      same->delta += s.delta;
    }
  }
  std::erase_if(merged, [](const CauseShare& s) { return s.delta == Duration{}; });
  std::stable_sort(merged.begin(), merged.end(), [](const CauseShare& a, const CauseShare& b) {
    return std::abs(a.delta.ns) > std::abs(b.delta.ns);
  });
  shares = std::move(merged);
}

}  // namespace daydream
