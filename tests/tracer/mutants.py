#!/usr/bin/env python3
"""Takes handling out of the recorder and of the rules of the graph, one piece at a time, and sees that a
test notices.

    tests/tracer/mutants.py --build build/release [PART OF A NAME ...]   tries, and prints the table
    tests/tracer/mutants.py --check                                      each piece is still there

A piece is a text that is in its file once. It is replaced in the source tree, the tests named with it
are built and run, and the file is put back, also after Ctrl-C. Exit code 1: a piece whose test did not
notice. docs/recorder.md and docs/how-it-works.md say what was tried and when.
"""

import argparse
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# (what is taken out, file, text, in its place, test program, its tests; "": all)
MUTANTS = [
    # 1, 2: CUDA 12.1 to 12.5
    ("CUDA 12.1 is refused for its version", "tracer/cupti_api.cc",
     "  // Then at least the oldest of its soname",
     '  if (api.GetVersion(&api.version) == CUPTI_SUCCESS && api.version < 19) return "old";\n'
     "  // Then at least the oldest of its soname",
     "recorder_versions_test", ""),
    ("no driver calls before 12.6", "tracer/activities.cc",
     "return SetKind(kAllDriverCalls, on);", "return;", "recorder_versions_test", ""),
    ("all driver calls of before 12.6 are kept", "tracer/cuda_calls.cc",
     "  return id < kMaxCalls && driver[id];", "  return id < kMaxCalls + driver.count();",
     "recorder_versions_test", ""),
    ("the header does not say what an old CUPTI does not tell", "tracer/worker.cc",
     "    for (Lack& lack : r_.activities.Lacks()) facts.lacks.emplace_back(lack.what, lack.effect);\n",
     "", "recorder_versions_test", ""),
    ("CUDA 11 is not refused", "tracer/cupti_api.cc",
     'NumberAfter(name, "libcupti.so.") < 12)', 'NumberAfter(name, "libcupti.so.") < 2)',
     "recorder_errors_test", "*Cuda11*"),
    # 3: locks
    ("a library is loaded with a lock held", "tracer/cuda_door.cc",
     '  std::string why = LoadCupti(r.environment.cupti_path, r.api);\n',
     '  std::lock_guard all(r.mutex);\n'
     '  std::string why = LoadCupti(r.environment.cupti_path, r.api);\n',
     "recorder_locks_test", ""),
    # 4: names
    ("texts of NVTX get a name before the gate", "tracer/nvtx.cc",
     "  // Before anything is done with the text: most ranges are not recorded.\n",
     "  NameOf(any);\n", "nvtx_test", ""),
    ("NVTX may take all names", "tracer/name_table.cc",
     "  if (use == NameUse::kRecorder) return true;\n", "  return true;\n", "name_table_test", ""),
    ("marks without a name are not counted", "tracer/recording.cc",
     "  impl_->losses_.unnamed += names - impl_->dropped_names_;\n", "",
     "recorder_errors_test", "*Texts*"),
    # 5: steps
    ("a step needs no backward pass", "python/daydream_torch/steps.py",
     "        return self._backwards == 0 or self._without > _BLIND\n", "        return True\n",
     "python_steps_test_extension", ""),
    ("a silent source stays", "python/daydream_torch/steps.py",
     "        return self._others > 2 * self._most_others + _PATIENCE\n", "        return False\n",
     "python_steps_test_extension", ""),
    # 6: labelling
    ("tensors with a __torch_function__ are asked", "python/marks.c",
     "    if (!is_plain(object)) return;\n", "", "python_layers_test_extension", ""),
    ("the marks take from the recursion limit", "python/marks.c",
     "  if (enter_recursion != NULL) leave_recursion();\n", "", "python_layers_test_extension", ""),
    # 7: cost
    ("callbacks stay on after the window", "tracer/activities.cc",
     "  EnableCallbacks(false);\n", "", "recorder_windows_test", "*CuptiDoesNothing*"),
    ("facts stay on after the window", "tracer/activities.cc",
     "    if (kind.group == Group::kFacts) SetKind(kind, false);\n", "",
     "recorder_windows_test", "*CuptiDoesNothing*"),
    ("windows follow each other without detached steps", "tracer/window.cc",
     "position_ > detached_at_ + kDetachedSteps &&", "true &&", "window_test", ""),
    ("windows do not wait for the GPU work of the last", "tracer/window.cc",
     "  return detached_at_ >= 0 &&", "  return", "window_test", ""),
    ("what lies between windows is kept", "trace/recording/rows.cc",
     "if (windows.empty() || silent >= kSilentSteps)", "if (windows.empty())",
     "recording_rows_test", ""),
    ("cost is not taken from the host", "graph/recording_cost.cc",
     "  return Taking(each, graph).Run();\n", "  return {};\n", "unrecorded_test", ""),
    ("more is taken than there is", "graph/recording_cost.cc",
     "    const Duration now = std::min(Duration{static_cast<int64_t>(owed_)}, time);\n",
     "    const Duration now = Duration{static_cast<int64_t>(owed_)};\n", "unrecorded_test", ""),
    ("a cost within its error is taken", "graph/recording_cost.cc",
     " || each->ns <= each->error_ns", "", "unrecorded_test", ""),
    # rules of the graph (docs/how-it-works.md)
    ("copies from pageable memory never block", "graph/rule_blocking.cc",
     "copy.bytes > kStagedBytes && starts_inside", "false", "build_test", ""),
    ("freeing waits though a stream goes on", "graph/rule_blocking.cc",
     "    if (last_.AllEndBy(call.end + kFreeSkew)) AddDeviceWait(", "    AddDeviceWait(",
     "rule_limits_test", ""),
    ("a wait for an event is one for the stream", "graph/rule_blocking.cc",
     "if (event && sync->record_correlation != 0) {", "if (false) {", "rule_limits_test", ""),
    ("kernels that overlap a little run side by side", "graph/rule_starts.cc",
     "      if (tail) {", "      if (false && tail) {", "build_test", ""),
    ("a branch of a CUDA graph has no fork", "graph/rule_starts.cc",
     "const bool may_fork = op.call.valid() && op.many;", "const bool may_fork = false;",
     "rule_limits_test", ""),
    ("work starts before its call", "graph/rule_starts.cc",
     "    if (constraints_.back().lag < Duration{}) {", "    if (false) {", "rule_limits_test", ""),
    ("the backward thread keeps its idle time", "graph/rule_handoff.cc",
     "    if (first != engine_.tasks.begin()) LeaveOutIdle(*(first - 1));\n", "",
     "rule_limits_test", ""),
    ("a hand-off keeps the recorded start", "graph/rule_handoff.cc",
     "    b_.graph.mutable_task(*first).earliest = {};\n", "", "build_test", ""),
    ("lost operations leave the queue as deep", "graph/rule_queue.cc",
     "for (size_t i = 0; room.measured && i + 2 < slow.size(); ++i) {",
     "for (size_t i = 0; false && i + 2 < slow.size(); ++i) {", "queue_test", ""),
    ("records that the timing contradicts are believed", "graph/rule_events.cc",
     "if (Refuted(from, to) || from >= to", "if (from >= to", "rule_limits_test", ""),
    ("the default stream waits for no other", "graph/rule_default_stream.cc",
     "    if (type_of(b.ops[op]) == StreamType::kDefault) {", "    if (false) {",
     "default_stream_test", ""),
    # 8: privacy
    ("the command line is kept as it is", "tracer/environment.cc",
     "facts.argv = whole_command ? Arguments() : Redacted(Arguments());",
     "facts.argv = Arguments();", "recorder_exits_test", "*CommandLine*"),
    ("values of options are kept", "tracer/environment.cc",
     'name += number ? word.substr(equals) : "=*";', "name += word.substr(equals);",
     "environment_test", ""),
    # 9: disk
    ("rows that were not written are not counted", "tracer/recording.cc",
     "        losses_.not_written += encoder_.Lost();\n", "", "recorder_disk_test", ""),
    ("a header that cannot be written leaves no reason", "tracer/worker.cc",
     "    LeaveReason(error);\n", "", "recorder_disk_test", ""),
    # 10
    ("a setuid program takes the recorder of its caller", "tracer/daydream_mark.h",
     "getauxval(AT_SECURE) != 0 ? NULL : ", "", "mark_header_test", ""),
    ("a daemon goes on after its session", "tracer/worker.cc",
     "    session_over_ = true;\n", "", "recorder_disk_test", "*Outlives*"),
    ("CUPTI beside JAX is not looked for", "tracer/cupti_api.cc",
     "  for (std::string& folder : FoldersOfPackages()) folders.push_back(std::move(folder));\n", "",
     "recorder_errors_test", "*Packages*"),
    ("iterations of an inner loop are steps", "tracer/nvtx.cc",
     "  if (t_step != 0) return;\n", "", "nvtx_test", ""),
    ("overhead data is not freed", "tracer/cupti_decoder.cc",
     "  if (has_data) std::free(o.overheadData);", "  if (has_data) return;",
     "recorder_errors_test", "*Overhead*"),
    # 11
    ("13.0 is switched off", "tracer/activities.cc",
     "  if (!on && api_->version == kCupti130) return;\n", "", "recorder_errors_test", "*130*"),
    ("13.0 is switched off after its work", "tracer/activities.cc",
     "void Activities::SwitchWorkOff() {\n  if (api_->version == kCupti130) return;\n",
     "void Activities::SwitchWorkOff() {\n", "recorder_errors_test", "*130*"),
    ("13.0 is detached", "tracer/activities.cc",
     "void Activities::Detach() {\n  if (api_->version == kCupti130) return;\n",
     "void Activities::Detach() {\n", "recorder_errors_test", "*130*"),
    ("a CUPTI at another path is not found", "tracer/cupti_api.cc",
     '    folders = {folder, folder + "../../cuda_cupti/lib/", folder + "../extras/CUPTI/lib64/"};\n',
     "", "recorder_errors_test", "*Runtime*"),
    ("a GPU without room for times is not detected", "tracer/worker.cc",
     "const bool no_room = without_time - without_time_ > kManyWithoutTime;",
     "const bool no_room = false;", "recorder_errors_test", "*Room*"),
    ("the window ends a step late", "tracer/window.cc",
     "position_ >= first_ && position_ < end_;", "position_ >= first_ && position_ <= end_;",
     "window_test", ""),
    ("the switch on comes after the mark of its step", "tracer/switching.cc",
     "  if (change == Switch::kOn) ApplySwitch(r, change);\n  Mark(DAYDREAM_STEP, name, number);\n",
     "  Mark(DAYDREAM_STEP, name, number);\n  if (change == Switch::kOn) ApplySwitch(r, change);\n",
     "recorder_windows_test", "*TimeOfSwitching*"),
    ("calls that set events are not recorded", "tracer/activities.cc",
     "    KIND(CUDA_EVENT, kCalls),\n", "", "recorder_windows_test", "*EventsAndWaits*"),
    ("the child writes the parent's file", "tracer/recording.cc",
     "  impl_->file_.Close();\n  abandoned_ = impl_;\n", "  abandoned_ = impl_;\n",
     "recording_test", "*Abandons*"),
    ("GPU work that comes first does not tell the clock", "tracer/cupti_clock.cc",
     "  return work;\n", "  return std::nullopt;\n", "recorder_errors_test", "*Clock*:*Timestamp*"),
    ("the clock is settled on GPU work without times", "tracer/worker.cc",
     "  clock_settled_ = fits.has_value() || (first && first->call);\n", "  clock_settled_ = true;\n",
     "recorder_errors_test", "*Clock*:*Timestamp*"),
]


def occurrences(mutant):
    return (ROOT / mutant[1]).read_text().count(mutant[2])


def check():
    bad = [(m[0], occurrences(m)) for m in MUTANTS if occurrences(m) != 1]
    for name, count in bad:
        print(f"{name}: its text is in the file {count} times")
    pages = [(ROOT / "docs" / page).read_text() for page in ("recorder.md", "how-it-works.md")]
    untold = [m[0] for m in MUTANTS if not any(f"| {m[0]} |" in p for p in pages)]
    for name in untold:
        print(f"{name}: neither in docs/recorder.md nor in docs/how-it-works.md")
    return 1 if bad or untold else 0


def succeeds(words):
    return subprocess.run(words, cwd=ROOT, capture_output=True).returncode == 0


def builds(test, build):
    targets = [test]
    if test.startswith("python_"):
        targets = ["daydream_inject", "daydream_marks_for_tests", "mark_log"]
    elif test == "trace_command_test":
        targets.append("daydream")
    return succeeds(["cmake", "--build", build, "-j2", "--target", *targets])


def passes(test, names, build):
    if test.startswith("python_"):
        return succeeds(["ctest", "--test-dir", build, "--no-tests=error", "-R", f"^{test}$"])
    program = next(p for p in (ROOT / build / "tests").rglob(test) if p.is_file())
    return succeeds([str(program), f"--gtest_filter={names or '*'}"])


def attempt(mutant, build):
    _, file, text, instead, test, names = mutant
    if occurrences(mutant) != 1:
        return "its text is not there once"
    if not builds(test, build) or not passes(test, names, build):
        return "its test fails without it, too"
    path = ROOT / file
    before = path.read_text()
    try:
        path.write_text(before.replace(text, instead))
        if not builds(test, build):
            return "does not compile"
        return "NOT FOUND" if passes(test, names, build) else "found"
    finally:
        path.write_text(before)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if args.check:
        return check()
    missed = 0
    for mutant in MUTANTS:
        if args.names and not any(part in mutant[0] for part in args.names):
            continue
        result = attempt(mutant, args.build)
        missed += result != "found"
        print(f"| {mutant[0]} | `{mutant[1]}` | `{mutant[4]}` | {result} |", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
