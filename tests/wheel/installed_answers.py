"""Runs in the environment that the wheel was installed into: the answers are those of the command,
errors have its codes, and what a notebook does goes well."""

import copy
import gc
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings

import daydream as dd

SOURCE = os.environ["DAYDREAM_SOURCE"]
TRACE = os.path.join(SOURCE, "examples", "resnet50-synthetic.ddtrace")
RANKS = os.path.join(SOURCE, "examples", "two-ranks-synthetic")
SMALL = os.path.join(SOURCE, "examples", "launch-bound-synthetic.ddtrace")
COMMAND = os.path.join(os.path.dirname(sys.executable), "daydream")


def command(*words):
    done = subprocess.run([COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def answer(*words):
    return json.loads(command(*words, "--format", "json")[1])


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.trace = dd.load(TRACE)

    def test_the_command_is_the_program(self):
        self.assertEqual(command("--version")[1].strip(), dd.__version__)
        built = subprocess.run([os.environ["DAYDREAM_BUILT"], "--version"], stdout=subprocess.PIPE)
        self.assertEqual(built.stdout.decode().strip(), dd.__version__)

    def test_the_manual_is_where_man_looks(self):
        page = os.path.join(sys.prefix, "share", "man", "man1", "daydream.1")
        with open(page, encoding="utf-8") as f:
            self.assertEqual(f.read(), command("help", "--man")[1])

    def test_a_what_if_is_that_of_the_command(self):
        cases = [(TRACE, ["amp,fuse"]), (SMALL, ["amp(dtype=bf16)", "graphs,fuse"]), (SMALL, [])]
        for trace, opts in cases:
            flags = [word for opt in opts for word in ("--opt", opt)]
            wanted = answer("whatif", trace, *flags)
            r = dd.load(trace).whatif(*opts)
            self.assertEqual(r.to_dict(), wanted)
            main = wanted["scenarios"][wanted["main"]]
            self.assertEqual(r.baseline_ms, wanted["scenarios"][0]["step_ms"])
            for name in ("step_ms", "interval_ms", "speedup", "causes", "notes", "bound"):
                self.assertEqual(getattr(r, name), main[name], name)

    def test_flags_have_their_names(self):
        wanted = answer("whatif", TRACE, "--opt", "amp,fuse", "--no-interval", "--no-alone", "--set",
                        "amp.dtype=fp16", "--steps", "1-3")
        got = dd.load(TRACE, steps="1-3").whatif(
            "amp,fuse", interval=False, alone=False, values={"amp.dtype": "fp16"}
        )
        self.assertEqual(got.to_dict(), wanted)

    def test_the_other_questions_are_those_of_the_command(self):
        self.assertEqual(self.trace.summary(by="layer"), answer("summary", TRACE, "--by", "layer"))
        self.assertEqual(self.trace.summary(by="host"), answer("summary", TRACE, "--by", "host"))
        small = dd.load(SMALL)
        wanted = answer("advise", SMALL, "--budget", "risk=none")
        self.assertEqual(small.advise(budget="risk=none"), wanted)

    def test_a_sweep_has_a_column_for_each_parameter(self):
        opt = "speedup(class:conv,by={1.5,2})"
        frame = dd.sweep(self.trace, opt, interval=False)
        rows = answer("sweep", TRACE, "--opt", opt, "--no-interval")["rows"]
        self.assertEqual(frame["speedup.by"], [1.5, 2.0])
        both = dd.sweep(SMALL, "speedup(class:gemm,by={2,4})", "amp(dtype={fp16,bf16})")
        self.assertEqual(both["speedup.by"], [2, 4, None, None])
        self.assertIsInstance(both["speedup.by"][0], int)
        self.assertEqual(both["amp.dtype"], [None, None, "fp16", "bf16"])
        self.assertEqual(frame["step_ms"], [row["step_ns"] / 1e6 for row in rows])
        self.assertEqual(frame["speedup"], [row["speedup"] for row in rows])
        self.assertEqual(len(frame.rows()), 2)
        self.assertEqual([row["opt"] for row in frame.rows()], [row["opt"] for row in rows])

    def test_frames_go_to_pandas_where_it_is_installed(self):
        frame = self.trace.whatif("amp,fuse").to_frame()
        try:
            import pandas
        except ImportError:
            self.assertRaises(ImportError, frame.to_pandas)
            self.skipTest("no pandas")
        self.assertEqual(list(frame.to_pandas()["step_ms"]), frame["step_ms"])
        self.assertEqual(list(pandas.DataFrame(frame).columns), list(frame))

    def test_ranks_are_played_together_as_the_command_does(self):
        together = dd.load(RANKS)
        r = together.whatif("amp", "bandwidth(x2)")
        wanted = answer("whatif", RANKS, "--opt", "amp", "--opt", "bandwidth(x2)")
        self.assertEqual(r.to_dict(), wanted)
        self.assertEqual(r.step_ms, wanted["scenarios"][-1]["step_ms"])
        self.assertEqual(r.baseline_ms, wanted["scenarios"][0]["step_ms"])
        self.assertEqual(r.interval_ms, wanted["scenarios"][-1]["interval_ms"])
        self.assertEqual((r.confidence, r.bound), (wanted["scenarios"][-1]["confidence"], False))
        on = together.whatif("amp", on="rank 1").to_dict()
        self.assertEqual(on, answer("whatif", RANKS, "--opt", "amp", "--on", "rank 1"))
        self.assertEqual(together.ranks(), answer("ranks", RANKS))
        self.assertEqual(together.advise(), answer("advise", RANKS))
        self.assertEqual(together.step_ms, wanted["step_ms"])
        self.assertIn("2 ranks", repr(together))
        self.assertIn("<table>", together._repr_html_() and r._repr_html_())
        self.assertEqual(len(r.to_frame()["step_ms"]), 3)

    def test_one_of_several_ranks(self):
        one = dd.load(RANKS, rank=0)
        self.assertEqual(one.whatif("amp").to_dict(),
                         answer("whatif", RANKS, "--rank", "0", "--opt", "amp"))
        together = dd.load(RANKS)
        with self.assertRaises(dd.Error) as caught:
            one.whatif("amp", on="rank 1")
        self.assertEqual(caught.exception.code, "E0437")
        with self.assertRaises(dd.Error) as caught:
            together.whatif("amp", max_replay_error="much")
        self.assertEqual(caught.exception.code, "E0104")
        for ask in (together.summary, lambda: together.sweep("amp(dtype={fp16,bf16})")):
            with self.assertRaises(dd.Error) as caught:
                ask()
            self.assertEqual(caught.exception.code, "E0437")
            self.assertIn("rank=0", caught.exception.fix)

    def test_facts_of_the_recording(self):
        self.assertEqual(self.trace.steps, 5)
        self.assertIn("A100", self.trace.device)
        self.assertAlmostEqual(self.trace.step_ms, 110.8, delta=0.1)

    def test_threads_share_a_trace_and_python_goes_on(self):
        wanted = self.trace.whatif("amp").to_dict()
        got, ticks, done = [], [], threading.Event()

        def tick():
            while not done.is_set():
                ticks.append(time.monotonic())
                time.sleep(0.001)

        ticker = threading.Thread(target=tick)
        ticker.start()
        asking = [
            threading.Thread(target=lambda: got.append(self.trace.whatif("amp").to_dict()))
            for _ in range(3)
        ]
        begun = time.monotonic()
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
        took = time.monotonic() - begun
        done.set()
        ticker.join()
        self.assertEqual(got, [wanted] * 3)
        during = sum(1 for t in ticks if begun <= t <= begun + took)
        self.assertGreater(during, 20)  # with the lock held: one between two questions

    def test_notebooks_show_tables_and_bars_of_names_that_are_no_markup(self):
        r = self.trace.whatif("amp,fuse")
        shown = r._repr_html_()
        self.assertIn("<table>", shown)
        self.assertIn("<svg", shown)
        self.assertIn("amp + fuse", repr(r))
        named = copy.deepcopy(r.to_dict())
        named["scenarios"][-1]["name"] = "</svg><script>alert(1)</script>"
        self.assertNotIn("<script>", dd.WhatIf(named)._repr_html_())
        self.assertIn("<td>5</td>", self.trace._repr_html_())
        self.assertIn("launch", repr(dd.load(SMALL)))


class Errors(unittest.TestCase):
    def fails(self, code, ask):
        with self.assertRaises(dd.Error) as caught:
            ask()
        self.assertEqual(caught.exception.code, code)
        return caught.exception

    def test_they_are_those_of_the_command(self):
        with tempfile.TemporaryDirectory() as folder:
            cases = [
                ("whatif", os.path.join(folder, "none.json")),
                ("whatif", TRACE, "--opt", "ampp"),
                ("whatif", TRACE, "--opt", "amp(dtype=int3)"),
                ("whatif", TRACE, "--opt", "amp,,fuse"),
            ]
            other = os.path.join(folder, "text.json")
            with open(other, "w") as f:
                f.write("no trace")
            cases.append(("whatif", other))
            for case in cases:
                exit_code, _, text = command(*case)
                with self.assertRaises(dd.Error) as caught:
                    dd.load(case[1]).whatif(*case[3:])
                error = caught.exception
                self.assertIn("error[%s]" % error.code, text)
                self.assertEqual(error.exit_code, exit_code)
                self.assertIn(error.what, str(error))

    def test_an_optimization_that_changes_nothing(self):
        trace = dd.load(TRACE)
        error = self.fails("E0601", lambda: trace.whatif("flash-attn"))
        self.assertEqual(error.exit_code, 4)
        self.assertIsNone(error.result.step_ms)
        self.assertIsNotNone(error.result.baseline_ms)
        kept = trace.whatif("flash-attn", allow_no_effect=True)
        self.assertEqual(kept.to_dict(), answer("whatif", TRACE, "--opt", "flash-attn"))

    def test_wrong_arguments(self):
        trace = dd.load(TRACE)
        self.fails("E0104", lambda: dd.load(TRACE, steps="x"))
        self.fails("E0437", lambda: dd.load(RANKS, steps="1"))
        self.fails("E0104", lambda: trace.summary(by="colour"))
        self.fails("E0104", lambda: trace.whatif("amp", max_replay_error="much"))
        self.fails("E0108", lambda: trace.whatif("amp", values={"amp": 1}))
        self.fails("E0437", lambda: trace.ranks())
        self.fails("E0103", lambda: trace.whatif(""))
        self.fails("E0103", lambda: trace.whatif([]))
        self.fails("E0602", lambda: trace.whatif("amp", max_replay_error="0%"))
        self.assertRaises(TypeError, lambda: trace.whatif(3))
        self.assertRaises(TypeError, lambda: trace.whatif("amp", values=["amp"]))
        self.assertRaises(TypeError, lambda: dd.load(None))
        self.assertRaises(TypeError, lambda: dd.load(TRACE, nonsense=1))

    def test_a_path_may_be_bytes_or_a_path(self):
        self.assertEqual(dd.load(os.fsencode(SMALL)).path, SMALL)
        self.assertEqual(dd.load(pathlib.Path(SMALL)).path, SMALL)

    def test_an_error_goes_between_processes(self):
        error = self.fails("E0102", lambda: dd.load(TRACE).whatif("ampp"))
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(again), again.code), (str(error), "E0102"))

    def test_interrupting_a_question_ends_it(self):
        program = (
            "import daydream as dd, sys\n"
            "t = dd.load(%r)\n"
            "print('asking', flush=True)\n"
            "try:\n"
            "    while True: t.sweep('speedup(class:conv,by=1..1000)', jobs=1)\n"
            "except KeyboardInterrupt:\n"
            "    print('interrupted', t.steps)\n" % TRACE
        )
        child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        self.assertEqual(child.stdout.readline().strip(), b"asking")
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        text, _ = child.communicate(timeout=60)
        self.assertEqual(text.strip(), b"interrupted 5")
        self.assertEqual(child.returncode, 0)

    def test_what_weakens_an_answer_is_a_warning(self):
        with warnings.catch_warnings(record=True) as caught, tempfile.TemporaryDirectory() as folder:
            warnings.simplefilter("always")
            cut = os.path.join(folder, "cut.ddtrace")
            with open(TRACE, "rb") as whole, open(cut, "wb") as part:
                data = whole.read()
                part.write(data[: len(data) * 9 // 10])
            try:
                dd.load(cut)
            except dd.Error:
                self.skipTest("nothing is left of the recording that was cut")
        said = command("info", TRACE)
        self.assertEqual(said[0], 0)
        self.assertTrue(all(issubclass(w.category, dd.Warning) for w in caught))

    def test_nothing_is_printed(self):
        program = "import daydream as dd; dd.load(%r).whatif('amp,fuse')" % TRACE
        done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        self.assertEqual(done.stdout, b"")


if __name__ == "__main__":
    unittest.main()
