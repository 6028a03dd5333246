#include "report/html/cut_groups.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace daydream {
namespace {

const std::string& KeyOf(const Group& g) { return g.name; }
const HostName& KeyOf(const HostRow& r) { return r.what; }
Duration TimeOf(const Group& g) { return g.time; }
Duration TimeOf(const HostRow& r) { return r.self; }

void AddTo(Group& sum, const Group& g) {
  sum.time += g.time;
  sum.calls += g.calls;
  sum.path += g.path;
}
void AddTo(HostRow& sum, const HostRow& r) {
  sum.self += r.self;
  sum.waiting += r.waiting;
  sum.calls += r.calls;
  sum.path += r.path;
}
void SetName(const std::string& name, Group& g) { g.name = name; }
void SetName(const std::string& name, HostRow& r) { r.what = {HostKind::kOutside, name}; }

template <class Row>
using Keys = std::set<std::decay_t<decltype(KeyOf(std::declval<Row>()))>>;

template <class Row>
void KeepLargest(size_t most, const std::vector<Row>& rows, Keys<Row>& kept) {
  std::vector<const Row*> order;
  for (const Row& row : rows) order.push_back(&row);
  auto keep_by = [&](auto size) {
    std::stable_sort(order.begin(), order.end(),
                     [&](const Row* a, const Row* b) { return size(*a) > size(*b); });
    for (size_t i = 0; i < std::min(most, order.size()); ++i) kept.insert(KeyOf(*order[i]));
  };
  keep_by([](const Row& row) { return row.path; });
  keep_by([](const Row& row) { return TimeOf(row); });
}

template <class Row>
void CutRows(size_t most, std::vector<Row>& before, std::vector<Row>& after) {
  if (std::max(before.size(), after.size()) <= most) return;
  Keys<Row> all, kept;
  for (const auto* side : {&before, &after}) {
    for (const Row& row : *side) all.insert(KeyOf(row));
    KeepLargest(most, *side, kept);
  }
  if (kept.size() == all.size()) return;
  const std::string name = fmt::format("[{} others]", all.size() - kept.size());
  for (auto* side : {&before, &after}) {
    if (side->empty()) continue;
    std::vector<Row> cut;
    Row rest{};
    SetName(name, rest);
    for (const Row& row : *side) {
      if (kept.contains(KeyOf(row))) {
        cut.push_back(row);
      } else {
        AddTo(rest, row);
      }
    }
    cut.push_back(std::move(rest));
    *side = std::move(cut);
  }
}

}  // namespace

void CutGroups(size_t most, std::vector<Group>& before, std::vector<Group>& after) {
  CutRows(most, before, after);
}

void CutHostRows(size_t most, std::vector<HostRow>& before, std::vector<HostRow>& after) {
  CutRows(most, before, after);
}

}  // namespace daydream
