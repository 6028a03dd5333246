// The world of one process.
#include <mutex>

#include "report/parallel.h"
#include "tools/sweep/world.h"

namespace daydream {

struct World::Impl {};

World::World() = default;
World::~World() = default;
bool World::first() const { return true; }
size_t World::size() const { return 1; }
std::string World::name() const { return ""; }
bool BuiltWithMpi() { return false; }
absl::Status World::Agree(uint64_t) { return absl::OkStatus(); }
void World::Leave(const absl::Status&) {}
bool TellsOwnMistake(const absl::Status&) { return true; }

absl::Status World::Distribute(std::span<const size_t> todo, unsigned jobs,
                               const std::function<std::string(size_t)>& work,
                               const std::function<absl::Status(std::string)>& take) {
  std::mutex mutex;
  absl::Status status;
  size_t begun = 0;
  ForEachParallel(todo.size(), jobs, [&](size_t) {
    size_t at = 0;
    {
      std::lock_guard lock(mutex);
      if (!status.ok()) return;
      at = begun++;  // in order, and none once it is to stop
    }
    std::string result = work(todo[at]);
    std::lock_guard lock(mutex);
    if (status.ok() || absl::IsCancelled(status)) status = take(std::move(result));
  });
  return status;
}

}  // namespace daydream
