"""What a command costs: CPU time of all its threads and processes, its peak of memory, and the time that passes."""

import os
import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/release/daydream"


def data():
    """Where the build found the recordings of others, as the tests do."""
    cache = ROOT / "build/release/CMakeCache.txt"
    for line in cache.read_text().splitlines() if cache.exists() else []:
        if line.startswith("DAYDREAM_DATA_DIR:"):
            return pathlib.Path(line.split("=", 1)[1])
    return ROOT


class Cost:
    def __init__(self, usage, seconds):
        self.seconds = seconds  # that passed
        self.cpu = usage.ru_utime + usage.ru_stime
        self.memory = usage.ru_maxrss * 1024  # bytes
        self.faults = usage.ru_minflt


def run(command):
    """The cost of a command, or None where it fails."""
    begin = time.monotonic()
    with subprocess.Popen(
        [str(c) for c in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - begin
    return Cost(usage, seconds) if process.returncode == 0 else None


def least(command, runs):
    costs = [c for c in (run(command) for _ in range(runs)) if c is not None]
    return min(costs, key=lambda c: c.cpu) if costs else None


def machine():
    """The processor and how many of its cores there are."""
    names = [
        line.split(":", 1)[1].strip()
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return f"{len(os.sched_getaffinity(0))} cores of {names[0] if names else 'a processor without a name'}"
