// Rows of sweeps with many values of one parameter. What an interval takes is many replays; where
// values are dense, most intervals lie between those of neighbours that were played.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "report/predict/told_rows.h"
#include "report/questions/sweep.h"
#include "report/questions/sweep_values.h"

namespace daydream {

// Steps, words and all else are those of SweepRunner::Run(); so are all intervals but some where
// the last axis of a sweep has 64 ascending numbers or more that only set times. There every 64th
// row is played with its interval, or 17 rows where that is less, and three between two of them.
// Where the one in the middle has the interval that lies between theirs, to a thousandth, and the
// same word, and so have the other two in their halves, the rest has what lies between the nearest
// of the five; else each half is looked at like the whole. "Between" is along what all tasks
// together take, and all between two rows has the shape of both. Rows that differ in times alone
// are applied together (report/predict/told_rows.h), but for those that are played with their
// interval and have several optimizations. The rows are the same whatever is asked for, and by how
// many.
class DenseSweep {
 public:
  // Keeps references. `points` and `scenarios` go by index.
  DenseSweep(const SweepRunner& runner, std::span<const SweepPoint> points,
             std::span<const std::vector<Application>> scenarios);

  // May be called from several threads.
  SweepRow Run(size_t index);

  // The same rows, those first between which others lie: few threads wait for one another then.
  // No others will be asked for. Before the first Run().
  void PutInTurn(std::vector<size_t>& rows);

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

  // Points that are applied together.
  struct Group {
    std::vector<size_t> rows;
    size_t left;  // that are not done
    std::mutex mutex;
    bool made = false;
    std::shared_ptr<ToldRows> told;  // where it can be told
  };

  // What rows of a group have in common stays until all are done, and for few groups: rows are
  // asked for in turn, and of MPI ranks none has all rows of a group.
  static constexpr size_t kMostKept = 4;

  using Places = std::array<size_t, 5>;  // in a line: from one played row to the next

  bool IsStraight(const Line& line, const Places& at);
  void FindLines(std::span<const SweepPoint> points);
  void MakeGroups(std::span<const size_t> rows);
  void MakeGroupsOf(std::span<const size_t> rows);
  void AddGroup(std::vector<size_t> rows);
  bool IsApart(size_t index) const;  // of a line, and played whatever its neighbours say
  SweepRow RowOf(size_t index);
  void Done(size_t index);
  // With its interval, once.
  const PlayedRow& Play(size_t index);
  // With its interval or without.
  PlayedRow PlayOne(size_t index, bool interval);
  // Whether rows of its group have intervals as well.
  bool TellsIntervals(size_t index) const;
  // What rows of the group have in common; null: each is by itself.
  std::shared_ptr<ToldRows> ToldOf(size_t group);
  // The same, now. `lock`: of its mutex.
  std::shared_ptr<ToldRows> Make(Group& group, std::unique_lock<std::mutex> lock);
  SweepRow Between(size_t index, const PlayedRow& before, const PlayedRow& behind);

  const SweepRunner& runner_;
  std::span<const std::vector<Application>> scenarios_;
  std::vector<Line> lines_;         // that are dense
  std::vector<uint32_t> line_of_;   // by index; kNone: of none
  std::unique_ptr<Known[]> known_;  // by index, where there are lines
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<uint32_t> group_of_, nth_of_;  // by index; kNone: of none
  std::mutex keeping_;
  std::deque<Group*> kept_;  // those that were told last
};

}  // namespace daydream
