// The page of `report`, `view` and `advise --html`: what those commands know, as blocks of JSON for
// report/html/.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tools/command.h"
#include "tools/input/inputs.h"
#include "tools/output/advise_output.h"
#include "tools/output/whatif_output.h"

namespace daydream {

inline constexpr Flag kMeasuredFlag = {
    .name = "--measured",
    .value = "TRACE",
    .help = "score the last scenario against a trace recorded after the change"};
inline constexpr Flag kTitleFlag = {
    .name = "--title", .value = "TEXT", .help = "title of the page; default: the trace"};
inline constexpr Flag kMaxSlicesFlag = {
    .name = "--max-slices",
    .value = "N",
    .help = "slices of the timelines; beyond it short neighbours become one",
    .fallback = "500000"};

// Of both commands that make the page.
inline constexpr std::array kPageFlags = {
    Flag{
        .name = "--opt",
        .value = "SPEC",
        .help = "optimizations to apply together, 'amp,fuse'; without one, those that advise finds",
        .repeats = true},
    kOptFileFlag,
    kSetFlag,
    kMeasuredFlag,
    kTitleFlag,
    kMaxSlicesFlag,
    kTrueStepFlag,
    kKeepRecordingCostFlag,
    kSamplesFlag,
    kMaxReplayErrorFlag,
};

// These and a command's own.
template <size_t N>
constexpr std::array<Flag, N + kPageFlags.size()> WithPageFlags(const std::array<Flag, N>& own) {
  std::array<Flag, N + kPageFlags.size()> all{};
  std::copy(own.begin(), own.end(), std::copy(kPageFlags.begin(), kPageFlags.end(), all.begin()));
  return all;
}

struct ReportPage {
  std::string html;
  // What the command ends with once the page is there: predictions that could not be made are on
  // the page, and an exit code or error as of `whatif`.
  absl::StatusOr<Exit> exit = Exit::kOk;
};

// What Ctrl-C does while a page is made: it ends the command, or the page holds the scenarios, or
// options, that are done by then, and says so at its head.
enum class WhenInterrupted : uint8_t { kEnds, kLeavesWhatIsDone };

// Asks what --opt and its companions say; without one, what advise would try.
absl::StatusOr<ReportPage> MakeReportPage(const Command& command, const Args& args,
                                          Session& session, WhenInterrupted then);

// The step as it is, and what `advice` found.
absl::StatusOr<std::string> MakeAdvicePage(const Command& command, const Args& args,
                                           const Inputs& in, const AdviseReport& advice,
                                           Session& session);

}  // namespace daydream
