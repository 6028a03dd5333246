#include "report/predict/common_begins.h"

#include <algorithm>
#include <utility>

#include "graph/facts.h"
#include "transforms/scenario/apply.h"

namespace daydream {
namespace {

// Graphs that are kept take memory: one of a million tasks, or as many smaller ones.
constexpr size_t kKeptTasks = 1'000'000;

std::string KeyOf(std::span<const Application> list) {
  std::string key;
  for (const Application& a : list) {
    key += fmt::format("{} {} {}\n", static_cast<const void*>(a.transform), a.transform->name,
                       a.params.spelled());
  }
  return key;
}

}  // namespace

CommonBegins::CommonBegins(size_t tasks, GraphCopies& copies)
    : copies_(copies), most_(kKeptTasks / std::max<size_t>(tasks, 1)) {}

void CommonBegins::ApplyNext(const Application& next, Begun& begun) {
  Applied& so_far = begun.applied;
  if (!so_far.status.ok()) return;
  auto applied = daydream::Apply(next, *so_far.graph, nullptr, EditNotes::kNone);
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

std::shared_ptr<CommonBegins::Kept> CommonBegins::Keep(std::span<const Application> list) {
  std::string key = KeyOf(list);
  std::lock_guard lock(mutex_);
  const auto known = places_.find(key);
  if (known != places_.end()) {
    // What it begins with is newer than it: more lists have that in common.
    for (size_t n = list.size(); n > 0; --n) {
      const auto begin = places_.find(KeyOf(list.first(n)));
      if (begin != places_.end()) ages_.splice(ages_.begin(), ages_, begin->second);
    }
    return known->second->second;
  }
  if (ages_.size() == most_) {
    places_.erase(ages_.back().first);
    ages_.pop_back();
  }
  ages_.emplace_front(key, std::make_shared<Kept>());
  places_[std::move(key)] = ages_.begin();
  return ages_.front().second;
}

CommonBegins::Begun CommonBegins::Copy(std::span<const Application> list) {
  if (list.empty()) return {.applied = {.graph = copies_.Make()}};
  if (list.size() > most_) {
    Begun begun = Copy(list.first(list.size() - 1));
    ApplyNext(list.back(), begun);
    return begun;
  }
  const std::shared_ptr<Kept> kept = Keep(list);
  std::lock_guard lock(kept->mutex);
  if (!kept->made) {
    kept->begun = Copy(list.first(list.size() - 1));
    ApplyNext(list.back(), kept->begun);
    kept->begun.applied.graph->ShareFacts(std::make_shared<GraphFacts>());
    kept->made = true;
  }
  const Applied& from = kept->begun.applied;
  return {.applied = {copies_.MakeOf(*from.graph), from.status, from.samples, from.idle},
          .changed = kept->begun.changed,
          .nothing = kept->begun.nothing};
}

CommonBegins::Applied CommonBegins::Apply(std::span<const Application> list) {
  if (list.empty()) return {.graph = copies_.Make()};
  Begun begun = Copy(list.first(list.size() - 1));
  ApplyNext(list.back(), begun);
  if (begun.applied.status.ok() && begun.changed == 0) begun.applied.status = begun.nothing;
  return std::move(begun.applied);
}

void CommonBegins::Forget() {
  std::lock_guard lock(mutex_);
  places_.clear();
  ages_.clear();
}

}  // namespace daydream
