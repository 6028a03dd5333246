#!/usr/bin/env python3
"""performance_test.py: docs/performance.md holds what was measured, and a small measurement makes a page and a picture."""

import json
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

import growth_picture
import performance_page

HERE = Path(__file__).parent
AXES = {"events", "lanes", "scenarios", "ranks", "scaled"}


def main():
    subprocess.run([sys.executable, HERE / "performance_page.py", "--check"], check=True)
    program = [sys.executable, HERE / "growth.py", "--quick", "--runs", "1"]
    asked = subprocess.run(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True)
    measured = json.loads(asked.stdout)
    rows = measured["rows"]
    assert {row["axis"] for row in rows} == AXES, rows
    failed = [row for row in rows if not row["cpu_s"] or row["memory_bytes"] < 1e6]
    assert not failed, failed
    page = performance_page.growth(measured)
    assert "failed" not in page, page
    kept = json.loads((performance_page.DOCS / "performance/growth.json").read_text())["rows"]
    failed = [row for row in kept if row["cpu_s"] is None]
    assert not failed, failed
    assert all(f"`{row['what']}`" in page for row in rows), page
    picture = xml.fromstring(growth_picture.picture(rows, "light"))
    dots = [part for part in picture if part.tag.endswith("circle")]
    assert len(dots) == len(rows), (len(dots), len(rows))
    print(f"{len(rows)} rows, {len(dots)} dots")


if __name__ == "__main__":
    main()
