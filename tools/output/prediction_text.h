// Parts of a prediction as text, for the commands that print some. `unit` is that of the times,
// `wish` what the reader wants it to be (Session::unit()).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "report/predict/what_if.h"
#include "report/text/format.h"
#include "report/text/table.h"

namespace daydream {

// "1.42x", "<= 1.42x", "no limit".
std::string SpeedupText(const Prediction& p);
// "(1.33 - 1.50)"; empty without an interval.
std::string SpeedupRange(const Prediction& p);
// "121.5 - 137.0 ms"; empty without an interval.
std::string RangeText(std::optional<Duration> low, std::optional<Duration> high, TimeUnit unit);
std::string IntervalText(const Prediction& p, TimeUnit unit);
// What every cause adds to the step or takes from it; as text "" without causes.
// `headed`: each column has a head, as Markdown needs it.
Table CauseRows(const Prediction& p, TimeUnit unit, bool headed = false);
std::string CauseTable(const Prediction& p, TimeUnit unit, const TableStyle& style);
// `before` and the shares of the critical path: "GPU 55 %, CPU 45 %". Empty without a path.
std::string BoundByText(const Prediction& p, std::string_view before);
// "  then bound by GPU 55 %, CPU 45 %" as a line.
std::string BoundByLine(const Prediction& p);
// "gpt2, 8 steps, A100      replay check: 182.4 ms against 182.1 ms measured (+0.2 %)".
// Below it the throughput, and where steps differ by more than a tenth how they do.
// In one line, as scripts look for it, or in two where a terminal of `width` columns is narrower.
std::string ReplayLine(std::string_view headline, const ReplayCheck& replay, TimeUnit wish,
                       size_t width = 0);
// How the checks that can fail came out, and a word for the worst of all.
std::string ChecksLine(const ReplayCheck& replay);
// What recording cost and is left out; empty where that is nothing.
std::string UnrecordedLine(const ReplayCheck& replay);
std::string StepsLine(const ReplayCheck& replay, TimeUnit wish);
// "-1.2 GB", "+300 MB".
std::string SignedBytes(int64_t bytes);
// `text` in lines of at most 80 columns, indented by two, further lines by four.
std::string Wrapped(const std::string& text);
// What became of the work that was taken away, and how much of the time was never checked.
std::string WhyNotLines(const Prediction& p);
// "; to raise it: five recorded steps or more", or "".
std::string RaiseText(const Prediction& p);

}  // namespace daydream
