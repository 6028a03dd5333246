// What the rows of a sweep hang on, as one number: two sweeps with the same key may share rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"
#include "report/questions/sweep.h"
#include "tools/flags.h"
#include "trace/trace.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

// The files that scenarios name, in options and in files of options: a GPU's description and the
// like. Looked at once; whether one has changed since then costs a stat() each.
class ScenarioFiles {
 public:
  explicit ScenarioFiles(std::span<const std::vector<Application>> scenarios);

  const std::vector<SweepPart>& parts() const { return parts_; }
  // A file that was changed after the constructor read it, or "".
  std::string Changed() const;
  // One that is no plain file, or "": nobody can tell later what was in it.
  const std::string& read_once() const { return read_once_; }

 private:
  struct Stamp {
    std::string path;
    uint64_t of = 0;  // size, time of change and number of the file
  };
  void Add(const Application& application);
  void AddFile(const std::string& path);
  void AddPart(const std::string& path, uint64_t content);

  std::vector<Stamp> files_;
  std::vector<SweepPart> parts_;
  std::string read_once_;
};

// The program with its version and commit, with its bytes where no commit names them; the content
// of the trace, of every file that a flag in `flags` names and of `files`; the graph; and `flags`
// as given, but for those in `besides` (where results go, and what only sorts them). O(bytes of all
// files).
// `graphs` is HashOf() them.
std::vector<SweepPart> SweepParts(const Trace& trace, uint64_t graphs, const Args& args,
                                  std::span<const Flag* const> flags,
                                  std::span<const std::string_view> besides,
                                  const ScenarioFiles& files);
// One number for all of them.
uint64_t SweepKey(std::span<const SweepPart> parts);

// A file of `files` or `flags` that is a pipe or the like, which a journal cannot know again; or
// "".
std::string FileReadOnce(const Args& args, std::span<const Flag* const> flags,
                         std::span<const std::string_view> besides, const ScenarioFiles& files);

// E0708: the rows before and after the change of `path` are of different experiments.
absl::Status FileChanged(std::string path);

// A number that differs between contents, going on from `hash`; 0 for what is no plain file, which
// cannot be read twice. A folder is the traces in it.
uint64_t HashOfFile(const std::string& path, uint64_t hash);

}  // namespace daydream
