// Published figures without traces, as a table of numbers, directions and size classes.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tests/accuracy/judged.h"

namespace daydream {

// A line of published.csv; its first lines say what the fields mean.
struct PublishedRow {
  std::string name, trace, nearer, from, to;
  double before = 0, after = 0, examples = 1;
  std::string unit, source, group, why, differs;
  std::vector<std::string> kin;  // other groups of the same network or GPU
  bool stands_in = false;        // the trace is of another network

  bool judged() const { return !trace.empty(); }
  double gain() const;       // published, above 1 is better
  std::string base() const;  // scenarios: what is compared with what
  std::string changed() const;
};

// Fails on the first line that is not a row, by its number.
absl::StatusOr<std::vector<PublishedRow>> ReadPublished(const std::filesystem::path& csv);

// How many times better a row gets by a prediction, and the ends of its interval (0: it has none).
struct PredictedGain {
  double gain = 1, low = 0, high = 0;
  bool has_interval() const { return low > 0; }
  bool holds(double published) const { return low <= published && published <= high; }
};

// "none", "small gain", "large loss": none under 5 %, small under 25 %, medium under 75 %.
std::string_view SizeClass(double gain);

// Agrees: inside of the interval; without one (a limit, memory), off by less than 5 %.
enum class Agreement : uint8_t { kAgrees, kDirection, kDiffers };
Agreement Compare(double published, const PredictedGain& predicted);

// A row of the table and what was made of it; `judged` has a kind, and an interval of which no row
// of its groups knows, when there is one.
struct PublishedResult {
  PublishedRow row;
  absl::StatusOr<PredictedGain> predicted = PredictedGain{};
  JudgedRow judged = {};

  bool has_interval() const { return predicted.ok() && predicted->has_interval(); }
};
// Each line of `csv`, in its order; judged rows predicted from a trace in `traces`.
absl::StatusOr<std::vector<PublishedResult>> JudgePublished(const std::filesystem::path& traces,
                                                            const std::filesystem::path& csv);
// Those with an interval.
std::vector<JudgedRow> JudgedRows(std::span<const PublishedResult> results);
// A section of docs/accuracy.md.
std::string PublishedSection(std::span<const PublishedResult> results);

}  // namespace daydream
