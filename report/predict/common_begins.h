// Lists of optimizations, each applied to a copy of one graph: what several lists begin with is
// applied once, and what is found out about the graph between is found once, too.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "report/predict/graph_copies.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

class CommonBegins {
 public:
  // A list applied.
  struct Applied {
    std::shared_ptr<const Graph> graph = {};
    absl::Status status = {};         // as ApplyAll() has it, without what is told of edits
    double samples = 1;               // that a step handles, for each that it handled before
    const Transform* idle = nullptr;  // the last one that found nothing to change
  };

  // `tasks`: of the graph. Keeps a reference to `copies`.
  CommonBegins(size_t tasks, GraphCopies& copies);

  // The graph after all of this list. It and the graphs between stay for later lists, those between
  // that were asked for last before all others, as many as have a million tasks in all. May be
  // called from several threads: who wants what another one is applying waits for it.
  Applied Apply(std::span<const Application> list);
  // What is kept, whose memory others may use then.
  void Forget();

 private:
  struct Begun {
    GraphCopies::Copy graph = {};
    absl::Status status = {};
    double samples = 1;
    const Transform* idle = nullptr;
    size_t changed = 0;         // applications that did something
    absl::Status nothing = {};  // what the last one says that did not
  };
  struct Kept {
    std::mutex mutex;
    bool made = false;
    Begun begun;
  };
  using Ages =
      std::list<std::pair<std::string, std::shared_ptr<Kept>>>;  // the last asked for first

  static void ApplyNext(const Application& next, Begun& begun);
  // A copy of the graph after this list, and what goes with it.
  Begun Copy(std::span<const Application> list);
  // The same, where nothing is kept of it.
  Begun Make(std::span<const Application> list);
  // `begins`: others go on from it; else it is the next to make place.
  std::shared_ptr<Kept> Keep(std::span<const Application> list, bool begins);
  // Its graph, made if nobody has.
  const Begun& GraphOf(Kept& kept, std::span<const Application> list);

  GraphCopies& copies_;
  const size_t most_;  // kept
  std::mutex mutex_;
  Ages ages_;
  absl::flat_hash_map<std::string, Ages::iterator> places_;  // by the applications so far
};

}  // namespace daydream
