// `diff` of two answers of `whatif`: what one scenario brings beside another, cause by cause.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/predict/what_if.h"
#include "report/text/table.h"
#include "tools/session.h"

namespace daydream {

// One prediction with what it is compared by.
struct SavedAnswer {
  struct Cause {
    std::string what, opt;
    Duration delta;  // of the step
  };
  std::string source;  // "before.json", or the trace
  std::string name;    // "amp + fuse"
  Duration baseline, step;
  std::optional<Duration> low, high;  // 90 % interval
  double speedup = 1;
  std::string confidence;
  std::vector<Cause> causes;  // sum to step - baseline
};

SavedAnswer AnswerOf(std::string source, const WhatIf& result, const Prediction& p);

// Whether the file at `path` begins like what `whatif --format json` writes. Reads its first bytes.
bool IsSavedAnswer(const std::string& path);
// The last scenario asked for. E0215 for a file that is cut, too large, or holds no prediction.
absl::StatusOr<SavedAnswer> ReadAnswer(const std::string& path);

struct AnswerDiff {
  struct Row {
    std::string what, opt;
    Duration a, b;
  };
  SavedAnswer a, b;
  // Causes of either, what differs most first. Their differences and that of the baselines sum to
  // that of the steps.
  std::vector<Row> causes;
  std::optional<bool> overlap;  // of the intervals; none without them
};
AnswerDiff CompareAnswers(SavedAnswer a, SavedAnswer b);

std::string AnswerDiffText(const AnswerDiff& diff, size_t top, const Session& session);
std::string AnswerDiffMarkdown(const AnswerDiff& diff, size_t top, const Session& session);
std::string AnswerDiffJson(const AnswerDiff& diff);
// Tidy: one row a metric or cause, times in ns.
std::string AnswerDiffCsv(const AnswerDiff& diff);

}  // namespace daydream
