#include "tools/input/watched_files.h"

#include <sys/stat.h>

#include <utility>

namespace daydream {

WatchedFiles::WatchedFiles(std::vector<std::string> paths)
    : paths_(std::move(paths)), seen_(Look()) {}

std::vector<WatchedFiles::State> WatchedFiles::Look() const {
  std::vector<State> now(paths_.size());
  for (size_t i = 0; i < paths_.size(); ++i) {
    struct stat s {};
    if (stat(paths_[i].c_str(), &s) != 0) continue;
    now[i] = {s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec, s.st_ino};
  }
  return now;
}

bool WatchedFiles::Changed() {
  std::vector<State> now = Look();
  const bool changed = now != seen_;
  seen_ = std::move(now);
  return changed;
}

}  // namespace daydream
