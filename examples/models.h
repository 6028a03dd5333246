// The training programs whose traces are shipped in this folder.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "examples/machine.h"
#include "trace/trace.h"

namespace daydream::examples {

struct Model {
  std::string_view name;     // "resnet50": the trace is called <name>-synthetic.ddtrace
  std::string_view summary;  // what is trained and how
  absl::StatusOr<std::shared_ptr<const Trace>> (*make)();
};

std::span<const Model> Models();

struct TransformerSize {
  int64_t batch = 8, length = 64, width = 256, heads = 4, layers = 4, classes = 1000;
};

// A training program around a transformer: what the lessons change to see what it brings.
struct TransformerProgram {
  MachineOptions machine;
  TransformerSize size;
  int steps = 6;
  int64_t decode_ns = 300'000;  // the loader makes a batch in this time
  bool workers = false;         // ... in other processes: a batch is there when it is asked for
  int64_t image_bytes = 0;      // of a batch of images beside the tokens
  bool pinned = false;          // ... in pinned memory, copied beside the step
  bool item = true;             // reads the loss in every step
  bool adam = true;             // else SGD
  bool amp = false;             // under autocast: casts, and products on tensor cores
  bool recompute = false;       // each layer runs again before its backward pass
};

// A program played to its end.
struct Played {
  std::shared_ptr<const Trace> trace;
  double step_ms = 0;  // from end to end of steps, without the first
  double host_ms = 0;  // of the program's own clock, a step
  double gpu_ms = 0;   // GPU work of a step, all streams
};

absl::StatusOr<Played> PlayTransformer(std::string_view name, const TransformerProgram& program);

// From what a machine says at the end of each step.
class StepClock {
 public:
  void EndStep(const Machine& machine);
  // Of the steps after the first.
  void Fill(Played& played) const;

 private:
  struct End {
    int64_t any = 0, host = 0, busy = 0;
  };
  std::vector<End> ends_;
};

}  // namespace daydream::examples
