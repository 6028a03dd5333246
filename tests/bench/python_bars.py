"""How soon the Python package answers, in seconds that pass: from `pip install` on, and beside the command."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_FIRST_S = 10
MOST_OF_COMMAND = 1.05
SMALL = ROOT / "examples/resnet50-synthetic.ddtrace"
OPT = "amp,fuse"

# The first question of a process, which its imports are no part of.
ASK = f"""import sys, time, daydream as dd
began = time.perf_counter()
dd.load(sys.argv[1]).whatif("{OPT}").to_dict()
print(time.perf_counter() - began)"""


def run(*command):
    words = [str(word) for word in command]
    built = {**os.environ, "DAYDREAM_BUILD": str(ROOT / "build/release")}  # for scripts/wheel
    return subprocess.run(
        words, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=built
    ).stdout


def install(folder):
    """[the environment's folder of programs, seconds from `pip install` to the first answer], or None."""
    try:
        run(ROOT / "scripts/wheel", folder / "OUT", sys.executable)
        run(sys.executable, "-m", "venv", folder / "venv")
        (wheel,) = (folder / "OUT").glob("*.whl")
        programs = folder / "venv/bin"
        began = time.perf_counter()
        run(programs / "python", "-m", "pip", "install", "--no-cache-dir", "--no-index", wheel)
        run(programs / "python", "-c", ASK, SMALL)
        return programs, time.perf_counter() - began
    except subprocess.CalledProcessError:  # scripts/wheel needs PyPI
        return None, None


def beside_the_command(programs, program, trace, runs):
    """What the first question takes, in times of the command, whose start is a part of it: the least of each,
    asked in turns."""
    python, command = [], []
    for _ in range(runs):
        python.append(float(run(programs / "python", "-c", ASK, trace)))
        began = time.perf_counter()
        run(program, "whatif", trace, "--opt", OPT, "--format", "json")
        command.append(time.perf_counter() - began)
    return min(python) / min(command)


def add(bars, program, trace, runs):
    """Rows of no value where scripts/wheel makes none."""
    with tempfile.TemporaryDirectory() as folder:
        programs, first = install(pathlib.Path(folder))
        ratio = None
        if programs and trace.exists():
            ratio = beside_the_command(programs, program, trace, runs)
    bars.add("from pip install to an answer", first, "s", None, MOST_FIRST_S)
    bars.add("load and whatif in Python", ratio, "x", "whatif --opt amp,fuse", MOST_OF_COMMAND)
