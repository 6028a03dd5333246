// Rows of sweeps with many values of one parameter. What an interval takes is many replays; where
// values are dense, most intervals lie between those of neighbours that were played.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "report/questions/sweep.h"
#include "report/questions/sweep_values.h"

namespace daydream {

// Steps, words and all else are those of SweepRunner::Run(); so are all intervals but some where
// the last axis of a sweep has 64 ascending numbers or more that only set times. There every 64th
// row is played with its interval, or 17 rows where that is less, and three between two of them.
// Where the one in the middle has the interval that lies between theirs, to a thousandth, and the
// same word, and so have the other two in their halves, the rest has what lies between the nearest
// of the five; else each half is looked at like the whole. "Between" is along what all tasks
// together take. The rows are the same whatever is asked for, and by how many.
class DenseSweep {
 public:
  // Keeps references. `points` and `scenarios` go by index.
  DenseSweep(const SweepRunner& runner, std::span<const SweepPoint> points,
             std::span<const std::vector<Application>> scenarios);

  // May be called from several threads.
  SweepRow Run(size_t index);

  // The same rows, those first between which others lie: few threads wait for one another then.
  void PutInTurn(std::vector<size_t>& rows) const;

 private:
  // Points that differ in the last axis alone.
  struct Line {
    size_t first, size;
    size_t apart;  // rows that are played whatever they say
  };
  struct Known {
    std::mutex mutex;
    std::unique_ptr<const PlayedRow> played;
  };

  using Places = std::array<size_t, 5>;  // in a line: from one played row to the next

  bool IsStraight(const Line& line, const Places& at);
  // With its interval, once.
  const PlayedRow& Play(size_t index);
  SweepRow Between(size_t index, const PlayedRow& before, const PlayedRow& behind);

  const SweepRunner& runner_;
  std::span<const std::vector<Application>> scenarios_;
  std::vector<Line> lines_;         // that are dense
  std::vector<uint32_t> line_of_;   // by index; kNone: of none
  std::unique_ptr<Known[]> known_;  // by index, where there are lines
};

}  // namespace daydream
