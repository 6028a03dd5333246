// Runs programs under the recorder, as `daydream trace` does it but with the fake driver and the
// fake CUPTI, and reads what they left.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/tracer/written_file.h"

namespace daydream::tracer {

// What a recorded process left behind.
struct Left {
  bool exited = false;
  int code = 0;  // exit code, or the number of the signal
  std::string out, err;
  std::vector<std::string> files;  // paths of the .ddtrace files
};

// The environment of one recorded program, and its session folder.
class Session {
 public:
  explicit Session(std::string record = "", std::string faults = "");

  std::map<std::string, std::string> environment;
  std::string folder() const { return scratch_ / "session"; }
  std::string scratch(std::string_view name) const { return scratch_ / name; }
  std::vector<std::string> Files() const;

  // gpu_program with these arguments (tests/tracer/fake_cuda/gpu_program.cc), to its end.
  Left Run(const std::vector<std::string>& arguments);

 private:
  ScratchFolder scratch_;
};

// A program that runs.
class Child {
 public:
  Child(Session& session, const std::vector<std::string>& arguments);
  ~Child();
  Child(const Child&) = delete;

  pid_t pid() const { return pid_; }
  // Waits for a line on stdout; false when the program ends before.
  bool WaitForLine(const std::string& line);
  void Kill(int signal);
  // Waits for the end, a minute at most: then the program is killed and the test fails.
  Left Wait();

 private:
  bool ReadSome(int timeout_ms);

  Session& session_;
  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;
  Left left_;
};

// The only file that the program left, read; fails the test when there are none or more.
WrittenFile OnlyFile(const Left& left);

// Rows of a file by kind, without their contents.
struct Count {
  std::map<pb::Kind, uint64_t> rows;
  bool has_index = false;
  pb::Index index;
  pb::Loss loss;
  uint64_t operator[](pb::Kind kind) const {
    auto found = rows.find(kind);
    return found == rows.end() ? 0 : found->second;
  }
};
// Reads up to the first damage, as after a kill in the middle of a write.
Count CountRows(const std::string& path);

// Lines of `err` that begin with "daydream: ".
std::vector<std::string> Messages(const Left& left);

// True in builds where the program runs under a sanitizer, much slower.
constexpr bool kSanitized =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    true;
#else
    false;
#endif

}  // namespace daydream::tracer
