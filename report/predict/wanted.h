// What has to be found out of a prediction for the sake of those who read it.
#pragma once

#include <span>

#include "report/predict/what_if.h"
#include "transforms/core/editor.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

class Wanted {
 public:
  // Keeps references.
  Wanted(std::span<const Application> scenario, const ReplayCheck& replay,
         const WhatIfOptions& options)
      : scenario_(scenario), replay_(replay), options_(options) {}

  // A row without its interval, where only the word hangs on what models may be off by.
  bool brief() const { return options_.row && !options_.intervals; }

  // Causes. Without being asked: where errors of several models are of what each of them changed,
  // or of the part of the path that is the GPU's. `steps`: as played; none before.
  bool Why(std::span<const Duration> steps = {}) const;
  // The same, where each part has a share of its own: one alone answers for all that changed.
  bool Causes(std::span<const Duration> steps = {}) const;
  // Where the step goes.
  bool Path(std::span<const Duration> steps = {}) const;
  // Causes and what models did hang on each edit, and all else (CheckSteps) on steps with any.
  EditNotes Notes() const;

 private:
  std::span<const Application> scenario_;
  const ReplayCheck& replay_;
  const WhatIfOptions& options_;
};

}  // namespace daydream
