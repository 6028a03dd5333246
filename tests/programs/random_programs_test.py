"""random_programs_test.py PROGRAM [FIRST LAST]: what-ifs of recordings against what the same program takes.

A program is played twice on a machine that shares nothing with daydream: as it is, which is recorded,
and with something faster or slower. daydream sees the recording only, and has to say what the second
takes. `FIRST LAST` tries other programs, and prints each.
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
first, last = (int(n) for n in sys.argv[2:4]) if len(sys.argv) > 3 else (0, 40)
failures, refused = [], set()
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "run.json")
    for number in range(first, last):
        program = Program(number)
        with open(path, "w") as out:
            json.dump(program.play()[0].trace(), out)
        for case, (change, option) in CASES.items():
            if option == "free-comm" and not program.exchange:
                continue
            command = [daydream, "whatif", path, "--format", "json", "--no-alone"]
            done = subprocess.run(command + (["--opt", option] if option else []), capture_output=True, text=True)
            if "a check of the replay fails" in done.stderr:
                refused.add(number)
                continue
            assert done.returncode == 0, (number, case, done.stderr)
            predicted = json.loads(done.stdout)["scenarios"][-1]
            periods = program.play(change)[1][-len(predicted["steps_ms"]):]
            true_ms = sum(periods) / len(periods) / 1e6
            error = predicted["step_ms"] / true_ms - 1
            line = f"program {number}, {case}: {predicted['step_ms']:.3f} ms for {true_ms:.3f}, {error:+.1%}"
            if len(sys.argv) > 3:
                print(line)
            if abs(error) > TOLERANCE:
                failures.append(line)

if len(refused) > (last - first) / 20:
    failures.append(f"programs without an answer: {sorted(refused)}")
print("\n".join(failures) or f"programs {first} to {last - 1}: all within {TOLERANCE:.0%}, without an answer: "
      f"{sorted(refused) or 'none'}")
sys.exit(bool(failures))
