#!/usr/bin/env python3
"""What questions cost, as ratios within one run: CPU time of all threads, the least of some runs.

Prints a JSON array of {"name", "value", "unit", "ratio_to", "bar", "ok"}. `value` is a multiple of
what `ratio_to` took; null where nothing could be measured here, and then `ok` is null, too. Exits
with 1 where a bar is missed.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import made_recordings
import page_bars
import python_bars
from cost import PROGRAM, ROOT, data, least, run

BENCHES = ROOT / "build/release/tests/bench"
TRACE = "training/sharded-v100-rank1of2.json.gz"  # 216,000 events
# When the bars were set, on that trace, as multiples of `gzip -dc` of it (least of four runs).
WHATIF_THEN, CAUSAL_THEN = 2.0, 7.2
MOST_OF_IMPORT = 0.45  # of `gzip -dc`
# Of eight scenarios side by side, then: 3.8 ns a task and scenario.
BATCH_NS = 0.15 * 3.8
STREAMS = 20_000
LARGE_EVENTS = 7_000_000  # about 1 GB of JSON
THOUSAND = "speedup(kernel:.,1.05..10.045+0.009)"  # 1000 points; questions.py has other selectors
MANY_TRACE = "training/recsys-a100-rank3of8.json.gz"  # 112,863 tasks of six steps
MANY = "speedup(kernel:.,1.05..10.0491+0.0009)"  # 10,000 points


class Bars:
    def __init__(self):
        self.rows = []

    def add(self, name, value, unit, ratio_to, bar):
        ok = None if value is None or bar is None else value <= bar
        value = None if value is None else float(f"{value:.4g}")
        self.rows.append(
            dict(name=name, value=value, unit=unit, ratio_to=ratio_to, bar=bar, ok=ok)
        )

    def ratio(self, name, cost, to, ratio_to, bar):
        value = cost.cpu / to.cpu if cost and to and to.cpu > 0 else None
        self.add(name, value, "x", ratio_to, bar)


def ask(bars, trace, runs, at):
    def daydream(*args):
        return least([PROGRAM, *args], runs) if trace.exists() else None

    gzip = least(["gzip", "-dc", trace], runs) if trace.exists() else None
    imported = daydream("import", trace, "-f", "-o", at / "out.ddtrace")
    whatif = daydream("whatif", trace)
    bars.ratio("import of gzip", imported, gzip, "gzip -dc", MOST_OF_IMPORT)
    bars.ratio("whatif", whatif, gzip, "gzip -dc", None)
    both = daydream("whatif", trace, "--opt", "amp,fuse")
    bars.ratio("whatif --opt amp,fuse", both, gzip, "gzip -dc", 2 * WHATIF_THEN)
    bars.ratio("advise", daydream("advise", trace), gzip, "gzip -dc", 5 * WHATIF_THEN)
    bars.ratio("causal", daydream("causal", trace), gzip, "gzip -dc", 0.5 * CAUSAL_THEN)
    plain = daydream("sweep", trace, "--opt", THOUSAND, "--no-interval")
    bars.ratio("sweep of 1000 speed-ups, no intervals", plain, gzip, "gzip -dc", 5 * WHATIF_THEN)
    faults = (plain.faults - whatif.faults) / 1000 if plain and whatif else None
    bars.add("page faults a point of it", faults, "faults", None, 100)
    whole = daydream("sweep", trace, "--opt", THOUSAND)
    bars.ratio("sweep of 1000 speed-ups", whole, gzip, "gzip -dc", 5 * WHATIF_THEN)
    some = daydream("sweep", trace, "--opt", "speedup(kernel:.,1.05..2.95+0.05)")
    each = (some.cpu - whatif.cpu) / 39 / whatif.cpu if some and whatif else None
    bars.add("a point with its interval, of 39", each, "x", "whatif", None)


def ask_many(bars, trace, runs, at):
    """10,000 what-ifs from a .ddtrace, by the clock: on two cores, so not on more."""
    made = at / "many.ddtrace"
    if not trace.exists() or run([PROGRAM, "import", trace, "-o", made]) is None:
        bars.add("10,000 what-ifs, from a .ddtrace, two cores", None, "s", None, 2)
        return
    sweep = [PROGRAM, "sweep", made, "--opt", MANY, "--no-interval", "--jobs", "2"]
    costs = [c for c in (run(sweep) for _ in range(runs)) if c is not None]
    least_s = min((c.seconds for c in costs), default=None)
    bars.add("10,000 what-ifs, from a .ddtrace, two cores", least_s, "s", None, 2)
    cpu = min((c.cpu for c in costs), default=None)
    bars.add("CPU of them", cpu, "s", None, None)


def sweep_moving_steps(bars, trace, runs):
    """On the trace of the other bars no speed-up shortens the step; here each one does."""
    gzip = least(["gzip", "-dc", trace], runs) if trace.exists() else None
    sweep = [PROGRAM, "sweep", trace, "--opt", THOUSAND]
    name = "the same of a step that each of them shortens"
    bars.ratio(name, least(sweep, runs) if gzip else None, gzip, "gzip -dc", 5 * WHATIF_THEN)


def answer_large(bars, large, at):
    events = None
    if large is None:
        large, events = at / "large.json.gz", LARGE_EVENTS
        made_recordings.training(large, events)
    imported = run([PROGRAM, "import", large, "-o", at / "large.ddtrace"])
    answer = run([PROGRAM, "whatif", large])
    bars.ratio("first answer of a large trace", answer, imported, "its import", 1.4)
    memory = answer.memory / imported.memory if answer and imported else None
    bars.add("memory of that answer", memory, "x", "its import", 2)
    each = answer.memory / events if answer and events else None
    bars.add("memory of that answer, an event", each, "bytes", None, 250)


def advise_streams(bars, runs, at):
    """Linear: twice the streams take about twice as long."""
    costs = []
    for count in [STREAMS // 2, STREAMS]:
        made_recordings.streams(at / "streams.json.gz", count)
        costs.append(least([PROGRAM, "advise", at / "streams.json.gz"], runs))
    half, all_of = costs
    bars.add(f"advise of {STREAMS:,} streams", all_of.cpu if all_of else None, "s", None, 2)
    bars.ratio("the same", all_of, half, "half as many", None)


def benchmark(program, name):
    """CPU time in ns and counters of one benchmark, or None."""
    path = BENCHES / program
    if not path.exists():
        return None
    out = subprocess.run(
        [path, f"--benchmark_filter={name}", "--benchmark_format=json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    ).stdout
    rows = json.loads(out)["benchmarks"] if out.strip() else []
    return rows[0] if rows else None


def build(bars, runs):
    """What an event costs, and how that grows: the least of some runs, taken in turn."""
    small, large = [], []
    for _ in range(runs):
        for each, name in [(small, "BM_BuildGraph$"), (large, "BM_BuildLargeGraph$")]:
            row = benchmark("build_bench", name)
            if row:
                each.append(row["each"] * 1e9)
    ns = min(small, default=None)
    bars.add("graph building, an event", ns, "ns", None, 135)
    ratio = min(large) / ns if ns and large else None
    bars.add("the same of 4 M events", ratio, "x", "0.12 M", 1.2)


def play(bars):
    def ns_per(row, pieces):
        factor = {"ns": 1, "us": 1e3, "ms": 1e6}[row["time_unit"]]
        return row["cpu_time"] * factor / pieces

    batch = benchmark("build_bench", "BM_EightScenarios$")
    batch_ns = batch["each"] * 1e9 if batch else None
    bars.add("eight scenarios of a real graph, a task and scenario", batch_ns, "ns", None, BATCH_NS)
    for name, product in [("", "BM_NewProduct$"), (" in a batch", "BM_NewBatchedProduct$")]:
        new = benchmark("op_time_bench", product)
        bars.add(f"time of a new product{name}", ns_per(new, 1) if new else None, "ns", None, 500)
    whole = benchmark("simulate_bench", "BM_PlanRun/tasks:1000000/local:1$")
    whole_ns = ns_per(whole, 1e6) if whole else None
    bars.add("replay from columns, a task", whole_ns, "ns", None, None)
    step = benchmark("build_bench", "BM_StepFromColumns$")
    step_ns = step["each"] * 1e9 if step else None
    bars.add("the step alone from columns, a task", step_ns, "ns", None, 3)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--format", choices=["json"], default="json")
    parser.add_argument("--trace", type=pathlib.Path, default=data() / "traces" / TRACE)
    parser.add_argument("--large", type=pathlib.Path, help="a .json.gz of about 1 GB of JSON; else one is made")
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    bars = Bars()
    version = least([PROGRAM, "--version"], max(20, args.runs))
    bars.add("--version", version.cpu * 1e3 if version else None, "ms", None, 3)
    with tempfile.TemporaryDirectory() as folder:
        ask(bars, args.trace, args.runs, pathlib.Path(folder))
        sweep_moving_steps(bars, data() / "traces" / MANY_TRACE, args.runs)
        ask_many(bars, data() / "traces" / MANY_TRACE, args.runs, pathlib.Path(folder))
        advise_streams(bars, args.runs, pathlib.Path(folder))
        answer_large(bars, args.large, pathlib.Path(folder))
    build(bars, args.runs)
    play(bars)
    page_bars.add(bars, PROGRAM, args.runs)
    python_bars.add(bars, PROGRAM, args.trace, max(9, args.runs))
    print("[\n" + ",\n".join("  " + json.dumps(row) for row in bars.rows) + "\n]")
    return 1 if any(row["ok"] is False for row in bars.rows) else 0


if __name__ == "__main__":
    sys.exit(main())
