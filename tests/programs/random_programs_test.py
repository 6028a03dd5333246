"""random_programs_test.py PROGRAM [FIRST LAST [STEPS]]: what-ifs of recordings against what the same program takes.

A program is played twice on a machine that shares nothing with daydream: as it is, which is recorded,
and with something faster or slower. daydream sees the recording only, and has to say what the second
takes. `FIRST LAST` tries other programs, and prints each; with STEPS as many steps are recorded of each.
"""
import json
import os
import subprocess
import sys
import tempfile

from program import Program

TOLERANCE = 0.03
THREADS = "speedup(thread:100,by={0}),speedup(thread:200,by={0})"
KERNELS = "speedup(kind:kernel & !collective:.,by={0})"
CASES = {
    "as recorded": ({}, None),
    "kernels twice as fast": ({"kernel": 1 / 2}, KERNELS.format(2)),
    "kernels four times as fast": ({"kernel": 1 / 4}, KERNELS.format(4)),
    "kernels of three times the length": ({"kernel": 3}, KERNELS.format(1 / 3)),
    "a host twice as fast": ({"host": 1 / 2}, THREADS.format(2)),
    "a host of three times the length": ({"host": 3}, THREADS.format(1 / 3)),
    "no exchange of gradients": ({"comm": 0}, "free-comm"),
}

daydream = sys.argv[1]
shown = len(sys.argv) > 3
# Programs, with how many recorded steps; None: as many as each of them draws.
asked = [(range(int(sys.argv[2]), int(sys.argv[3])), int(sys.argv[4]) if len(sys.argv) > 4 else None)] if shown else [
    (range(40), None), (range(100, 120), 1)]
failures, refused, tried = [], set(), 0


def judge(path, program):
    for case, (change, option) in CASES.items():
        if option == "free-comm" and not program.exchange:
            continue
        command = [daydream, "whatif", path, "--format", "json", "--no-alone"]
        done = subprocess.run(command + (["--opt", option] if option else []), capture_output=True, text=True)
        if "a check of the replay fails" in done.stderr:
            refused.add(program.number)
            continue
        assert done.returncode == 0, (program.number, case, done.stderr)
        predicted = json.loads(done.stdout)["scenarios"][-1]
        periods = program.play(change)[1][-len(predicted["steps_ms"]):]
        true_ms = sum(periods) / len(periods) / 1e6
        error = predicted["step_ms"] / true_ms - 1
        line = f"program {program.number}, {case}: {predicted['step_ms']:.3f} ms for {true_ms:.3f}, {error:+.1%}"
        if shown:
            print(line, flush=True)
        if abs(error) > TOLERANCE:
            failures.append(line)


with tempfile.TemporaryDirectory() as folder:
    recording = os.path.join(folder, "run.json")
    for numbers, steps in asked:
        for number in numbers:
            drawn, tried = Program(number, steps), tried + 1
            with open(recording, "w") as out:
                json.dump(drawn.play()[0].trace(), out)
            judge(recording, drawn)

if len(refused) > tried / 20:
    failures.append(f"programs without an answer: {sorted(refused)}")
print("\n".join(failures) or f"{tried} programs: all within {TOLERANCE:.0%}, without an answer: "
      f"{sorted(refused) or 'none'}")
sys.exit(bool(failures))
