// Rows of sweeps with many values of one parameter. What an interval takes is many replays; where
// values are dense, most intervals lie between those of neighbours that were played.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "report/questions/sweep.h"
#include "report/questions/sweep_values.h"

namespace daydream {

// Steps are those of SweepRunner::Run() everywhere, and so are all rows but some of 64 values or
// more that only set times. There every 32nd row is played with its interval, or 33 rows where that
// is less. Where the one in the middle between two has the interval that lies between theirs, to
// one part in 2000, and the same word, so have the others; else that one is a neighbour, too, and
// so on. "Between" is along what
// all tasks together take, of which the ends of an interval are straight pieces for as long as the
// critical path is the same one. The rows are the same whatever is asked for, and by how many.
class DenseSweep {
 public:
  // Keeps references. `points` and `scenarios` go by index.
  DenseSweep(const SweepRunner& runner, std::span<const SweepPoint> points,
             std::span<const std::vector<Application>> scenarios);

  // May be called from several threads.
  SweepRow Run(size_t index);

  // The same rows, those first between which others lie: no thread waits for another then.
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
