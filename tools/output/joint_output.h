// What `daydream ranks` and joint what-ifs print.
#pragma once

#include <string>
#include <vector>

#include "tools/input/joint_input.h"
#include "tools/session.h"

namespace daydream {

struct JointReport {
  const JointInput* in = nullptr;
  std::string name;      // of the folder
  JointAnswer baseline;  // one transfer a class
  std::vector<JointPrediction> predictions;
};

std::string RanksText(const JointReport& report, const Session& session);
std::string RanksJson(const JointReport& report);
Table RanksTable(const JointReport& report, TimeUnit wish);

std::string JointWhatIfText(const JointReport& report, const Session& session);
std::string JointWhatIfJson(const JointReport& report);
Table JointWhatIfTable(const JointReport& report, TimeUnit wish);

}  // namespace daydream
