// The processes that share the work of one command: this one alone, or all ranks of an MPI program
// (tools/sweep/mpi/world_mpi.cc, in the program daydream-mpi).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace daydream {

class World {
 public:
  // Joins the others. Make one, and let it live as long as the command.
  World();
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // The first process reads journals, writes results and talks; the others only work.
  bool first() const;
  size_t size() const;
  // "rank 3 on node-a"; empty for one that is alone.
  std::string name() const;

  // Whether all processes are about to do the same work: `key` says what it hangs on. E0707 names
  // the first one, and its host, that has another key or that gave up before. Every process has to
  // call it once, before Distribute().
  absl::Status Agree(uint64_t key);
  // This process gives up: the first one tells why. After Agree() the whole job ends with that.
  void Leave(const absl::Status& why);

  // Does `work(i)` for each i of `todo` of the first process, each once, on some process, which
  // uses up to `jobs` threads. `take(result)` gets every result on the first process, one at a
  // time, in any order; when it fails, nothing more is begun, and only where it is cancelled what
  // was begun is still given to it. Returns what it did last. Every process has to call it once,
  // after Agree().
  absl::Status Distribute(std::span<const size_t> todo, unsigned jobs,
                          const std::function<std::string(size_t)>& work,
                          const std::function<absl::Status(std::string)>& take);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// For what fails before a world is needed: joins the others, for they may wait, and gives up. False
// where the first process has been told why and says so.
bool TellsOwnMistake(const absl::Status& why);

// Whether this program can be one of several ranks.
bool BuiltWithMpi();

}  // namespace daydream
