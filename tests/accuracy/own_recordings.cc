#include "tests/accuracy/own_recordings.h"

#include <fstream>
#include <map>
#include <string>

#include <fmt/format.h>

#include "absl/strings/numbers.h"
#include "report/predict/unrecorded.h"
#include "tests/accuracy/loaded.h"

namespace daydream {
namespace {

namespace fs = std::filesystem;

// The network of a recorded model: its rows are of one group with others of the same network.
std::string NetworkOf(const std::string& model) {
  const std::map<std::string, std::string> names = {{"bert_base", "BERT-base"},
                                                    {"gnmt", "GNMT"},
                                                    {"gpt2_medium", "GPT-2 medium"},
                                                    {"resnet50", "ResNet-50"},
                                                    {"vgg19", "VGG-19"}};
  const auto it = names.find(model);
  return it == names.end() ? model : it->second;
}

// model,variant,"options",step_ms,sync_ms,batch,peak_mb,clean,why
struct Line {
  std::string model, variant, options;
  double step_ms = 0;
  bool clean = false;
};

bool Parse(const std::string& text, Line& line) {
  const size_t comma = text.find(','), open = text.find('"');
  const size_t close = text.find("\",", open + 1);
  if (comma == text.npos || open == text.npos || close == text.npos || open < comma + 2) {
    return false;
  }
  line.model = text.substr(0, comma);
  line.variant = text.substr(comma + 1, open - comma - 2);
  line.options = text.substr(open + 1, close - open - 1);
  line.clean = text.find(",yes,", close) != text.npos;
  const size_t begin = close + 2;
  return absl::SimpleAtod(text.substr(begin, text.find(',', begin) - begin), &line.step_ms);
}

absl::StatusOr<Loaded> LoadUnrecorded(const fs::path& path) {
  DD_ASSIGN_OR_RETURN(Loaded loaded, Load(path));
  DD_ASSIGN_OR_RETURN(loaded.replay.unrecorded, LeaveOutRecording(loaded.built.graph));
  return loaded;
}

}  // namespace

std::vector<JudgedRow> JudgeOwnRecordings(const fs::path& folder) {
  std::vector<JudgedRow> rows;
  std::ifstream in(folder / "measured.csv");
  std::map<std::string, absl::StatusOr<Loaded>> loaded;  // by model
  std::string text;
  std::getline(in, text);  // the head
  while (std::getline(in, text)) {
    Line line;
    const bool parsed = Parse(text, line);
    if (parsed && (!line.clean || line.options.empty())) continue;
    JudgedRow row{.row = fmt::format("{} on H200: {}", line.model, line.variant),
                  .group = NetworkOf(line.model),
                  .scenario = line.options,
                  .measured = line.step_ms};
    if (!parsed) row.why = "not a row: " + text;
    if (parsed) {
      auto [it, inserted] = loaded.try_emplace(line.model, absl::UnknownError("not loaded"));
      if (inserted) it->second = LoadUnrecorded(folder / (line.model + ".base.ddtrace"));
      absl::Status status = it->second.status();
      if (status.ok()) {
        status = PredictRow(it->second->built, it->second->replay, line.options, row).status();
        const ReplayCheck& replay = it->second->replay;
        if (replay.unrecorded.has_value()) row.before = replay.unrecorded->step.ms();
      }
      if (!status.ok()) row.why = Message(status);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace daydream
