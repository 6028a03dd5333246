// What the process tells about itself: its environment, its name, its place among the ranks. The
// only file of the recorder that reads environment variables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tracer/options.h"
#include "tracer/recording.h"

namespace daydream::tracer {

struct Environment {
  Options options;
  std::vector<std::string> problems;  // of the options
  std::string session_dir;            // empty: nothing shall be recorded
  std::string cupti_path;             // DAYDREAM_CUPTI
  std::string library_path;           // LD_LIBRARY_PATH
  bool dump_raw = false;              // DAYDREAM_DUMP_RAW=1, see tracer/raw_dump.h
  bool speaks = true;                 // this rank is the one of its machine that prints messages
};
Environment ReadEnvironment();

// Everything about the process that RecordingFacts asks for; nothing about CUDA. The command line
// as it is, or what Redacted() leaves of it.
RecordingFacts ProcessFacts(int64_t clock_origin_ns, bool whole_command);

// A command line that can be shown to others: programs, scripts and modules without their folders,
// names of options, and plain numbers ("--lr", "0.1", "--batch=32"); anything else becomes "*".
std::vector<std::string> Redacted(const std::vector<std::string>& arguments);

// "train.py.4711.123456789": of the script when the program is an interpreter.
std::string RecordingName(int64_t start_ns);

}  // namespace daydream::tracer
