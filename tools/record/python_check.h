// What the Python on the PATH offers: PyTorch, and whether our side of it is found there.
#pragma once

#include <string>
#include <vector>

#include "tools/record/doctor.h"
#include "tools/record/machine.h"

namespace daydream {

struct Python {
  std::string program;             // as it calls itself; empty: there is none
  std::string version;             // "3.11.2"
  std::string torch, torch_cuda;   // versions; empty: not installed, not for CUDA
  std::string ours;                // our package, as Python loaded it at its start
  std::vector<std::string> cupti;  // libcupti in its packages
};
// Starts the Python that `python3` is, with our folder on its path as in a recording. Imports
// nothing heavy.
Python AskPython(const RecorderFiles& files);

std::vector<Check> PythonChecks(const Python& python, const RecorderFiles& files);

}  // namespace daydream
