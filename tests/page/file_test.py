"""What stands in the page of `daydream report`, as a file."""

import base64
import collections
import csv
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import threading

from made_traces import HOSTILE, memory_trace
from packed import blocks, cut, slices_of
from pages import PROGRAM, RANKS, SOURCE, SYNTHETIC, Pages, main, run


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
        # What a slice stands for is not lost: every cause that was drawn still is.
        whole = {c["what"]: c["slices"] for c in blocks(self.text(self.synthetic))["timeline"]["causes"]}
        self.assertEqual({c["what"] for c in timeline["causes"] if c["slices"]}, {c for c, n in whole.items() if n})
        seen = collections.Counter(s[4] for _, _, slices in slices_of(timeline) for s in slices)
        self.assertEqual([seen[i + 1] for i in range(len(timeline["causes"]))], [c["slices"] for c in timeline["causes"]])

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
        told["trace"]["file"] = os.path.basename(RANKS)
        self.assertEqual(blocks(self.text(self.ranks))["ranks"], told)
        # What is asked about one rank has no such part.
        path = os.path.join(self.folder.name, "one.html")
        run("report", RANKS, "--rank", "1", "--opt", "bandwidth(x2)", "-o", path)
        one = blocks(self.text(path))
        self.assertNotIn("ranks", one)
        self.assertEqual(one["about"]["rank"], 1)

    def test_what_only_ranks_together_can_tell_is_an_answer(self):
        path = os.path.join(self.folder.name, "straggler.html")
        run("report", RANKS, "--opt", "straggler(0,host=0.9)", "-o", path)
        inside = blocks(self.text(path))
        self.assertEqual(inside["whatif"]["scenarios"][-1]["error"]["code"], "E0601")
        self.assertEqual(inside["ranks"]["scenarios"][-1]["opts"], ["straggler(rank=0,host=0.9x)"])
        self.assertGreater(inside["ranks"]["scenarios"][-1]["step_ns"], 0)
        # ... and what they cannot is none, whatever one of them says.
        run("report", RANKS, "--opt", "straggler(5,host=0.9)", "-f", "-o", path, status=4)
        # The last one that is asked answers, though it is a part of the first.
        run("report", RANKS, "--opt", "bandwidth(x2),latency(x0.5)", "--opt", "bandwidth(x2)", "-f", "-o", path)
        self.assertEqual([s["name"] for s in blocks(self.text(path))["ranks"]["scenarios"]][-1], "bandwidth(by=2x)")

    def test_advice_about_ranks_is_that_of_all(self):
        path = os.path.join(self.folder.name, "advised-ranks.html")
        run("report", RANKS, "-o", path)
        inside = blocks(self.text(path))
        told = json.loads(run("advise", RANKS, "--format", "json"))
        self.assertEqual(inside["advise"]["options"], told["options"])
        self.assertEqual(inside["advise"]["step_ms"], told["step_ms"])

    def test_the_command_to_copy_can_be_run(self):
        trace = os.path.join(self.folder.name, "it's $HOME.ddtrace")
        shutil.copy(SYNTHETIC, trace)
        path = os.path.join(self.folder.name, "copy.html")
        run("report", trace, "--steps", "1-5", "--max-replay-error", "50%", "-o", path)
        command = blocks(self.text(path))["about"]["next"]
        self.assertIn("--steps 1-5", command)
        self.assertIn("--max-replay-error 50%", command)
        folder = os.path.join(self.folder.name, "copied")
        os.mkdir(folder)
        words = command.replace("daydream", os.path.abspath(PROGRAM), 1)
        shutil.copy(trace, folder)
        subprocess.run(["sh", "-c", words], check=True, cwd=folder, capture_output=True)
        os.remove(os.path.join(folder, os.path.basename(trace)))
        self.assertEqual(len(os.listdir(folder)), 1)

    def test_pages_tell_no_folder_of_the_machine_that_made_them(self):
        inside = os.path.join(self.folder.name, "a-folder")
        shutil.copytree(RANKS, os.path.join(inside, "ranks"))
        trace, path = os.path.join(inside, "run.ddtrace"), os.path.join(self.folder.name, "bare.html")
        shutil.copy(SYNTHETIC, trace)
        mine = shutil.copy(os.path.join(SOURCE, "examples/optimizations/batch-norm-restructuring.yaml"), inside)
        wrong = shutil.copy(os.path.join(SOURCE, "examples/optimizations/fused-adam.yaml"), inside)  # finds no Adam
        curve = os.path.join(inside, "curve.json")
        run("scale", trace, "--fabric", "nvlink2", "--ranks", "1,2", "--format", "json", "-o", curve)
        for asked in (["report", trace, "--opt", "amp", "--opt", mine, "--measured", trace], ["report", trace, "--opt-file", mine],
                      ["report", trace, "--opt", wrong],
                      ["report", os.path.join(inside, "ranks"), "--opt", "amp"], ["report", os.path.join(inside, "ranks")],
                      ["advise", trace, "--html"], ["report", curve]):
            subprocess.run([PROGRAM, *asked, "-f", "-o", path], check=False, capture_output=True)
            self.assertEqual(re.findall(".{0,40}a-folder.{0,40}", self.text(path)), [], asked)
            os.remove(path)

    def test_levels_of_memory_last_until_they_change(self):
        trace, path = (os.path.join(self.folder.name, "memory" + end) for end in (".json", ".html"))
        with open(trace, "w", encoding="utf-8") as file:
            json.dump(memory_trace(), file)
        run("report", trace, "--opt", "free-launch", "-o", path)
        points = blocks(self.text(path))["memory"]["recorded"]["points"]  # the window begins 0.98 ms before its mark
        self.assertEqual(max(level for _, level in points), 8e9)
        self.assertEqual(max(level for at, level in points if at > 2.1e6), 0)
        self.assertEqual([level for at, level in points if at < 2.1e6][-1], 2e9)

    def test_memory_over_a_step_peaks_where_the_profile_does(self):
        inside = blocks(self.text(self.synthetic))
        sides = inside["memory"]["sides"]
        scenarios = inside["whatif"]["scenarios"]
        for side, scenario in ((sides[0], scenarios[0]), (sides[1], scenarios[-1])):
            peak = max(bytes_ for _, bytes_ in side["points"])
            self.assertAlmostEqual(peak, scenario["peak_memory_bytes"], delta=0.02 * peak)
            self.assertTrue(all(0 <= at <= side["window_ns"] for at, _ in side["points"]))

    def test_memory_falls_while_the_backward_pass_runs(self):
        side = blocks(self.text(self.synthetic))["memory"]["sides"][0]
        levels = [level for _, level in side["points"]]
        falls = [before - after for before, after in zip(levels, levels[1:]) if after < before]
        self.assertGreater(len(falls), 20)
        self.assertLess(max(falls), 0.2 * (max(levels) - min(levels)))

    def test_kernels_without_arithmetic_have_none(self):
        roof = blocks(self.text(self.synthetic))["roofline"]
        for c in roof["classes"]:
            peak = roof["tflops"].get(c["format"], roof["tflops"]["fp32"])
            self.assertLess(c["flops"] / c["time_ns"] / 1e3, peak, c)
            if c["name"] == "copy":
                self.assertLess(c["flops"], 10 * c["bytes"], c)

    def test_steps_that_do_not_count_are_named(self):
        left_out = blocks(self.text(self.synthetic))["whatif"]["trace"]["steps_left_out"]
        self.assertEqual([s["step"] for s in left_out], ["ProfilerStep#10"])
        self.assertIn("warm-up", left_out[0]["why"])

    def test_every_assumption_has_a_source(self):
        rows = blocks(self.text(self.synthetic))["assumptions"]
        self.assertEqual({r["opt"] for r in rows}, {"amp", "fuse"})
        for row in rows:
            self.assertTrue(row["source"], row)
            self.assertFalse(row["source"].startswith("chosen by the user") and not row["given"], row)

    def test_what_finds_nothing_to_change_assumes_nothing(self):
        path = os.path.join(self.folder.name, "without.html")
        options = ("--opt", "flash-attn,fuse")
        run("report", SYNTHETIC, *options, "-o", path, status=4)
        with open(path, encoding="utf-8") as file:
            inside = blocks(file.read())
        self.assertEqual(inside["whatif"]["scenarios"][-1]["left_out"], ["flash-attn"])
        self.assertEqual({r["opt"] for r in inside["assumptions"]}, {"fuse"})

    def test_slices_know_what_changed_them(self):
        inside = blocks(self.text(self.synthetic))
        causes = inside["timeline"]["causes"]
        main = inside["whatif"]["scenarios"][-1]
        known = {(c["opt"], c["what"]) for c in causes}
        self.assertTrue(any((c["opt"], c["what"]) in known for c in main["causes"]))
        seen = {s[4] for _, _, slices in slices_of(inside["timeline"]) for s in slices}
        self.assertLessEqual(max(seen), len(causes))
        self.assertGreater(len(seen), 3)

    def test_a_sweep_that_is_damaged_is_refused(self):
        path = os.path.join(self.folder.name, "cut.json")
        begin = '{\n  "schema": "daydream.sweep/1",\n  "rows": [\n    '
        for rest, why in (('{"row": 0,', "cut after"), ('{"row": 0,}]\n}', "byte 60, in line 4"), ("]\n}", "no rows"),
                          ("7]\n}", "no object"), ('{"row": nan}]}', "in line 4"), ("{}]}}", "in line 4")):
            with open(path, "w", encoding="utf-8") as file:
                file.write(begin + rest)
            done = subprocess.run([PROGRAM, "report", path, "-o", "-"], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 3, rest)
            self.assertIn(why, done.stderr)
            self.assertIn("cut.json", done.stderr)

    def test_a_pipe_is_read_once(self):
        pipe = os.path.join(self.folder.name, "pipe")
        os.mkfifo(pipe)

        def feed():
            with open(SYNTHETIC, "rb") as source, open(pipe, "wb") as out:
                out.write(source.read())

        thread = threading.Thread(target=feed)
        thread.start()
        run("report", pipe, "--opt", "amp", "-o", os.path.join(self.folder.name, "pipe.html"))
        thread.join()


if __name__ == "__main__":
    main()
