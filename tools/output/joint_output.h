// What `daydream ranks` and joint what-ifs print.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/questions/findings.h"
#include "report/text/json_writer.h"
#include "tools/gate.h"
#include "tools/input/joint_input.h"
#include "tools/output/not_done.h"
#include "tools/session.h"

namespace daydream {

struct JointReport {
  const JointInput* in = nullptr;
  std::string name;      // of the folder
  JointAnswer baseline;  // one transfer a class
  std::vector<JointPrediction> predictions;
  std::vector<Finding> findings;  // about ranks; worst first
  // Whose causes are printed in full: the last that was asked, or the best; behind all where that
  // is missing.
  size_t main = 0;
  NotDone missing;             // it was told to stop
  std::vector<Verdict> gates;  // every --fail-if, of the last scenario
};

std::string RanksText(const JointReport& report, const Session& session);
std::string RanksMarkdown(const JointReport& report, const Session& session);
std::string RanksJson(const JointReport& report);
Table RanksTable(const JointReport& report, TimeUnit wish);

std::string JointWhatIfText(const JointReport& report, const Session& session);
std::string JointWhatIfMarkdown(const JointReport& report, const Session& session);
std::string JointWhatIfJson(const JointReport& report);
// What was recorded, the findings about it, and the unchanged step with what each rank does in it.
void WriteRanks(JsonWriter& json, const JointReport& report);
// "run: 8 ranks played together, step is the window, repeated", and what all of it rests on.
std::string RanksHeadline(const JointReport& report);
std::string RanksBasis(const JointReport& report);
std::string JointWhatIfCsv(const JointReport& report, TimeUnit wish);
// `headed`: every column has a name, for Markdown and CSV.
Table JointWhatIfTable(const JointReport& report, TimeUnit wish, bool headed);

}  // namespace daydream
