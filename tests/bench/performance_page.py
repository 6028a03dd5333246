#!/usr/bin/env python3
"""The measured tables of docs/performance.md and its pictures, of the numbers in docs/performance/*.json.

performance_page.py            writes them
performance_page.py --check    says what is other than it has to be, and exits with 1
"""

import difflib
import json
import pathlib
import re
import sys

from bars import CAUSAL_THEN, MOST_OF_IMPORT, WHATIF_THEN
from growth_picture import COLOURS, picture

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "performance.md"
HEADS = {"lanes": "streams", "scaled": "ranks, of one GPU's trace"}
# As multiples of `gzip -dc` of the first recording, as bars.py has them.
QUESTION_BARS = {
    "import": MOST_OF_IMPORT,
    "whatif --opt amp,fuse": 2 * WHATIF_THEN,
    "causal": 0.5 * CAUSAL_THEN,
    "advise": 5 * WHATIF_THEN,
}
SWEEP_BAR = 5 * WHATIF_THEN
UNITS = [(1e9, "GB"), (1e6, "MB")]


def seconds(value):
    return "not measured" if value is None else f"{value:.2g} s" if value < 10 else f"{value:.0f} s"


def memory(value):
    if value is None:
        return "not measured"
    size, unit = next((u for u in UNITS if value >= u[0]), UNITS[-1])
    return f"{value / size:.{1 if unit == 'GB' else 0}f} {unit}"


def questions(measured):
    recordings = measured["recordings"]
    head = ["", *[f"`{r['name'].split('/')[-1]}`" for r in recordings], "bar"]
    gzip = [r["rows"][0]["cpu_s"] for r in recordings]
    rows = [
        ["events of the file", *[f"{r['events']:,}" for r in recordings], ""],
        ["of which a graph is built", *[f"{r['kept']:,}" for r in recordings], ""],
        ["`gzip -dc`", *[f"{s:.3f} s" for s in gzip], ""],
    ]
    for i, row in enumerate(recordings[0]["rows"][1:], 1):
        costs = [r["rows"][i]["cpu_s"] for r in recordings]
        bar = QUESTION_BARS.get(row["what"], SWEEP_BAR if row["what"].startswith("sweep") else None)
        name = re.sub(r"^([a-z]+( --opt \S+)?)", r"`\1`", row["what"])
        times = ["failed" if c is None else f"{c / s:.2g}" for c, s in zip(costs, gzip)]
        rows.append([name, *times, f"{bar:.2g}" if bar else ""])
    return f"On {measured['machine']}:\n\n" + table(head, rows)


def cell(row):
    return "failed" if row["cpu_s"] is None else f"{seconds(row['cpu_s'])}, {memory(row['memory_bytes'])}"


def table(head, rows):
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


def peers(measured):
    gzip = measured["rows"][0]["cpu_s"]

    def times(row):
        return "" if row["cpu_s"] is None else f"{row['cpu_s'] / gzip:.2g}"

    rows = [
        [f"`{r['what']}`" if r["what"].startswith(("gzip", "daydream")) else r["what"],
         seconds(r["cpu_s"]), times(r), memory(r["memory_bytes"])]
        for r in measured["rows"]
    ]
    about = f"`{measured['file']}`, {measured['machine']}:"
    return about + "\n\n" + table(["program", "CPU", "times `gzip -dc`", "memory"], rows)


def growth(measured):
    out = [f"Made recordings, {measured['machine']}; CPU of all threads and the peak of memory:"]
    for axis in dict.fromkeys(r["axis"] for r in measured["rows"]):
        of_axis = [r for r in measured["rows"] if r["axis"] == axis]
        names = list(dict.fromkeys(r["what"] for r in of_axis))
        rows = []
        for count in dict.fromkeys(r["count"] for r in of_axis):
            of_count = {r["what"]: r for r in of_axis if r["count"] == count}
            rows.append([f"{count:,}", *[cell(of_count[name]) for name in names]])
        out.append(table([HEADS.get(axis, axis), *[f"`{name}`" for name in names]], rows))
    return "\n\n".join(out)


def block(page, name, content):
    """The page with what stands between the two marks of a block replaced."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, rest = page.split(begin)
    return before + begin + content + "\n" + end + rest.split(end, 1)[1]


def wanted():
    """What each file has to hold, by its path."""
    page = PAGE.read_text()
    files = {}
    for name, made in [("questions", questions), ("peers", peers), ("growth", growth)]:
        measured = json.loads((DOCS / "performance" / f"{name}.json").read_text())
        page = block(page, name, made(measured))
        if name == "growth":
            for theme in COLOURS:
                files[DOCS / "pictures" / f"growth-{theme}.svg"] = picture(measured["rows"], theme)
    files[PAGE] = page
    return files


def main():
    off = 0
    for path, content in wanted().items():
        is_now = path.read_text() if path.exists() else ""
        if is_now == content:
            continue
        if "--check" not in sys.argv:
            path.write_text(content)
            continue
        off += 1
        sys.stdout.writelines(
            difflib.unified_diff(is_now.splitlines(True), content.splitlines(True), str(path), "as measured")
        )
    if off:
        sys.exit("docs/performance.md is not what was measured: tests/bench/performance_page.py writes it")


if __name__ == "__main__":
    main()
