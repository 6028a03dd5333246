// What was found out about a graph. Copies share it until they are edited, so what many transforms
// ask of the recorded graph is found once.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <typeindex>
#include <typeinfo>
#include <utility>

#include "graph/graph.h"

namespace daydream {

class GraphFacts {
 public:
  // `find()` of the first who asks for this type and number. Several threads may ask.
  template <class T, class Find>
  std::shared_ptr<const T> Get(uint64_t number, Find find) {
    std::shared_ptr<Entry> entry;
    {
      std::lock_guard lock(mutex_);
      std::shared_ptr<Entry>& known = entries_[{typeid(T), number}];
      if (known == nullptr) known = std::make_shared<Entry>();
      entry = known;
    }
    // No std::call_once: where memory ends inside of it, glibc loads a library to unwind, or
    // aborts.
    std::lock_guard lock(entry->mutex);
    if (entry->fact == nullptr) entry->fact = std::make_shared<const T>(find());
    return std::static_pointer_cast<const T>(entry->fact);
  }

 private:
  struct Entry {
    std::mutex mutex;
    std::shared_ptr<const void> fact;
  };
  std::mutex mutex_;
  std::map<std::pair<std::type_index, uint64_t>, std::shared_ptr<Entry>> entries_;
};

// What `find()` tells of `graph` as it is now; a number tells facts of one type apart. The fact may
// keep no reference to the graph: it outlives copies.
template <class T, class Find>
std::shared_ptr<const T> FactOf(const Graph& graph, Find find, uint64_t number = 0) {
  if (graph.facts() == nullptr) return std::make_shared<const T>(find());
  return graph.facts()->Get<T>(number, std::move(find));
}

// What `find()` tells of what was recorded: names, scopes, ops and details of the tables, and
// nothing that can be edited. Shared by all copies, whatever becomes of them. What hangs on edits
// as well needs a number that tells them apart (Graph::wiring()).
template <class T, class Find>
std::shared_ptr<const T> FactOfTables(const Graph& graph, Find find, uint64_t number = 0) {
  return graph.table_facts().Get<T>(number, std::move(find));
}

// What `find()` tells of a graph that hangs on nothing but its wiring(), where it has one.
template <class T, class Find>
std::shared_ptr<const T> FactOfWiring(const Graph& graph, Find find) {
  if (graph.wiring() == 0) return FactOf<T>(graph, std::move(find));
  return FactOfTables<T>(graph, std::move(find), graph.wiring());
}

}  // namespace daydream
