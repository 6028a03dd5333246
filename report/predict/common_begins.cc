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
  if (!begun.status.ok()) return;
  auto applied = daydream::Apply(next, *begun.graph, nullptr, EditNotes::kNone);
  if (applied.ok()) {
    begun.samples *= applied->changes.samples;
    ++begun.changed;
  } else if (DiagnosticOf(applied.status()).code == "E0601") {
    begun.idle = next.transform;
    begun.nothing = applied.status();
  } else {
    begun.status = applied.status();
  }
}

std::shared_ptr<CommonBegins::Kept> CommonBegins::Keep(std::span<const Application> list,
                                                       bool begins) {
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
  const auto at =
      ages_.emplace(begins ? ages_.begin() : ages_.end(), key, std::make_shared<Kept>());
  places_[std::move(key)] = at;
  return at->second;
}

CommonBegins::Begun CommonBegins::Make(std::span<const Application> list) {
  Begun begun = Copy(list.first(list.size() - 1));
  ApplyNext(list.back(), begun);
  return begun;
}

const CommonBegins::Begun& CommonBegins::GraphOf(Kept& kept, std::span<const Application> list) {
  std::lock_guard lock(kept.mutex);
  if (!kept.made) {
    kept.begun = Make(list);
    kept.begun.graph->ShareFacts(std::make_shared<GraphFacts>());
    kept.made = true;
  }
  return kept.begun;
}

CommonBegins::Begun CommonBegins::Copy(std::span<const Application> list) {
  if (list.empty()) return {.graph = copies_.Make()};
  if (list.size() > most_) return Make(list);
  const std::shared_ptr<Kept> kept = Keep(list, /*begins=*/true);
  const Begun& from = GraphOf(*kept, list);
  return {.graph = copies_.MakeOf(*from.graph),
          .status = from.status,
          .samples = from.samples,
          .idle = from.idle,
          .changed = from.changed,
          .nothing = from.nothing};
}

CommonBegins::Applied CommonBegins::Apply(std::span<const Application> list) {
  if (list.empty()) return {.graph = std::shared_ptr<const Graph>(copies_.Make())};
  std::shared_ptr<Kept> kept;
  if (list.size() <= most_) {
    kept = Keep(list, /*begins=*/false);
  } else {
    kept = std::make_shared<Kept>();
  }
  const Begun& begun = GraphOf(*kept, list);
  const bool nothing = begun.status.ok() && begun.changed == 0;
  return {.graph = std::shared_ptr<const Graph>(kept, begun.graph.get()),
          .status = nothing ? begun.nothing : begun.status,
          .samples = begun.samples,
          .idle = begun.idle};
}

void CommonBegins::Forget() {
  std::lock_guard lock(mutex_);
  places_.clear();
  ages_.clear();
}

}  // namespace daydream
