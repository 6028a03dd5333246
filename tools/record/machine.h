// What this machine offers to a recorder: the driver, CUPTI, and our own files. Libraries of
// others are only ever loaded into a short-lived child process.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace daydream {

// Runs `work` in a forked child and returns what it wrote to its argument, or "" when the child
// crashed or took longer than a minute.
std::string AskChild(const std::function<void(std::string& answer)>& work);

// "key value" lines; of equal keys the last counts.
std::map<std::string, std::string> ParseAnswer(const std::string& answer);

struct Driver {
  bool loaded = false;               // libcuda.so.1 could be loaded
  std::string path;                  // from where
  std::string error;                 // why it could not, or what cuInit said; empty when it works
  int cuda_version = 0;              // newest CUDA version it supports: 13000 is 13.0
  std::string release;               // "580.95.05"; empty when the kernel module does not say
  std::vector<std::string> devices;  // names of the visible GPUs
};
Driver AskDriver();

struct Cupti {
  std::string path;      // empty: not found
  std::string error;     // why not
  uint32_t version = 0;  // as cuptiGetVersion() says
};
// Loads the first of `candidates` that can be loaded. The library of an application is not known
// before it runs, so these are the places where the recorder would look next.
Cupti AskCupti(const std::vector<std::string>& candidates);

// CUDA version (13000) of a CUPTI version; 0 when it is not known.
int CudaVersionOfCupti(uint32_t cupti_version);
// "13.0" for 13000.
std::string CudaVersionText(int version);

// Our own files, in the build tree or installed. Empty when this build has no recorder.
struct RecorderFiles {
  std::string library;  // absolute path of libdaydream_inject.so
  std::string python;   // folder of the Python side, with site/ in it
  bool complete() const { return !library.empty(); }
};
RecorderFiles FindRecorderFiles();

}  // namespace daydream
