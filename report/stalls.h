// Host work that happens once: what a compiler, a module that is loaded or the start of CUDA takes
// inside of the recorded window. A run of a thousand steps has it once, so that no saving may
// contain it: predictions are made of the steady step, the graph without its stalls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "report/windows.h"
#include "simulator/timeline.h"

namespace daydream {

enum class StallKind : uint8_t {
  kStart,    // CUDA is initialised: a context, a stream, a library's handle
  kModule,   // a launch that loads the code of its kernel
  kMemory,   // memory is taken from the driver, or goes back to it in one step
  kCall,     // another call of the API
  kOp,       // an operator's own time: a compiler, a library that tries algorithms
  kOutside,  // host time outside of any operator
  kChurn,    // memory goes to the driver and comes back
  kHeldUp,   // an operator whose core something else had
  kBatch,    // a wait for a batch of loader processes
};
std::string_view Name(StallKind kind);  // "start of CUDA"

// An operator was held up that takes this long and so many times what its name usually does;
// chosen: the time slice of a busy core is some milliseconds. Of which there are many, of several
// names, and a fifth of the recording.
inline constexpr Duration kLongOp = Duration::Ns(5'000'000);
inline constexpr int64_t kOpsFarLonger = 100;
inline constexpr size_t kOpsToCompare = 8;  // operators of a name
inline constexpr size_t kManyHeldUp = 5, kSeveralNames = 3;
inline constexpr double kHeldUpShare = 0.20;

struct Stall {
  TaskId task;
  bool gap = false;  // the stretch after the task, not the task itself
  StallKind kind = StallKind::kOp;
  std::string what;  // "delta_r2", "cudaLaunchKernel in aten::cudnn_convolution"
  Duration time;     // as recorded
  Duration kept;     // what such work takes otherwise, which stays
  bool far = false;  // of FindFarLonger(): found by its place in the step
  Duration taken() const { return time - kept; }
  bool is_operator() const { return kind != StallKind::kOutside && kind != StallKind::kBatch; }
};

struct Stalls {
  std::vector<Stall> all;  // longest first
  // Held up likewise, but few, or in several steps, or on a rank of several: what the others did
  // meanwhile is not known. And what one step takes longer than others where no host work is known.
  // The step is as long as recorded, and no option saves any of these (KeepAsWaits()).
  std::vector<Stall> waits;
  Duration time;   // recorded, of the steps that count
  Duration taken;  // TakenTogether() of all
  // What remains is no step: CUDA was started inside of the only step, so that all of it is the
  // first iteration of a program, or less than a millisecond remains.
  bool no_step = false;
  // Whether any of the waits are operators.
  bool holds_operators() const {
    return std::ranges::any_of(waits, [](const Stall& s) { return s.is_operator() && !s.far; });
  }
};

// Whether the own time of an operator of this name is a wait for other processes or for batches.
bool WaitsForOthers(std::string_view op);

// A piece of host work (a call or operator without its waiting, or time outside of operators) is a
// stall when it is no fetch of a batch, and
//   in a window of one step: the GPU has nothing to do for half of it or more, and it is longer
//   than
//     a quarter of all that remains without it and longer stalls; and beside such a stall, a call
//     of 5 ms and 20 times what such calls take. Nothing else in such a window tells what happens
//     in every step. Calls that take memory from the driver are stalls where none gives any back,
//     for no step can do that every time, and where they are a twentieth of what remains;
//   with several steps: the GPU has nothing to do meanwhile for a tenth of the median step or more,
//     and it is a call or operator's own time, 20 times what it usually takes, and in one of them
//     only; or time outside of operators, five times as long as any such stretch in the others.
//     Or it is a call that takes memory from the driver or gives it back, under a name that no
//     other step has, and all of these of the step together find the GPU idle for that tenth.
//     What the GPU had in store when it began hides a part of it. An operator to which this happens
//     in more steps, up to half, is one of the `waits`.
// Calls that give memory to the driver and take it back, ten of a kind a step and a fifth of its
// time together, are stalls in every step: an allocator with room enough keeps what it has.
// Operators that take 5 ms and a hundred times what operators of their name take were held up by
// something else on their core, where these are five or more, of three names, and a fifth of the
// window: they are stalls wherever they are, even while the GPU works. Where they are fewer, and
// where ranks exchange anything, they are `waits`.
// All of it is a judgement by size, made with the shared recordings in view: none of their steady
// steps has a stall that makes it longer (MakeSteady() drops one beside the step's way), and what
// is predicted from those with one is what is predicted without it
// (tests/report/steady_step_test.cc). O(tasks log tasks).
Stalls FindStalls(const Graph& graph);

// Of the time, by all together: what several threads do at once counts once.
Duration TakenTogether(const Graph& graph, std::vector<const Stall*> stalls);

// When TakeOut() takes time away: a stall but for what it takes otherwise, which comes first. In
// order, and none of them overlap.
std::vector<Interval> StretchesTaken(std::span<const Stall> stalls, const Graph& graph);
// Tells the graph where they were (Graph::stalled_time()), but for batches that were late: these
// are the loader's own.
void MarkStalls(const Stalls& stalls, Graph& graph);
// When the GPU did something, as recorded. In order, and none of them overlap. O(tasks log tasks).
std::vector<Interval> RecordedGpuWork(const Graph& graph);
// How long it did nothing in the stretches taken.
Duration IdleMeanwhile(std::span<const Stall> stalls, const Graph& graph);
// Whether it is the program's own time, in no operator and no call.
bool IsOutsideOfOperators(const Graph& graph, TaskId task);
// Whether a stream stood still for no reason that a rule knows.
bool IsUnexplained(const Task& t);

// The steady step: stalls take what such work takes otherwise. Other threads that waited meanwhile,
// or began afterwards, do so by as much less, and so do streams that stood still for no reason that
// a rule knows: where everything behind an instant was recorded later, nothing else was late.
void TakeOut(std::span<const Stall> stalls, Graph& graph);

// Makes what such stalls take too long a wait for work on lanes of its own, one for each thread: it
// takes as long, whatever becomes of the operators. The graph plays as before. With the timeline of
// `graph` streams wait, too: on each, the first operation that the thread launches afterwards
// begins so long after the operation before it as the stream had nothing to do meanwhile, whoever
// launches it then (not so those that are `far`, below). So an option that launches ahead of the
// GPU does not hide the wait. Of a wait for a batch that is all: its own time stays where it is,
// and what takes it away (no-data-wait) takes this, too. Of what is `far` longer streams wait for
// all (TakeWhatItCosts()). Ranks that are played together wait for one another, so that a timeline
// of one of them alone says nothing. O(tasks + stalls * streams * log tasks).
void KeepAsWaits(std::span<const Stall> stalls, Graph& graph, const Timeline* timeline = nullptr);
// Whether this is such work, of which no work that is less makes a step shorter.
bool IsHeldUp(const Graph& graph, TaskId task);

}  // namespace daydream
