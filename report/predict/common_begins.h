// Lists of optimizations, each applied to a copy of one graph: what several lists begin with is
// applied once, and what is found out about the graph between is found once, too.
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "report/predict/graph_copies.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

class CommonBegins {
 public:
  // A list applied, or its first part.
  struct Applied {
    GraphCopies::Copy graph = {};
    absl::Status status = {};         // as ApplyAll() has it
    double samples = 1;               // that a step handles, for each that it handled before
    const Transform* idle = nullptr;  // the last one that found nothing to change
  };

  // `lists`: each will be asked for once. `tasks`: of the graph. Keeps a reference to `copies`.
  CommonBegins(std::span<const std::vector<Application>> lists, size_t tasks, GraphCopies& copies);

  // How many applications at the begin of this list others have in common with it. A graph between
  // is held until all who have it in common have asked: those with fewest first hold fewest.
  size_t Common(std::span<const Application> list) const;
  // The graph after all of one of the lists. May be called from several threads: who wants what
  // another one is applying waits for it.
  Applied Apply(std::span<const Application> list);

 private:
  struct Begun {
    Applied applied = {};
    size_t changed = 0;         // applications that did something
    absl::Status nothing = {};  // what the last one says that did not
  };
  struct Shared {
    size_t takers = 0;  // lists, and longer begins, that still need it
    std::mutex mutex;
    bool made = false;
    Begun begun;
  };
  static void ApplyNext(const Application& next, Begun& begun);
  // After the first `n`, which are common to several lists.
  Begun Take(std::span<const Application> list, size_t n);
  Begun Copy(const Begun& begun);

  GraphCopies& copies_;
  std::map<std::string, Shared> shared_;  // by the applications so far
};

}  // namespace daydream
