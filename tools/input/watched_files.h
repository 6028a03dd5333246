// Files that somebody else changes while this program waits. They are looked at every now and then:
// what tells of changes (inotify) is silent about files on other machines, where traces often are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace daydream {

class WatchedFiles {
 public:
  explicit WatchedFiles(std::vector<std::string> paths);

  // Whether one of them was replaced, written, made or removed since the last time this was asked.
  bool Changed();

 private:
  struct State {
    int64_t size = -1, seconds = 0, nanoseconds = 0;
    uint64_t file = 0;
    friend bool operator==(const State&, const State&) = default;
  };
  std::vector<State> Look() const;
  std::vector<std::string> paths_;
  std::vector<State> seen_;
};

}  // namespace daydream
