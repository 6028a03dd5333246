// What Python's help() says of Edit and its methods. The stub of the module has the same texts,
// which a test compares (tests/wheel/installed_optimizations.py).
#pragma once

namespace daydream {

inline constexpr char kEditDoc[] =
    R"(The graph of a step while an optimization edits it.

Tasks (kernels, copies, host work) are numbers that select() returns; times are in ns. Methods
raise daydream.Error: E0438 for a task that is not there or cannot be meant, and once the
function that was handed the edit is over.)";

inline constexpr char kSelectDoc[] =
    R"(Live tasks that match, "class:conv&phase:backward" (docs/optimization-file-reference.md).

relation: instead the tasks that are related to these: not, launched_by, inside, before, after,
first, last, between (on the same lane in the same step). Raises E0103 for a selector that
cannot be read.)";

inline constexpr char kRunsDoc[] =
    R"(The longest runs of two or more of these kernels with nothing else between them.

A run is on one stream, in one step and phase.)";

inline constexpr char kTimesNsDoc[] = R"(Own work of each task in ns, without waiting.)";

inline constexpr char kNamesDoc[] =
    R"(The name of each task, as recorded: of a kernel, a call, an operator.)";

inline constexpr char kTaskDoc[] =
    R"(What is known of a task: a dict.

name, lane, gpu (bool), time_ns (own work), gap_ns (how long its lane stays busy behind it), step
(from 0; the first one does not count), removed (bool).)";

inline constexpr char kCauseDoc[] =
    R"(What the edits from here on are reported as in WhatIf.causes.

Raises E0426 for more than 1000 of them.)";

inline constexpr char kNoteDoc[] = R"(An assumption, for WhatIf.notes.)";

inline constexpr char kScaleDoc[] =
    R"(Multiplies times of tasks by a factor, 0 or more.

Raises E0424 for another factor, or one that makes a task longer than can be replayed.)";

inline constexpr char kSetTimeDoc[] =
    R"(Gives each task this time in ns, 0 or more. Raises E0424 for another.)";

inline constexpr char kRemoveDoc[] =
    R"(Takes tasks away; GPU work with the calls that launch nothing else.

Whatever waited for one now waits for what that one waited for.)";

inline constexpr char kInsertAfterDoc[] =
    R"(New work of `ns` behind a task, on its lane; returns its number.

Beside GPU work that is a kernel with its launch, beside host work host work. Raises E0424 for a
time below 0, E0426 when too much is added: a million tasks, or four for each recorded one.)";

inline constexpr char kInsertBeforeDoc[] = R"(As insert_after(), but in front of the task.)";

inline constexpr char kFuseDoc[] =
    R"(One kernel that takes `ns` in place of a run; returns its number.

The launches of the others are gone. Raises E0438 for what is no run (runs() returns them) and
E0424 for a time below 0.)";

inline constexpr char kFusedTimeNsDoc[] =
    R"(What a run takes, in ns, as one kernel that reads and writes each tensor once.

As the optimization `fuse` takes it: by shapes where they are known, else by times. passes: how
often a kernel of the run goes over memory, 1 to 16. kept: share of its bytes that remains, 0 to
1. floor_ns: no kernel is shorter. Raises E0438 for what is no run, E0424 for other values.)";

inline constexpr char kMergeDoc[] =
    R"(As fuse(), and the host work of the merged operators goes, too, reported as `cause`.

As in the optimization `fuse`. Raises as fuse().)";

}  // namespace daydream
