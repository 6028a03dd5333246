#!/usr/bin/env python3
"""What each question costs on three recordings of others, beside `gzip -dc` of the same file.

Prints a JSON object: the machine, and for each recording its events and rows of {"what", "cpu_s"}: CPU time of all
threads of the run that took least. scripts/bench --questions --write puts them into docs/performance.md.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from bars import THOUSAND
from cost import PROGRAM, data, least, machine

TRACES = [
    "training/sharded-v100-rank1of2",
    "training/recsys-a100-rank3of8",
    "gpus/resnet50-bs32.a100-ddp2",
]


# Of what the points set.
SELECTED = {"kernels": "kernel:.", "host work": "kind:host", "backward passes": "phase:backward"}


def sweeps(trace):
    for name, selector in SELECTED.items():
        sweep = [PROGRAM, "sweep", trace, "--opt", THOUSAND.replace("kernel:.", selector)]
        yield f"sweep of 1000 speed-ups of {name}", sweep
        yield f"sweep of 1000 speed-ups of {name}, no intervals", [*sweep, "--no-interval"]


def commands(trace, out):
    return {
        "gzip -dc": ["gzip", "-dc", trace],
        "import": [PROGRAM, "import", trace, "-f", "-o", out],
        "whatif": [PROGRAM, "whatif", trace],
        "whatif --opt amp,fuse": [PROGRAM, "whatif", trace, "--opt", "amp,fuse"],
        "causal": [PROGRAM, "causal", trace],
        "advise": [PROGRAM, "advise", trace],
        **dict(sweeps(trace)),
    }


def events(trace):
    """Of the file, and those of them that a graph is built of."""
    told = subprocess.run([PROGRAM, "info", trace], stdout=subprocess.PIPE, text=True, check=True).stdout
    kept, all_of = re.search(r"events +([\d,]+) kept of ([\d,]+)", told).groups()
    return int(all_of.replace(",", "")), int(kept.replace(",", ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    recordings = []
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.ddtrace"
        for name in TRACES:
            trace = data() / "traces" / f"{name}.json.gz"
            if not trace.exists():
                sys.exit(f"{trace} is not there: these are measured where the recordings of others are at hand")
            rows = []
            for what, command in commands(trace, out).items():
                cost = least(command, args.runs)
                rows.append(dict(what=what, cpu_s=None if cost is None else float(f"{cost.cpu:.3g}")))
                print(name, rows[-1], file=sys.stderr, flush=True)
            all_of, kept = events(trace)
            recordings.append(dict(name=name, events=all_of, kept=kept, rows=rows))
    print(json.dumps(dict(machine=machine(), recordings=recordings), indent=1))


if __name__ == "__main__":
    main()
