#!/usr/bin/env python3
"""What a cold build of the program costs: CPU time as it is released, and with each file by itself and no header
precompiled. Prints rows as bars.py does, and exits with 1 where the bar is missed. Takes a quarter of an hour."""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

from cost import ROOT

MOST = 0.5


def cpu_of_build(folder, *options):
    """CPU seconds of all compilers, without a cache of theirs."""
    quiet = dict(stdout=subprocess.DEVNULL, check=True, env={**os.environ, "CCACHE_DISABLE": "1"})
    subprocess.run(["cmake", "--preset", "release", "-B", folder, *options], cwd=ROOT, **quiet)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["cmake", "--build", folder, "--target", "daydream"], cwd=ROOT, **quiet)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        released = cpu_of_build(at / "released")
        alone = cpu_of_build(at / "alone", "-DDAYDREAM_UNITY=OFF", "-DDAYDREAM_PCH=OFF")
    ratio = float(f"{released / alone:.3g}")
    rows = [
        dict(name="CPU of a cold build", value=round(released), unit="s", ratio_to=None, bar=None, ok=None),
        dict(name="the same", value=ratio, unit="x", ratio_to="each file alone", bar=MOST, ok=ratio <= MOST),
    ]
    print("[\n" + ",\n".join("  " + json.dumps(row) for row in rows) + "\n]")
    return 0 if ratio <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
