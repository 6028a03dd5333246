// By how much a step may be off because of the models of a scenario.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/predict/error_kind.h"
#include "report/predict/other_kernels.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

// A scenario that was played, and what it did to the step.
struct PlayedScenario {
  const Graph& recorded;
  std::span<const Application> scenario;
  std::span<const KernelTerms> terms;            // of the kernels that run on another GPU
  std::map<std::string_view, Duration> changes;  // of the step, by optimization
  Duration before, after;
  // Part of the step in which the error of another GPU counts: of its critical path that is GPU
  // work, or 1 where only kernels are looked at.
  double gpu = 1;
  // What that error makes of the step as it was played, `played`; then `gpu` counts no more.
  std::optional<KernelEnds> ends = {};
  Duration played = {};
  std::span<const std::string> left_out = {};  // residuals of these groups
};

// As shares: a standard deviation, and the mean.
struct ModelOff {
  double sigma = 0, mean = 0;
};

struct ModelErrors {
  ModelOff step;         // of all models, of the step
  ModelOff but_kernels;  // without that of another GPU
  // Of the optimizations that change more than 2 % of it; of all if none does.
  LeastChecked checked;
  // For another GPU: a recorded card that is not known, and the one that it is taken as.
  std::string stand_in;
};
ModelErrors FindModelErrors(const PlayedScenario& of);  // O(terms + rows of the residuals)

// Of the time of kernels that run on another GPU, which the model says; 0 where none does.
ModelOff KernelErrors(const Graph& recorded, std::span<const Application> scenario,
                      std::span<const KernelTerms> terms, std::span<const std::string> left_out);

}  // namespace daydream
