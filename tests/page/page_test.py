"""The page of `daydream report`: what stands in it, and what a browser makes of it.

Arguments: the program, the folder of the sources. What needs a browser is skipped, saying so,
where there is no Chromium; the exit code is then 77.
"""

import base64
import collections
import csv
import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import browser

PROGRAM, SOURCE = sys.argv[1:3]
SYNTHETIC = os.path.join(SOURCE, "examples", "resnet50-synthetic.ddtrace")
HOSTILE = "</script><img src=x onerror=\"window.hacked=1\"><svg onload='window.hacked=1'>"


def run(*args, status=0):
    done = subprocess.run([PROGRAM, *args], capture_output=True, text=True, check=False)
    assert done.returncode == status, (args, done.returncode, done.stderr)
    return done.stdout


def blocks(page):
    """The JSON in a page, by id."""
    pattern = r'<script type="application/json" id="([a-z-]+)">(.*?)</script>'
    return {name: json.loads(text) for name, text in re.findall(pattern, page, re.S)}


def cut(name):
    """As the timelines have it: 200 characters, the middle left out of longer ones."""
    return name if len(name) <= 200 else name[:99] + "..." + name[-98:]


def hostile_trace():
    """Three steps of a program whose names are all markup."""
    events = [{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": HOSTILE}}]
    for step in range(3):
        at = 1000 * step
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1,
                       "tid": 1, "ts": at, "dur": 900})
        for i in range(4):
            call = at + 10 + 100 * i
            ids = {"correlation": 10 * step + i + 1, "External id": 10 * step + i + 1}
            events += [
                {"ph": "X", "cat": "cpu_op", "name": "aten::" + HOSTILE, "pid": 1, "tid": 1,
                 "ts": call, "dur": 50, "args": ids},
                {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
                 "ts": call + 5, "dur": 10, "args": ids},
                {"ph": "X", "cat": "kernel", "name": "void " + HOSTILE, "pid": 0, "tid": 7,
                 "ts": call + 20, "dur": 150 if i == 3 else 70,
                 "args": {"device": 0, "stream": 7, **ids}}]
    return {"traceEvents": events, "deviceProperties": [{"id": 0, "name": HOSTILE}]}


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.synthetic = os.path.join(cls.folder.name, "synthetic.html")
        run("report", SYNTHETIC, "--opt", "amp,fuse", "-o", cls.synthetic)
        cls.advice = os.path.join(cls.folder.name, "advice.html")
        run("advise", SYNTHETIC, "--html", "-o", cls.advice)
        trace = os.path.join(cls.folder.name, "hostile.json")
        with open(trace, "w", encoding="utf-8") as file:
            json.dump(hostile_trace(), file)
        cls.hostile = os.path.join(cls.folder.name, "hostile.html")
        run("report", trace, "--opt", "free-launch", "--title", HOSTILE, "-o", cls.hostile)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def text(self, path):
        with open(path, encoding="utf-8") as file:
            return file.read()


class File(Pages):
    def test_the_policy_names_the_hashes_of_what_is_in_it(self):
        page = self.text(self.synthetic)
        policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1]
        style = re.search(r"<style>(.*?)</style>", page, re.S)[1]
        script = re.search(r"<script>(.*)</script>", page, re.S)[1]
        for name, text in (("style", style), ("script", script)):
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            self.assertIn(f"{name}-src 'sha256-{digest}'", policy)
        self.assertTrue(policy.startswith("default-src 'none'; "))
        self.assertNotIn("unsafe", policy)

    def test_it_names_nothing_to_load(self):
        template = re.sub(r'<script type="application/json".*?</script>', "",
                          self.text(self.synthetic), flags=re.S)
        for word in ("src=", "url(", "@import", "<link", "<iframe", "fetch(", "innerHTML", "eval("):
            self.assertNotIn(word, template)
        self.assertEqual(set(re.findall(r"https?://[^\"' )]+", template)),
                         {"http://www.w3.org/2000/svg"})

    def test_its_timelines_are_the_tasks_of_the_export(self):
        timeline = blocks(self.text(self.synthetic))["timeline"]
        rows = list(csv.DictReader(io.StringIO(
            run("export", SYNTHETIC, "--to", "csv", "--opt", "amp,fuse"))))
        data = iter(gzip.decompress(base64.b64decode(timeline["data"])))

        def number():
            value, shift = 0, 0
            for byte in data:
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    return value
            raise AssertionError("the data ends in the middle of a number")

        found = {}
        for side in timeline["sides"]:
            for row in side["rows"]:
                columns = [[number() for _ in range(row["slices"])] for _ in range(4)]
                at = 0
                for gap, length, name, more in zip(*columns):
                    begin, at = at + gap, at + gap + length
                    if row["title"] == "critical path":
                        continue
                    self.assertEqual(more, 0)
                    text = timeline["strings"][timeline["names"][name][0]]
                    found.setdefault(side["name"].split(":")[0], []).append((begin, at, text))
        self.assertIsNone(next(data, None))
        self.assertEqual(timeline["merged_below_ns"], 0)
        expected = {}
        for row in rows:
            begin, end = int(row["start_ns"]), int(row["end_ns"])
            if end > begin:
                expected.setdefault(row["side"].split(":")[0], []).append((begin, end, row["name"]))
        origin = min(task[0] for tasks in expected.values() for task in tasks)
        self.assertEqual(len(expected), 2)
        for side, tasks in expected.items():
            slices = sorted(found[side])
            self.assertEqual(len(slices), len(tasks), side)
            for kind in (0, 1):
                for a, b in zip(sorted(s[kind] for s in slices), sorted(t[kind] for t in tasks)):
                    self.assertLessEqual(abs(a * timeline["unit_ns"] - (b - origin)), 50, side)
            # Not assertEqual, which takes minutes to describe how such lists differ.
            extra = collections.Counter(s[2] for s in slices)
            extra.subtract(cut(t[2]) for t in tasks)
            self.assertEqual({name: n for name, n in extra.items() if n}, {}, side)

    def test_a_limit_of_slices_is_kept_and_said(self):
        path = os.path.join(self.folder.name, "few.html")
        run("report", SYNTHETIC, "--opt", "amp,fuse", "--max-slices", "3000", "-o", path)
        timeline = blocks(self.text(path))["timeline"]
        self.assertLessEqual(timeline["slices"], 3000)
        self.assertGreater(timeline["slices"], 300)
        self.assertGreater(timeline["merged_below_ns"], 0)

    def test_names_of_the_trace_are_no_markup(self):
        page = self.text(self.hostile)
        inside = blocks(page)
        self.assertEqual(page.count("</script"), len(inside) + 1)
        self.assertNotIn("<img", page)
        self.assertNotIn("<svg", page)
        names = [g["name"] for g in inside["summary-kernel"]["groups"]]
        self.assertIn("void " + HOSTILE, names)


class InABrowser(Pages):
    @classmethod
    def setUpClass(cls):
        path = browser.find()
        if path is None:
            raise unittest.SkipTest("no Chromium is installed")
        super().setUpClass()
        cls.browser = browser.Browser(path)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        super().tearDownClass()

    def calm(self):
        self.assertEqual(self.browser.requests(), [])
        self.assertEqual(self.browser.complaints(), [])

    def test_every_control_works_without_a_complaint(self):
        page = self.browser
        page.look(1200, 900)
        page.open(self.synthetic)
        self.assertIn("amp + fuse", page.evaluate("element('answer').textContent"))
        buttons = page.evaluate("document.querySelectorAll('button').length")
        self.assertGreater(buttons, 20)
        # Tabs first, each of which brings other headings to click.
        for tab in range(page.evaluate("document.querySelectorAll('[role=tab]').length")):
            page.evaluate(f"document.querySelectorAll('[role=tab]')[{tab}].click()")
            page.evaluate("document.querySelectorAll('button:not([role=tab])').forEach(b => b.click())")
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        page.evaluate("document.querySelectorAll('select').forEach(s => { s.selectedIndex = 0;"
                      "s.dispatchEvent(new Event('change')); })")
        self.calm()

    def test_tables_are_sorted_by_what_is_clicked(self):
        page = self.browser
        page.open(self.synthetic)
        page.evaluate("document.querySelectorAll('[role=tab]')[3].click()")
        column = ("[...document.querySelectorAll('#tables tbody tr')]"
                  ".map(r => parseFloat(r.children[3].textContent.replaceAll(',', '')))")
        page.evaluate("document.querySelectorAll('#tables th button')[3].click()")
        calls = page.evaluate(column)
        self.assertGreater(len(calls), 5)
        self.assertEqual(calls, sorted(calls, reverse=True))
        page.evaluate("document.querySelectorAll('#tables th button')[3].click()")
        calls = page.evaluate(column)
        self.assertEqual(calls, sorted(calls))

    def test_the_keyboard_moves_the_timeline(self):
        page = self.browser
        page.open(self.synthetic)
        page.evaluate("element('timeline').focus()")
        span = "daydreamTimeline.to - daydreamTimeline.from"
        whole = page.evaluate(span)
        page.press("w")
        self.assertAlmostEqual(page.evaluate(span), 0.6 * whole, delta=whole * 1e-6)
        page.press("0")
        self.assertEqual(page.evaluate(span), whole)
        for key in ("ArrowDown", "ArrowRight", "Enter"):
            page.press(key)
        self.assertRegex(page.evaluate("element('slice').textContent"), " at .* (GPU|thread|critical path)")
        self.assertLess(page.evaluate(span), whole)
        self.calm()

    def test_the_advice_is_a_table_with_how_to_try_each(self):
        page = self.browser
        told = json.loads(run("advise", SYNTHETIC, "--format", "json"))
        page.open(self.advice)
        column = "[...document.querySelectorAll('#advice tbody tr')].map(r => r.children[0].textContent)"
        self.assertEqual(page.evaluate(column), [o["prediction"]["name"] for o in told["options"]][:25])
        for option in told["options"]:
            self.assertIn(option["check"], page.evaluate("element('advice').textContent"))
            self.assertIn(option["how"], page.evaluate("element('advice').textContent"))
        page.evaluate("document.querySelectorAll('#advice details').forEach(d => { d.open = true; })")
        page.evaluate("document.querySelectorAll('#advice button').forEach(b => b.click())")
        self.calm()

    def test_names_of_the_trace_run_nothing(self):
        page = self.browser
        page.open(self.hostile)
        for tab in range(page.evaluate("document.querySelectorAll('[role=tab]').length")):
            page.evaluate(f"document.querySelectorAll('[role=tab]')[{tab}].click()")
        self.assertEqual(page.evaluate("typeof window.hacked"), "undefined")
        self.assertEqual(page.evaluate("document.querySelectorAll('img').length"), 0)
        self.assertEqual(page.evaluate("element('title').textContent"), HOSTILE)
        self.calm()

    def test_a_phone_needs_no_scrolling_sideways(self):
        page = self.browser
        page.look(360, 740, dark=True, phone=True)
        for path in (self.synthetic, self.hostile, self.advice):
            page.open(path)
            self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), 360)
        self.assertEqual(page.evaluate("getComputedStyle(document.body).backgroundColor"), "rgb(20, 24, 29)")


if __name__ == "__main__":
    result = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if result.skipped else 0)
