"""The page of `daydream report`: what stands in it, and what a browser makes of it.

Arguments: the program, the folder of the sources. What needs a browser is skipped, saying so,
where there is no Chromium; the exit code is then 77.
"""

import base64
import collections
import csv
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
from made_traces import HOSTILE, big_trace, hostile_trace
from packed import blocks, cut, slices_of

PROGRAM, SOURCE = sys.argv[1:3]
SYNTHETIC = os.path.join(SOURCE, "examples", "resnet50-synthetic.ddtrace")
RANKS = os.path.join(SOURCE, "examples", "two-ranks-synthetic")
# A file with half a million slices is held to 1.5 MB.
MOST_BYTES_PER_SLICE = 1.5e6 / 500_000


def run(*args, status=0):
    done = subprocess.run([PROGRAM, *args], capture_output=True, text=True, check=False)
    assert done.returncode == status, (args, done.returncode, done.stderr)
    return done.stdout


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
        cls.ranks = os.path.join(cls.folder.name, "ranks.html")
        run("report", RANKS, "--opt", "bandwidth(x2)", "-o", cls.ranks)
        cls.sweep = os.path.join(cls.folder.name, "sweep.html")
        found = os.path.join(cls.folder.name, "sweep.json")
        run("sweep", SYNTHETIC, "--opt", "amp(dtype={bf16,fp16}),prefetch(1..2)", "--no-interval", "--format",
            "json", "-o", found)
        run("report", found, "-o", cls.sweep)
        cls.scale = os.path.join(cls.folder.name, "scale.html")
        found = os.path.join(cls.folder.name, "scale.json")
        run("scale", SYNTHETIC, "--fabric", "nvlink2", "--ranks", "1,2,4", "--format", "json", "-o", found)
        run("report", found, "-o", cls.scale)
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
        found = {}
        for side, title, slices in slices_of(timeline):
            if title == "critical path":
                continue
            self.assertEqual({s[3] for s in slices} - {1}, set())
            found.setdefault(side, []).extend(s[:3] for s in slices)
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

    def test_tables_that_are_cut_still_add_up(self):
        path = os.path.join(self.folder.name, "layers.json")
        events = []
        for step in range(4):
            for i in range(400):
                at, ids = 20000 * step + 40 * i, {"correlation": 400 * step + i + 1, "External id": 400 * step + i + 1}
                events += [
                    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at,
                     "dur": 5, "args": ids},
                    {"ph": "X", "cat": "kernel", "name": f"kernel_{i}", "pid": 0, "tid": 7, "ts": at + 8,
                     "dur": 1 + i % 30, "args": {"device": 0, "stream": 7, **ids}}]
            events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1,
                           "ts": 20000 * step, "dur": 19000})
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events}, file)
        page = os.path.join(self.folder.name, "layers.html")
        run("report", path, "--opt", "free-launch", "-o", page)
        whole = json.loads(run("summary", path, "--by", "kernel", "--format", "json"))["groups"]
        inside = blocks(self.text(page))
        before, after = (inside[id]["groups"] for id in ("summary-kernel", "after-kernel"))
        self.assertLess(len(before), len(whole))
        self.assertEqual([g["name"] for g in before if "others" in g["name"]], [before[-1]["name"]])
        self.assertEqual({g["name"] for g in before}, {g["name"] for g in after})
        for key in ("time_ns", "critical_path_ns"):
            self.assertEqual(sum(g[key] for g in before), sum(g[key] for g in whole))

    def test_names_of_the_trace_are_no_markup(self):
        page = self.text(self.hostile)
        inside = blocks(page)
        self.assertEqual(page.count("</script"), len(inside) + 1)
        self.assertNotIn("<img", page)
        self.assertNotIn("<svg", page)
        names = [g["name"] for g in inside["summary-kernel"]["groups"]]
        self.assertIn("void " + HOSTILE, names)

    def test_a_folder_of_ranks_has_the_answer_of_all_together(self):
        told = json.loads(run("whatif", RANKS, "--opt", "bandwidth(x2)", "--format", "json"))
        self.assertEqual(blocks(self.text(self.ranks))["ranks"], told)
        # What is asked about one rank has no such part.
        path = os.path.join(self.folder.name, "one.html")
        run("report", RANKS, "--rank", "1", "--opt", "bandwidth(x2)", "-o", path)
        one = blocks(self.text(path))
        self.assertNotIn("ranks", one)
        self.assertEqual(one["about"]["rank"], 1)

    def test_memory_over_a_step_peaks_where_the_profile_does(self):
        inside = blocks(self.text(self.synthetic))
        sides = inside["memory"]["sides"]
        scenarios = inside["whatif"]["scenarios"]
        for side, scenario in ((sides[0], scenarios[0]), (sides[1], scenarios[-1])):
            peak = max(bytes_ for _, bytes_ in side["points"])
            self.assertAlmostEqual(peak, scenario["peak_memory_bytes"], delta=0.02 * peak)
            self.assertTrue(all(0 <= at <= side["window_ns"] for at, _ in side["points"]))

    def test_every_assumption_has_a_source(self):
        rows = blocks(self.text(self.synthetic))["assumptions"]
        self.assertEqual({r["opt"] for r in rows}, {"amp", "fuse"})
        for row in rows:
            self.assertTrue(row["source"], row)

    def test_slices_know_what_changed_them(self):
        inside = blocks(self.text(self.synthetic))
        causes = inside["timeline"]["causes"]
        main = inside["whatif"]["scenarios"][-1]
        known = {(c["opt"], c["what"]) for c in causes}
        self.assertTrue(any((c["opt"], c["what"]) in known for c in main["causes"]))
        seen = {s[4] for _, _, slices in slices_of(inside["timeline"]) for s in slices}
        self.assertLessEqual(max(seen), len(causes))
        self.assertGreater(len(seen), 3)

    def test_a_sweep_that_is_cut_is_refused(self):
        path = os.path.join(self.folder.name, "cut.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write('{\n  "schema": "daydream.sweep/1",\n  "rows": [\n    {"row": 0,')
        run("report", path, "-o", os.path.join(self.folder.name, "cut.html"), status=3)


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
        page.evaluate("element('lanes').focus()")
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
        rows = []
        for option in told["options"]:
            rows += [option["prediction"]["name"]] + ["or " + w["prediction"]["name"] for w in option.get("other_ways", [])]
        rows += ["best set"] if told["best"] else []
        found = page.evaluate(column)
        self.assertEqual(found[:len(rows)], rows[:25])
        for option in told["options"]:
            self.assertIn(option["check"], page.evaluate("element('advice').textContent"))
            self.assertIn(option["how"], page.evaluate("element('advice').textContent"))
        page.evaluate("document.querySelectorAll('#advice details').forEach(d => { d.open = true; })")
        page.evaluate("document.querySelectorAll('#advice button').forEach(b => b.click())")
        self.calm()

    def test_half_a_million_slices_are_small_and_quick(self):
        trace, path = (os.path.join(self.folder.name, "big" + end) for end in (".json", ".html"))
        with open(trace, "w", encoding="utf-8") as file:
            json.dump(big_trace(), file)
        run("report", trace, "--opt", "free-launch", "-o", path)
        slices = blocks(self.text(path))["timeline"]["slices"]
        self.assertGreater(slices, 400_000)
        self.assertLess(os.path.getsize(path) / slices, MOST_BYTES_PER_SLICE)
        page = self.browser
        page.look(1300, 900)
        first = page.open(path)
        frames = page.evaluate("(() => { const v = daydreamTimeline, took = []; for (let i = 0; i < 15; ++i) {"
                               "v.from = i * v.length / 40; v.to = v.from + v.length / 2; v.draw(); took.push(v.took); }"
                               "return took.sort((a, b) => a - b); })()")
        print(f"{os.path.getsize(path)} bytes, {slices} slices, drawn after {first:.2f} s, "
              f"frames {frames[7]:.1f} ms (median), {frames[-1]:.1f} ms (longest)", file=sys.stderr)
        self.calm()

    def test_the_page_decodes_what_is_packed(self):
        page = self.browser
        page.open(self.synthetic)
        told = [[s[0], s[1], s[3], s[4]] for _, _, slices in
                slices_of(blocks(self.text(self.synthetic))["timeline"]) for s in slices]
        found = page.evaluate("decodeRows(block('timeline')).then(rows => rows.flatMap(r =>"
                              "Array.from(r.begin, (b, i) => [b, r.end[i], r.tasks[i], r.cause[i]])))")
        self.assertEqual(len(found), len(told))
        self.assertTrue(found == told)

    def test_causes_and_the_path_lead_into_the_timeline(self):
        page = self.browser
        page.open(self.synthetic)
        page.evaluate("document.querySelector('#causes button.link').click()")
        self.assertGreater(page.evaluate("daydreamTimeline.cause"), 0)
        self.assertIn("changed by", page.evaluate("element('related').textContent"))
        page.evaluate("daydreamTimeline.showCause(0)")
        page.evaluate("daydreamTimeline.select({row: daydreamTimeline.rows[0], i: 3})")
        self.assertGreater(page.evaluate("element('related').querySelectorAll('button').length"), 0)
        page.evaluate("element('related').querySelector('button').click()")
        self.assertNotEqual(page.evaluate("daydreamTimeline.selected.row.title"), "critical path")
        self.calm()

    def test_ranks_wait_for_each_other_on_the_page(self):
        page = self.browser
        page.open(self.ranks)
        told = blocks(self.text(self.ranks))["ranks"]
        text = page.evaluate("element('together').textContent")
        self.assertIn("Who waits for whom", text)
        for r in told["ranks"]["recorded"]:
            self.assertIn(f"rank {r}", text)
        step = page.evaluate(f"time({told['scenarios'][0]['step_ns']})")
        self.assertIn(step, page.evaluate("element('answer').textContent"))
        self.assertIn("played together", page.evaluate("element('answer').textContent"))
        self.calm()

    def test_a_sweep_and_a_scaling_curve_are_drawn(self):
        page = self.browser
        page.open(self.sweep)
        self.assertEqual(page.evaluate("document.querySelectorAll('#heat td.heat').length"), 4)
        self.assertGreater(page.evaluate("document.querySelectorAll('#pareto circle').length"), 3)
        page.evaluate("document.querySelectorAll('button').forEach(b => b.click())")
        self.calm()
        page.open(self.scale)
        self.assertEqual(page.evaluate("document.querySelectorAll('#curves circle').length"), 6)
        self.calm()

    def test_paper_is_light_and_has_everything_unfolded(self):
        page = self.browser
        page.look(1200, 900, dark=True)
        page.open(self.synthetic)
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        self.assertEqual(page.evaluate("document.querySelectorAll('details:not([open])').length"), 0)
        self.assertEqual(page.evaluate("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
        page.call("Emulation.setEmulatedMedia", media="print")
        self.assertGreater(page.evaluate("document.querySelector('#tables th button').getBoundingClientRect().width"), 0)
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        self.assertGreater(page.evaluate("document.querySelectorAll('details:not([open])').length"), 0)
        page.call("Emulation.setEmulatedMedia", media="")
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
        for path in (self.synthetic, self.hostile, self.advice, self.ranks, self.sweep, self.scale):
            page.open(path)
            self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), 360)
        self.assertEqual(page.evaluate("getComputedStyle(document.body).backgroundColor"), "rgb(20, 24, 29)")


if __name__ == "__main__":
    result = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if result.skipped else 0)
