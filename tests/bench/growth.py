#!/usr/bin/env python3
"""How what a question costs grows: with the events of a recording, its lanes, the scenarios asked for and the ranks.

Recordings are made (made_recordings.py). Prints a JSON object: the machine, and rows of {"axis", "count", "what",
"cpu_s", "memory_bytes"}: CPU time of all threads and the peak of memory, each of the run that took least; both null
where the command failed. scripts/bench --growth --write puts them into docs/performance.md.
"""

import argparse
import json
import pathlib
import sys
import tempfile

from cost import PROGRAM, ROOT, least, machine
from made_recordings import rank, training

EVENTS = [100_000, 300_000, 1_000_000, 3_000_000, 10_000_000]
LANES = [1, 10, 100, 1_000, 10_000]
SCENARIOS = [1, 10, 100, 1_000, 10_000]
RANKS = [2, 4, 8, 16, 32, 64, 128]
SCALED = [8, 64, 1024, 8192]
SCALED_TRACE = ROOT / "examples/resnet50-synthetic.ddtrace"  # with shapes of gradients
EVENTS_BY_LANES = 240_000
EVENTS_OF_SWEEP = 100_000
KERNELS_OF_RANK = 4_000


class Growth:
    def __init__(self, folder, runs):
        self.folder, self.runs, self.rows = folder, runs, []

    def ask(self, axis, count, what, *args):
        cost = least([PROGRAM, *args], self.runs)
        row = dict(axis=axis, count=count, what=what, cpu_s=None, memory_bytes=None)
        if cost is not None:
            row.update(cpu_s=float(f"{cost.cpu:.3g}"), memory_bytes=cost.memory)
        self.rows.append(row)
        print(row, file=sys.stderr, flush=True)

    def made(self, events, streams=1):
        path = self.folder / "made.json.gz"
        training(path, events, streams)
        return path

    def events(self, counts):
        for count in counts:
            path = self.made(count)
            self.ask("events", count, "import", "import", path, "-f", "-o", self.folder / "made.ddtrace")
            self.ask("events", count, "whatif", "whatif", path)
            self.ask("events", count, "whatif --opt amp,fuse", "whatif", path, "--opt", "amp,fuse")
            self.ask("events", count, "advise", "advise", path)
            path.unlink()

    def lanes(self, counts, events):
        for count in counts:
            path = self.made(events, count)
            self.ask("lanes", count, "whatif", "whatif", path)
            self.ask("lanes", count, "advise", "advise", path)

    def scenarios(self, counts, events):
        path = self.made(events)
        for count in counts:
            values = f"1.05..{1.05 + (count - 0.5) * 0.001:.5f}+0.001"
            opt = f"speedup(kernel:.,{values if count > 1 else 1.05})"
            self.ask("scenarios", count, "sweep", "sweep", path, "--opt", opt)
            self.ask("scenarios", count, "sweep --no-interval", "sweep", path, "--opt", opt, "--no-interval")

    def ranks(self, counts, kernels):
        folder = self.folder / "ranks"
        folder.mkdir()
        for count in counts:
            for number in range(count):
                rank(folder / f"rank{number}.json.gz", number, count, kernels)
            self.ask("ranks", count, "ranks", "ranks", folder)
            opt = "speedup(kernel:.,2)"
            self.ask("ranks", count, "whatif of the folder", "whatif", folder, "--opt", opt)

    def scaled(self, counts):
        how = ["--fabric", "ib-ndr", "--jitter"]
        for count in counts:
            self.ask("scaled", count, "scale", "scale", SCALED_TRACE, "--ranks", count, *how)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the sizes, for a test")
    args = parser.parse_args()
    part = 100 if args.quick else 1

    def few(counts):
        return counts[:2] if args.quick else counts

    with tempfile.TemporaryDirectory() as folder:
        growth = Growth(pathlib.Path(folder), args.runs)
        growth.events([count // part for count in few(EVENTS)])
        growth.lanes(few(LANES), EVENTS_BY_LANES // part)
        growth.scenarios(few(SCENARIOS), EVENTS_OF_SWEEP // part)
        growth.ranks(few(RANKS), KERNELS_OF_RANK // (part // 10 or 1))
        growth.scaled(few(SCALED))
    print(json.dumps(dict(machine=machine(), rows=growth.rows), indent=1))


if __name__ == "__main__":
    main()
