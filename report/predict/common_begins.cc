#include "report/predict/common_begins.h"

#include <algorithm>
#include <utility>

#include "graph/facts.h"
#include "transforms/scenario/apply.h"

namespace daydream {
namespace {

// Copies that are kept take memory: of a graph of a million tasks four.
constexpr size_t kKeptTasks = 4'000'000;

std::string KeyOf(std::span<const Application> list) {
  std::string key;
  for (const Application& a : list) {
    key += fmt::format("{} {} {}\n", static_cast<const void*>(a.transform), a.transform->name,
                       a.params.spelled());
  }
  return key;
}

}  // namespace

CommonBegins::CommonBegins(std::span<const std::vector<Application>> lists, size_t tasks,
                           GraphCopies& copies)
    : copies_(copies) {
  const size_t longest = kKeptTasks / std::max<size_t>(tasks, 1);
  std::map<std::string, size_t> asked;
  for (const std::vector<Application>& list : lists) {
    Shared* shorter = nullptr;
    for (size_t n = 1; n <= std::min(list.size(), longest); ++n) {
      const std::string key = KeyOf(std::span(list).first(n));
      const bool shared = ++asked[key] >= 2;
      if (asked[key] == 2 && shorter != nullptr) ++shorter->takers;
      shorter = shared ? &shared_[key] : nullptr;
    }
  }
  for (const std::vector<Application>& list : lists) {
    if (const size_t n = Common(list); n > 0) ++shared_.at(KeyOf(std::span(list).first(n))).takers;
  }
}

size_t CommonBegins::Common(std::span<const Application> list) const {
  size_t n = 0;
  while (n < list.size() && shared_.contains(KeyOf(list.first(n + 1)))) ++n;
  return n;
}

void CommonBegins::ApplyNext(const Application& next, Begun& begun) {
  Applied& so_far = begun.applied;
  if (!so_far.status.ok()) return;
  auto applied = daydream::Apply(next, *so_far.graph);
  if (applied.ok()) {
    so_far.samples *= applied->changes.samples;
    ++begun.changed;
  } else if (DiagnosticOf(applied.status()).code == "E0601") {
    so_far.idle = next.transform;
    begun.nothing = applied.status();
  } else {
    so_far.status = applied.status();
  }
}

CommonBegins::Begun CommonBegins::Copy(const Begun& begun) {
  const Applied& from = begun.applied;
  return {.applied = {copies_.MakeOf(*from.graph), from.status, from.samples, from.idle},
          .changed = begun.changed,
          .nothing = begun.nothing};
}

CommonBegins::Begun CommonBegins::Take(std::span<const Application> list, size_t n) {
  if (n == 0) return {.applied = {.graph = copies_.Make()}};
  Shared& shared = shared_.at(KeyOf(list.first(n)));
  std::lock_guard lock(shared.mutex);
  if (!shared.made) {
    shared.begun = Take(list, n - 1);
    ApplyNext(list[n - 1], shared.begun);
    shared.begun.applied.graph->ShareFacts(std::make_shared<GraphFacts>());
    shared.made = true;
  }
  return --shared.takers == 0 ? std::move(shared.begun) : Copy(shared.begun);
}

CommonBegins::Applied CommonBegins::Apply(std::span<const Application> list) {
  const size_t n = Common(list);
  Begun begun = Take(list, n);
  for (const Application& next : list.subspan(n)) ApplyNext(next, begun);
  if (begun.applied.status.ok() && begun.changed == 0) begun.applied.status = begun.nothing;
  return std::move(begun.applied);
}

}  // namespace daydream
