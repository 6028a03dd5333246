#include "tools/output/watch_whatif.h"

#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "report/predict/what_if.h"
#include "report/text/format.h"
#include "tools/input/inputs.h"
#include "tools/input/scenarios.h"
#include "tools/input/watched_files.h"
#include "tools/output/prediction_text.h"
#include "tools/output/whatif_output.h"
#include "tools/running/interrupt.h"

namespace daydream {
namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(200);

std::vector<std::string> FilesOfRecording(const Args& args) {
  std::vector<std::string> files = {args.positional()[0]};
  for (std::string_view flag : {"--et", "--memory", "--shapes"}) {
    if (args.Has(flag)) files.emplace_back(args.Get(flag));
  }
  return files;
}

// Those of --opt-file, those that --opt names by their path, those of DAYDREAM_OPTS_PATH.
std::vector<std::string> FilesOfOptions(const Args& args) {
  std::vector<std::string> files = args.All("--opt-file");
  for (const std::string& spec : args.All("--opt")) {
    std::string word;
    for (const char c : spec + ",") {
      if (c != ',' && c != '(' && c != ')') {
        word += c;
        continue;
      }
      if (word.find(".y") != word.npos || word.find('/') != word.npos) files.push_back(word);
      word.clear();
    }
  }
  for (const std::string& folder : OptionFolders()) {
    files.push_back(folder);
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      files.push_back(entry.path().string());
    }
  }
  return files;
}

struct WatchedAnswer {
  Prediction baseline, main;
};

class Watch {
 public:
  Watch(const Args& args, Session& session) : args_(args), session_(session) {}

  absl::StatusOr<Exit> Run() {
    WatchedFiles recording(FilesOfRecording(args_)), options(FilesOfOptions(args_));
    for (;; ++number_) {
      DD_RETURN_IF_ERROR(session_.WriteResult(Args(), fmt::format("#{}  {}\n", number_, Line())));
      bool again = false, changed = false;
      // Until it changed and then stays as it is: it may be half written.
      while (!again || changed) {
        std::this_thread::sleep_for(kLookEvery);
        const bool read = recording.Changed();
        if (read) in_.reset();
        changed = options.Changed() || read;
        again = again || changed;
      }
    }
  }

 private:
  absl::StatusOr<WatchedAnswer> Ask() {
    DD_ASSIGN_OR_RETURN(const double limit,
                        ParsePercent("--max-replay-error", args_.Get("--max-replay-error")));
    DD_ASSIGN_OR_RETURN(const auto scenarios, ParseScenarios(args_));
    const std::string& path = args_.positional()[0];
    if (!in_.has_value()) {
      DD_ASSIGN_OR_RETURN(in_, LoadInputs(path, args_, session_));
    }
    if (in_->replay.worst().error > limit) return ReplayFailed(in_->replay, limit, path);
    WhatIfOptions options{.alone = false, .intervals = !args_.Has("--no-interval")};
    options.true_step = in_->true_step.has_value() ? &*in_->true_step : nullptr;
    options.jobs = session_.jobs();
    DD_ASSIGN_OR_RETURN(const WhatIf result,
                        PredictAll(in_->built, in_->replay, scenarios, options));
    DD_RETURN_IF_ERROR(in_->replay.no_step);
    const Prediction& main = result.predictions[result.main];
    DD_RETURN_IF_ERROR(main.error);
    return WatchedAnswer{result.predictions[0], main};
  }

  std::string Line() {
    const absl::StatusOr<WatchedAnswer> answer = Ask();
    session_.EndProgress();
    if (!answer.ok()) {
      const Diagnostic d = DiagnosticOf(answer.status());
      const std::string place = d.where.substr(0, d.where.find('\n'));
      return Printable(fmt::format("error[{}]: {}{}", d.code, d.what,
                                   place.empty() ? "" : fmt::format(" ({})", place)));
    }
    const Prediction& p = answer->main;
    const TimeUnit unit = UnitFor(answer->baseline.step, session_.unit());
    std::string line = fmt::format("{} -> {}  {}", FormatTime(answer->baseline.step, unit),
                                   FormatTime(p.step, unit), SpeedupText(p));
    const std::string range = SpeedupRange(p);
    if (!range.empty()) line += " " + range;
    line += fmt::format("  {}  {}", p.bound ? "a limit" : Name(p.confidence), Printable(p.name));
    if (before_.has_value()) {
      line += p.step == *before_
                  ? "  as before"
                  : fmt::format("  {} against #{}", FormatChange(p.step - *before_, unit), at_);
    }
    before_ = p.step;
    at_ = number_;
    return line;
  }

  const Args& args_;
  Session& session_;
  std::optional<Inputs> in_;
  uint64_t number_ = 1, at_ = 0;    // of the answers; of the last that was one
  std::optional<Duration> before_;  // what that said
};

}  // namespace

absl::StatusOr<Exit> WatchWhatIf(const Args& args, Session& session) {
  for (std::string_view other : {"--format", "--output", "--by", "--measured", "--learn",
                                 "--learned", "--timeline", "--fail-if", "--on"}) {
    if (!args.Has(other) || args.IsDefault(other)) continue;
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0104",
                       .what = fmt::format("--watch does not go with {}", other),
                       .why = "it prints a line for each answer, and goes on",
                       .fix = "leave one of them away"});
  }
  const std::string& path = args.positional()[0];
  if (path == "-" || std::filesystem::is_directory(path)) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0104",
                       .what = fmt::format("--watch cannot watch {}", path),
                       .fix = "the file of one rank"});
  }
  EndWithInterrupt();
  return Watch(args, session).Run();
}

}  // namespace daydream
