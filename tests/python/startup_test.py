"""How recording gets into a Python process, and that it never gets in the way."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import harness

harness.need_torch()
SITE = os.path.join(harness.PYTHON_DIR, "site")
IDLE = "import sys; print('daydream_torch' in sys.modules, any('daydream' in p for p in sys.path))"
CALL = "import torch; torch.nn.ReLU()(torch.ones(1)); print('done')"


class Startup(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def test_torch_is_marked_when_it_is_imported(self):
        result = harness.run(CALL)
        self.assertEqual((result.code, result.out, result.err), (0, "done\n", ""))
        self.assertEqual(harness.paths(result.marks), ["ReLU"])

    def test_importing_torch_says_facts_only(self):
        result = harness.run("import torch")
        self.assertEqual({m.kind for m in result.marks}, {"NOTE"})

    def test_only_the_ranks_asked_for_are_marked(self):
        for rank, marked in (("0", True), ("1", False), ("x", True)):
            marks = harness.run(CALL, "ranks=0,2", env={"RANK": rank}).marks
            self.assertEqual(bool(marks), marked, rank)

    def test_layers_are_announced_right_before_the_first(self):
        kinds = [m.kind for m in harness.run(CALL).marks if m.kind != "NOTE"]
        self.assertEqual(kinds, ["LABELS_BEGIN", "LAYER_BEGIN", "LAYER_END"])

    def test_a_gpu_that_never_becomes_idle_does_not_keep_the_program(self):
        script = CALL + """
import sys, threading, time
sys.modules["daydream_torch.install"].LIMIT_S = 0.1
torch.cuda.is_initialized = lambda: True
torch.cuda.current_device = lambda: threading.current_thread() is threading.main_thread() and 3
torch.cuda.synchronize = lambda device: (print("waits for", device), threading.Event().wait())
class Event:
    def record(self, stream): print("waits for", torch.cuda.current_device())
    def query(self): return False
torch.cuda.Event, torch.cuda.default_stream = Event, lambda: None
"""
        no_thread = """
def start(self): raise RuntimeError("can't create new thread at interpreter shutdown")
threading.Thread.start = start
"""
        for end in ("", no_thread):
            result = harness.run(script + end)
            self.assertEqual((result.code, result.out, result.err), (0, "done\nwaits for 3\n", ""))
            self.assertEqual(harness.paths(result.marks), ["ReLU"])

    def test_a_part_of_ours_that_fails_costs_one_line(self):
        env = {"PYTHONPATH": SITE + os.pathsep + self.folder}
        self.write("later.py", "print('imported')")
        script = """
import functools, torch
from daydream_torch.imports import when_imported
def fail(what, module): raise ValueError(what)
when_imported("later", functools.partial(fail, "ours"))
when_imported("torch", functools.partial(fail, "ours, too"))
import later
"""
        result = harness.run(script, env=env)
        self.assertEqual((result.code, result.out), (0, "imported\n"), result.err)
        complaints = harness.complaints(result)
        self.assertEqual(len(complaints), 2, result.err)
        self.assertIn("failed: ValueError('ours')", complaints[1])

    def test_a_lazy_model_is_described_without_its_lazy_parameters(self):
        script = """
import torch
torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.LazyLinear(4))(torch.ones(1, 2))
"""
        result = harness.run(script)
        self.assertEqual((result.code, harness.complaints(result)), (0, []))
        models = [m.name for m in result.marks if m.kind == "NOTE" and "model" in m.name]
        self.assertIn("Sequential parameters=9 lazy=2", models[0])

    def test_a_program_without_torch_pays_nothing(self):
        result = harness.run("import sys; print('ctypes' in sys.modules, sys.path[1:2])")
        self.assertEqual((result.code, result.marks), (0, []))
        self.assertNotIn(SITE, result.out)
        self.assertTrue(result.out.startswith("False"))

    def test_without_a_session_nothing_happens(self):
        result = harness.run(IDLE, env={"DAYDREAM_SESSION_ID": ""})
        self.assertEqual((result.code, result.out, result.err), (0, "False False\n", ""))

    def test_a_hidden_sitecustomize_runs(self):
        self.write("sitecustomize.py", "import builtins; builtins.hidden = __file__")
        result = harness.run(
            "import sitecustomize\nprint(hidden, sitecustomize.__file__)",
            env={"PYTHONPATH": SITE + os.pathsep + self.folder},
        )
        path = os.path.join(self.folder, "sitecustomize.py")
        self.assertEqual((result.out, result.err), ("%s %s\n" % (path, path), ""))

    def test_a_hidden_sitecustomize_that_fails_fails_as_always(self):
        self.write("sitecustomize.py", "raise ValueError('theirs')")
        for path in (self.folder, SITE + os.pathsep + self.folder):
            result = harness.run("print('done')", env={"PYTHONPATH": path})
            self.assertEqual((result.code, result.out), (0, "done\n"))
            self.assertIn("ValueError: theirs", result.err)

    def test_a_recorder_that_cannot_be_loaded_costs_one_line(self):
        result = harness.run(CALL, env={"DAYDREAM_INJECT": "/nowhere/libdaydream_inject.so"})
        self.assertEqual((result.code, result.out), (0, "done\n"))
        self.assertEqual(len(result.err.splitlines()), 1, result.err)

    def test_an_import_that_fails_fails_as_without(self):
        self.write("torch.py", "raise ImportError('not today')")
        script = "\n".join(["try: import torch", "except ImportError as e: print(e)"] * 2)
        result = harness.run(script, env={"PYTHONPATH": SITE + os.pathsep + self.folder})
        self.assertEqual((result.code, result.out), (0, "not today\nnot today\n"))

    def test_an_isolated_python_is_marked_through_the_folder(self):
        package = os.path.join(harness.PYTHON_DIR, "daydream_torch")
        for flags in (("-I",), ("-s",)):
            script = "import sys; print(sys.argv[1:])\n" + CALL
            result = harness.run(script, flags=flags, before=(package,), args="ab")
            self.assertEqual((result.code, result.err), (0, ""))
            self.assertEqual(result.out, "['a', 'b']\ndone\n")
            self.assertEqual(harness.paths(result.marks), ["ReLU"])

    def test_it_runs_as_a_module_and_runs_modules(self):
        env = {"PYTHONPATH": harness.PYTHON_DIR}
        result = harness.run(CALL, env=env, before=("-m", "daydream_torch"))
        self.assertEqual(result.out, "done\n", result.err)
        self.assertEqual(harness.paths(result.marks), ["ReLU"])
        self.write("tool.py", "import sys; print(__name__, sys.argv[1:])")
        done = subprocess.run(
            [sys.executable, "-m", "daydream_torch", "-m", "tool", "x"],
            env=dict(os.environ, **env), cwd=self.folder, stdout=subprocess.PIPE,
        )  # fmt: skip
        self.assertEqual(done.stdout, b"__main__ ['x']\n")

    def test_a_virtual_environment_is_marked(self):
        import torch

        home = os.path.join(self.folder, "venv")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
        script = self.write("program.py", CALL)
        log = os.path.join(self.folder, "marks")
        torch_home = os.path.dirname(os.path.dirname(torch.__file__))
        env = dict(os.environ, MARK_LOG=log, **harness.session(""))
        env["PYTHONPATH"] = os.pathsep.join([SITE, torch_home])
        subprocess.run([os.path.join(home, "bin", "python"), script], env=env, check=True)
        with open(log) as file:
            self.assertIn("ReLU", file.read())

    def test_nothing_needs_to_be_written(self):
        package = os.path.join(self.folder, "python")
        shutil.copytree(harness.PYTHON_DIR, package, ignore=shutil.ignore_patterns("__pycache__"))
        for root, _, _ in os.walk(package):
            os.chmod(root, 0o500)
        env = {"PYTHONPATH": os.path.join(package, "site"), "HOME": "/nowhere"}
        env["PYTHONDONTWRITEBYTECODE"] = ""
        result = harness.run(CALL, env=env)
        for root, _, _ in os.walk(package):
            os.chmod(root, 0o700)
        self.assertEqual((result.code, harness.paths(result.marks)), (0, ["ReLU"]))

    def test_every_python_of_the_process_tree_is_marked_once(self):
        script = """
import subprocess, sys
if len(sys.argv) == 1: subprocess.run([sys.executable, __file__, "child"], check=True)
import torch; torch.nn.ReLU()(torch.ones(1))
"""
        result = harness.run(script)
        self.assertEqual(harness.paths(result.marks), ["ReLU", "ReLU"])
        self.assertEqual(len({m.pid for m in result.marks}), 2)

    def test_ctrl_c_keeps_the_marks(self):
        script = CALL + "\nimport os, signal, time\nos.kill(os.getpid(), signal.SIGINT); time.sleep(9)"
        result = harness.run(script)
        self.assertEqual(result.code, -signal.SIGINT)
        self.assertEqual(harness.paths(result.marks), ["ReLU"])

    def test_a_forked_child_does_not_end_the_record_of_its_parent(self):
        script = CALL + """
import os, sys
if os.fork() == 0: sys.exit(0)
os.wait()
torch.nn.Tanh()(torch.ones(1))
"""
        result = harness.run(script)
        self.assertEqual(harness.paths(result.marks), ["ReLU", "Tanh"])


if __name__ == "__main__":
    harness.main()
