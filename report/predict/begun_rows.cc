#include "report/predict/begun_rows.h"

#include <algorithm>

#include <fmt/format.h>

#include "report/predict/merge_changes.h"
#include "report/predict/settings.h"

namespace daydream {
namespace {

constexpr size_t kBegunTasks = 1'000'000;
// Rows that have a beginning in common follow one another.
constexpr size_t kMostMissed = 64;

std::string KeyOfBegun(std::span<const Application> list, EditNotes notes) {
  std::string key = fmt::format("{}\n", static_cast<int>(notes));
  for (const Application& a : list) {
    key += fmt::format("{} {} {}\n", static_cast<const void*>(a.transform), a.transform->name,
                       a.params.spelled());
  }
  return key;
}

}  // namespace

void Noted::Add(const Application& application, const Graph& graph, Applied* applied,
                bool limits_hold) {
  if (applied == nullptr) {
    left_out.push_back(SpelledAs(application));
    return;
  }
  trail.Follow(*application.transform, graph, applied->changes);
  Merge(changes, applied->changes);
  bound |= applied->bound && !limits_hold;
  journals.push_back({.opt = std::string(application.transform->name),
                      .causes = std::move(applied->causes),
                      .edits = std::move(applied->edits),
                      .edge_edits = std::move(applied->edge_edits),
                      .stated_by_user = application.transform->stated_by_user});
}

BegunRows::BegunRows(size_t tasks) : most_(kBegunTasks / std::max<size_t>(tasks, 1)) {}

std::shared_ptr<const BegunRows::Begun> BegunRows::Find(std::span<const Application> list,
                                                        EditNotes notes) {
  if (list.empty() || most_ == 0) return nullptr;
  const Key key = KeyOfBegun(list, notes);
  std::lock_guard lock(mutex_);
  const auto of_key = [&](const auto& entry) { return entry.first == key; };
  if (const auto at = std::ranges::find_if(kept_, of_key); at != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, at);
    return at->second;
  }
  if (const auto at = std::ranges::find_if(missed_, of_key); at != missed_.end()) {
    ++at->second;
    missed_.splice(missed_.begin(), missed_, at);
    return nullptr;
  }
  missed_.emplace_front(key, 1);
  if (missed_.size() > kMostMissed) missed_.pop_back();
  return nullptr;
}

bool BegunRows::IsWanted(std::span<const Application> list, EditNotes notes) {
  if (list.empty() || most_ == 0) return false;
  const Key key = KeyOfBegun(list, notes);
  std::lock_guard lock(mutex_);
  return std::ranges::any_of(
      missed_, [&](const auto& entry) { return entry.second > 1 && entry.first == key; });
}

void BegunRows::Keep(std::span<const Application> list, EditNotes notes, Begun begun) {
  Key key = KeyOfBegun(list, notes);
  auto kept = std::make_shared<const Begun>(std::move(begun));
  std::lock_guard lock(mutex_);
  std::erase_if(missed_, [&](const auto& entry) { return entry.first == key; });
  // Another thread may have made the same.
  if (std::ranges::any_of(kept_, [&](const auto& entry) { return entry.first == key; })) return;
  kept_.emplace_front(std::move(key), std::move(kept));
  if (kept_.size() > most_) kept_.pop_back();
}

}  // namespace daydream
