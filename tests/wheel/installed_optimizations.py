"""Runs in the environment that the wheel was installed into: optimizations in Python give what the
built-in ones give, and their mistakes end in an exception."""

import ast
import inspect
import os
import threading
import unittest

import daydream as dd

SOURCE = os.environ["DAYDREAM_SOURCE"]
TRACE = os.path.join(SOURCE, "examples", "resnet50-synthetic.ddtrace")

COUNTED = ("step_ns", "step_ms", "speedup", "changed", "bound_by", "steps_ms")


class Optimizations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.trace = dd.load(TRACE)

    def same(self, mine, built_in):
        got = self.trace.whatif(mine, interval=False).main
        wanted = self.trace.whatif(built_in, interval=False).main
        self.assertEqual({k: got[k] for k in COUNTED}, {k: wanted[k] for k in COUNTED})
        self.assertEqual([(c["what"], c["delta_ns"]) for c in got["causes"]],
                         [(c["what"], c["delta_ns"]) for c in wanted["causes"]])
        self.assertNotEqual(got["step_ns"], self.trace.whatif().main["step_ns"])

    def test_scaling_is_speedup(self):
        @dd.optimization
        def faster(edit, by=2):
            edit.cause("class:conv runs 2x faster")
            edit.scale(edit.select("class:conv"), 1 / by)

        self.same(faster, "speedup(class:conv,by=2)")

    def test_removing_is_remove(self):
        @dd.optimization
        def without(edit):
            edit.cause("kernel:bn_ is gone")
            edit.remove(edit.select("kernel:bn_"))

        self.same(without, "remove(kernel:bn_)")

    def test_fusing_is_fuse(self):
        pattern = "class:elementwise"

        @dd.optimization
        def merged(edit, passes=2.5):
            for run in edit.runs(edit.select(pattern)):
                ns = edit.fused_time_ns(run, passes, kept=0, floor_ns=FLOOR_NS)
                edit.merge(run, "fused_pattern_%d" % len(run), ns, pattern + " merged")

        self.same(merged, "fuse('%s',kept=0,floor=%gus)" % (pattern, FLOOR_NS / 1000))

    def test_ranges_make_intervals(self):
        @dd.optimization(ranges={"by": (1.5, 3)})
        def faster(edit, by=2.0):
            edit.scale(edit.select("class:conv"), 1 / by)

        low, high = self.trace.whatif(faster).interval_ms
        slow = self.trace.whatif(faster(by=1.5), interval=False).step_ms
        fast = self.trace.whatif(faster(by=3), interval=False).step_ms
        self.assertLess(fast * 0.98, low)
        self.assertLess(high, slow * 1.02)
        self.assertLess(low, high)

    def test_it_goes_with_built_in_ones(self):
        @dd.optimization
        def later(edit):
            "Ends later"
            edit.note("as told")
            kernels = edit.select("kind:kernel")
            edit.insert_after(kernels[-1], "epilogue", 2e6)
            edit.insert_before(edit.select("kind:call")[0], "prologue", 1000)

        r = self.trace.whatif(["amp", later])
        self.assertEqual(r.main["opts"], ["later", "amp"])
        self.assertIn("as told", " ".join(r.notes))
        self.assertEqual([s["name"] for s in r.scenarios[1:3]].count("later"), 1)

    def test_what_no_answer_counts_changes_nothing(self):
        @dd.optimization
        def first_step(edit):
            edit.scale([t for t in edit.select("class:conv") if edit.task(t)["step"] == 0], 0.5)

        with self.assertRaises(dd.Error) as caught:
            self.trace.whatif(first_step)
        self.assertEqual(caught.exception.code, "E0601")
        self.assertIn("in the steps that count", caught.exception.what)

    def test_help_says_what_the_stub_says(self):
        stub = os.path.join(os.path.dirname(dd.__file__), "_daydream.pyi")
        with open(stub, encoding="utf-8") as f:
            (edit,) = [n for n in ast.parse(f.read()).body if getattr(n, "name", "") == "Edit"]
        self.assertEqual(inspect.getdoc(dd.Edit), ast.get_docstring(edit))
        methods = {n.name: ast.get_docstring(n) for n in edit.body if hasattr(n, "name")}
        self.assertEqual(set(methods), {n for n in vars(dd.Edit) if not n.startswith("_")})
        for name, text in methods.items():
            shown = inspect.getdoc(getattr(dd.Edit, name))  # begins with the signature
            self.assertEqual(shown.split("\n", 1)[1].strip(), text, name)

    def test_everything_public_has_a_docstring(self):
        for name in dd.__all__:
            thing = getattr(dd, name)
            self.assertTrue(thing.__doc__, name)
            if not isinstance(thing, type):
                continue
            for method, value in vars(thing).items():
                if method.startswith("_") and method not in ("__call__", "__enter__", "__exit__"):
                    continue
                if callable(value) or isinstance(value, (property, classmethod)):
                    self.assertTrue(getattr(value, "__doc__", None), "%s.%s" % (name, method))

    def test_relations_select_what_is_between(self):
        seen = {}

        @dd.optimization
        def look(edit):
            seen["relu"] = edit.select("kernel:bn_fw")
            seen["between"] = edit.select("kernel:bn_fw", relation="between")
            seen["first"] = edit.select("kernel:bn_fw", relation="first")
            seen["times"] = edit.times_ns(seen["relu"])
            seen["names"] = set(edit.names(seen["relu"]))
            seen["task"] = edit.task(seen["relu"][0])
            edit.scale(seen["relu"], 0.5)

        self.trace.whatif(look, interval=False)
        self.assertGreater(len(seen["between"]), len(seen["relu"]))
        self.assertFalse(set(seen["first"]) - set(seen["relu"]))
        self.assertTrue(all(t > 0 for t in seen["times"]))
        self.assertTrue(all("bn_fw" in name for name in seen["names"]))
        self.assertTrue(seen["task"]["gpu"])
        self.assertEqual(seen["task"]["time_ns"], seen["times"][0])

    def test_one_that_changes_nothing_says_so(self):
        @dd.optimization
        def nothing(edit):
            pass

        with self.assertRaises(dd.Error) as caught:
            self.trace.whatif(nothing)
        self.assertEqual(caught.exception.code, "E0601")

    def test_what_it_raises_arrives(self):
        @dd.optimization
        def broken(edit):
            raise KeyError("mine")

        self.assertRaisesRegex(KeyError, "mine", lambda: self.trace.whatif(broken))
        threads = [threading.Thread(target=lambda: self.trace.whatif("amp")) for _ in range(2)]
        [t.start() for t in threads]
        self.assertRaises(KeyError, lambda: self.trace.whatif(broken, jobs=4))
        [t.join() for t in threads]

    def test_mistakes_are_errors_and_no_crash(self):
        kept = []

        def fails(code, wrong):
            def edits(edit):
                kept.append(edit)
                kernels = edit.select("kind:kernel")
                wrong(edit, kernels)
                self.fail("no error")

            with self.assertRaises(dd.Error) as caught:
                self.trace.whatif(dd.optimization(edits), interval=False)
            self.assertEqual(caught.exception.code, code)

        fails("E0438", lambda e, k: e.scale([-1], 2))
        fails("E0438", lambda e, k: e.scale([2**40], 2))
        fails("E0438", lambda e, k: e.remove([10**9]))
        fails("E0424", lambda e, k: e.scale(k, -1))
        fails("E0424", lambda e, k: e.scale(k, float("nan")))
        fails("E0424", lambda e, k: e.scale(k, 1e300))
        fails("E0424", lambda e, k: e.set_time(k, -5))
        fails("E0103", lambda e, k: e.select("kind:nothing-like-it"))
        fails("E0103", lambda e, k: e.select("kernel:x", relation="above"))
        fails("E0438", lambda e, k: e.fuse([], "x", 1))
        fails("E0438", lambda e, k: e.fuse(list(reversed(k[:2])), "x", 1))
        fails("E0438", lambda e, k: e.merge(e.select("kind:call")[:2], "x", 1, "y"))
        fails("E0424", lambda e, k: e.fuse(k[:1], "x", 1e30))
        fails("E0424", lambda e, k: e.fused_time_ns(k[:1], passes=0))
        fails("E0426", lambda e, k: [e.cause(str(i)) for i in range(2000)])
        fails("E0438", lambda e, k: [e.remove(k), e.fuse(k[:1], "x", 1)])
        self.assertRaisesRegex(dd.Error, "over", lambda: kept[0].select("kind:kernel"))

    def test_parameters_are_numbers_within_their_ranges(self):
        self.assertRaises(TypeError, lambda: dd.optimization(lambda edit, x: None))
        self.assertRaises(TypeError, lambda: dd.optimization(lambda edit, x="a": None))
        self.assertRaises(TypeError, lambda: dd.optimization(lambda edit: None, ranges={"x": (1, 2)}))
        self.assertRaises(
            ValueError, lambda: dd.optimization(lambda edit, x=3: None, ranges={"x": (1, 2)})
        )
        mine = dd.optimization(lambda edit, x=3: None, name="mine")
        with self.assertRaises(dd.Error) as caught:
            self.trace.whatif(mine(y=3))
        self.assertEqual(caught.exception.code, "E0103")


FLOOR_NS = 2000.0

if __name__ == "__main__":
    unittest.main()
