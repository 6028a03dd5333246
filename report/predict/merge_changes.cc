#include "report/predict/merge_changes.h"

#include <algorithm>

namespace daydream {

void Merge(Changes& into, const Changes& from) {
  into.scaled += from.scaled;
  into.set += from.set;
  into.inserted += from.inserted;
  into.removed += from.removed;
  into.fused += from.fused;
  into.moved += from.moved;
  into.edges += from.edges;
  auto add_new = [](std::vector<std::string>& to, const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      if (std::find(to.begin(), to.end(), text) == to.end()) to.push_back(text);
    }
  };
  add_new(into.notes, from.notes);
  add_new(into.warnings, from.warnings);
  add_new(into.conditions, from.conditions);
  into.memory.insert(into.memory.end(), from.memory.begin(), from.memory.end());
  into.terms.insert(into.terms.end(), from.terms.begin(), from.terms.end());
  into.samples *= from.samples;
  into.places += from.places;
  // Of one optimization alone, which is what a row of advise is.
  for (const auto text : {&Changes::effort, &Changes::risk, &Changes::how}) {
    if ((into.*text).empty()) into.*text = from.*text;
  }
  if (from.capacity.has_value()) into.capacity = from.capacity;
}

}  // namespace daydream
