// The edits behind the verbs of option files. Each works on tasks in TaskId order.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "transforms/scenario/option_steps.h"

namespace daydream {

// `tasks` in the order in which they ran: by step, recorded start, id.
std::vector<TaskId> InRecordedOrder(const Graph& graph, std::span<const TaskId> tasks);

// The stream of `target` on the device and rank of `like`; a new one is made once. None when there
// is no stream of that number.
LaneId FindStream(Editor& edit, const StreamTarget& target, LaneId like);

// Moves GPU tasks to a stream. What keeps its order across streams is given by `keep`; by
// direction: copies to the GPU are waited for, copies to the host wait, others do both. Other
// tasks, and those without such a stream, stay; returns how many did.
size_t MoveToStream(Editor& edit, std::span<const TaskId> tasks, const MoveAction& action);

// The host no longer waits for these copies: their calls cost what asynchronous copy calls cost,
// the wait in them and the synchronization right after them are gone.
void UnblockHost(Editor& edit, std::span<const TaskId> tasks);

// GPU tasks start in the step before, no earlier than the first of `after` there, instead of after
// their launch; with `launch` the call that launches them moves behind the one that launches that
// first task, and they wait for it, too. Those of the first step stay. Returns how many others did,
// for want of such a task or of calls.
size_t ShiftToPreviousStep(Editor& edit, std::span<const TaskId> tasks,
                           std::span<const TaskId> after, Anchor edge, bool launch);

// `tasks` split into groups of equal keys on one lane in one step, each in lane order; by their
// first task.
std::vector<std::vector<TaskId>> GroupTasks(const Graph& graph, std::span<const TaskId> tasks,
                                            std::span<const GroupKey> keys);

// Puts `task` beside `anchor`, or on `stream` (None: the anchor's) where recorded order places it,
// with an edge to or from the anchor. GPU work gets a launch call of `call_time` beside the
// anchor's if `action.launch`.
TaskId InsertBeside(Editor& edit, TaskId anchor, Task task, const InsertAction& action,
                    LaneId stream, Duration call_time);

// In each step, every task of `to` waits for the last task of `from` that ran before it.
// Returns pairs (from, to), by `to`.
std::vector<std::pair<TaskId, TaskId>> PairsInOrder(const Graph& graph,
                                                    std::span<const TaskId> from,
                                                    std::span<const TaskId> to);

}  // namespace daydream
