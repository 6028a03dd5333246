#!/usr/bin/env python3
"""What other programs take to read a recording and to answer something about it, beside this one.

Prints a JSON object: the machine, the file, and rows of {"what", "cpu_s", "memory_bytes"}: CPU time of all threads and
the peak of memory, each of the run that took least; null: not installed, or it failed, and so not measured.
scripts/bench --peers --write puts them into docs/performance.md. Holistic Trace Analysis is `pip install
HolisticTraceAnalysis 'pandas<3'`, TraceLens comes from its repository (the package of that name is another one).
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from cost import PROGRAM, data, least, machine

TRACE = "training/sharded-v100-rank1of2.json.gz"  # 216,000 events

JSON = "import gzip, json, sys; json.load(gzip.open(sys.argv[1]))"
HTA = """import sys
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir='')
"""
HTA_BREAKDOWN = HTA + "analysis.get_temporal_breakdown(visualize=False)"
HTA_PATH = HTA + (
    "graph, ok = analysis.critical_path_analysis(rank=0, annotation='ProfilerStep', instance_id=0)\nassert ok"
)
TRACELENS = """import sys
from TraceLens import TreePerfAnalyzer
TreePerfAnalyzer.from_file(sys.argv[1]).get_df_gpu_timeline()"""


def version(python, package):
    """Of an installed package, or None."""
    ask = f"from importlib.metadata import version; print(version('{package}'))"
    asked = subprocess.run(
        [python, "-c", ask], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
    )
    return asked.stdout.strip() if asked.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", type=pathlib.Path, default=data() / "traces" / TRACE)
    parser.add_argument("--python", default=sys.executable, help="the one with the other packages")
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    if not args.trace.exists():
        sys.exit(f"{args.trace} is not there: name another recording with --trace")

    def in_python(code):
        return [args.python, "-c", code, args.trace]

    hta, lens = version(args.python, "HolisticTraceAnalysis"), version(args.python, "TraceLens")
    hta_name = f"Holistic Trace Analysis {hta}" if hta else "Holistic Trace Analysis"
    lens_name = f"TraceLens {lens}" if lens else "TraceLens"
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.ddtrace"
        commands = {
            "gzip -dc": ["gzip", "-dc", args.trace],
            "daydream import": [PROGRAM, "import", args.trace, "-f", "-o", out],
            "daydream whatif": [PROGRAM, "whatif", args.trace],
            "daydream whatif --opt amp,fuse": [PROGRAM, "whatif", args.trace, "--opt", "amp,fuse"],
            "daydream advise": [PROGRAM, "advise", args.trace],
            "json.load of Python's standard library": in_python(JSON),
            f"{hta_name}, time breakdown": in_python(HTA_BREAKDOWN),
            f"{hta_name}, critical path of one step": in_python(HTA_PATH),
            f"{lens_name}, GPU timeline": in_python(TRACELENS),
        }
        rows = []
        for what, command in commands.items():
            cost = least(command, args.runs)
            row = dict(what=what, cpu_s=None, memory_bytes=None)
            if cost is not None:
                row.update(cpu_s=float(f"{cost.cpu:.3g}"), memory_bytes=cost.memory)
            rows.append(row)
            print(row, file=sys.stderr, flush=True)
    print(json.dumps(dict(machine=machine(), file=args.trace.name, rows=rows), indent=1))


if __name__ == "__main__":
    main()
