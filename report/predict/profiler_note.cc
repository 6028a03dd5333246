#include "report/predict/profiler_note.h"

#include <algorithm>
#include <cmath>

#include "base/median.h"
#include "report/predict/intervals.h"
#include "report/predict/quick_host.h"
#include "report/text/format.h"

namespace daydream {
namespace {

// Share of the critical path from which on the host bounds a step.
constexpr double kHostBound = 0.5;
// Chosen: of the step. As --max-replay-error warns from.
constexpr double kSameStep = 0.03;

}  // namespace

std::string ProfilerNote(const Graph& graph, const BoundBy& path) {
  if (!HostIsStretched(graph)) return "";
  const Duration all = path.gpu + path.cpu + path.comm + path.data;
  if (AsDouble(path.cpu) < kHostBound * AsDouble(all)) return "";
  return "host work takes most of the step, and the PyTorch profiler makes it longer: three "
         "programs that were measured both ways take 16 to 106 % longer with it; "
         "--true-step TIME takes that off";
}

void NoteProfiler(const Graph& graph, Prediction& prediction) {
  std::string note = ProfilerNote(graph, prediction.path);
  if (!note.empty()) prediction.changes.notes.push_back(std::move(note));
}

void DoubtProfiler(const Graph& graph, Prediction& prediction) {
  if (prediction.confidence != Confidence::kHigh) return;
  if (!ProfilerNote(graph, prediction.path).empty()) DoubtProfiler(prediction);
}

void DoubtProfiler(Prediction& prediction) {
  prediction.confidence = Confidence::kMedium;
  prediction.why = "bound by host work, which the profiler made longer by an unknown amount";
  prediction.raise = "--true-step TIME, or a recording of daydream trace";
}

void TellTrueStep(const TrueStep& told, Prediction& baseline) {
  if (told.reached()) {
    baseline.confidence = Confidence::kGiven;
    baseline.why = "the step of --true-step, with host work made shorter until it is";
    return;
  }
  baseline.confidence = Confidence::kLow;
  baseline.why = fmt::format(
      "the {} of --true-step is not reached: with a host that takes no time the GPU's part is "
      "longer, and by how much recording made it so is not known",
      FormatTime(told.asked));
  baseline.low = told.asked;
  baseline.high = baseline.step;
}

void TellUnrecorded(const Unrecorded& unrecorded, Prediction& baseline) {
  baseline.why = UnrecordedText(unrecorded);
  baseline.low = unrecorded.shortest;
  baseline.high = unrecorded.longest;
  // What was measured is a median, which one step that was interrupted does not move.
  const Duration middle = baseline.steps.empty() ? unrecorded.step : Median(baseline.steps);
  if (unrecorded.measured &&
      std::fabs(AsDouble(middle - unrecorded.step)) > kSameStep * AsDouble(unrecorded.step)) {
    baseline.why += fmt::format("; the median of the replayed steps is {}", FormatTime(middle));
  }
  const bool met =
      unrecorded.measured.has_value() && std::fabs(AsDouble(*unrecorded.measured - middle)) <=
                                             kSameStep * AsDouble(*unrecorded.measured);
  if (!met) baseline.confidence = Confidence::kMedium;
}

double UnsureShare(const Unrecorded& unrecorded) {
  if (unrecorded.step <= Duration{}) return 0;
  const Duration off =
      std::max(unrecorded.longest - unrecorded.step, unrecorded.step - unrecorded.shortest);
  return AsDouble(off) / AsDouble(unrecorded.step);
}

}  // namespace daydream
