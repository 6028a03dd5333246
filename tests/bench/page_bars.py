"""How quick the page of `daydream report` is with half a million slices, drawn by a headless Chromium in software."""

import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "page"))

import browser  # noqa: E402
from made_traces import HALF_A_MILLION, big_trace  # noqa: E402

MOST_BYTES = 1.5e6
MOST_FIRST_S = 1  # for all of the page, too
MOST_FRAME_MS = 40

# All of it, and eight places each of some parts; each picture is read back, so that it is there. The longest, in ms,
# of what was the least in three turns.
LONGEST_FRAME = """(() => {
  const v = daydreamTimeline, pen = v.canvas.getContext('2d'), took = [];
  for (const part of [1, 2, 8, 64, 1024]) {
    for (let place = 0; place < (part === 1 ? 1 : 8); ++place) {
      let least = Infinity;
      for (let turn = 0; turn < 3; ++turn) {
        const began = performance.now();
        v.from = place * (v.length - v.length / part) / 7;
        v.to = v.from + v.length / part;
        v.draw();
        pen.getImageData(0, 0, 1, 1);
        least = Math.min(least, performance.now() - began);
      }
      took.push(least);
    }
  }
  return Math.max(...took);
})()"""

# While half of it is moved along: the median time, in ms, from one picture on the screen to the next.
MOVED_FRAME = """new Promise((done) => {
  const v = daydreamTimeline, took = [];
  let last = 0;
  const next = (now) => {
    if (last > 0) took.push(now - last);
    last = now;
    v.from = took.length * v.length / 80;
    v.to = v.from + v.length / 2;
    v.draw();
    if (took.length < 40) requestAnimationFrame(next);
    else done(took.sort((a, b) => a - b)[20]);
  };
  requestAnimationFrame(next);
})"""

FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000"


def write(program, folder):
    """A page of half a million slices."""
    trace, page = folder / "big.json", folder / "big.html"
    trace.write_text(json.dumps(big_trace(**HALF_A_MILLION)), encoding="utf-8")
    subprocess.run([program, "report", trace, "--opt", "free-launch", "-o", page], check=True, stderr=subprocess.DEVNULL)
    return page


def measure(page, runs):
    """[seconds to the first picture, to the whole page, ms of the longest frame, of one that is moved]: the least."""
    found = []
    window = browser.Browser(browser.find())
    try:
        window.look(1300, 900)
        for _ in range(runs):
            whole = window.open(page)
            found.append([window.evaluate(FIRST_PAINT), whole, window.evaluate(LONGEST_FRAME), window.evaluate(MOVED_FRAME)])
    finally:
        window.close()
    return [min(column) for column in zip(*found)]


def add(bars, program, runs):
    """Rows of no value where there is no Chromium."""
    size = first = whole = longest = moved = None
    if browser.find():
        with tempfile.TemporaryDirectory() as folder:
            page = write(program, pathlib.Path(folder))
            size = page.stat().st_size
            first, whole, longest, moved = measure(page, runs)
    bars.add("page of half a million slices", size, "bytes", None, MOST_BYTES)
    bars.add("its first picture", first, "s", None, MOST_FIRST_S)
    bars.add("until all of it is drawn", whole, "s", None, MOST_FIRST_S)
    bars.add("its longest frame", longest, "ms", None, MOST_FRAME_MS)
    bars.add("a frame while it is moved", moved, "ms", None, MOST_FRAME_MS)
