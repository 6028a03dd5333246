// Splits the effect of a scenario over the causes that its transforms named, by replaying it.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "report/predict/graph_copies.h"
#include "transforms/core/editor.h"

namespace daydream {

// Who answers for a share.
enum class CauseKind : uint8_t {
  kOptimization,  // one of the scenario
  kJoint,         // no single one: order, waiting, or that examples are counted otherwise
  kLearned,       // what earlier measurements of such predictions taught
};

// Why a prediction differs from the baseline. Deltas of one prediction sum to its difference
// from the baseline, to the nanosecond.
struct CauseShare {
  std::string what;  // "GEMMs run on tensor cores"
  CauseKind kind = CauseKind::kOptimization;
  std::string opt;     // "amp"; empty for the other kinds
  Duration delta;      // of the step; negative: saves
  Duration gpu, host;  // work that this cause added or took away per step, on the path or not
};

// As outputs spell it: "amp", "(joint)", "(learned)".
std::string_view OptOf(const CauseShare& cause);

// The journal of one application.
struct CauseJournal {
  std::string opt;
  std::vector<Editor::Cause> causes;
  std::vector<Editor::Edit> edits;
  std::vector<Editor::EdgeEdit> edge_edits;
  bool stated_by_user = false;  // Transform::stated_by_user
};

struct CauseQuestion {
  const Graph* before = nullptr;  // as recorded
  const Graph* after = nullptr;   // a copy of it after all applications
  Duration step_before, step_after;
  std::span<const CauseJournal> journals;
  GraphCopies* copies = nullptr;  // with memory for one more copy; may be null
  // Only what all causes of an optimization are together is read, and whether there are any: fewer
  // replays.
  bool by_opt = false;
};

// Switches the causes on one after another, each time replaying, once in the order in which they
// were named and once in the opposite order, and gives each cause the mean of what the step changed
// by when it was switched on (the Shapley value of two causes; for more, its estimate from
// two opposite orders). A cause that is off leaves durations, gaps, lags and edges as recorded, and
// what it inserted takes no time and no part. Places on lanes are those of `after` all along: what
// moving changes by itself, and launch queues computed anew, are of kind kJoint.
//
// The shares sum to step_after - step_before exactly; largest effect first. Deterministic.
// O(causes x (tasks + edges)); beyond 48 causes the smallest are one.
std::vector<CauseShare> ShareByCause(const CauseQuestion& question);

class CauseGame;

// The same of many questions, for graphs of one shape and with one plan: `before`, `copies` and
// `by_opt` of all are the same, and replays and windows of steps see no difference between any two
// `after` but what tasks take (StepBatch::StepOf). May be called from several threads. Keeps
// references to `before` and `copies`, and a graph for each thread.
class CauseGames {
 public:
  CauseGames();
  ~CauseGames();
  std::vector<CauseShare> Share(const CauseQuestion& question);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<CauseGame>> spare_;
};

}  // namespace daydream
