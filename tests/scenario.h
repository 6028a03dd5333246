// A list of optimizations as the command takes it.
#pragma once

#include <string>
#include <vector>

#include "transforms/scenario/scenario.h"
#include "transforms/scenario/turn.h"

namespace daydream {

inline std::vector<Application> ScenarioInTurn(const std::string& spec) {
  std::vector<Application> scenario = ParseScenario(spec).value();
  PutInTurn(scenario);
  return scenario;
}

}  // namespace daydream
